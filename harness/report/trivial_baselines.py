"""Trivial baselines in a report: they come first, and what every other run gains over the best of them is said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lm_eval_rag.harness.report.cells import cell, signed, verdict
from lm_eval_rag.harness.report.report_parts import TaskReport
from lm_eval_rag.harness.report.run_files import TaskRun
from lm_eval_rag.harness.scoring import METRICS

# methods without a model that copy an answer from facts
TRIVIAL_BASELINES = ("mode_of_relation", "mode_of_subject", "last_object", "link_vote", "copy_vote")
OF_RULEQA = "ruleqa"  # how the names of the tasks begin that state facts


def trivial_first(runs: Sequence[TaskRun]) -> list[TaskRun]:
    """The runs of trivial baselines, then the others, each in the order given."""
    return sorted(runs, key=lambda run: run.model not in TRIVIAL_BASELINES)


def trivial_lines(report: TaskReport) -> Iterable[str]:
    """``em: the best trivial baseline is link_vote, 27.0 [21.0, 33.0]. rule_vote +27.0 [19.5, 34.5], significant.``

    By the first metric of the task; differences are those of the report's own table.
    """
    trivial = {run.run: run.scores for run in report.runs if run.trivial}
    others = [run.run for run in report.runs if not run.trivial]
    metric = next((run.headline[0] for run in report.runs if run.headline), "")
    known = {name: scores[metric] for name, scores in trivial.items() if metric in scores}
    if not known or not others:
        return
    higher = metric not in METRICS or METRICS[metric].higher_is_better
    best = max(known, key=lambda name: known[name].mean if higher else -known[name].mean)
    gains = [
        f"{one.second} {signed(one.difference.interval, metric)}, {verdict(one)}"
        for one in report.comparisons
        if one.metric == metric and one.first == best and one.second in others
    ]
    if gains:
        yield f"{metric}: the best trivial baseline is {best}, {cell(known[best], metric)}. {'; '.join(gains)}."


def without_trivial(report: TaskReport) -> Iterable[str]:
    """How to run the trivial baselines of a RuleQA task, if no run is one of them."""
    if report.task.startswith(OF_RULEQA) and not any(run.trivial for run in report.runs):
        task = report.task.partition("@")[0]
        yield (
            f"No trivial baseline is among these runs, so they do not show what a look-up without rules or a model "
            f"scores. Each of {', '.join(TRIVIAL_BASELINES)} runs in seconds: lm_eval --tasks {task} --model "
            f"{TRIVIAL_BASELINES[-2]} --output_path FOLDER --log_samples."
        )
