"""The tables of a report on one task, in the order of ``TABLES``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

from lm_eval_rag.harness.report.cells import cell, p_value, signed, verdict
from lm_eval_rag.harness.report.grid import Grid
from lm_eval_rag.harness.report.published import COUNTERPARTS, PublishedRow
from lm_eval_rag.harness.report.report_parts import RunReport, TaskReport
from lm_eval_rag.harness.report.stats import Interval

LISTED = 8  # maximum number of listed unscored questions; the JSON has all
REASON = 100  # characters of a reason that are shown; the JSON has all
NOTES = 6  # maximum number of notes of a run's answers; the JSON has all
NOTE = 80  # characters of a note that are shown
SHOWN_SLICES = 12  # maximum number of values of a slice; the JSON has all


def title_of(report: TaskReport) -> str:
    """``ruleqa_i (version 1), 1,559 questions``."""
    questions = max(run.questions for run in report.runs)
    return f"{report.task} (version {report.runs[0].version}), {questions:,} questions"


def grids_of(report: TaskReport) -> Iterable[Grid]:
    """All tables that have rows."""
    return (grid for make in TABLES for grid in make(report) if grid.rows)


def _differences(report: TaskReport) -> Iterable[Grid]:
    rows = [
        (
            f"{one.second} - {one.first}",
            one.metric,
            signed(one.difference.interval, one.metric),
            verdict(one),
            p_value(one.difference.p),
            p_value(one.p_holm),
            f"{one.difference.interval.n:,}",
        )
        for one in report.comparisons
    ]
    head = ("difference", "metric", "points", "verdict", "p", "p Holm", "n")
    yield Grid("Differences", head, tuple(rows), (0, 1, 3), grouped=True)


def _scores(report: TaskReport) -> Iterable[Grid]:
    """One row per run, one column per headline score."""
    yield _by_run("Scores", report.runs, _headline(report), lambda run, name: run.scores.get(name))


def _others(report: TaskReport) -> Iterable[Grid]:
    """The same of all other scores."""
    known = dict.fromkeys(name for run in report.runs for name in run.scores)
    names = [name for name in known if name not in _headline(report)]
    yield _by_run("Other scores", report.runs, names, lambda run, name: run.scores.get(name))


def _headline(report: TaskReport) -> list[str]:
    known = {name for run in report.runs for name in run.scores}
    return [name for name in dict.fromkeys(name for run in report.runs for name in run.headline) if name in known]


def _weighted(report: TaskReport) -> Iterable[Grid]:
    names = list(dict.fromkeys(name for run in report.runs for name in run.weighted))
    grid = _by_run("Weighted means", report.runs, names, lambda run, name: run.weighted.get(name))
    yield Grid(grid.title, ("run", *(f"{name}, weighted" for name in names)), grid.rows, fixed=1, turn=True)


def _by_run(
    title: str, runs: Sequence[RunReport], names: Sequence[str], of: Callable[[RunReport, str], Interval | None]
) -> Grid:
    """One row per run, one column per score."""
    rows = [
        (run.run, *(cell(of(run, name), name, run.questions - len(run.unscored)) for name in names))
        for run in runs
        if names
    ]
    return Grid(title, ("run", *names), tuple(rows), fixed=1, turn=True)


def _abstention(report: TaskReport) -> Iterable[Grid]:
    """Abstention scores, if any run abstained."""
    by_run = {run.run: run.abstention for run in report.runs if run.abstention is not None}
    if not any(scored.abstained for scored in by_run.values()):
        return
    names = list(dict.fromkeys(name for scored in by_run.values() for name in scored.scores))
    rows = [(run, *(cell(scored.scores.get(name), "crag_score") for name in names)) for run, scored in by_run.items()]
    sources = " or ".join(sorted({scored.confidence for scored in by_run.values()} - {""}))
    notes = (f"risk_coverage_area: lower is better; confidence is {sources}.",) if sources else ()
    yield Grid("Abstention", ("run", *names), tuple(rows), notes=notes, fixed=1, turn=True)


def _slices(report: TaskReport) -> Iterable[Grid]:
    metrics = list(dict.fromkeys(m for run in report.runs for scores in run.slices.values() for m in scores))
    rows = [
        (
            *(name, run.run, f"{report.sizes[name]:,}"),
            *(cell(run.slices.get(name, {}).get(m), m, report.sizes[name]) for m in metrics),
        )
        for name in list(report.sizes)[:SHOWN_SLICES]
        for run in report.runs
    ]
    more = len(report.sizes) - SHOWN_SLICES
    notes = (f"... and {more} more values of {report.by}, in the JSON.",) if more > 0 else ()
    if metrics:
        head = (f"by {report.by}", "run", "n", *metrics)
        yield Grid(f"Scores by {report.by}", head, tuple(rows), (0, 1), notes, grouped=True, fixed=3)


def _costs(report: TaskReport) -> Iterable[Grid]:
    dollars = any(run.cost is not None and run.cost.dollars is not None for run in report.runs)
    head = (
        *("run", "questions", "unscored", "prompt tokens", "new tokens", *(["US$"] if dollars else [])),
        *("s p50", "s p95", "dropped", "calls, searches a question"),
    )
    rows = []
    for run in report.runs:
        row = [run.run, f"{run.questions:,}", f"{len(run.unscored):,}"]
        if run.cost is not None:
            n, cost = max(1, run.questions), run.cost
            calls = ", ".join(f"{kind} {number / n:.3g}" for kind, number in cost.calls.items())
            row += [f"{cost.prompt_tokens:,}", f"{cost.completion_tokens:,}"]
            row += ["-" if cost.dollars is None else f"{cost.dollars:.4g}"] if dollars else []
            row += [f"{cost.seconds_p50:.3g}", f"{cost.seconds_p95:.3g}", f"{cost.dropped_passages:,}", calls or "none"]
        rows.append((*row, *("-" * (len(head) - len(row)))))
    notes = ["dropped: passages left out of prompts because they did not fit."] if _dropped(report) else []
    notes += [
        f"{run.run}, before the first question, not in the table: the preparation of {one.name}, {one.calls:,} calls, "
        f"{one.prompt_tokens:,} prompt tokens, {one.completion_tokens:,} new tokens"
        + ("." if one.dollars is None else f", US$ {one.dollars:.4g}.")
        for run in report.runs
        for one in run.prepared
    ]
    notes += [f"{run.run} noted: {_counted(run.noted)}." for run in report.runs if run.noted]
    yield Grid("Costs", head, tuple(rows), (0, len(head) - 1), tuple(notes))


def _counted(noted: Mapping[str, int]) -> str:
    """The most frequent notes of answers, and of how many."""
    shown = [f"{note[:NOTE]} ({count:,})" for note, count in noted.items()][:NOTES]
    return ", ".join([*shown, *([f"and {len(noted) - NOTES} more notes"] if len(noted) > NOTES else [])])


def _dropped(report: TaskReport) -> bool:
    return any(run.cost is not None and run.cost.dropped_passages for run in report.runs)


def _published(report: TaskReport) -> Iterable[Grid]:
    """Our means, then the papers' numbers for the same methods, from the first table that has the method."""
    if not report.published:
        return
    columns = dict.fromkeys((row.metric, row.counterpart or "") for row in report.published)
    metrics = sorted(columns, key=lambda column: list(COUNTERPARTS).index(column[0]))
    rows, doubts, left_out = [], dict[str, None](), 0
    for run in report.runs:
        means = [cell(run.scores.get(ours), ours).partition(" ")[0] for _, ours in metrics]
        rows.append(("here", run.run, "", "", *means, ""))
    for ours in dict.fromkeys(row.ours for row in report.published):
        mine = [row for row in report.published if row.ours == ours]
        main = [row for row in mine if (row.paper, row.table) == (mine[0].paper, mine[0].table)]
        left_out += len(mine) - len(main)
        for row, values in _lines(main):
            numbers = [f"{values[metric]:.1f}" if metric in values else "-" for metric in metrics]
            source = f"{row.paper}, {row.table.replace('_', ' ')}"
            rows.append((source, row.method, row.retriever, row.generator, *numbers, row.note))
        doubts.update(dict.fromkeys(doubt for row in main for doubt in row.doubts))
    same = [f" {metric} is {ours} here." for metric, ours in metrics if ours != metric and not ours.startswith("crag_")]
    notes = ["The papers' corpora, rules, questions and generators differ from these." + "".join(same)]
    notes += dict.fromkeys(row.read_otherwise for row in report.published if row.read_otherwise)
    notes += [f"{left_out} more numbers of other tables are in the JSON."] if left_out else []
    head = ("from", "method", "retriever", "generator", *(metric for metric, _ in metrics), "note")
    left = (0, 1, 2, 3, 4 + len(metrics))
    yield Grid("Published numbers", head, tuple(rows), left, (*notes, *(f"! {doubt}" for doubt in doubts)))


