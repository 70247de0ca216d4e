"""Risk and coverage: how accurate the answers are of those that are given."""

from __future__ import annotations

import numpy as np

from lm_eval_rag.harness.report.abstention_scores import coverage_of
from lm_eval_rag.leaderboards.board.entries import Result

POINTS = 40  # of a curve that is drawn
Point = tuple[float, float]  # share of the questions that are answered, share of these that are correct


def risk_coverage(result: Result) -> tuple[Point, ...]:
    """The points of the curve at falling thresholds on the confidence; without confidences, the last point alone.

    () where the task has no scores of abstention.
    """
    correct, missing = result.scores.get("crag_correct"), result.scores.get("crag_missing")
    if correct is None or missing is None:
        return ()
    attempted = missing == 0
    confidence = [] if result.confidence is None else result.confidence[attempted].tolist()
    points = coverage_of(correct[attempted].tolist(), confidence, len(correct))
    places = np.unique(np.linspace(0, len(points) - 1, min(POINTS, len(points))).round().astype(int))
    return tuple(points[place] for place in places)
