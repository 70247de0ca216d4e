"""F1 of the words that an answer and its best gold answer share; the mean lies in [0, 1]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import evaluate

from lm_eval_rag.leaderboards.answer_means import mean_of, metric_info

SOURCE = "https://arxiv.org/abs/1606.05250"


class TokenF1(evaluate.Metric):
    """``token_f1`` of harness/scoring, for the library evaluate."""

    def _info(self) -> evaluate.MetricInfo:
        return metric_info(__doc__ or "", SOURCE)

    def _compute(self, predictions: Sequence[str], references: Sequence[str | Sequence[str]]) -> dict[str, Any]:
        return mean_of("token_f1", predictions, references)
