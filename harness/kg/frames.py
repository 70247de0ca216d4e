"""Rows of a pickled pandas frame, from the stand-ins of :mod:`lm_eval_rag.harness.kg.pickles`, without pandas.

Follows the layout of pandas' pickles; tried on frames that pandas 1.5, 2.1 and 2.2 pickled (the official files are of
2024). Text columns of pandas 3, which are in Arrow's memory, are refused.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.kg.pickles import Standin, array, listed, plain, read_inert

ARRAYS = ("_reconstruct", "_frombuffer")


def read_frame(file: BinaryIO, what: str) -> list[dict[str, Any]]:
    """The rows of a pickled frame as JSON-able objects; named levels of its index come first.

    Raises:
        UserError: The pickle is refused, or is not a frame.
    """
    raw = read_inert(file, what)
    try:
        blocks, (columns, index) = _manager(raw.state["_mgr"])
        names = [str(name) for (name,) in _levels(columns, what)[1]]
        cells = _cells(blocks, len(names), what)
        level_names, rows = _levels(index, what)
        keep = [i for i, name in enumerate(level_names) if name is not None]
        return [
            plain({**{level_names[i]: row[i] for i in keep}, **dict(zip(names, values, strict=True))}, what)
            for row, values in zip(rows, zip(*cells, strict=True), strict=True)
        ]
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(
            f"{what} is refused: it does not hold a frame of a known layout ({error}). Fetch the official file."
        ) from None


def _manager(manager: Any) -> tuple[list[Any], tuple[Any, Any]]:
    """The blocks and the axes (columns, index) of a block manager."""
    blocks, axes = manager.args[:2]
    return list(blocks), (axes[0], axes[1])


def _cells(blocks: list[Any], width: int, what: str) -> list[list[Any]]:
    """The values of every column, in the frame's order."""
    cells: dict[int, list[Any]] = {}
    for block in blocks:
        values, placement = block.args[:2]
        content = _values(values, what)
        rows = content if isinstance(content, np.ndarray) and content.ndim == 2 else [content]
        for place, row in zip(_places(placement, what), rows, strict=True):
            cells[place] = listed(row) if isinstance(row, np.ndarray) else list(row)
    return [cells[i] for i in range(width)]


def _places(placement: Any, what: str) -> list[int]:
    if placement.name == "slice":
        return list(range(*slice(*placement.args).indices(1 << 20)))
    return [int(place) for place in array(placement, what)]


def _values(values: Any, what: str) -> Any:
    """An array, or the list of an extension array's values, with None for missing ones."""
    if values.name in ARRAYS:
        return array(values, what)
    state = values.state
    if isinstance(state, dict) and "_mask" in state:
        data, mask = listed(array(state["_data"], what)), listed(array(state["_mask"], what))
        return [None if missing else value for value, missing in zip(data, mask, strict=True)]
    if values.name == "__pyx_unpickle_NDArrayBacked":
        return _backed(values, what)
    raise ValueError(f"a column is a {values.name}")


def _backed(values: Any, what: str) -> Any:
    """The array in a column of dates, texts or categories."""
    parts = values.state if isinstance(values.state, tuple) else ()
    inner = next(part for part in parts if isinstance(part, Standin) and part.name in ARRAYS)
    kind = next(part for part in parts if isinstance(part, Standin) and part is not inner)
    content = array(inner, what)
    if kind.name != "CategoricalDtype":
        return content
    categories = _index(kind.state["categories"], what)
    return [None if code < 0 else categories[code] for code in content.tolist()]


def _index(index: Any, what: str) -> list[Any]:
    """The values of a flat index."""
    parts = index.args[1]
    if "start" in parts:
        return list(range(parts["start"], parts["stop"], parts["step"]))
    values = _values(parts["data"], what)
    return listed(values) if isinstance(values, np.ndarray) else list(values)


def _levels(index: Any, what: str) -> tuple[list[Any], list[tuple[Any, ...]]]:
    """The names of an index's levels (None for a level without name) and the values of each row in them."""
    parts = index.args[1]
    if "levels" not in parts:
        return [parts.get("name")], [(value,) for value in _index(index, what)]
    columns = []
    for level, codes in zip(_items(parts["levels"]), _items(parts["codes"]), strict=True):
        values = _index(level, what)
        columns.append([None if code < 0 else values[code] for code in array(codes, what).tolist()])
    return list(_items(parts["names"])), list(zip(*columns, strict=True))


def _items(value: Any) -> list[Any]:
    """The items of a list, or of the frozen list in which pandas keeps levels."""
    if isinstance(value, Standin):
        return list(value.args[0]) if value.args else list(value.items)  # type: ignore[attr-defined]
    return list(value)
