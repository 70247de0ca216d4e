"""Rows of the user's tables: JSON Lines, JSON, CSV, TSV, Parquet, datasets on the Hub, frames, lists of dictionaries.

Each row is a :class:`Record`, which knows where it stands, so that an error can name the file and the line.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.common.paths import read_text
from lm_eval_rag.harness.documents.hub import HUB, hub_rows

TABULAR = ("to_dicts", "iterrows", "to_list", "collect_schema")  # polars, pandas, datasets, polars' LazyFrame
LONGEST_CELL = 1 << 30  # characters; Python's own limit of 128 Ki is less than a long document


@dataclass(frozen=True, slots=True)
class Record:
    """A row of a table.

    Args:
        where: The file and the line, or the place in a list, for messages.
        fields: Its values by column; empty cells are None.
    """

    where: str
    fields: Mapping[str, Any]

    @classmethod
    def of(cls, where: str, row: Mapping[Any, Any]) -> Record:
        """A row whose blank cells, and pandas' NaN and NaT, count as empty."""
        return cls(where, {str(name): None if _is_missing(value) else value for name, value in row.items()})

    def wrong(self, what: str) -> UserError:
        """An error about this row."""
        return UserError(f"{self.where}: {what}")

    def first(self, names: Iterable[str]) -> tuple[str, Any]:
        """The first of some columns that has a value, and the value; ("", None) if none has."""
        return next(((name, self.fields[name]) for name in names if self.fields.get(name) is not None), ("", None))

    def text(self, *names: str) -> str | None:
        """The first of some columns that has a value, as a text; None if none has.

        Raises:
            UserError: The value is a list, an object, or True or False.
        """
        name, value = self.first(names)
        return None if value is None else self.as_text(name, value)

    def as_text(self, name: str, value: Any) -> str:
        """A number, a date or a text as a text; raises as :meth:`text`."""
        if isinstance(value, str):
            return value
        if hasattr(value, "isoformat"):
            return str(value.isoformat()).removesuffix("T00:00:00")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong(f"{name!r} is {_shown(value)}. Give a text.")
        return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)

    def texts(self, name: str, value: Any) -> tuple[str, ...]:
        """A list of texts, or one text; a text that is a JSON list, as in a CSV file, counts as a list."""
        if isinstance(value, str) and value.lstrip().startswith("["):
            try:
                value = json.loads(value)
            except ValueError:  # a text that begins with a bracket
                return (str(value),)
        value = value.tolist() if hasattr(value, "tolist") else value  # an array, as pandas has it
        items = value if isinstance(value, (list, tuple)) else [value]
        return tuple(self.as_text(name, item) for item in items)


def is_table(source: Any) -> bool:
    """Whether :func:`records` reads it: a file with a known ending, ``hub:``, a frame or a dataset."""
    if isinstance(source, (str, Path)):
        return str(source).startswith(HUB) or Path(source).suffix.lower() in READERS
    return any(callable(getattr(source, name, None)) for name in TABULAR)


def records(source: Any, what: str) -> Iterator[Record]:
    """The rows of a table.

    Args:
        source: A path, ``hub:ORG/NAME``, a frame of pandas or polars, a ``datasets.Dataset``, or dictionaries.
        what: What the rows are, for messages: ``documents``.

    Raises:
        UserError: It cannot be read, or a row is not a set of named values.
    """
    if isinstance(source, (str, Path)) and not str(source).startswith(HUB):
        path = Path(source)
        if path.suffix.lower() not in READERS:
            raise unknown(f"ending of {path.name}", path.suffix, READERS, f"Give {what} as one of these files.")
        yield from READERS[path.suffix.lower()](path)
        return
    rows, name = (hub_rows(source), source) if isinstance(source, str) else (_rows(source), what)
    for number, row in enumerate(rows, start=1):
        where = f"{name}, row {number}"
        if not isinstance(row, Mapping):
            raise UserError(f"{where}: {_shown(row)} is not a row of named values. Give dictionaries.")
        yield Record.of(where, row)


def _rows(source: Any) -> Iterable[Any]:
    """The rows of a frame or a dataset as dictionaries; other things as they are."""
    if hasattr(source, "collect") and hasattr(source, "collect_schema"):  # a LazyFrame
        source = source.collect()
    if hasattr(source, "to_dicts"):  # polars
        return source.iter_rows(named=True)  # type: ignore[no-any-return]
    if hasattr(source, "iterrows"):  # pandas
        return source.to_dict("records")  # type: ignore[no-any-return]
    return source  # type: ignore[no-any-return]


def _json_lines(path: Path) -> Iterator[Record]:
    for number, line in enumerate(read_text(path, "Give a UTF-8 file of JSON Lines.").split("\n"), start=1):
        if line.strip():
            where = f"{path}, line {number}"
            yield _of_object(where, _parsed(line, where, "Write one object per line."))


def _json_list(path: Path) -> Iterator[Record]:
    rows = _parsed(read_text(path, "Give a UTF-8 file."), str(path), "Give a list of objects.")
    if not isinstance(rows, list):
        raise UserError(f"{path}: found {_shown(rows)}. Give a list of objects, or JSON Lines as .jsonl.")
    for number, row in enumerate(rows, start=1):
        yield _of_object(f"{path}, row {number}", row)


def _separated(path: Path, separator: str) -> Iterator[Record]:
    csv.field_size_limit(LONGEST_CELL)
    text = read_text(path, "Save it as UTF-8.").removeprefix("\ufeff")
    reader = csv.reader(text.splitlines(keepends=True), delimiter=separator, strict=True)
    try:
        head = [name.strip() for name in next(reader, [])]
        if len(set(head)) < len(head) or not all(head):
            raise UserError(f"{path}, line 1: the columns are {head}. Give each column a name of its own.")
        if len(head) == 1 and ";" in head[0]:
            raise UserError(f"{path}, line 1: the columns are separated by ';'. Separate them by ','.")
        for cells in reader:
            where = f"{path}, line {reader.line_num}"
            if len(cells) > len(head) or (cells and len(cells) < len(head)):
                raise UserError(
                    f"{where}: {len(cells)} cells, but the first line has {len(head)} columns. Put a cell that holds "
                    f"{separator!r} in double quotes."
                )
            if any(map(str.strip, cells)):
                yield Record.of(where, dict(zip(head, cells, strict=True)))
    except csv.Error as error:
        raise UserError(f"{path}, line {reader.line_num}: {error}. Close every double quote.") from None


def _parquet(path: Path) -> Iterator[Record]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise UserError(f"{path} cannot be read: it does not exist.")
    number = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    number += 1
                    yield Record.of(f"{path}, row {number}", row)
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{path} is not a Parquet file, or it is truncated ({str(error).splitlines()[0]}).") from None


READERS: dict[str, Callable[[Path], Iterator[Record]]] = {
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json_list,
    ".csv": lambda path: _separated(path, ","),
    ".tsv": lambda path: _separated(path, "\t"),
    ".parquet": _parquet,
}


def _parsed(text: str, where: str, advice: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UserError(f"{where}: not JSON ({error}). {advice}") from None


def _of_object(where: str, row: Any) -> Record:
    if not isinstance(row, dict):
        raise UserError(f"{where}: found {_shown(row)}. Give an object with named values.")
    return Record.of(where, row)


def _is_missing(value: Any) -> bool:
    """Whether a cell is empty: blank, or pandas' NaN and NaT."""
    if isinstance(value, str):
        return not value.strip()
    return (isinstance(value, float) and math.isnan(value)) or type(value).__name__ in ("NaTType", "NAType")


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
