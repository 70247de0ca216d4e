"""Measured results for a model card, from lm_eval's results files and from the training note."""

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
    """One measured number.

    Args:
        task: Name of the task or tasks.
        metric: Name of the metric.
        value: The measured value.
        stderr: Its standard error, or None if unknown.
        asked: Number of questions, or None if unknown.
        of: Number of questions of the whole task; if ``asked`` is smaller, the card says so.
        part: Which questions were used, if not the task's test questions.
        source: The file, or ``training``.
        is_first: Whether the metric is the first that the task shows.
    """

    task: str
    metric: str
    value: float
    stderr: float | None = None
    asked: int | None = None
    of: int | None = None
    part: str = ""
    source: str = ""
    is_first: bool = False

    @property
    def on(self) -> str:
        """The task, and the part of it that was used if not all."""
        part = self.part if self.asked == self.of else f"first {self.asked} of {self.of} questions"
        return f"{self.task} ({part})" if part else self.task


def from_files(paths: Sequence[Path], model: Path, repo: str) -> list[Measured]:
    """Every score in the results files, which must be from the model in folder ``model`` or from ``repo``.

    Raises:
        UserError: There are no results, a file is not a results file, or its run used another model.
    """
    return [row for path in paths for file in _files(path) for row in _from_file(file, model, repo)]


def from_note(note: Note) -> list[Measured]:
    """The scores in a training note: those on the dev questions, which were held out from training."""
    tasks = ", ".join(note.tasks)
    return [
        Measured(tasks, name, value, part="dev questions", source="training")
        for name, value in note.results.items()
        if _is_score(name) and isinstance(value, int | float) and not isinstance(value, bool)
    ]


def _is_score(name: str) -> bool:
    return name.removeprefix("dev_").removesuffix("_before") in METRICS


def _files(path: Path) -> list[Path]:
    files = sorted(path.rglob("results*.json")) if path.is_dir() else [path]
    if not files or not path.exists():
        raise UserError(f"{path} contains no results. {HOW}")
    return files


def _from_file(path: Path, model: Path, repo: str) -> Iterator[Measured]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        results, counts, config = (content[key] for key in KEYS)
        arguments = config.get("model_args") or {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is not a results file ({type(error).__name__}: {error}). {HOW}") from None
    if not _is_of(arguments, model, repo):
        raise UserError(
            f"{path} is from another model: none of its model_args ({arguments}) is {model} or {repo}. Give results of "
            "the model that is published."
        )
    for task, count in counts.items():
        first = _first_metric(content, task)
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
                is_first=key == f"{first},none",
            )


def _first_metric(content: Mapping[str, Any], task: str) -> str:
    """The first metric of the task's headline; exact match if it has none."""
    metadata = content.get("configs", {}).get(task, {}).get("metadata") or {}
    return str(next(iter(metadata.get("headline") or ()), "em"))


def _is_of(arguments: Mapping[str, Any] | str, model: Path, repo: str) -> bool:
    """Whether a model argument of the run is the folder or the repository."""
    if isinstance(arguments, str):
        arguments = dict(part.partition("=")[::2] for part in arguments.split(","))
    values = [str(value) for value in arguments.values()]
    return any(value.partition("@")[0] == repo or Path(value).expanduser().resolve() == model for value in values)
