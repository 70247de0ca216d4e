"""Records of a large file as Parquet, of which a look-up reads only one row group."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

GROUP = 1_000  # rows of a Parquet row group, the unit that a look-up reads
KEPT = 16  # row groups that stay in memory
Row = tuple[str, Any]  # key, JSON-able value


class Records:
    """Key and JSON-able value of every record of a converted file, in the file's order.

    Args:
        path: The converted file.
        official: Whether it was converted from one of CRAG's files.
    """

    def __init__(self, path: Path, official: bool = False) -> None:
        import pyarrow.parquet as pq

        self.official = official

        self._file = pq.ParquetFile(path, memory_map=True)
        self._keys = self._file.read(["key"]).column("key")
        self._group = lru_cache(KEPT)(self._read)

    def __len__(self) -> int:
        return len(self._keys)

    def _read(self, group: int) -> Any:
        return self._file.read_row_group(group, ["value"]).column("value")

    @cached_property
    def keys(self) -> list[str]:
        """Every key, by row."""
        keys: list[str] = self._keys.to_pylist()
        return keys

    def at(self, row: int) -> Any:
        """The value of a row."""
        group, place = divmod(row, GROUP)
        return json.loads(self._group(group)[place].as_py())

    def get(self, key: str) -> Any:
        """The value of a key, None if there is no such key."""
        import pyarrow as pa
        import pyarrow.compute as pc

        row: int = pc.index(self._keys, pa.scalar(_storable(key), self._keys.type)).as_py()
        return None if row < 0 else self.at(row)

    def values(self) -> Iterator[Any]:
        """Every value, by row."""
        for group in range(self._file.num_row_groups):
            for text in self._read(group):
                yield json.loads(text.as_py())


def write_records(rows: Iterable[Row], path: Path) -> None:
    """Write rows into a Parquet file: a column of keys and one of JSON texts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("key", pa.large_string()), ("value", pa.large_string())])
    source = iter(rows)
    with pq.ParquetWriter(path, schema) as writer:
        while part := list(islice(source, GROUP)):
            keys = [_storable(key) for key, _ in part]
            texts = [json.dumps(value, allow_nan=False) for _, value in part]
            writer.write_table(pa.table([keys, texts], schema=schema))


def _storable(key: str) -> str:
    """A key as Parquet can hold it: a lone surrogate has no UTF-8."""
    return key.encode(errors="replace").decode()
