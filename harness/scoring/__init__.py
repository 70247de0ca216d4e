"""Scores of one question: :data:`METRICS` is the table of metrics, :func:`score` computes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

from lm_eval_rag.harness.scoring.answer import em, em_contains, token_f1
from lm_eval_rag.harness.scoring.attribution import attributed
from lm_eval_rag.harness.scoring.case import Case, read_case
from lm_eval_rag.harness.scoring.crag import (
    acc_lm,
    crag_correct,
    crag_hallucination,
    crag_human,
    crag_missing,
    crag_score,
    within_30s,
)
from lm_eval_rag.harness.scoring.evidence import CUTOFFS as EVIDENCE_CUTOFFS
from lm_eval_rag.harness.scoring.evidence import (
    evidence_all,
    evidence_recall,
    hotpot_em,
    hotpot_f1,
    joint_part,
    part_em,
    part_score,
    sp_part,
    squad_em,
    squad_f1,
    support_f1,
    triples_part,
)
from lm_eval_rag.harness.scoring.fever import fever_f1, fever_label, fever_precision, fever_recall, fever_score
from lm_eval_rag.harness.scoring.rationale import consistency_overlap, factual_consistency, perplexity
from lm_eval_rag.harness.scoring.retrieval import (
    CUTOFFS,
    mrr,
    pooled_documents,
    pooled_recall_contains,
    recall,
    recall_contains,
)


@dataclass(frozen=True, slots=True)
class Metric:
    """One score.

    Args:
        name: As written in YAML, results, tables and the board.
        of: The score of one question, or None if it cannot be scored.
        higher_is_better: Whether a higher score is better.
        unit: ``share`` (shown as percent), ``documents`` or ``perplexity``.
        lowest: The lowest score that there is.
    """

    name: str
    of: Callable[[Case], float | None]
    higher_is_better: bool = True
    unit: str = "share"
    lowest: float = 0.0

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest score that there are; infinity where there is no highest."""
        return self.lowest, 1.0 if self.unit == "share" else inf


PLAIN = (
    Metric("em", em),
    Metric("em_contains", em_contains),
    Metric("token_f1", token_f1),
    Metric("crag_correct", crag_correct),
    Metric("crag_missing", crag_missing, higher_is_better=False),
    Metric("crag_hallucination", crag_hallucination, higher_is_better=False),
    Metric("crag_score", crag_score, lowest=-1.0),
    Metric("crag_human", crag_human, lowest=-1.0),
    Metric("within_30s", within_30s),
    Metric("acc_lm", acc_lm),
    *(Metric(f"recall@{k}", partial(recall, k=k)) for k in CUTOFFS),
    *(Metric(f"recall@{k}_contains", partial(recall_contains, k=k)) for k in CUTOFFS),
    Metric("pooled_recall_contains", pooled_recall_contains),
    Metric("pooled_documents", pooled_documents, higher_is_better=False, unit="documents"),
    Metric("mrr", mrr),
    Metric("attributed", attributed),
    Metric("perplexity", perplexity, higher_is_better=False, unit="perplexity", lowest=1.0),
    Metric("factual_consistency", factual_consistency),
    Metric("consistency_overlap", consistency_overlap),
)
OFFICIAL = (  # scored only where a task asks for a benchmark's official scores (Case.official)
    Metric("hotpot_em", hotpot_em),
    Metric("hotpot_f1", hotpot_f1),
    Metric("squad_em", squad_em),
    Metric("squad_f1", squad_f1),
    *(
        Metric(f"{name}_{score}", of)
        for name, part in (("sp", sp_part), ("triples", triples_part), ("joint", joint_part))
        for score, of in (
            ("em", partial(part_em, part=part)),
            ("precision", partial(part_score, part=part, which=0)),
            ("recall", partial(part_score, part=part, which=1)),
            ("f1", partial(part_score, part=part, which=2)),
        )
    ),
    Metric("support_f1", support_f1),
    Metric("fever_label", fever_label),
    Metric("fever_score", fever_score),
    Metric("fever_precision", fever_precision),
    Metric("fever_recall", fever_recall),
    Metric("fever_f1", fever_f1),
    *(Metric(f"evidence_recall@{k}", partial(evidence_recall, k=k)) for k in EVIDENCE_CUTOFFS),
    *(Metric(f"evidence_all@{k}", partial(evidence_all, k=k)) for k in EVIDENCE_CUTOFFS),
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in (*PLAIN, *OFFICIAL)}

RETRIEVAL = ("recall@", "pooled_", "mrr", "evidence_")  # how the names of retrieval metrics begin
RETRIEVAL_METRICS = tuple(name for name in METRICS if name.startswith(RETRIEVAL))


def score(doc: Mapping[str, Any], answer: str, rag: Mapping[str, Any] | None) -> dict[str, float]:
    """Every metric that can be scored for one question. A metric that cannot be scored is left out; it is never 0.

    Args:
        doc: The task's document; ``answers`` are the gold answers.
        answer: The response.
        rag: The record that the adapter wrote, or None for a stock model. If it has a ``failure``, the question was
            not answered and nothing is scored.
    """
    if rag and rag.get("failure"):
        return {}
    case = read_case(doc, answer, rag)
    scores = {metric.name: metric.of(case) for metric in (PLAIN if case.official is None else METRICS.values())}
    return {name: value for name, value in scores.items() if value is not None}
