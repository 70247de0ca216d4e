"""Seeded draws that depend on the seed and the thing drawn alone: not on row order, nor on a library's generator."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import polars as pl


def lots(frame: pl.DataFrame, columns: list[str], *, seed: int, stage: str) -> pl.Series:
    """One whole number in [0, 2**64) a row: the hash of seed, stage and the row's values in ``columns``.

    Sorting by it shuffles; different stages give independent shuffles.
    """
    keys: Iterable[tuple[object, ...]] = frame.select(columns).iter_rows()
    prefix = f"{seed}|{stage}|"
    digests = (hashlib.blake2b((prefix + "|".join(map(str, key))).encode(), digest_size=8).digest() for key in keys)
    return pl.Series("lot", [int.from_bytes(digest) for digest in digests], dtype=pl.UInt64)


def level(supply: list[int], wanted: int, filled: list[int] | None = None) -> list[int]:
    """How many to take of each supply so that ``filled`` plus taken is as even as supply allows.

    Args:
        supply: What each class can give.
        wanted: Total to take; all is taken where supply is smaller.
        filled: What each class holds already (default none).

    Returns:
        Counts, class by class; what cannot be shared evenly goes to the first classes.
    """
    filled = filled or [0] * len(supply)
    taken = [0] * len(supply)
    for _ in range(min(wanted, sum(supply))):
        open_classes = [i for i, most in enumerate(supply) if taken[i] < most]
        lowest = min(open_classes, key=lambda i: (filled[i] + taken[i], i))
        taken[lowest] += 1
    return taken
