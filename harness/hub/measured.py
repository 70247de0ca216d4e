"""Measured results for a model card, from lm_eval's results files and from the training note."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.checkpoints.note import Note
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.generators.spec import NO_GENERATOR
from lm_eval_rag.harness.hub.published_note import is_local
from lm_eval_rag.harness.scoring import RETRIEVAL_METRICS

HOW = "Give a results_<date>.json of lm_eval, or a folder with some (--output_path)."
KEYS = ("results", "n-samples", "config")
BY_LM_EVAL = ("path", "batch_size", "max_batch_size", "device")  # change no answer
DEV_EM = "dev_em"  # percent, in the note of a generator


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
        conditions: What it was measured with: method, retriever and other arguments, version of the data.
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
    conditions: str = ""

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
    """The scores of the kept checkpoint in a training note, by task, on questions held out from the training pairs.

    Scores before training are none of this checkpoint.
    """
    settings, results = note.settings, note.results
    if note.kind == "retriever":
        scores, metric = dict(results.get("recalls", {})), "recall@10"
        rules = settings.get("n_rules", "unknown") if note.mode == "rgft" else 0
        given = [str(settings.get("encoder", "")), "exact search", f"n_rules={rules}"]
    else:
        marks = {f"{DEV_EM}_{task}": task for task in note.tasks}
        scores = {marks[key]: value / 100 for key, value in results.items() if key in marks}
        metric, given = "em", _of_prompts(settings)
    questions = dev_questions(note)
    counted = {task: [f"{n} questions"] for task, n in questions.items()}
    data = {task: [f"corpus {id_}"] for task, id_ in zip(note.tasks, note.corpora, strict=False)}
    return [
        Measured(
            task,
            metric,
            round(value, 4),
            asked=questions.get(task),
            of=questions.get(task),
            part="dev questions",
            source="training",
            conditions=", ".join([*given, *counted.get(task, ()), *data.get(task, ())]),
        )
        for task, value in scores.items()
    ]


def dev_questions(note: Note) -> dict[str, int]:
    """Task -> number of dev questions, as far as the note says it: earlier ones of generators have only the sum."""
    rows, each = note.results.get("dev_rows"), note.settings.get("dev")
    if "dev_questions" in note.results:
        return dict(note.results["dev_questions"])
    if rows is None or (len(note.tasks) > 1 and rows != (each or 0) * len(note.tasks)):
        return {}
    return dict.fromkeys(note.tasks, rows // max(1, len(note.tasks)))


def _of_prompts(settings: Mapping[str, Any]) -> list[str]:
    """Method, its parameters and its retriever with its options, as in ``--model_args``."""
    name, options = settings.get("retriever") or ("", {})
    parameters = {key: value for key, value in (settings.get("parameters") or {}).items() if key != "seed"}
    retrieval = {f"retriever_{key}": value for key, value in options.items()}
    pairs = {**parameters, **({"retriever": name} if name else {}), **retrieval}
    return [str(settings.get("method", "")), *(f"{key}={value}" for key, value in pairs.items())]


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
    answers = _pairs(arguments).get("generator") != NO_GENERATOR
    for task, count in counts.items():
        first = _first_metric(content, task)
        conditions = _conditions(content, task, model, repo)
        for key, value in results.get(task, {}).items():
            metric, comma, filter_ = key.partition(",")
            if not comma or metric.endswith("_stderr") or isinstance(value, bool | str):
                continue
            if not answers and metric not in RETRIEVAL_METRICS:
                continue  # nothing answered, so its em of 0 says nothing of the checkpoint
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
                conditions=conditions,
            )


def _first_metric(content: Mapping[str, Any], task: str) -> str:
    """The first metric of the task's headline; exact match if it has none."""
    metadata = content.get("configs", {}).get(task, {}).get("metadata") or {}
    return str(next(iter(metadata.get("headline") or ()), "em"))


def _is_of(arguments: Mapping[str, Any] | str, model: Path, repo: str) -> bool:
    """Whether a model argument of the run is the folder or the repository."""
    return any(_is_this(value, model, repo) for value in _pairs(arguments).values())


def _is_this(value: Any, model: Path, repo: str) -> bool:
    return str(value).partition("@")[0] == repo or Path(str(value)).expanduser().resolve() == model


def _pairs(arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    if isinstance(arguments, str):
        return dict(part.partition("=")[::2] for part in arguments.split(","))
    return dict(arguments)


def _conditions(content: Mapping[str, Any], task: str, model: Path, repo: str) -> str:
    """Method and arguments of a run, without local paths, and the version of the task's data."""
    config, texts = content["config"], []
    for key, value in _pairs(config.get("model_args") or {}).items():
        if _is_this(value, model, repo):
            texts.append(f"{key}=this checkpoint")
        elif key not in BY_LM_EVAL:
            local = isinstance(value, str) and is_local(value, model)
            texts.append(f"{key}={Path(value).name if local else value}")
    version = (content.get("versions") or {}).get(task)
    return ", ".join([str(config.get("model", "")), *texts, *([f"data version {version}"] if version else [])])
