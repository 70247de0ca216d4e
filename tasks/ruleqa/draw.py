"""Seeded sampling that depends only on the seed and the sampled values, not on row order or a library's generator."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import polars as pl


def lots(frame: pl.DataFrame, columns: list[str], *, seed: int, stage: str) -> pl.Series:
    """One integer in [0, 2**64) per row: the hash of seed, stage and the row's values in ``columns``.

    Sorting by it shuffles the rows; different stages give independent shuffles.
    """
    keys: Iterable[tuple[object, ...]] = frame.select(columns).iter_rows()
    prefix = f"{seed}|{stage}|"
    digests = (hashlib.blake2b((prefix + "|".join(map(str, key))).encode(), digest_size=8).digest() for key in keys)
    return pl.Series("lot", [int.from_bytes(digest) for digest in digests], dtype=pl.UInt64)


def level(supply: list[int], total: int, filled: list[int] | None = None) -> list[int]:
    """How many to take from each class so that ``filled`` plus the taken counts are as equal as possible.

    Args:
        supply: Number available in each class.
        total: Number to take; everything is taken if less is available.
        filled: Number that each class already has (default: 0).

    Returns:
        Count per class; a remainder goes to the first classes.
    """
    filled = filled or [0] * len(supply)
    taken = [0] * len(supply)
    for _ in range(min(total, sum(supply))):
        open_classes = [i for i, most in enumerate(supply) if taken[i] < most]
        lowest = min(open_classes, key=lambda i: (filled[i] + taken[i], i))
        taken[lowest] += 1
    return taken
