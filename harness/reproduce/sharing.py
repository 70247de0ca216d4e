"""Calls that rows of a table have in common: made by the first row that needs them, taken over by the others.

A run's journal is that run's alone, so the rows of a ladder would repeat each other's calls, and draw other samples
from equal prompts. A table with ``share_calls = true`` keeps the finished calls of all its rows in one more journal. A
call's key is of the backend, the request and the number of the draw: what is taken over is what the row would have
asked, and two rows differ only where their prompts do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.plugin.arguments import Setup

CALLS = "calls.sqlite"  # in the output folder
SHARED = "shared"  # in place of a run's fingerprint


@contextmanager
def shared_calls(setup: Setup, shared: Path) -> Iterator[None]:
    """Puts the calls of ``shared`` into a run's journal before it, and that journal's into ``shared`` after it."""
    own = setup.journal_path(0)
    if own is None:
        yield
        return
    Journal(shared, SHARED).close()
    with closing(setup.open_journal()) as journal:
        journal.take_over(shared)
    try:
        yield
    finally:
        with closing(Journal(shared, SHARED)) as journal:
            journal.take_over(own)
