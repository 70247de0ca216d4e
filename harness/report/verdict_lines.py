"""What the differences say, one sentence per metric: the best run, or the run that all are compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lm_eval_rag.harness.report.cells import cell
from lm_eval_rag.harness.report.report_parts import Comparison, TaskReport
from lm_eval_rag.harness.scoring import METRICS

BETTER, WORSE, UNCLEAR = KINDS = ("significantly better", "significantly worse", "not significant")


def verdict_lines(report: TaskReport) -> Iterable[str]:
    """``em: best is rule_vote, 54.0 [47.0, 61.0]. Significantly worse: standard_rag. Not significant: rulerag_ft.``

    "Highest" in place of "best" where no difference is significant.
    """
    for metric in dict.fromkeys(one.metric for one in report.comparisons):
        own = [one for one in report.comparisons if one.metric == metric]
        scores = {run.run: run.scores[metric] for run in report.runs if metric in run.scores}
        sign = 1 if _higher_is_better(metric) else -1
        best = max(scores, key=lambda name: sign * scores[name].mean)
        if not any(one.significant for one in own) and len({score.mean for score in scores.values()}) == 1:
            which = "all runs" if len(scores) == len(report.runs) else f"the {len(scores)} runs that have a score all"
            yield f"{metric}: {which} have {cell(scores[best], metric)}."
            continue
        surely = any(one.significant for one in own if best in (one.first, one.second))
        lead = "compared with" if report.against else "best is" if surely else "highest is"
        run = report.against or best
        others = "; ".join(_others(run, own))
        yield f"{metric}: {lead} {run}, {cell(scores[run], metric)}. {others[:1].upper()}{others[1:]}."


def _others(run: str, comparisons: Sequence[Comparison]) -> Iterable[str]:
    kinds: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for one in comparisons:
        if run in (one.first, one.second):
            other = one.first if run == one.second else one.second
            higher = (one.difference.interval.mean > 0) == (other == one.second)
            kind = BETTER if higher == _higher_is_better(one.metric) else WORSE
            kinds[kind if one.significant else UNCLEAR].append(other)
    return (f"{kind}: {', '.join(names)}" for kind, names in kinds.items() if names)


def _higher_is_better(metric: str) -> bool:
    return metric not in METRICS or METRICS[metric].higher_is_better
