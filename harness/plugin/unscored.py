"""Questions that stay unscored, as told to lm_eval's command line, which ends with status 3 because of them.

The command line does not hand out the results of its run, which have the ids too; so it listens while it runs. Each
``with listening()`` has a list of its own, and where lm_eval is used as a library nobody listens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[list[str] | None] = ContextVar("unscored", default=None)


@contextmanager
def listening() -> Iterator[list[str]]:
    """The ids of the questions that stay unscored while the block runs; a block within it has a list of its own."""
    ids: list[str] = []
    before = _listener.set(ids)
    try:
        yield ids
    finally:
        _listener.reset(before)


def tell(ids: Iterable[str]) -> None:
    """Name questions that stay unscored; nothing happens where nobody listens."""
    listener = _listener.get()
    if listener is not None:
        listener.extend(ids)
