"""What preparations made, on disk: content-addressed folders ``$LM_EVAL_RAG_CACHE/prepared/<hash>``.

A folder has one Parquet file a table, and ``meta.json``, which says what it was made from and what it cost. A table
with the columns ``id`` and ``text`` is a corpus, whose index is stored in a subfolder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.common.paths import cache_dir, hash_of
from lm_eval_rag.harness.core.preparing import Product, Row
from lm_eval_rag.harness.data.corpus import COLUMNS, Corpus
from lm_eval_rag.harness.data.folders import META, check_folder, content_folder, content_hash
from lm_eval_rag.harness.data.tables import damaged, read_parquet

FOLDER = "prepared"


def find_product(inputs: Mapping[str, Any]) -> str | None:
    """The id of the product that was made from these inputs; None if there is none.

    Raises:
        UserError: Its folder is damaged.
    """
    id = f"{FOLDER}/{content_hash(inputs)}"
    if not (cache_dir() / id).is_dir():
        return None
    check_folder(cache_dir() / id)
    return id


def store_product(inputs: Mapping[str, Any], product: Product, account: Mapping[str, Any]) -> str:
    """Write a product; its id.

    Args:
        inputs: All that it depends on, as a JSON value.
        account: What it cost.

    Raises:
        MachineError: It cannot be written.
    """

    def write(folder: Path) -> Mapping[str, Any]:
        import pyarrow.parquet as pq

        for name, rows in product.tables.items():
            pq.write_table(_table(rows), folder / f"{name}.parquet")
        sizes = {name: len(rows) for name, rows in product.tables.items()}
        hashes = {name: hash_of(folder / f"{name}.parquet") for name in product.tables}
        told = {"inputs": dict(inputs), "tables": sizes, "notes": dict(product.notes), "account": dict(account)}
        return {**told, "sha256": hashes}

    return content_folder(FOLDER, inputs, write)


class OpenProduct:
    """A stored product, read as far as it is needed.

    Args:
        id: ``prepared/<hash>``.
    """

    def __init__(self, id: str) -> None:
        self.id, self.folder = id, cache_dir() / id
        self._read: dict[Callable[..., Any], Any] = {}

    @cached_property
    def meta(self) -> dict[str, Any]:
        """What it was made from, and what it cost.

        Raises:
            UserError: It is missing or damaged.
        """
        try:
            meta = json.loads((self.folder / META).read_text(encoding="utf-8"))
            told = {name: meta[name] for name in ("inputs", "tables", "notes", "account")}
            return {**told, "sha256": meta.get("sha256", {})}  # products of earlier releases have none
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise damaged(self.folder / META, error) from None

    @cached_property
    def tables(self) -> Mapping[str, Sequence[Row]]:
        """The rows of all tables, by name; lists are lists, whatever they were."""
        return {name: self._arrow(name).to_pylist() for name in self.meta["tables"]}

    def view(self, read: Callable[[Mapping[str, Any]], Any]) -> Any:
        """What a function makes of the tables; it is called once."""
        if read not in self._read:
            self._read[read] = read(self.tables)
        return self._read[read]

    def corpus(self, name: str, *, stored: bool = True) -> Corpus:
        """A table as a corpus.

        Args:
            stored: Whether its index is stored, in a subfolder.

        Raises:
            UserError: There is no such table, or it has no texts.
        """
        import pyarrow as pa

        if name not in self.meta["tables"]:
            raise unknown("prepared table", name, self.meta["tables"])
        table = self._arrow(name)
        if not {"id", "text"} <= set(table.column_names):
            raise UserError(f"The prepared table {name!r} has no columns id and text, so it cannot be retrieved from.")
        texts = {column: table.column(column) for column in ("id", "text")}
        blank = pa.nulls(table.num_rows, pa.string())
        return Corpus(
            pa.table({column: texts.get(column, blank) for column in COLUMNS}),
            id=f"{self.id}/{name}",
            fingerprint=self.fingerprint(name),
            folder=self.folder / name if stored else None,
            empty=True,
        )

    def fingerprint(self, name: str) -> str:
        """Names a table's content: prepared again, the same inputs may give another, since a model's replies vary."""
        return f"{self.folder.name}/{name}/{self.meta['sha256'].get(name, '')[:16]}".rstrip("/")

    def _arrow(self, name: str) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.folder / f"{name}.parquet"
        try:
            columns = pq.read_schema(path).names
        except (OSError, pa.ArrowException) as error:
            raise damaged(path, error) from None
        return read_parquet(path, columns)


def _table(rows: Sequence[Row]) -> Any:
    """The rows as an Arrow table; what no file can hold of a text (half of a surrogate pair) becomes "?"."""
    import pyarrow as pa

    if not rows:
        return pa.table({name: pa.array([], pa.string()) for name in ("id", "text")})
    return pa.Table.from_pylist([{name: _storable(value) for name, value in row.items()} for row in rows])


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {name: _storable(one) for name, one in value.items()}
    return [_storable(one) for one in value] if isinstance(value, list | tuple) else value
