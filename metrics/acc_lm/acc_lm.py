"""Accuracy by a language model: the share of answers that it calls equivalent to a gold answer, in [0, 1]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import evaluate

from lm_eval_rag.leaderboards.answer_means import mean_of, metric_info

SOURCE = "https://doi.org/10.20944/preprints202411.1648.v1"


class AccLm(evaluate.Metric):
    """``acc_lm`` of harness/scoring, for the library evaluate."""

    def _info(self) -> evaluate.MetricInfo:
        return metric_info(__doc__ or "", SOURCE, verdicts=True)

    def _compute(
        self,
        predictions: Sequence[str],
        references: Sequence[str | Sequence[str]],
        verdicts: Sequence[float | None] | None = None,
    ) -> dict[str, Any]:
        return mean_of("acc_lm", predictions, references, verdicts)
