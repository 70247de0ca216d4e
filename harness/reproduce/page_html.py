"""A page as one HTML file: no script, nothing fetched, every text escaped. ``page.html.jinja`` is its template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from lm_eval_rag.harness.report.cells import cell, p_value
from lm_eval_rag.harness.report.html_page import render_page
from lm_eval_rag.harness.report.mistakes import CLASSES, Counts
from lm_eval_rag.harness.reproduce.claims import BASELINE, FAILS, HOLDS, UNCLEAR, Comparison, Tested
from lm_eval_rag.harness.reproduce.page import Cell, Line, Page
from lm_eval_rag.harness.reproduce.page_text import (
    compared_text,
    doubts,
    figure_table,
    how,
    signed,
    verdicts_how,
    warnings,
)
from lm_eval_rag.harness.reproduce.verdicts import CANNOT_TELL, DOES_NOT, NOT_RUN, REPRODUCES

HERE = "lm_eval_rag.harness.reproduce"
CLASS_OF = {HOLDS: "yes", FAILS: "no", UNCLEAR: "open", "": "bound"}  # verdict on a claim -> CSS class
CLASS_OF_ROW = {REPRODUCES: "yes", DOES_NOT: "no", CANNOT_TELL: "open", NOT_RUN: "bound"}  # on a row


def render_html(page: Page, figures: Sequence[str] = (), no_figures: str = "") -> str:
    """The whole document.

    Args:
        figures: The page's figures as ``<svg>`` elements, in order; () shows only their numbers.
        no_figures: Why they are not drawn, which the page then says.
    """
    from markupsafe import Markup

    drawn = [Markup(svg) for svg in figures] or [Markup()] * len(page.figures)
    return render_page(
        HERE,
        "page.html.jinja",
        page=page,
        warnings=warnings(page),
        figures=[(figure, svg, figure_table(figure)) for figure, svg in zip(page.figures, drawn, strict=True)],
        no_figures=no_figures,
        judged=[line for line in page.lines if line.verdict is not None],
        verdicts=Counter(test.verdict for _, tests in page.claims for test in tests),
        tested=[(claim, list(_claim_rows(tests))) for claim, tests in page.claims if tests],
        waiting=[claim for claim, tests in page.claims if not tests],
        score_tables=list(_score_tables(page)),
        doubts=doubts(page),
        entries=list(_contents(page)),
        mistakes=list(_mistakes(page)),
        how=how(page),
        compared_text=compared_text,
        verdicts_how=verdicts_how(page),
        mean_of=cell,
        p_value=p_value,
        signed=signed,
        has=_has,
        bar=_bar,
        class_of=CLASS_OF | CLASS_OF_ROW,
        classes=CLASSES,
        baseline=BASELINE,
    )


def _contents(page: Page) -> Iterable[tuple[str, str]]:
    """(id, title) of the parts that the page has."""
    tested = any(tests for _, tests in page.claims)
    parts = {
        "figures": ("Figures", page.figures),
        "verdicts": ("Verdicts", [line for line in page.lines if line.verdict is not None]),
        "claims": ("Claims", page.claims),
        "differences": ("Differences", tested),
        "scores": ("Scores", True),
        "mistakes": ("Why answers are wrong", list(_mistakes(page))),
    }
    return ((key, title) for key, (title, there) in parts.items() if there)


def _claim_rows(tests: Sequence[Tested]) -> Iterable[tuple[str, str, dict[str, Comparison | str]]]:
    """Metric, what is compared with, task -> comparison; the last row of a metric has verdicts against all controls."""
    for metric in dict.fromkeys(test.metric for test in tests):
        own = [test for test in tests if test.metric == metric]
        for name in dict.fromkeys(one.against for test in own for one in test.comparisons):
            yield metric, name, {test.task: one for test in own for one in test.comparisons if one.against == name}
        verdicts = {test.task: test.verdict_with_controls for test in own if test.verdict_with_controls}
        if verdicts:
            yield metric, "baseline and all controls", dict(verdicts)


def _score_tables(page: Page) -> Iterable[tuple[str, list[tuple[str, str, str]], list[Line]]]:
    """Title, columns (heading, task, metric) and lines: a table a metric, or one table where there is only one task."""
    metrics, tasks = page.table.metrics, page.tasks
    tables = {metric: [(task, task, metric) for task in tasks] for metric in metrics}
    if len(tasks) == 1:
        tables = {tasks[0]: [(metric, tasks[0], metric) for metric in metrics]}
    for title, columns in tables.items():
        lines = [line for line in page.lines if any(_has(line.cells.get(task), metric) for _, task, metric in columns)]
        if lines:
            yield title, columns, lines


def _has(own: Cell | None, metric: str) -> bool:
    score = own.scores.get(metric) if own else None
    return score is not None and (score.ours is not None or score.paper is not None)


def _mistakes(page: Page) -> Iterable[tuple[str, Line, Counts]]:
    for task in page.tasks:
        for line in page.lines:
            if (own := line.cells.get(task)) and own.mistakes:
                yield task, line, own.mistakes


def _bar(counts: Counts) -> list[tuple[str, float]]:
    """CSS class and width, in percent, of the parts of a bar; the striped part are rule failures with the answer."""
    rule, *others = (100 * counts.of[name] / counts.wrong for name in CLASSES)
    both = 100 * counts.retrieved / counts.wrong
    kinds = ("class1", "class1 striped", "class2", "class3")
    return [(kind, width) for kind, width in zip(kinds, (rule - both, both, *others), strict=True) if width > 0]
