"""Measured results for a model's card: out of lm_eval's results files, and out of the note its training left."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.checkpoints.note import Note
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.scoring import METRICS

HOW = "Give a results_<date>.json of lm_eval, or a folder with some (--output_path)."
KEYS = ("results", "n-samples", "config")


@dataclass(frozen=True, slots=True)
class Measured:
    """One number.

    Args:
        task: Name of the task, or of what was measured on.
        metric: Its name.
        value: As measured.
        stderr: Its standard error, where it is known.
        asked: Number of questions, where it is known.
        of: Number of questions of the whole task; a smaller ``asked`` is a part and is marked so.
        part: Which questions, where they are not the task's own.
        source: What it was read from.
    """

    task: str
    metric: str
    value: float
    stderr: float | None = None
    asked: int | None = None
    of: int | None = None
    part: str = ""
    source: str = ""

    @property
    def on(self) -> str:
        """The task, with which part of it was asked where that is not all."""
        part = self.part if self.asked == self.of else f"first {self.asked} of {self.of} questions"
        return f"{self.task} ({part})" if part else self.task


def from_files(given: Sequence[Path], model: Path, repo: str) -> list[Measured]:
    """Every score of the results files, which must be of the model in folder ``model``, or of ``repo``.

    Raises:
        UserError: Nothing is there, a file is no results file, or no argument of its run names this model.
    """
    return [row for one in given for path in _files(one) for row in _from_file(path, model, repo)]


def from_note(note: Note) -> list[Measured]:
    """The scores among the results of a training note: those on the dev questions, which training set aside."""
    tasks = ", ".join(note.tasks)
    return [
        Measured(tasks, name, value, part="dev questions", source="training")
        for name, value in note.results.items()
        if _is_score(name) and isinstance(value, int | float) and not isinstance(value, bool)
    ]


def _is_score(name: str) -> bool:
    return name.removeprefix("dev_").removesuffix("_before") in METRICS


def _files(given: Path) -> list[Path]:
    found = sorted(given.rglob("results*.json")) if given.is_dir() else [given]
    if not found or not given.exists():
        raise UserError(f"{given} holds no results. {HOW}")
    return found


def _from_file(path: Path, model: Path, repo: str) -> Iterator[Measured]:
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
        results, counts, config = (whole[key] for key in KEYS)
        given = config.get("model_args") or {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is not a results file ({type(error).__name__}: {error}). {HOW}") from None
    if not _is_of(given, model, repo):
        raise UserError(
            f"{path} is of another model: none of its model_args ({given}) names {model} or {repo}. Results are only "
            "published with the model that they were measured with."
        )
    for task, count in counts.items():
        for key, value in results.get(task, {}).items():
            metric, comma, filter_ = key.partition(",")
            if not comma or metric.endswith("_stderr") or isinstance(value, bool | str):
                continue
            stderr = results[task].get(f"{metric}_stderr,{filter_}")
            yield Measured(
                task,
                metric if filter_ == "none" else key,
                float(value),
                float(stderr) if isinstance(stderr, int | float) else None,
                count["effective"],
                count["original"],
                source=path.name,
            )


def _is_of(arguments: Mapping[str, Any] | str, model: Path, repo: str) -> bool:
    """Whether an argument of the run is the folder or the repository."""
    if isinstance(arguments, str):
        arguments = dict(part.partition("=")[::2] for part in arguments.split(","))
    values = [str(value) for value in arguments.values()]
    return any(value.partition("@")[0] == repo or Path(value).expanduser().resolve() == model for value in values)
