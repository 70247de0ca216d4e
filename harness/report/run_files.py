"""Reading runs: the results file that lm_eval writes under ``--output_path``, and the samples beside it.

Written for the format of lm-eval 0.4.x: ``results_<date>.json`` (or ``<stem>_<date>.json``) with one
``samples_<task>_<date>.jsonl`` a task, one line a question and filter. A metric that could not be scored for a question
has no key in its line.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError

log = logging.getLogger(__name__)
DATED = re.compile(r"_(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?)\.json$")
NEEDED = ("results", "configs", "n-samples", "config")  # of a results file
ALWAYS_SHOWN = ("answer_style",)  # arguments without which a score is read wrongly, also where all runs agree in them
UNTELLING = ("path", "journal")  # arguments that change no answer: where our adapter's files lie
IN_SAMPLE = ("doc_id", "doc", "filter", "metrics", "filtered_resps")  # of a line of samples
HOW = "Run lm_eval with --output_path FOLDER --log_samples and give FOLDER."


@dataclass(frozen=True)
class TaskRun:
    """One task of one run.

    Args:
        label: Name of the run, unique in a report.
        task: Name of the task.
        path: The results file.
        results: The whole content of the results file.
        samples: The lines of its samples file, in order.
    """

    label: str
    task: str
    path: Path
    results: Mapping[str, Any]
    samples: tuple[Mapping[str, Any], ...]

    @property
    def given(self) -> Mapping[str, Any]:
        """What the results file says of the task: ``em,none`` and so on."""
        given: Mapping[str, Any] = self.results["results"][self.task]
        return given

    @property
    def version(self) -> str:
        """The task's version."""
        return str(self.results.get("versions", {}).get(self.task))

    @property
    def model(self) -> str:
        """The model's name as given to lm_eval."""
        return str(self.results["config"].get("model"))

    @cached_property
    def questions(self) -> dict[str, Mapping[str, Any]]:
        """Question id -> its first line (of several when there are several filters), in order."""
        found: dict[str, Mapping[str, Any]] = {}
        for sample in self.samples:
            found.setdefault(question_id(sample), sample)
        return found

    @cached_property
    def scores(self) -> dict[str, dict[str, float]]:
        """Metric -> question id -> value. Metrics of another filter than ``none`` are named ``metric,filter``."""
        found: dict[str, dict[str, float]] = {}
        for sample in self.samples:
            for metric in sample["metrics"]:
                if isinstance(sample.get(metric), (int, float)):
                    key = metric if sample["filter"] == "none" else f"{metric},{sample['filter']}"
                    found.setdefault(key, {})[question_id(sample)] = float(sample[metric])
        return found


def question_id(sample: Mapping[str, Any]) -> str:
    """The document's own id; lm_eval's number for it where it has none."""
    return str(sample["doc"].get("id", sample["doc_id"]))


def read_runs(given: Sequence[str | Path]) -> list[TaskRun]:
    """Every task of every run in ``given``: results files, or folders that hold some.

    Of two results of one task by one model with the same arguments in one folder, the newer counts.

    Raises:
        UserError: Nothing is there, no samples or scores were logged, a file is cut short or is no JSON, or the format
            is not lm-eval 0.4's.
    """
    newest: dict[tuple[str, ...], tuple[Path, dict[str, Any]]] = {}
    for path in dict.fromkeys(path for one in given for path in _results_files(Path(one))):
        results = _read_results(path)
        for task in results["n-samples"]:
            key = (str(path.parent), results["config"].get("model"), _arguments_text(results["config"]), task)
            if key in newest:
                log.warning("%s: %s holds a newer run of %r, which counts.", newest[key][0], path, task)
            newest[key] = (path, results)
    for (*_, task), (path, results) in newest.items():
        if "bypass,none" in results["results"].get(task, {}):
            raise UserError(f"{path}: {task} was run with --predict_only, so it has no scores. Run it without.")
    labels = _labels([results["config"] | {"path": path} for path, results in newest.values()])
    return [
        TaskRun(labels[str(path)], key[-1], path, results, tuple(_read_samples(path, results, key[-1])))
        for key, (path, results) in newest.items()
    ]


