"""Recomputes every score of a run from its samples alone.

For each line of samples, the scores are recomputed from the document, the response and the record. For each task, the
means and standard errors are recomputed from these scores (lm_eval's formulas: sum / n, and the sample standard
deviation divided by the square root of n). All must agree with the files. The hashes that lm_eval stores are checked
too, so a changed question, gold answer or prompt, a missing line, or a changed order is detected.

Numbers are compared to twelve digits: sums of floats differ in the last bit between Python 3.11 and 3.12.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_rag.harness.report.run_files import TaskRun, question_id
from lm_eval_rag.harness.scoring import METRICS, score
from lm_eval_rag.harness.scoring.case import LABEL
from lm_eval_rag.harness.scoring.judge.panel import verdict_faults
from lm_eval_rag.harness.scoring.verdict import VERDICT


@dataclass(frozen=True, slots=True)
class Check:
    """One number as reported and as recomputed; None if one side has none."""

    name: str
    reported: float | None
    recomputed: float | None

    @property
    def same(self) -> bool:
        """Whether both agree."""
        return same(self.reported, self.recomputed)


@dataclass(frozen=True, slots=True)
class Rescored:
    """The result for one task of a run.

    Args:
        checks: Means and standard errors.
        lines: Differences in single lines of samples, as ``question: difference``.
        files: Differences in the files as a whole.
    """

    run: str
    task: str
    questions: int
    checks: tuple[Check, ...]
    lines: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether there is no difference."""
        return not self.lines and not self.files and all(check.same for check in self.checks)


def is_ours(run: TaskRun) -> bool:
    """Whether the task's scores are in our table of metrics."""
    return any(key.partition(",")[0] in METRICS for key in run.reported)


def rescore(run: TaskRun) -> Rescored:
    """Recompute one task of one run."""
    lines: list[str] = []
    values: dict[str, list[float]] = {}
    shots, newer = run.results.get("n-shot", {}).get(run.task), _newer_metrics(run)
    for sample in run.samples:
        differences, scores = _rescore_line(sample, newer)
        differences += _hash_faults(sample, shots)
        lines += [f"{question_id(sample)}: {difference}" for difference in differences]
        for name, value in scores.items():
            values.setdefault(f"{name},{sample['filter']}", []).append(value)
    reported = {key: value for key, value in run.reported.items() if "," in key}
    return Rescored(
        run=run.label,
        task=run.task,
        questions=len(run.questions),
        checks=tuple(_checks(reported, values)),
        lines=tuple(lines),
        files=tuple(_file_faults(run)),
    )


def same(first: float | None, second: float | None) -> bool:
    """Whether two numbers are equal except for rounding of sums."""
    if first is None or second is None:
        return first is second
    return math.isclose(first, second, rel_tol=1e-12, abs_tol=1e-15)


def mean(values: Sequence[float]) -> float:
    """lm_eval's ``mean``."""
    return sum(values) / len(values)


def standard_error(values: Sequence[float]) -> float:
    """Standard error of the mean of at least two values; lm_eval's ``mean_stderr``."""
    middle = mean(values)
    return math.sqrt(sum((value - middle) ** 2 for value in values) / (len(values) - 1)) / math.sqrt(len(values))


def _newer_metrics(run: TaskRun) -> set[str]:
    """Metrics that came after the run: those that its own list of metrics lacks."""
    listed = run.results.get("configs", {}).get(run.task, {}).get("metric_list") or ()
    known = {entry["metric"] for entry in listed if isinstance(entry, Mapping) and "metric" in entry}
    return set(METRICS) - known if known else set()


def _rescore_line(sample: Mapping[str, Any], newer: Collection[str] = ()) -> tuple[list[str], dict[str, float]]:
    """(differences, recomputed scores) of one line; metrics that came after the run are left out."""
    doc = sample["doc"]
    try:
        answer, record = sample["filtered_resps"][0], doc.get("_rag")
        scores = {name: value for name, value in score(doc, answer, record).items() if name not in newer}
        faults = verdict_faults(doc, answer, bool((record or {}).get("abstained")))
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        return [f"cannot be scored: its document or record is malformed ({type(error).__name__}: {error})"], {}
    differences = [
        f"{name} is reported as {sample.get(name)!r}, recomputed {scores.get(name)!r}"
        for name in dict.fromkeys([*sample["metrics"], *(n for n in METRICS if n in sample), *scores])
        if not same(number(sample.get(name)), scores.get(name))
    ]
    return faults + differences, scores


def _hash_faults(sample: Mapping[str, Any], shots: int | None) -> list[str]:
    """The hashes in a line that do not match its content."""
    doc = {key: value for key, value in sample["doc"].items() if key not in ("_rag", VERDICT, LABEL)}
    prompt = sample.get("arguments", {}).get("gen_args_0", {}).get("arg_0")
    # lm_eval hashes the document as the model saw it: without the record, and with the number of shots if any.
    seen = (doc, {**doc, "num_fewshot": shots}, sample["doc"])
    contents: dict[str, Iterable[str]] = {
        "doc_hash": [json.dumps(document, indent=2, ensure_ascii=False) for document in seen],
        "prompt_hash": [prompt] if isinstance(prompt, str) else [],
        "target_hash": [str(sample.get("target"))],
    }
    return [
        f"{name} does not match its content"
        for name, texts in contents.items()
        if sample.get(name) is not None and not any(_hash(text) == sample[name] for text in texts)
    ]


def _file_faults(run: TaskRun) -> list[str]:
    """A difference if lines were removed, added, changed or moved after lm_eval hashed them."""
    reported = run.results.get("task_hashes", {}).get(run.task)
    chained = "".join(
        str(sample.get("doc_hash")) + str(sample.get("prompt_hash")) + str(sample.get("target_hash"))
        for sample in run.samples
    )
    if reported is not None and reported != _hash(chained):
        return ["task_hashes: the lines of samples have changed since the results file was written"]
    return []


def _checks(reported: Mapping[str, Any], values: Mapping[str, Sequence[float]]) -> Iterable[Check]:
    """Means and standard errors, in the order of the results file; None for the side that lacks a number."""
    for key in dict.fromkeys([*(k for k in reported if "_stderr," not in k), *values]):
        name, _, kind = key.partition(",")
        error = f"{name}_stderr,{kind}"
        recomputed = values.get(key, ())
        yield Check(key, number(reported.get(key)), mean(recomputed) if recomputed else None)
        if number(reported.get(error)) is not None:  # lm_eval writes "N/A" for a single value, or if configured
            yield Check(error, number(reported[error]), standard_error(recomputed) if len(recomputed) > 1 else None)


def number(value: Any) -> float | None:
    """The value if it is a number, else None (lm_eval writes "N/A")."""
    return float(value) if isinstance(value, (int, float)) else None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
