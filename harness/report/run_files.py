"""Reads runs: the results file that lm_eval writes to ``--output_path``, and the samples files beside it.

The format is that of lm-eval 0.4.x: ``results_<date>.json`` (or ``<stem>_<date>.json``), and one
``samples_<task>_<date>.jsonl`` per task with one line per question and filter. A line has no key for a metric that
could not be scored.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.report.cluster_keys import Keys, cluster_keys

log = logging.getLogger(__name__)
DATED = re.compile(r"_(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)\.json$")
RESULT_KEYS = ("results", "configs", "n-samples", "config")  # required in a results file
ALWAYS_SHOWN = ("answer_style", "method", "function", "url")  # model arguments that are shown even if runs agree
FILE_ARGUMENTS = ("path", "journal", "trace", "window")  # model arguments that only name files and change no answer
SAMPLE_KEYS = ("doc_id", "doc", "filter", "metrics", "filtered_resps")  # required in a line of samples
HOW = "Run lm_eval with --output_path FOLDER --log_samples and give FOLDER."


@dataclass(frozen=True)
class TaskRun:
    """One task of one run.

    Args:
        label: Name of the run, unique in a report.
        task: Name of the task.
        path: The results file.
        results: Content of the results file.
        samples: Lines of the samples file, in order; a report on some of the questions has only theirs.
        asked: Number of questions of the whole file, whether they were scored or failed.
    """

    label: str
    task: str
    path: Path
    results: Mapping[str, Any]
    samples: tuple[Mapping[str, Any], ...]
    asked: int

    @property
    def reported(self) -> Mapping[str, Any]:
        """The task's scores in the results file, such as ``em,none``."""
        scores: Mapping[str, Any] = self.results["results"][self.task]
        return scores

    @property
    def version(self) -> str:
        """The task's version."""
        return str(self.results.get("versions", {}).get(self.task))

    @property
    def model(self) -> str:
        """The value of lm_eval's ``--model``."""
        return str(self.results["config"].get("model"))

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What the task's configuration says of it."""
        return self.results["configs"].get(self.task, {}).get("metadata") or {}

    @property
    def headline(self) -> tuple[str, ...]:
        """The metrics that the task declares as its headline; () if it declares none."""
        return tuple(self.metadata.get("headline") or ())

    @property
    def clusters(self) -> Keys:
        """The fields by which the task's questions are clustered; () if it declares none."""
        return cluster_keys(self.metadata)

    @property
    def arguments(self) -> Mapping[str, str]:
        """The arguments of ``--model_args`` that can change an answer, as texts."""
        return arguments_of(self.results["config"])

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The method's parameters, defaults included; {} for a stock model."""
        parameters: Mapping[str, Any] = (self.results["config"].get("rag") or {}).get("parameters") or {}
        return parameters

    @property
    def date(self) -> str:
        """When it was run, such as ``2026-11-22``; "" if the results file does not say."""
        seconds = self.results.get("date")
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}" if isinstance(seconds, (int, float)) else ""

    @property
    def versions(self) -> Mapping[str, str]:
        """Package -> its version in that run; what the results file does not say is left out."""
        recorded = (self.results["config"].get("rag") or {}).get("versions") or {}
        lm_eval = self.results.get("lm_eval_version")
        return {**({"lm_eval": str(lm_eval)} if lm_eval else {}), **{str(k): str(v) for k, v in recorded.items()}}

    @cached_property
    def questions(self) -> dict[str, Mapping[str, Any]]:
        """Question id -> its first line (with several filters there are several lines), in order."""
        first: dict[str, Mapping[str, Any]] = {}
        for sample in self.samples:
            first.setdefault(question_id(sample), sample)
        return first

    @cached_property
    def scores(self) -> dict[str, dict[str, float]]:
        """Metric -> question id -> value. The key is ``metric,filter`` if the filter is not ``none``."""
        scores: dict[str, dict[str, float]] = {}
        for sample in self.samples:
            for metric in sample["metrics"]:
                if isinstance(sample.get(metric), (int, float)):
                    key = metric if sample["filter"] == "none" else f"{metric},{sample['filter']}"
                    scores.setdefault(key, {})[question_id(sample)] = float(sample[metric])
        return scores


def question_id(sample: Mapping[str, Any]) -> str:
    """The id in the document, else lm_eval's number of the document."""
    return str(sample["doc"].get("id", sample["doc_id"]))


