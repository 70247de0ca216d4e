"""What other libraries write to standard error goes to a file; our own lines and bars stay on the console.

Progress bars of lm_eval and transformers, its warnings of 700 characters, and what child processes such as git say are
of no use to whoever runs a command of ours. A log keeps them, to be read if something goes wrong.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from lm_eval_rag.harness.common.errors import UserError

OURS = "lm_eval_rag"  # name of our logger
STDERR = 2  # file descriptor
_consoles: list[TextIO] = []  # of the blocks that are open


def console() -> TextIO:
    """Where our own lines go: standard error, also while it is redirected."""
    return _consoles[-1] if _consoles else sys.stderr


@contextmanager
def quiet(level: int = logging.INFO) -> Iterator[Path]:
    """Redirect standard error of this process and its children to a file, except for our own messages.

    Args:
        level: The lowest level of our messages that stay on the console; the file has all.

    Yields:
        The file, among the temporary ones; a UserError that ends the block removes it.
    """
    number, name = tempfile.mkstemp(prefix="lm-eval-rag-", suffix=".log")
    path = Path(name)
    try:
        with (
            os.fdopen(number, "a", encoding="utf-8", errors="replace", buffering=1) as file,
            _redirected(file) as shown,
            _shown(level, shown),
        ):
            yield path
    except UserError:
        path.unlink(missing_ok=True)
        raise
    except BaseException as error:
        error.add_note(f"All that was written to standard error: {path}")
        raise


@contextmanager
def _shown(level: int, stream: TextIO) -> Iterator[None]:
    """Our messages of this level and above go to a stream, and those from INFO to the log."""
    ours, handler = logging.getLogger(OURS), logging.StreamHandler(stream)
    handler.setLevel(level)
    before = ours.level
    ours.addHandler(handler)
    ours.setLevel(min(level, logging.INFO))
    try:
        yield
    finally:
        ours.removeHandler(handler)
        ours.setLevel(before)


@contextmanager
def _redirected(file: TextIO) -> Iterator[TextIO]:
    """Standard error as the file; yields a stream on what it was before."""
    before, saved = sys.stderr, os.dup(STDERR)
    before.flush()
    shown = before
    if _number(before) == STDERR:
        shown = os.fdopen(os.dup(saved), "w", encoding=before.encoding, errors="backslashreplace", buffering=1)
    os.dup2(file.fileno(), STDERR)
    sys.stderr = file
    _consoles.append(shown)
    try:
        yield shown
    finally:
        _consoles.pop()
        sys.stderr = before
        os.dup2(saved, STDERR)
        os.close(saved)
        if shown is not before:
            shown.close()


def _number(stream: TextIO) -> int | None:
    """The file descriptor of a stream; None for one without, as in tests and notebooks."""
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return None
