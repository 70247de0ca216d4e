"""A report as plain text: aligned tables of at most 120 characters per line, shares in percent."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby

from lm_eval_rag.harness.report.content import HEADLINE, Comparison, RunReport, TaskReport
from lm_eval_rag.harness.report.published import COUNTERPARTS, PublishedRow
from lm_eval_rag.harness.report.stats import DRAWS, Interval
from lm_eval_rag.harness.report.table import printable, table
from lm_eval_rag.harness.scoring import METRICS

WIDTH = 118
LISTED = 8  # maximum number of listed unscored questions; the JSON has all
SHOWN_SLICES = 12  # maximum number of values of a slice; the JSON has all


def render(reports: Sequence[TaskReport]) -> str:
    """The whole text; the last paragraph explains the numbers."""
    tests = sum(len(report.comparisons) for report in reports)
    notes = "Mean [95 % bootstrap interval over questions, " + f"{DRAWS:,} draws]; shares in percent; no interval if "
    notes += "all values are equal;\nn= if a score covers fewer questions than were answered. "
    if tests:
        notes += "Differences are paired on the same questions: exact McNemar\nfor 0/1 scores, else paired bootstrap. "
        notes += f"p Holm: corrected for the {tests} tests of this report; * significant (below 0.05).\n"
    return "\n\n".join([*(_task(report) for report in reports), notes.rstrip() + "\n"])


def _task(report: TaskReport) -> str:
    first = report.runs[0]
    title = f"{report.task} (version {first.version}), {max(run.questions for run in report.runs):,} questions"
    parts = [
        f"{printable(title)}\n{'=' * len(printable(title))}",
        *_score_tables(report.runs),
        *_weighted(report),
        *_abstention(report.runs),
        _costs(report.runs),
        _slices(report),
        _comparisons(report.comparisons),
        _papers(report),
        _unscored(report.runs),
    ]
    return "\n\n".join(part for part in parts if part)


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


def _score_tables(runs: Sequence[RunReport]) -> Iterable[str]:
    """One row per run, one column per score; headline scores first."""
    known = dict.fromkeys(name for run in runs for name in run.scores)
    names = [name for name in HEADLINE if name in known] + [name for name in known if name not in HEADLINE]
    answered = [run.questions - len(run.unscored) for run in runs]
    columns = [
        [name, *(cell(run.scores.get(name), name, n) for run, n in zip(runs, answered, strict=True))] for name in names
    ]
    return _tables([run.run for run in runs], columns)


def _tables(rows: Sequence[str], columns: Iterable[list[str]]) -> Iterable[str]:
    """Named columns over named rows, split into several tables if they are too wide."""
    part: list[list[str]] = []
    for column in columns:
        if part and _width([rows, *part, column]) > WIDTH:
            yield _columns(rows, part)
            part = []
        part.append(column)
    if part:
        yield _columns(rows, part)


def _width(columns: Sequence[Sequence[str]]) -> int:
    return sum(max(len(printable(text)) for text in column) + 2 for column in columns) - 2


def _columns(rows: Sequence[str], columns: Sequence[Sequence[str]]) -> str:
    head, *lines = zip(["", *rows], *columns, strict=True)
    return table(head, lines)


def _weighted(report: TaskReport) -> Iterable[str]:
    """The weighted means."""
    names = list(dict.fromkeys(name for run in report.runs for name in run.weighted))
    columns = [[f"{name}, weighted", *(cell(run.weighted.get(name), name) for run in report.runs)] for name in names]
    return _tables([run.run for run in report.runs], columns)


def _abstention(runs: Sequence[RunReport]) -> Iterable[str]:
    """Abstention scores, if any run abstained."""
    by_run = {run.run: run.abstention for run in runs if run.abstention is not None}
    if not any(run.scores["crag_missing"].mean > 0 for run in runs if run.abstention is not None):
        return
    names = dict.fromkeys(name for scored in by_run.values() for name in scored.scores)
    columns = [[name, *(cell(scored.scores.get(name), "crag_score") for scored in by_run.values())] for name in names]
    yield from _tables(list(by_run), columns)
    sources = sorted({scored.confidence for scored in by_run.values()} - {""})
    if sources:
        yield f"risk_coverage_area: lower is better; confidence is {' or '.join(sources)}."


def _costs(runs: Sequence[RunReport]) -> str:
    head = ["", "questions", "unscored", "prompt tokens", "new tokens", "s p50", "s p95", "dropped", "calls a question"]
    rows = []
    for run in runs:
        row = [run.run, f"{run.questions:,}", f"{len(run.unscored):,}"]
        if run.cost is not None:
            n, cost = max(1, run.questions), run.cost
            calls = ", ".join(f"{kind} {number / n:.3g}" for kind, number in cost.calls.items())
            row += [f"{cost.prompt_tokens:,}", f"{cost.completion_tokens:,}", f"{cost.seconds_p50:.3g}"]
            row += [f"{cost.seconds_p95:.3g}", f"{cost.dropped_passages:,}", calls or "none"]
        rows.append(row + ["-"] * (len(head) - len(row)))
    return table(head, rows, left=(0, len(head) - 1))


def _slices(report: TaskReport) -> str:
    metrics = list(dict.fromkeys(m for run in report.runs for scores in run.slices.values() for m in scores))
    rows = []
    for name in list(report.sizes)[:SHOWN_SLICES]:
        for i, run in enumerate(report.runs):
            scores = run.slices.get(name, {})
            first_cells = [name, f"{report.sizes[name]:,}"] if i == 0 else ["", ""]
            rows.append([*first_cells, run.run, *(cell(scores.get(metric), metric) for metric in metrics)])
    if not rows:
        return ""
    more = len(report.sizes) - SHOWN_SLICES
    return table([f"by {report.by}", "n", "", *metrics], rows, left=(0, 2)) + (
        f"\n... and {more} more values of {report.by}, in the JSON" if more > 0 else ""
    )


def _comparisons(comparisons: Sequence[Comparison]) -> str:
    rows = []
    for (first, second), members in groupby(comparisons, key=lambda c: (c.first, c.second)):
        for i, c in enumerate(members):
            interval = c.difference.interval
            rows.append(
                [
                    f"{second} - {first}" if i == 0 else "",
                    c.metric,
                    ("+" if interval.mean > 0 else "") + cell(interval, c.metric),
                    _p(c.difference.p),
                    _p(c.p_holm) + (" *" if c.p_holm < 0.05 else "  "),
                    f"{interval.n:,}",
                    c.difference.test,
                ]
            )
    return table(["difference", "", "points", "p", "p Holm  ", "n", "test"], rows, left=(0, 1, 6)) if rows else ""


def _p(value: float) -> str:
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _papers(report: TaskReport) -> str:
    """Our means, then the papers' numbers for the same methods, from the first table that has the method."""
    rows, doubts, left_out = [], dict[str, None](), 0
    columns = dict.fromkeys((row.metric, row.counterpart or "") for row in report.published)
    metrics = sorted(columns, key=lambda column: list(COUNTERPARTS).index(column[0]))
    for run in report.runs:
        if report.published:
            means = [cell(run.scores.get(ours), ours).partition(" ")[0] for _, ours in metrics]
            rows.append(["here", run.run, "", "", *means, ""])
    for ours in dict.fromkeys(row.ours for row in report.published):
        mine = [row for row in report.published if row.ours == ours]
        main = [row for row in mine if (row.paper, row.table) == (mine[0].paper, mine[0].table)]
        left_out += len(mine) - len(main)
        for row, values in _lines(main):
            rows.append([f"{row.paper}, {row.table.replace('_', ' ')}", row.method, row.retriever, row.generator])
            rows[-1] += [f"{values[metric]:.1f}" if metric in values else "-" for metric in metrics] + [row.note]
        doubts.update(dict.fromkeys(doubt for row in main for doubt in row.doubts))
    if not rows:
        return ""
    head = [metric for metric, _ in metrics]
    text = table(["from", "method", "retriever", "generator", *head, ""], rows, left=(0, 1, 2, 3, 4 + len(metrics)))
    text += "\nThe papers' corpora, rules, questions and generators differ from these."
    for metric, ours in metrics:
        if ours != metric and not ours.startswith("crag_"):
            text += f" {metric} is {ours} here."
    if left_out:
        text += f"\n{left_out} more numbers of other tables are in the JSON."
    return "\n".join([text, *(_wrapped(f"! {doubt}") for doubt in doubts)])


def _lines(rows: Sequence[PublishedRow]) -> Iterable[tuple[PublishedRow, dict[tuple[str, str], float]]]:
    """The published numbers by line of the paper's table: (a row of the line, (metric, ours) -> value)."""
    for _, members in groupby(rows, key=lambda r: (r.method, r.retriever, r.generator, r.note)):
        line = list(members)
        yield line[0], {(row.metric, row.counterpart or ""): row.value for row in line}


def _unscored(runs: Sequence[RunReport]) -> str:
    lines = []
    for run in runs:
        if run.unscored:
            named = [f"{id_} ({why[:60]})" for id_, why in list(run.unscored.items())[:LISTED]]
            more = len(run.unscored) - LISTED
            lines.append(f"unscored in {run.run}: {'; '.join(named)}" + (f"; and {more} more" if more > 0 else ""))
        if run.unjudged:
            why = next(iter(run.unjudged.values()))[:60]
            lines.append(f"no verdict in {run.run}: {len(run.unjudged)} answers ({why})")
    return "\n".join(map(_wrapped, lines))


def _wrapped(text: str) -> str:
    return textwrap.fill(printable(text), WIDTH, subsequent_indent="  ")