def _results_files(given: Path) -> list[Path]:
    if given.is_file():
        return [given]
    if not given.is_dir():
        raise UserError(f"{given} does not exist. {HOW}")
    found = [path for path in given.rglob("*.json") if DATED.search(path.name)]
    if not found:
        raise UserError(f"{given} holds no results of lm_eval (results_<date>.json). {HOW}")
    return sorted(found, key=lambda path: (path.parent, DATED.search(path.name)[1]))  # type: ignore[index]


def _read_results(path: Path) -> dict[str, Any]:
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is no JSON ({error}): is it cut short, or not a results file? {HOW}") from None
    lacking = [key for key in NEEDED if not isinstance(results, dict) or not isinstance(results.get(key), dict)]
    if lacking:
        raise UserError(f"{path} is not a results file of lm-eval 0.4.x: it lacks {', '.join(lacking)}. {HOW}")
    return dict(results)


def _read_samples(path: Path, results: Mapping[str, Any], task: str) -> Iterator[Mapping[str, Any]]:
    """The lines of one task, checked to be whole."""
    dated = DATED.search(path.name)
    if dated is None:
        raise UserError(f"{path}: its name has no date, so its samples cannot be found. Keep lm_eval's file names.")
    file = path.with_name(f"samples_{task}_{dated[1]}.jsonl")
    if not file.is_file():
        raise UserError(f"{file} does not exist: the samples of {task} were not logged. {HOW}")
    seen: set[tuple[str, str]] = set()
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            sample = _parse(line, f"{file}, line {number}")
            key = (question_id(sample), sample["filter"])
            if key in seen:
                raise UserError(f"{file}, line {number}: question {key[0]!r} stands there twice.")
            seen.add(key)
            yield sample
    wanted = results["n-samples"].get(task, {}).get("effective", 0)
    if len({question for question, _ in seen}) < wanted:
        raise UserError(f"{file} is cut short: {len(seen)} lines, but the results file counts {wanted} questions.")


def _parse(line: bytes, where: str) -> Mapping[str, Any]:
    try:
        sample = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{where} is no JSON ({error}): the file was cut short or changed.") from None
    lacking = [key for key in IN_SAMPLE if not isinstance(sample, dict) or key not in sample]
    if lacking or not isinstance(sample["doc"], dict):
        raise UserError(f"{where} is not a sample of lm-eval 0.4.x: it lacks {', '.join(lacking) or 'a document'}.")
    return dict(sample)


def _arguments(config: Mapping[str, Any]) -> dict[str, str]:
    """The model's arguments, as text."""
    given = config.get("model_args") or {}
    if isinstance(given, str):
        given = dict(part.partition("=")[::2] for part in given.split(","))
    return {str(key): str(value) for key, value in given.items() if key not in UNTELLING}


def _arguments_text(config: Mapping[str, Any]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(_arguments(config).items()))


def _labels(configs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Results file -> a short unique name: the model, with those arguments in which runs of it differ."""
    files = {str(config["path"]): config for config in configs}
    labels: dict[str, str] = {}
    for path, config in files.items():
        own = _arguments(config)
        others = [_arguments(c) for c in files.values() if c.get("model") == config.get("model")]
        keys = sorted({k for o in others for k in o})
        telling = [key for key in keys if key in ALWAYS_SHOWN or len({o.get(key) for o in others}) > 1]
        label = " ".join([str(config.get("model")), *(f"{key}={own[key]}" for key in telling if key in own)])
        taken = sum(other == label or other.startswith(f"{label} #") for other in labels.values())
        labels[path] = f"{label} #{taken + 1}" if taken else label
    return labels
