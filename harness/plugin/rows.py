"""A task's documents, read from its dataset once.

lm_eval goes through a dataset several times, and ``datasets`` decodes every row anew each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any


class Rows(Sequence[dict[str, Any]]):
    """The rows of a part of a dataset. Each access makes a new dictionary, which its user may fill.

    Args:
        dataset: A ``datasets.Dataset``.

    Attributes:
        features: The columns, as lm_eval asks for them.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.features: Mapping[str, Any] = dataset.features

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        """All values, by column; read when first needed."""
        columns: dict[str, list[Any]] = self._dataset.to_dict()
        return columns

    def __len__(self) -> int:
        return len(self._dataset)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        names = tuple(self.columns)
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(names, values, strict=True))

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[i] for i in range(len(self))[place]]
        return {name: values[place] for name, values in self.columns.items()}

    def references(self) -> list[Row]:
        """Every row as a reference, which reads nothing until it is looked into."""
        return [Row(self, place) for place in range(len(self))]


class Row(Mapping[str, Any]):
    """One row by reference."""

    __slots__ = ("_place", "_rows")

    def __init__(self, rows: Rows, place: int) -> None:
        self._rows, self._place = rows, place

    def __getitem__(self, name: str) -> Any:
        return self._rows.columns[name][self._place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows.features)

    def __len__(self) -> int:
        return len(self._rows.features)
