"""CRAG's score: 1 for a correct answer, 0 for a missing one, -1 for a wrong one; the mean lies in [-1, 1]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import evaluate

from lm_eval_rag.leaderboards.answer_means import mean_of, metric_info

SOURCE = "https://arxiv.org/abs/2406.04744"


class CragScore(evaluate.Metric):
    """``crag_score`` of harness/scoring, for the library evaluate."""

    def _info(self) -> evaluate.MetricInfo:
        return metric_info(__doc__ or "", SOURCE, verdicts=True)

    def _compute(
        self,
        predictions: Sequence[str],
        references: Sequence[str | Sequence[str]],
        verdicts: Sequence[float | None] | None = None,
    ) -> dict[str, Any]:
        return mean_of("crag_score", predictions, references, verdicts)
