"""The main metric by the slices of a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from lm_eval_rag.harness.report.content import ORDER, SLICES
from lm_eval_rag.harness.report.stats import Interval
from lm_eval_rag.leaderboards.board.resampling import Floats, Resamples
from lm_eval_rag.leaderboards.submissions.answer_key import AnswerKey

KEYS = (*(by for by in SLICES if by != "relation"), "type")  # relations are too many to read
SMALL = 10  # questions below which a slice is not shown
MOST = 12  # values above which a key is no slice


def slices_of(
    key: AnswerKey, values: Mapping[str, Mapping[str, Floats]], metric: str, resamples: Resamples
) -> dict[str, dict[str, Interval]]:
    """Row -> slice -> mean of the metric with interval."""
    rows = list(values)
    results: dict[str, dict[str, Interval]] = {row: {} for row in rows}
    if not rows:
        return results
    columns = np.column_stack([values[row][metric] for row in rows])
    for name, inside in _masks(key):
        for row, interval in zip(rows, resamples.intervals(np.where(inside[:, None], columns, np.nan)), strict=True):
            results[row][name] = interval
    return results


def _masks(key: AnswerKey) -> Iterator[tuple[str, np.ndarray]]:
    """Slice -> which questions are in it."""
    for by in KEYS:
        labels = np.array([str(doc.get(by) or "") for doc in key.questions.values()])
        names = [name for name in np.unique(labels) if name and (labels == name).sum() >= SMALL]
        if len(names) <= MOST:
            for name in sorted(names, key=lambda name: (ORDER.get(str(name), len(ORDER)), str(name))):
                yield f"{by}: {name}", labels == name