def read_runs(paths: Sequence[str | Path]) -> list[TaskRun]:
    """Every task of every run in ``paths``, which are results files or folders that contain some.

    Files with other suffixes beside them are left out, and so, with a warning, are folders without results where others
    have some: a run that failed leaves one.
    If a folder has several results of one task by one model with the same arguments, only the newest is used.

    Raises:
        UserError: There are no results, samples or scores; a file is truncated or not JSON; or the format is not that
            of lm-eval 0.4.
    """
    newest: dict[tuple[str, ...], tuple[Path, dict[str, Any]]] = {}
    found = {source: _results_files(source) for source in _without_others(paths)}
    empty = [source for source, files in found.items() if not files]
    if empty and len(empty) == len(found):
        raise UserError(f"{empty[0]} contains no results of lm_eval (results_<date>.json). {HOW}")
    for source in empty:
        log.warning("%s contains no results of lm_eval, perhaps because its run failed. It is left out.", source)
    for path in dict.fromkeys(path for files in found.values() for path in files):
        results = _read_results(path)
        for task in results["n-samples"]:
            key = (str(path.parent), results["config"].get("model"), _arguments_text(results["config"]), task)
            if key in newest:
                log.warning("%s is ignored: %s is a newer run of %r.", newest[key][0], path, task)
            newest[key] = (path, results)
    for (*_, task), (path, results) in newest.items():
        if "bypass,none" in results["results"].get(task, {}):
            raise UserError(f"{path}: {task} has no scores because of --predict_only. Run it without this option.")
    labels = _labels([results["config"] | {"path": path} for path, results in newest.values()])
    return [_task_run(labels[str(path)], task, path, results) for (*_, task), (path, results) in newest.items()]


def _task_run(label: str, task: str, path: Path, results: Mapping[str, Any]) -> TaskRun:
    samples = tuple(_read_samples(path, results, task))
    return TaskRun(label, task, path, results, samples, asked=len({question_id(sample) for sample in samples}))


def _without_others(paths: Sequence[str | Path]) -> list[Path]:
    """Without logs and pages, which ``runs/mine/*`` names too; all paths if nothing else is left."""
    sources = [Path(path) for path in paths]
    return [one for one in sources if one.suffix == ".json" or not one.is_file()] or sources


def _results_files(root: Path) -> list[Path]:
    if root.is_file():
        return [root]
    if not root.is_dir():
        raise UserError(f"{root} does not exist. {HOW}")
    files = [path for path in root.rglob("*.json") if DATED.search(path.name)]
    return sorted(files, key=lambda path: (path.parent, DATED.search(path.name)[1]))  # type: ignore[index]


def _read_results(path: Path) -> dict[str, Any]:
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not JSON ({error}). It may be truncated or not a results file. {HOW}") from None
    lacking = [key for key in RESULT_KEYS if not isinstance(results, dict) or not isinstance(results.get(key), dict)]
    if lacking:
        raise UserError(f"{path} is not a results file of lm-eval 0.4.x: it lacks {', '.join(lacking)}. {HOW}")
    return dict(results)


def _read_samples(path: Path, results: Mapping[str, Any], task: str) -> Iterator[Mapping[str, Any]]:
    """The lines of one task; checks that none is missing."""
    dated = DATED.search(path.name)
    if dated is None:
        raise UserError(f"{path}: the name has no date, so its samples cannot be found. Keep lm_eval's file names.")
    file = path.with_name(f"samples_{task}_{dated[1]}.jsonl")
    if not file.is_file():
        raise UserError(f"{file} does not exist: the samples of {task} were not logged. {HOW}")
    seen: set[tuple[str, str]] = set()
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            sample = _parse(line, f"{file}, line {number}")
            key = (question_id(sample), sample["filter"])
            if key in seen:
                raise UserError(f"{file}, line {number}: question {key[0]!r} is repeated.")
            seen.add(key)
            yield sample
    expected = results["n-samples"].get(task, {}).get("effective", 0)
    if len({question for question, _ in seen}) < expected:
        raise UserError(f"{file} is truncated: {len(seen)} lines, but the results file counts {expected} questions.")


def _parse(line: bytes, where: str) -> Mapping[str, Any]:
    try:
        sample = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{where} is not JSON ({error}): the file was truncated or changed.") from None
    lacking = [key for key in SAMPLE_KEYS if not isinstance(sample, dict) or key not in sample]
    if lacking or not isinstance(sample["doc"], dict):
        raise UserError(f"{where} is not a sample of lm-eval 0.4.x: it lacks {', '.join(lacking) or 'a document'}.")
    return dict(sample)


def arguments_of(config: Mapping[str, Any]) -> dict[str, str]:
    """The model's arguments as strings, without those that only name files."""
    arguments = config.get("model_args") or {}
    if isinstance(arguments, str):
        arguments = dict(part.partition("=")[::2] for part in arguments.split(","))
    return {str(key): str(value) for key, value in arguments.items() if key not in FILE_ARGUMENTS}


def _arguments_text(config: Mapping[str, Any]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(arguments_of(config).items()))


def _labels(configs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Results file -> a short unique name: its own, or the model and the arguments in which its runs differ."""
    files = {str(config["path"]): config for config in configs}
    labels: dict[str, str] = {}
    for path, config in files.items():
        arguments = arguments_of(config)
        others = [arguments_of(c) for c in files.values() if c.get("model") == config.get("model")]
        keys = sorted({k for o in others for k in o})
        telling = [key for key in keys if key in ALWAYS_SHOWN or len({o.get(key) for o in others}) > 1]
        words = [str(config.get("model")), *(f"{key}={arguments[key]}" for key in telling if key in arguments)]
        label = str(config.get("run_name") or " ".join(words))
        taken = sum(other == label or other.startswith(f"{label} #") for other in labels.values())
        labels[path] = f"{label} #{taken + 1}" if taken else label
    return labels
