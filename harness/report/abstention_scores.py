"""Scores of a whole run, with intervals: abstention scores, and means weighted by group."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.report.cluster_keys import Keys, cluster_labels
from lm_eval_rag.harness.report.clusters import Clusters, Labels, clustered, numbered
from lm_eval_rag.harness.report.run_files import TaskRun
from lm_eval_rag.harness.report.stats import CELLS, DRAWS, LEVEL, Interval
from lm_eval_rag.harness.scoring.abstention import (
    PENALTIES,
    f_score,
    hallucination_of_attempts,
    levels,
    penalised,
    risk_areas,
)

Floats = NDArray[np.float64]
AREA = "risk_coverage_area"


@dataclass(frozen=True, slots=True)
class Abstention:
    """Abstention scores of a run.

    Args:
        scores: Name -> value with its bootstrap interval over questions.
        confidence: Source of the confidence for the risk-coverage area: ``confidence`` (in the method's record),
            ``first passage's score``, or "" if there is none and the area is left out.
        coverage: (share of questions answered, share of these that are correct) at each threshold on the confidence,
            highest threshold first; only the last point without confidence.
    """

    scores: Mapping[str, Interval]
    confidence: str = ""
    coverage: tuple[tuple[float, float], ...] = ()

    @property
    def abstained(self) -> bool:
        """Whether any question was left unanswered."""
        return bool(self.coverage) and self.coverage[-1][0] < 1


RATIOS: dict[str, Callable[..., Floats]] = {
    "f_score": f_score,
    "hallucination_of_attempts": hallucination_of_attempts,
    **{f"score_penalty_{penalty:g}": partial(penalised, penalty=penalty) for penalty in PENALTIES},
}


def abstention(run: TaskRun, *, draws: int = DRAWS, seed: int = 0, keys: Keys = ()) -> Abstention | None:
    """The abstention scores of one run, or None if it has no CRAG scores.

    Args:
        keys: The keys by which questions are clustered. The risk-coverage area is not clustered.
    """
    correct, missing = run.scores.get("crag_correct", {}), run.scores.get("crag_missing", {})
    ids = [id_ for id_ in correct if id_ in missing]
    if not ids:
        return None
    rows = np.array([[correct[i], missing[i], 1.0] for i in ids])
    labels = cluster_labels([run.questions[id_]["doc"] for id_ in ids], keys)
    scores = {
        name: of_totals(rows, formula, draws=draws, seed=seed, clusters=labels) for name, formula in RATIOS.items()
    }
    attempted = [id_ for id_ in ids if missing[id_] == 0]
    source, confidence = _confidence([run.questions[id_] for id_ in attempted])
    if confidence:
        wrong = [1 - correct[id_] for id_ in attempted]
        scores[AREA] = area(wrong, confidence, draws=draws, seed=seed)
    scored = {name: score for name, score in scores.items() if not math.isnan(score.mean)}
    return Abstention(scored, source, coverage_of([correct[i] for i in attempted], confidence, len(ids)))


def coverage_of(correct: Sequence[float], confidence: Sequence[float], n: int) -> tuple[tuple[float, float], ...]:
    """The points (share answered, share of these that is correct) of a risk-coverage curve, for :class:`Abstention`.

    Args:
        correct: Scores of the attempted questions.
        confidence: Of the same questions; [] without confidences, which gives the last point alone.
        n: Number of all questions; ((0, 0),) is returned if none was attempted.
    """
    if not correct:
        return ((0.0, 0.0),)
    sizes, right = levels(correct, confidence or [0.0] * len(correct))
    answered = np.cumsum(sizes)
    points = zip(answered / n, np.cumsum(right) / answered, strict=True)
    return tuple((float(share), float(accuracy)) for share, accuracy in points)


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of groups of questions, such as the share of user questions at each level of popularity.

    Args:
        key: Key of the task document that contains the group, such as ``popularity``.
        shares: Group -> its weight in the mean, 0 or more; the weight of other groups is 0.
    """

    key: str
    shares: Mapping[str, float]


def read_weights(text: str) -> Weights:
    """Reads ``popularity:head=0.6,torso=0.3,tail=0.1``.

    Raises:
        UserError: The text has another form, or a weight is not a number of 0 or more.
    """
    key, _, rest = text.partition(":")
    pairs = [part.partition("=")[::2] for part in rest.split(",") if part]
    try:
        shares = {name.strip(): float(value) for name, value in pairs}
    except ValueError:
        shares = {}
    if not key or not shares or min(shares.values()) < 0 or not sum(shares.values()) < math.inf:
        raise UserError(f"--weights {text!r} cannot be read. Write KEY:GROUP=WEIGHT,... with weights of 0 or more.")
    return Weights(key, shares)


def weighted(
    run: TaskRun, metric: str, weights: Weights, *, draws: int = DRAWS, seed: int = 0, keys: Keys = ()
) -> Interval:
    """The weighted mean of the means of the groups in the run, with a bootstrap interval.

    The weight of a question is the weight of its group divided by the group's size. The bootstrap resamples questions
    together with their weights.

    Args:
        keys: The keys by which questions are clustered.

    Raises:
        UserError: No question is in a group with a weight.
    """
    groups = {id_: str(run.questions[id_]["doc"].get(weights.key)) for id_ in run.scores[metric]}
    sizes = Counter(groups.values())
    weight = {group: weights.shares.get(group, 0.0) / size for group, size in sizes.items()}
    if not sum(weight.values()):
        raise UserError(
            f"No question of {run.task} has a {weights.key} among {', '.join(weights.shares)}; it has "
            f"{', '.join(sorted(sizes)[:8])}. Use these groups in --weights."
        )
    rows = np.array([[weight[groups[id_]] * value, weight[groups[id_]]] for id_, value in run.scores[metric].items()])
    labels = cluster_labels([run.questions[id_]["doc"] for id_ in run.scores[metric]], keys)
    return of_totals(rows, np.divide, draws=draws, seed=seed, clusters=labels)


def of_totals(
    rows: Floats, formula: Callable[..., Floats], *, draws: int = DRAWS, seed: int = 0, clusters: Clusters = ()
) -> Interval:
    """A function of the columns' sums, with its percentile bootstrap interval over rows.

    With clusters, whole clusters are resampled, and the ends are scaled as those of a mean are
    (:func:`~lm_eval_rag.harness.report.stats.interval`): the mean of each row's influence on the function, which is
    what the function loses without the row. The widest interval of all keys is returned.

    Args:
        rows: One row per question; shape (n, columns).
        formula: Takes the sum of each column, elementwise.
        clusters: For each key of clusters, one label per question.
    """
    value = float(formula(*rows.sum(axis=0)))
    if not clusters:
        return _interval(value, _resampled(rows, formula, draws, seed), len(rows))
    known = [one for labels in clusters if (one := _clustered(rows, formula, labels, draws, seed)).low is not None]
    return max(known, key=lambda one: (one.high or 0) - (one.low or 0), default=Interval(value, None, None, len(rows)))


def _clustered(rows: Floats, formula: Callable[..., Floats], labels: Labels, draws: int, seed: int) -> Interval:
    whole, n = rows.sum(axis=0), len(rows)
    value = float(formula(*whole))
    influence = n * (value - formula(*(whole - rows).T))
    by_cluster = clustered(influence, labels) if np.isfinite(influence).all() else None
    if by_cluster is None:
        return Interval(value, None, None, n)
    codes, number = numbered(tuple(labels))
    sums = np.zeros((number, rows.shape[1]))
    np.add.at(sums, codes, rows)
    drawn = _resampled(sums, formula, draws, seed)
    plain = _interval(value, drawn, n)
    if plain.low is None or plain.high is None:
        return plain
    factor = by_cluster.reach(LEVEL) / float(np.nanstd(drawn))
    return Interval(value, value - factor * (value - plain.low), value + factor * (plain.high - value), n)


def _resampled(rows: Floats, formula: Callable[..., Floats], draws: int, seed: int) -> Floats:
    """The function of each resample of the rows."""
    cells, counts = np.unique(rows, axis=0, return_counts=True)
    return formula(*(np.random.default_rng(seed).multinomial(len(rows), counts / len(rows), size=draws) @ cells).T)


def area(wrong: Sequence[float], confidence: Sequence[float], *, draws: int = DRAWS, seed: int = 0) -> Interval:
    """The area under the risk-coverage curve, with its percentile bootstrap interval over the attempted questions."""
    pairs = np.column_stack([-np.asarray(confidence), np.asarray(wrong)])
    cells, counts = np.unique(pairs, axis=0, return_counts=True)  # sorted by decreasing confidence
    starts = np.flatnonzero(np.r_[True, np.diff(cells[:, 0]) != 0])
    rng, block, areas = np.random.default_rng(seed), max(1, CELLS // len(cells)), []
    for start in range(0, draws, block):
        drawn = rng.multinomial(len(wrong), counts / len(wrong), size=min(block, draws - start)).astype(np.float64)
        sizes = np.add.reduceat(drawn, starts, axis=1)
        areas.append(risk_areas(sizes, np.add.reduceat(drawn * cells[:, 1], starts, axis=1)))
    sizes, errors = levels(wrong, confidence)
    return _interval(float(risk_areas(sizes[None, :], errors[None, :])[0]), np.concatenate(areas), len(wrong))


def _interval(value: float, drawn: Floats, n: int) -> Interval:
    """The percentile interval; without ends if all resamples are equal. Resamples with value NaN are left out."""
    drawn = drawn[~np.isnan(drawn)]
    if len(drawn) == 0 or np.ptp(drawn) == 0:
        return Interval(value, None, None, n)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(value, float(low), float(high), n)


def _confidence(samples: Sequence[Mapping[str, Any]]) -> tuple[str, list[float]]:
    """(source, one value per question) of the first source that all questions have and whose values differ."""
    records = [sample["doc"].get("_rag") or {} for sample in samples]
    for source, read in (("confidence", _recorded_confidence), ("first passage's score", _top_score)):
        values = [read(record) for record in records]
        known = [value for value in values if value is not None]
        if len(known) == len(values) and len(set(known)) > 1:
            return source, known
    return "", []


def _recorded_confidence(record: Mapping[str, Any]) -> float | None:
    value = record.get("confidence")
    return None if value is None else float(value)


def _top_score(record: Mapping[str, Any]) -> float | None:
    passages = record.get("passages")
    return float(passages[0]["score"]) if passages else None
