"""The steps of every question of a run, from the trace files beside its results.

``lm_eval --output_path FOLDER --log_samples`` writes ``trace_<date>.jsonl.gz`` into FOLDER, and the results into a
folder in it; ``--model_args trace=FILE`` names another file. A file may hold several runs: a line belongs to a sample
if its calls, tokens and seconds are those of the sample's record.
"""

from __future__ import annotations

import gzip
import json
import logging
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.core.record import calls_of_each
from lm_eval_rag.harness.report.run_files import TaskRun

log = logging.getLogger(__name__)
Steps = Sequence[Mapping[str, Any]]
TOLERANCE = 2e-6  # records have their seconds to six digits


def read_steps(run: TaskRun) -> dict[str, Steps]:
    """Question id -> its steps in order; without the questions that no trace file has."""
    records = {id_: sample["doc"].get("_rag") for id_, sample in run.questions.items()}
    if not any(records.values()):
        return {}
    steps: dict[str, Steps] = {}
    for file in trace_files(run):
        for line in _lines(file):
            id_ = str(line.get("id"))
            record = records.get(id_)
            if record and line.get("task") == run.task and belongs(line, record):
                steps[id_] = line["steps"]
    return steps


def trace_files(run: TaskRun) -> list[Path]:
    """The trace files that may hold steps of a run: the one it names, and those in its folder and the folder above."""
    arguments = run.results["config"].get("model_args") or {}
    if isinstance(arguments, str):
        arguments = dict(part.partition("=")[::2] for part in arguments.split(","))
    named = [Path(str(arguments["trace"]))] if arguments.get("trace") else []
    named += [file for path in named for file in path.parent.glob(f"{path.stem}.rank*{path.suffix}")]
    folders = (run.path.parent, run.path.parent.parent)
    beside = [file for folder in folders for file in sorted(folder.glob("trace_*.gz"))]
    return [file for file in dict.fromkeys([*beside, *named]) if file.is_file()]


def belongs(line: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    """Whether a line of a trace has the calls, tokens and seconds of a sample's record."""
    steps = line["steps"]
    return (
        calls_of_each((step["ask"], len(step.get("finishes", ()))) for step in steps) == record.get("calls")
        and sum(step.get("prompt_tokens", 0) for step in steps) == record.get("prompt_tokens", 0)
        and sum(step.get("completion_tokens", 0) for step in steps) == record.get("completion_tokens", 0)
        and abs(sum(step.get("seconds", 0.0) for step in steps) - record.get("seconds", 0.0)) < TOLERANCE
    )


def _lines(file: Path) -> Iterator[Mapping[str, Any]]:
    """The lines of a trace file; of a damaged file those before the damage, with a warning."""
    try:
        with gzip.open(file, "rt", encoding="utf-8", errors="replace") as lines:
            for text in lines:
                line = json.loads(text)
                if isinstance(line, dict) and isinstance(line.get("steps"), list):
                    yield line
    except (OSError, EOFError, zlib.error, json.JSONDecodeError) as error:
        log.warning("%s is damaged or was cut (%s). The steps after the damage are not shown.", file, error)
