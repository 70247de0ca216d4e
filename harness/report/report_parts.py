"""What a report is made of: tasks, runs, scores with intervals, slices, paired differences and costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lm_eval_rag.harness.report.abstention_scores import Abstention
from lm_eval_rag.harness.report.cluster_keys import Keys
from lm_eval_rag.harness.report.published import PublishedRow
from lm_eval_rag.harness.report.stats import Difference, Interval

ALPHA = 0.05  # a difference is significant if p Holm is below


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a run; a stock model records none.

    Args:
        prompt_tokens: Total number of prompt tokens.
        completion_tokens: Total number of generated tokens.
        seconds_p50: Median of the seconds per question (a batch's time divided by its size).
        seconds_p95: 95th percentile of the seconds per question.
        calls: Kind of call (such as Generate, whose samples count each) or retrieval -> total number.
        dropped_passages: Total number of passages left out of prompts because they did not fit.
        dollars: US dollars in all, where the run knew prices; calls that its journal served count too.
    """

    prompt_tokens: int
    completion_tokens: int
    seconds_p50: float
    seconds_p95: float
    calls: Mapping[str, int]
    dropped_passages: int
    dollars: float | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a method read its corpora with, once, before the first question (``raptor``, ``graphrag``).

    Args:
        name: Of the preparation.
        calls: Of the generator.
        prompt_tokens: Of those calls.
        completion_tokens: Of those calls.
        dollars: US dollars, where the run that made it knew prices.
    """

    name: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    dollars: float | None = None


@dataclass(frozen=True, slots=True)
class RunReport:
    """One run on one task.

    Args:
        run: Label of the run.
        path: The results file.
        version: Version of the task.
        questions: Number of questions.
        unscored: Question id -> why it has no score.
        scores: Metric -> mean with interval.
        slices: Value of the slice -> metric -> mean with interval.
        cost: Tokens and seconds.
        abstention: Abstention scores; None without CRAG's scores.
        unjudged: Question id -> why a judge failed on it.
        rejected: How many answers the judge without a model called wrong, which is often mistaken.
        refused: How many answers count as missing that do not say "I don't know".
        weighted: Metric -> weighted mean with interval; empty without weights.
        headline: The metrics that are shown first, of those that were scored.
        curve: Number of passages of this run where others of the same method and arguments have another number, else
            None.
        method: What the runs of one such curve have in common.
        date: When it was run, or "".
        versions: Package -> version in that run.
        trivial: Whether it is a trivial baseline (:data:`~.trivial_baselines.TRIVIAL_BASELINES`).
        part: Numbers of questions that were asked and that the task has, where not all were asked (``--limit``,
            ``--samples``).
        prepared: What was made of the corpora before the questions; its cost is not in ``cost``.
        noted: Note of the method -> how many answers have it, the most frequent first; also "blank answer".
    """

    run: str
    path: str
    version: str
    questions: int
    unscored: Mapping[str, str]
    scores: Mapping[str, Interval]
    slices: Mapping[str, Mapping[str, Interval]]
    cost: Cost | None
    abstention: Abstention | None = None
    unjudged: Mapping[str, str] = field(default_factory=dict)
    rejected: int = 0
    refused: int = 0
    weighted: Mapping[str, Interval] = field(default_factory=dict)
    headline: tuple[str, ...] = ()
    curve: float | None = None
    method: str = ""
    date: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    trivial: bool = False
    part: tuple[int, int] | None = None
    prepared: tuple[Prepared, ...] = ()
    noted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comparison:
    """``second`` minus ``first`` on the questions scored in both runs; ``p_holm`` corrects over the whole report."""

    first: str
    second: str
    metric: str
    difference: Difference
    p_holm: float = 1.0

    @property
    def significant(self) -> bool:
        """Whether p Holm is below 0.05."""
        return self.p_holm < ALPHA


@dataclass(frozen=True, slots=True)
class TaskReport:
    """All runs on one task.

    Args:
        by: Key that defines the slices.
        sizes: Value of the slice -> number of questions, in display order.
        published: The papers' rows for this task and these methods.
        against: The run that all others are compared with; "" if all pairs are compared.
        clusters: The keys by which questions are clustered in intervals and tests; () if they are not.
    """

    task: str
    by: str
    sizes: Mapping[str, int]
    runs: tuple[RunReport, ...]
    comparisons: tuple[Comparison, ...]
    published: tuple[PublishedRow, ...]
    against: str = ""
    clusters: Keys = ()
