"""Recomputing every score of a run from its samples alone.

For each line of samples the scores are computed again from the document, the response and the record; for each task the
means and standard errors are computed again from those (lm_eval's formulas: sum / n, and the sample standard deviation
over the root of n). Each must be what the files say. The hashes that lm_eval stores are checked too, so that a changed
question, gold answer or prompt, a dropped line or a changed order shows.

"The same" is to twelve digits: sums of floats differ in the last bit between Python 3.11 and 3.12.
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
    """One number, as given and as recomputed; None where one side has none."""

    name: str
    given: float | None
    recomputed: float | None

    @property
    def same(self) -> bool:
        """Whether both say the same."""
        return same(self.given, self.recomputed)


@dataclass(frozen=True, slots=True)
class Rescored:
    """What came of one task of a run.

    Args:
        checks: Means and standard errors.
        lines: What is wrong with single lines of samples, as ``question: what``.
        files: What is wrong with the files as a whole.
    """

    run: str
    task: str
    questions: int
    checks: tuple[Check, ...]
    lines: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether nothing differs."""
        return not self.lines and not self.files and all(check.same for check in self.checks)


def is_ours(run: TaskRun) -> bool:
    """Whether the task's scores are from our table."""
    return any(key.partition(",")[0] in METRICS for key in run.given)


def rescore(run: TaskRun) -> Rescored:
    """Recompute one task of one run."""
    lines: list[str] = []
    values: dict[str, list[float]] = {}
    shots, newer = run.results.get("n-shot", {}).get(run.task), _newer_metrics(run)
    for sample in run.samples:
        wrong, scores = _rescore_line(sample, newer)
        wrong += _hash_faults(sample, shots)
        lines += [f"{question_id(sample)}: {what}" for what in wrong]
        for name, value in scores.items():
            values.setdefault(f"{name},{sample['filter']}", []).append(value)
    given = {key: value for key, value in run.given.items() if "," in key}
    return Rescored(
        run=run.label,
        task=run.task,
        questions=len(run.questions),
        checks=tuple(_checks(given, values)),
        lines=tuple(lines),
        files=tuple(_file_faults(run)),
    )


def same(one: float | None, other: float | None) -> bool:
    """Equal, but for the last bits of a sum."""
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-15)


def mean(values: Sequence[float]) -> float:
    """As lm_eval's ``mean``."""
    return sum(values) / len(values)


def standard_error(values: Sequence[float]) -> float:
    """Of the mean, as lm_eval's ``mean_stderr``; at least two values."""
    middle = mean(values)
    return math.sqrt(sum((value - middle) ** 2 for value in values) / (len(values) - 1)) / math.sqrt(len(values))


def _newer_metrics(run: TaskRun) -> set[str]:
    """Metrics that came after the run: those that its own list of metrics lacks."""
    listed = run.results.get("configs", {}).get(run.task, {}).get("metric_list") or ()
    known = {entry["metric"] for entry in listed if isinstance(entry, Mapping) and "metric" in entry}
    return set(METRICS) - known if known else set()


def _rescore_line(sample: Mapping[str, Any], newer: Collection[str] = ()) -> tuple[list[str], dict[str, float]]:
    """(what is wrong, recomputed scores) of one line; metrics that came after the run are left out."""
    doc = sample["doc"]
    try:
        answer, record = sample["filtered_resps"][0], doc.get("_rag")
        scores = {name: value for name, value in score(doc, answer, record).items() if name not in newer}
        faults = verdict_faults(doc, answer, bool((record or {}).get("abstained")))
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        return [f"cannot be scored: its document or record is malformed ({type(error).__name__}: {error})"], {}
    wrong = [
        f"{name} is given as {sample.get(name)!r}, recomputed {scores.get(name)!r}"
        for name in dict.fromkeys([*sample["metrics"], *(n for n in METRICS if n in sample), *scores])
        if not same(number(sample.get(name)), scores.get(name))
    ]
    return faults + wrong, scores


def _hash_faults(sample: Mapping[str, Any], shots: int | None) -> list[str]:
    """Which of the hashes that lm_eval put into a line are not those of its content."""
    doc = {key: value for key, value in sample["doc"].items() if key not in ("_rag", VERDICT, LABEL)}
    prompt = sample.get("arguments", {}).get("gen_args_0", {}).get("arg_0")
    # lm_eval hashes the document as the model saw it: without a record, and with the number of shots if there are any.
    seen = (doc, {**doc, "num_fewshot": shots}, sample["doc"])
    contents: dict[str, Iterable[str]] = {
        "doc_hash": [json.dumps(one, indent=2, ensure_ascii=False) for one in seen],
        "prompt_hash": [prompt] if isinstance(prompt, str) else [],
        "target_hash": [str(sample.get("target"))],
    }
    return [
        f"{name} is not that of its content"
        for name, texts in contents.items()
        if sample.get(name) is not None and not any(_hash(text) == sample[name] for text in texts)
    ]


def _file_faults(run: TaskRun) -> list[str]:
    """Whether lines were dropped, added, changed or moved since lm_eval hashed them all."""
    given = run.results.get("task_hashes", {}).get(run.task)
    chained = "".join(
        str(sample.get("doc_hash")) + str(sample.get("prompt_hash")) + str(sample.get("target_hash"))
        for sample in run.samples
    )
    if given is not None and given != _hash(chained):
        return ["task_hashes: the lines of samples are not those that the results file was written with"]
    return []


def _checks(given: Mapping[str, Any], values: Mapping[str, Sequence[float]]) -> Iterable[Check]:
    """Means and standard errors, in the order of the results file; what only one side has comes with None."""
    for key in dict.fromkeys([*(k for k in given if "_stderr," not in k), *values]):
        name, _, kind = key.partition(",")
        error = f"{name}_stderr,{kind}"
        found = values.get(key, ())
        yield Check(key, number(given.get(key)), mean(found) if found else None)
        if number(given.get(error)) is not None:  # lm_eval writes "N/A" for one value alone, or when told to
            yield Check(error, number(given[error]), standard_error(found) if len(found) > 1 else None)


def number(value: Any) -> float | None:
    """The value if it is a number, else None (lm_eval writes "N/A")."""
    return float(value) if isinstance(value, (int, float)) else None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
