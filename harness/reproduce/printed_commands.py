"""What ``lm-eval-rag reproduce TABLE --dry-run`` prints: the commands of rows, and what to know before running them."""

from __future__ import annotations

import shlex
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lm_eval_rag.harness.reproduce.running import Job, Runner, sampling_command
from lm_eval_rag.harness.reproduce.table_spec import Row, Table

WIDTH = 120
SHARING = "Run rows as below, which shares equal calls between rows, sampled ones included; single lines do not:"
FILLING = "This command trains and runs all that is listed here, and writes the page:"
TAKING_OVER = (
    "The single lines below do not fill the page. Run that command after them, in the same folder: it takes over "
    "finished trainings from checkpoints/, and the calls of their evaluations from the journal."
)


def plan(
    table: Table, own: Sequence[Job], runner: Runner, command: Sequence[str], only: Sequence[str] | None
) -> Iterable[str]:
    """The commands, each line once: a checkpoint that several rows read is trained where it is first needed.

    Args:
        own: The evaluations that are listed.
        command: The words of the command that makes them all: ``lm-eval-rag reproduce``, the table and its options.
        only: The patterns of ``--only``; None for all rows.
    """
    printed: set[str] = set()
    rows, name = list({job.row.name: job.row for job in own}.values()), command[2]
    if not table.share_calls:
        yield from _comment(FILLING)
        yield f"#   {shlex.join(command)}"
        yield from _comment(TAKING_OVER)
    elif len(rows) > 1:
        yield from _comment(SHARING)
        default = Path("reproduced") / table.name
        place = [] if runner.out == default else ["--out", str(runner.out)]
        yield from (f"#   {line}" for line in _together(rows, [name, *place], only))
    if any(row.needs for row in rows):
        yield from (line for note in table.running for line in _comment(note))
    if any(job.sample for job in own):
        yield "# the questions that are sampled"
        yield sampling_command(name, runner.out, only)
    for job in own:
        needs = job.row.needs
        state = "finished" if runner.finished(job) else f"needs {needs}" if needs else "to run"
        yield f"# {job.row.name}: {state}"
        yield from (line for line in job.commands(runner.out) if line not in printed)
        printed.update(job.commands(runner.out))


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False,
                         break_long_words=False)  # fmt: skip


def _together(rows: Sequence[Row], words: Sequence[str], only: Sequence[str] | None) -> Iterator[str]:
    """The commands that run several rows: those that were asked for, or those whose names begin alike."""
    kinds = Counter(row.name.partition("-")[0] for row in rows if row.model)
    alike = [f"{kind}-*" for kind, number in kinds.items() if number > 1]
    for chosen in [[pattern] for pattern in alike] if len(kinds) > 1 and alike else [only or []]:
        yield shlex.join(["lm-eval-rag", "reproduce", *words, *(["--only", *chosen] if chosen else [])])
