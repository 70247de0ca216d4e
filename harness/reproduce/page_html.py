"""A page as one HTML file: no script, nothing fetched, every text escaped. ``page.html.jinja`` is its template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from lm_eval_rag.harness.report.mistakes import ATTRIBUTION, CLASSES, RETRIEVAL, RULE, Counts
from lm_eval_rag.harness.report.report_text import cell
from lm_eval_rag.harness.report.table import printable
from lm_eval_rag.harness.reproduce.claims import FAILS, HOLDS, UNCLEAR, Tested
from lm_eval_rag.harness.reproduce.page import RUN, Cell, Line, Page
from lm_eval_rag.harness.reproduce.page_text import HOW, doubts, figure_table, signed, trial
from lm_eval_rag.harness.reproduce.table_spec import Claim

CLASS_OF = {HOLDS: "yes", FAILS: "no", UNCLEAR: "open", "": "bound"}  # verdict -> CSS class


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """Lines down, tasks or metrics across.

    Args:
        columns: Heading, task and metric of each column.
        lines: The lines that have a score here.
    """

    title: str
    columns: Sequence[tuple[str, str, str]]
    lines: Sequence[Line]


def render_html(page: Page, figures: Sequence[str] = (), no_figures: str = "") -> str:
    """The whole document.

    Args:
        figures: The page's figures as ``<svg>`` elements, in order; () shows their numbers alone.
        no_figures: Why there are none, which the page then says.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_finalize
    )
    template = (files("lm_eval_rag.harness.reproduce") / "page.html.jinja").read_text(encoding="utf-8")
    drawn = [Markup(svg) for svg in figures] or [Markup()] * len(page.figures)
    return environment.from_string(template).render(
        page=page,
        trial="" if page.limit is None else trial(page.limit),
        verdicts=Counter(test.verdict for _, tests in page.claims for test in tests),
        tested=[(claim, tests) for claim, tests in page.claims if tests],
        waiting=[claim for claim, tests in page.claims if not tests],
        figures=[(figure, svg, figure_table(figure)) for figure, svg in zip(page.figures, drawn, strict=True)],
        no_figures=no_figures if page.figures else "",
        score_tables=_score_tables(page),
        doubts=doubts(page),
        mistakes=_mistakes(page),
        commands=[line for line in page.lines if line.commands],
        how=HOW,
        run=RUN,
        class_of=CLASS_OF,
        classes=CLASSES,
        kinds={"rule": RULE, "retrieval": RETRIEVAL, "attribution": ATTRIBUTION},
        by_metric=_by_metric,
        rows_of=_rows_of,
        mean_of=cell,
        signed=signed,
        parts=_parts,
        bar=_bar,
    )


def _finalize(value: Any) -> Any:
    """What every ``{{ }}`` of the template goes through, before escaping: no control characters."""
    return printable(value) if type(value) is str else value


def _score_tables(page: Page) -> list[ScoreTable]:
    """One table a metric, one column a task; with one task alone one table, one column a metric."""
    metrics, tasks = page.table.metrics, page.tasks
    if len(tasks) == 1:
        tables = [(tasks[0], [(metric, tasks[0], metric) for metric in metrics])]
    else:
        tables = [(metric, [(task, task, metric) for task in tasks]) for metric in metrics]
    return [
        ScoreTable(title, columns, lines)
        for title, columns in tables
        if (lines := [line for line in page.lines if any(_has(line.cells.get(t), m) for _, t, m in columns)])
    ]


def _has(own: Cell | None, metric: str) -> bool:
    score = own.scores.get(metric) if own else None
    return score is not None and (score.ours is not None or score.paper is not None)


def _by_metric(tests: Sequence[Tested]) -> dict[str, dict[str, Tested]]:
    """Metric -> task -> test."""
    return {
        metric: {test.task: test for test in tests if test.metric == metric}
        for metric in dict.fromkeys(test.metric for test in tests)
    }


def _rows_of(claim: Claim, by_task: Mapping[str, Tested]) -> list[tuple[str, dict[str, Any]]]:
    """What a claim was compared with on one metric -> task -> comparison, in the claim's order."""
    names = dict.fromkeys(one.against for test in by_task.values() for one in test.comparisons)
    return [
        (name, {task: one for task, test in by_task.items() for one in test.comparisons if one.against == name})
        for name in names
    ]


def _parts(text: str) -> tuple[str, str]:
    """``41.2 [39.0, 43.5]`` as mean and interval."""
    mean, _, ends = text.partition(" ")
    return mean, ends


def _mistakes(page: Page) -> list[tuple[str, Line, Counts]]:
    return [
        (task, line, own.mistakes)
        for task in page.tasks
        for line in page.lines
        if (own := line.cells.get(task)) and own.mistakes
    ]


def _bar(counts: Counts) -> list[tuple[str, float]]:
    """CSS class and width in percent of the parts of a bar; rule failures with the answer retrieved are striped."""
    share = {name: 100 * n / counts.wrong for name, n in counts.of.items()}
    both = 100 * counts.retrieved / counts.wrong
    widths = [("rule", share[RULE] - both), ("rule striped", both), ("retrieval", share[RETRIEVAL])]
    return [(kind, width) for kind, width in [*widths, ("attribution", share[ATTRIBUTION])] if width > 0]
