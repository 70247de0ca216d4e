"""Calls that several rows of a table make: the first row makes them, the others reuse them.

The journal of a run belongs to that run alone. So the rows of a ladder of modules would repeat each other's calls, and
sample different texts from equal prompts. A table with ``share_calls = true`` keeps the finished calls of all its rows
in one more journal. The key of a call holds the backend, the request and the sample index: a row only reuses calls that
it would have made, and two rows differ only where their prompts differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.plugin.arguments import Setup

CALLS = "calls.sqlite"  # in the output folder
SHARED = "shared"  # instead of a run's fingerprint


@contextmanager
def shared_calls(setup: Setup, shared: Path) -> Iterator[None]:
    """Copy the calls of ``shared`` into a run's journal before the run, and the journal's into ``shared`` after it."""
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
