"""Upstream files as rows: JSON, JSON Lines, Parquet and tables, gzipped or not; every bad row is named."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from lm_eval_rag.harness.common.errors import UserError

Row = dict[str, Any]


def read_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """(where, row) of every row of a file, by its suffix: ``.json``, ``.jsonl``, ``.parquet``, ``.tsv``; with ``.gz``.

    Raises:
        UserError: The file is not what its suffix says.
    """
    kind = Path(path.name.removesuffix(".gz")).suffix
    for number, row in enumerate(_READERS[kind](path), start=1):
        yield f"{path.name}, row {number}", row


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Turn what goes wrong in a row into one message that names it; a UserError, which has its message, passes."""
    try:
        yield
    except UserError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise UserError(
            f"{where} does not have the dataset's form ({type(error).__name__}: {error}). Take the file that "
            "sources.toml pins, or mend this row."
        ) from None


def opened(path: Path) -> TextIO:
    """A text file in UTF-8, gzipped or not."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def read_tabs(path: Path) -> Iterator[tuple[str, list[str]]]:
    """(where, fields) of every line of a table without quoting: a quotation mark is a character."""
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            yield f"{path.name}, line {number}", line.rstrip("\r\n").split("\t")


def parsed(line: str, where: str) -> Any:
    """A JSON value."""
    try:
        return json.loads(line)
    except ValueError as error:
        raise UserError(f"{where} is not JSON ({error}).") from None


def _json(path: Path) -> Iterator[Any]:
    """The items of a list, or the (key, value) pairs of an object."""
    with opened(path) as file:
        content = parsed(file.read(), path.name)
    yield from content.items() if isinstance(content, dict) else content


def _jsonl(path: Path) -> Iterator[Any]:
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield parsed(line, f"{path.name}, line {number}")


def _tsv(path: Path) -> Iterator[list[str]]:
    csv.field_size_limit(sys.maxsize)
    with opened(path) as file:
        yield from csv.reader(file, delimiter="\t")


def _parquet(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1000):
                yield from batch.to_pylist()
    except pa.ArrowException as error:
        raise UserError(f"{path.name} is not Parquet ({error}).") from None


_READERS: dict[str, Callable[[Path], Iterator[Any]]] = {
    ".json": _json,
    ".jsonl": _jsonl,
    ".parquet": _parquet,
    ".tsv": _tsv,
}
