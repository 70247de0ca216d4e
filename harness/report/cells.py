"""How numbers of a report are written: scores in percent with intervals, differences, p values."""

from __future__ import annotations

from lm_eval_rag.harness.report.report_parts import Comparison
from lm_eval_rag.harness.report.stats import Interval
from lm_eval_rag.harness.scoring import METRICS

SIGNIFICANT, NOT_SIGNIFICANT = "significant", "not significant"


def cell(score: Interval | None, metric: str, of: int = 0) -> str:
    """``41.2 [39.0, 43.5]``; with ``n=`` if it covers fewer than ``of`` questions; ``-`` without a score."""
    if score is None:
        return "-"
    known = METRICS.get(metric)
    scale, digits = (100, 1) if known and known.unit == "share" else (1, 1) if known else (1, 3)

    def shown(value: float) -> str:
        return f"{round(value * scale, digits) + 0.0:.{digits}f}"  # + 0.0 avoids "-0.0"

    ends = "" if score.low is None or score.high is None else f" [{shown(score.low)}, {shown(score.high)}]"
    return shown(score.mean) + ends + (f" n={score.n}" if score.n < of else "")


def signed(difference: Interval, metric: str) -> str:
    """A difference as :func:`cell`, with a + if it is above 0."""
    return ("+" if difference.mean > 0 else "") + cell(difference, metric)


def p_value(value: float) -> str:
    """``0.034``, or ``<0.001``."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def verdict(one: Comparison) -> str:
    """``significant`` or ``not significant``."""
    return SIGNIFICANT if one.significant else NOT_SIGNIFICANT
