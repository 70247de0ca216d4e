"""The Parquet files of built folders as Arrow tables, and their columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError

SMALL = 2**31 - 1  # bytes: places in one array of Arrow's type string have 32 bits


def read_parquet(path: Path, columns: Sequence[str], coded: Sequence[str] = ()) -> Any:
    """Columns of a Parquet file as an Arrow table; columns in ``coded`` are dictionary-encoded.

    Raises:
        UserError: The file is missing, truncated, or lacks a column.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, memory_map=True, read_dictionary=list(coded)) as file:
            table = {}
            for name in columns:  # one after the other, since joining the chunks of a column takes its memory twice
                table[name] = one_chunk(file.read([name], use_threads=False).column(name))
                pa.default_memory_pool().release_unused()
            return pa.table(table)
    except (OSError, pa.ArrowException, KeyError) as error:
        raise damaged(path, error) from None


def column_names(path: Path) -> tuple[str, ...]:
    """The columns of a Parquet file.

    Raises:
        UserError: The file is missing or truncated.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return tuple(pq.read_schema(path).names)
    except (OSError, pa.ArrowException) as error:
        raise damaged(path, error) from None


def damaged(path: Path, error: Exception) -> UserError:
    """The error for a missing or unreadable file of a built folder."""
    return UserError(
        f"{path} is missing or damaged ({str(error).splitlines()[0] if str(error) else type(error).__name__}). "
        f"Delete the folder {path.parent} and run again; it will be rebuilt."
    )


def one_chunk(column: Any) -> Any:
    """A column as one array, so that a row is read without a search for its chunk."""
    import pyarrow as pa

    if pa.types.is_string(column.type) and column.nbytes > SMALL:
        column = column.cast(pa.large_string())
    whole = column.combine_chunks()
    return whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole


def values(column: Any, rows: Sequence[int]) -> list[Any]:
    """The values of a column at some rows, in their order, as Python objects."""
    import pyarrow as pa

    part = column.take(pa.array(rows, pa.int64()))
    values: list[Any] = (part.dictionary_decode() if pa.types.is_dictionary(part.type) else part).to_pylist()
    return values


def encoded(column: Any) -> Any:
    """A column as dictionary and codes; it may be so already."""
    import pyarrow as pa

    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
