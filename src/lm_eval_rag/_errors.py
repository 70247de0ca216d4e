"""How lm_eval's command line ends: on bad input of ours with one message, on unscored questions with its own status.

Bad input (a UserError, or a name that is nearly one of ours) ends with status 2 and without a traceback, which
``LMEVAL_LOG_LEVEL=DEBUG`` shows. A run that leaves questions unscored writes its results and ends with status 3. One
that is interrupted ends at once with one line and status 130 (SIGINT) or 143 (SIGTERM). What the machine cannot do (a
full disk) ends with status 1, and so does every run whose results lm_eval could not write. All else ends as in a stock
lm_eval; where lm_eval is used as a library, nothing changes.
"""

from __future__ import annotations

import difflib
import logging
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from lm_eval_rag._register import MODELS, tasks_folder
from lm_eval_rag._saving import check_output, output_of, unsaved
from lm_eval_rag.harness.core.loop import INTERRUPTED, Terminated, in_a_call, leave
from lm_eval_rag.harness.plugin.trace_file import beside_samples, trace_in
from lm_eval_rag.harness.plugin.unscored import listening

FAILED, BAD_INPUT, UNSCORED = 1, 2, 3
NAMED = 10  # at most so many unscored questions are named


def our_tasks() -> list[str]:
    """The names of our tasks, groups and tags."""
    from lm_eval.tasks._index import TaskIndex

    return sorted(TaskIndex.build([tasks_folder()]))


# what lm_eval calls it, how its own error names those it does not know, our names
NOT_FOUND: tuple[tuple[str, str, Callable[[], Iterable[str]]], ...] = (
    ("task", r"Tasks not found: (.+)", our_tasks),
    ("model", r"Attempted to load model '([^']+)'", lambda: MODELS),
)


def plain_endings(cli: ModuleType) -> None:
    """Change ``lm_eval._cli.HarnessCLI.execute`` as said above, once."""
    if not hasattr(cli.HarnessCLI.execute, "__wrapped__"):
        cli.HarnessCLI.execute = _ending_plainly(cli.HarnessCLI.execute)


def _ending_plainly(stock: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(stock)
    def execute(*args: Any, **kwargs: Any) -> Any:
        output = output_of(args)
        beside_samples.set(_trace_beside(args, output))
        try:
            check_output(output)
            with listening() as unscored, unsaved() as failures:
                result = stock(*args, **kwargs)
        except KeyboardInterrupt:
            _stop(INTERRUPTED)
        except Terminated as error:
            _stop(int(str(error.code)))
        except ValueError as error:
            message = _message(error)
            if message is None or logging.getLogger("lm_eval").isEnabledFor(logging.DEBUG):
                raise
            _end(message, getattr(error, "status", BAD_INPUT))
        if failures:
            _end(
                f"lm_eval could not save {'; '.join(failures)} in --output_path {output}. Free space, or give another "
                "--output_path, and run the same command again: the journal holds every finished call.",
                FAILED,
            )
        if unscored:
            more = f" and {len(unscored) - NAMED} more" if len(unscored) > NAMED else ""
            _end(
                f"{len(unscored)} questions stay unscored: {', '.join(unscored[:NAMED])}{more}. The same command again "
                "asks only what is missing: the journal holds every finished call.",
                UNSCORED,
            )
        return result

    return execute


def _trace_beside(args: Sequence[Any], output: Path | None) -> Path | None:
    """Where the trace of a run goes that logs its samples: into the same output path."""
    if output is None or not any(getattr(one, "log_samples", False) for one in args):
        return None
    return trace_in(output)


def _stop(status: int) -> NoReturn:
    """End an interrupted process."""
    sys.stderr.write(
        "\nlm-eval-rag: interrupted. The same command again goes on: the journal holds every finished call.\n"
    )
    leave(status)


def _end(message: str, status: int) -> NoReturn:
    sys.stderr.write(f"lm-eval-rag: {message}\n")
    if in_a_call():
        leave(status)
    sys.exit(status)


def _message(error: ValueError) -> str | None:
    """What to say about an error of ours, or about a name lm_eval does not know that is nearly one of ours."""
    from lm_eval_rag.harness.common.errors import UserError, unknown

    if isinstance(error, UserError):
        return str(error)
    for kind, pattern, names in NOT_FOUND:
        found = re.match(pattern, str(error))
        for given in found.group(1).split(", ") if found else ():
            ours = list(names())
            if difflib.get_close_matches(given, ours):
                return str(unknown(kind, given, ours, hint=f"These are lm-eval-rag's; lm_eval's own {kind}s work too."))
    return None
