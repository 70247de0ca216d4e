"""Whether lm_eval can write its results: tried before a run, and asked after it.

lm_eval notes a file of results that it could not write as a warning and ends with status 0.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.paths import output_folder

TRACKER = "lm_eval.loggers.evaluation_tracker"
UNSAVED = "Could not save"


def output_of(arguments: Sequence[Any]) -> Path | None:
    """The folder of ``--output_path``, among the arguments of ``HarnessCLI.execute``; None where there is none."""
    options = next((one for one in arguments if hasattr(one, "output_path")), None)
    if options is None or not options.output_path:
        return None
    path = Path(options.output_path)
    return path.parent if path.suffix == ".json" else path


def check_output(folder: Path | None) -> None:
    """Create the folder of the results before anything is computed.

    Raises:
        UserError: It cannot be created or written.
    """
    if folder is not None:
        output_folder(folder, "--output_path")


@contextmanager
def unsaved() -> Iterator[list[str]]:
    """What lm_eval could not save within the block, with the reason, whatever the level of its log."""
    logger, failures = logging.getLogger(TRACKER), list[str]()
    before, shown = logger.level, logger.getEffectiveLevel()

    def note(record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if message.startswith(UNSAVED):
            failures.append(message.removeprefix(UNSAVED).strip())
        elif failures and "(" not in failures[-1]:  # the reason follows in a line of its own
            failures[-1] += f" ({message})"
        return record.levelno >= shown

    logger.setLevel(min(shown, logging.INFO))
    logger.addFilter(note)
    try:
        yield failures
    finally:
        logger.removeFilter(note)
        logger.setLevel(before)