def _lines(rows: Sequence[PublishedRow]) -> Iterable[tuple[PublishedRow, dict[tuple[str, str], float]]]:
    """The published numbers by line of the paper's table: (a row of the line, (metric, ours) -> value)."""
    for _, members in groupby(rows, key=lambda r: (r.method, r.retriever, r.generator, r.note)):
        line = list(members)
        yield line[0], {(row.metric, row.counterpart or ""): row.value for row in line}


def missing_of(report: TaskReport) -> Iterable[str]:
    """What was not asked, and which questions of which run have no score or no verdict, and why."""
    parts: dict[tuple[int, int], list[str]] = {}
    for run in report.runs:
        if run.part is not None:
            parts.setdefault(run.part, []).append(run.run)
    for (asked, of), names in parts.items():
        yield f"only {asked:,} of the task's {of:,} questions were asked (--limit, --samples): {', '.join(names)}"
    for run in report.runs:
        if run.unscored:
            named = [f"{id_} ({_short(why)})" for id_, why in list(run.unscored.items())[:LISTED]]
            more = len(run.unscored) - LISTED
            yield f"unscored in {run.run}: {'; '.join(named)}" + (f"; and {more} more" if more > 0 else "")
        if run.unjudged:
            why = _short(next(iter(run.unjudged.values())))
            yield f"no verdict in {run.run}: {len(run.unjudged)} answers ({why})"
    rejected = [f"{run.run} {run.rejected:,}" for run in report.runs if run.rejected]
    if rejected:
        yield (
            "called wrong by judge=rules, which knows few other words for an answer, so that the score may be too low "
            f"(docs/crag.md has its errors): {', '.join(rejected)}"
        )
    refused = [f"{run.run} {run.refused:,}" for run in report.runs if run.refused]
    if refused:
        yield (
            "refusals in other words than \"I don't know\", which count as missing as in CRAG's paper, and as "
            f"wrong in its public script: {', '.join(refused)}"
        )


def _short(why: str) -> str:
    return why if len(why) <= REASON else f"{why[:REASON]}..."


TABLES: tuple[Callable[[TaskReport], Iterable[Grid]], ...] = (
    _scores,
    _differences,
    _others,
    _weighted,
    _abstention,
    _slices,
    _costs,
    _published,
)
