"""A page as plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from lm_eval_rag.harness.report.mistakes import CLASSES, cells
from lm_eval_rag.harness.report.report_text import WIDTH, cell
from lm_eval_rag.harness.report.stats import DRAWS
from lm_eval_rag.harness.report.table import printable, table
from lm_eval_rag.harness.reproduce.claims import Comparison
from lm_eval_rag.harness.reproduce.drawings import Drawing
from lm_eval_rag.harness.reproduce.page import Cell, Line, Page

HOW = (
    f"Mean [95 % bootstrap interval over questions, {DRAWS:,} draws], in percent; where a line has several seeds, the "
    "mean over them, with each seed's mean in the JSON. Differences are paired on the same questions: exact McNemar "
    "for 0/1 scores, else paired bootstrap; Holm over all of a page. holds: above 0, interval too, and Holm's p below "
    "0.05; does not hold: the same below 0; cannot tell: anything else. paper: as printed there, on its own corpora, "
    "rules, questions and generators; its R@k, a gold answer anywhere in all documents retrieved, is "
    "pooled_recall_contains here."
)


def render(page: Page) -> str:
    """The whole text."""
    title = printable(page.table.title)
    parts = [f"{title}\n{'=' * len(title)}", *map(_wrapped, page.table.notes)]
    if page.limit is not None:
        parts.append(f"! Only the first {page.limit} questions of each task (--limit): a trial, not a result.")
    parts += [_metric(page, metric) for metric in page.table.metrics]
    parts += [_doubts(page), _claims(page), _mistakes(page), *map(_drawing, page.drawings), _status(page)]
    return "\n\n".join(part for part in [*parts, _wrapped(HOW)] if part) + "\n"


def _metric(page: Page, metric: str) -> str:
    rows = []
    for line in page.lines:
        ours = [_ours(line.cells.get(task), metric) for task in page.tasks]
        paper = [_paper(line.cells.get(task), metric) for task in page.tasks]
        if any(ours) or any(paper):
            rows.append([line.label, *ours])
            rows += [["  paper", *paper]] if any(paper) else []
    return f"{metric}\n\n" + table(["", *page.tasks], rows) if rows else ""


def _ours(found: Cell | None, metric: str) -> str:
    if found is None or metric not in found.scores or found.scores[metric].ours is None:
        return ""
    return cell(found.scores[metric].ours, metric) + (f" n={found.questions}" if found.drawn else "")


def _paper(found: Cell | None, metric: str) -> str:
    if found is None or metric not in found.scores or found.scores[metric].paper is None:
        return ""
    return f"{found.scores[metric].paper:.1f}" + ("!" if found.scores[metric].doubts else "")


def doubts(page: Page) -> list[str]:
    """What contradicts the published numbers that the page shows, each once."""
    scores = (score for line in page.lines for found in line.cells.values() for score in found.scores.values())
    return list(dict.fromkeys(doubt for score in scores for doubt in score.doubts))


def _doubts(page: Page) -> str:
    return "\n".join(_wrapped(f"! {doubt}") for doubt in doubts(page))


def difference(one: Comparison, metric: str) -> str:
    """``+3.1 [1.0, 5.2] holds``."""
    found = one.difference.interval
    return f"{'+' if found.mean > 0 else ''}{cell(found, metric)} {one.verdict}".rstrip()


def _claims(page: Page) -> str:
    parts = []
    for claim, tests in page.claims:
        if not tests:
            parts.append(_wrapped(f"{claim.text}: not run yet"))
            continue
        names = list(dict.fromkeys(one.against for test in tests for one in test.comparisons))
        rows = []
        for test in tests:
            shown = {one.against: difference(one, test.metric) for one in test.comparisons}
            n = test.comparisons[0].difference.interval.n
            rows.append([test.task, test.metric, f"{n:,}", *(shown.get(name, "") for name in names), test.by_rules])
        through = "against all" if any(test.by_rules for test in tests) else ""
        head = ["", "", "n", *(f"- {name}" if i else name for i, name in enumerate(names)), through]
        told = f"{claim.text} ({claim.paper})" if claim.paper else claim.text
        parts.append(_wrapped(told) + "\n" + table(head, rows, left=(0, 1, *range(3, len(head)))))
    return "\n\n".join(["Claims\n------", *parts]) if parts else ""


def _mistakes(page: Page) -> str:
    rows = [
        [task, line.label, *cells(found.mistakes)]
        for task in page.tasks
        for line in page.lines
        if (found := line.cells.get(task)) and found.mistakes
    ]
    return "Why answers are wrong\n\n" + table(["", "", "n", *CLASSES], rows, left=(0, 1)) if rows else ""


def _drawing(drawing: Drawing) -> str:
    metric = drawing.plot.metric.replace("{x}", "1")
    title = printable(f"{drawing.plot.title} ({drawing.task})")
    if drawing.plot.kind == "banks":
        rows = [
            [f"trained on {name}", *(cell(one, metric) + (f" / {p:+.1f}" if p is not None else "")
                                    for one, p in zip(own, theirs, strict=True))]
            for name, own, theirs in zip(drawing.names, drawing.gains, drawing.paper, strict=True)
        ]  # fmt: skip
        return title + "; gain over the baseline / the paper's\n\n" + table(["tested on", *drawing.names], rows)
    rows = [
        [name, f"{point.x:g}", cell(point.ours, metric), "" if point.paper is None else f"{point.paper:.1f}"]
        for name, points in drawing.curves.items()
        for point in points
    ]
    return title + "\n\n" + table(["", drawing.plot.x_label or "x", "ours", "paper"], rows)


def _status(page: Page) -> str:
    """What was not run, and how to run what is out of the ordinary; every line's command is in the other two files."""
    waiting = [line for line in page.lines if line.status not in ("run", "only published")]
    plain = [line for line in waiting if line.status in ("not run", "run in part")]
    listed = _wrapped(f"Not run yet, or not to the end: {', '.join(line.name for line in plain)}.") if plain else ""
    return "\n".join(filter(None, [listed, *_commands(line for line in waiting if line not in plain)]))


def _commands(lines: Iterable[Line]) -> Iterable[str]:
    for line in lines:
        yield _wrapped(f"{line.label}: {line.status}")
        yield from (f"    {printable(command)}" for command in line.commands)


def _wrapped(text: str) -> str:
    return textwrap.fill(printable(text), WIDTH, subsequent_indent="  ")
