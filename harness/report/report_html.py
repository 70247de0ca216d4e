"""A report as one HTML page: verdicts and figures first, then tables; ``report.html.jinja`` is its template."""

from __future__ import annotations

from lm_eval_rag.harness.report.cells import NOT_SIGNIFICANT, SIGNIFICANT
from lm_eval_rag.harness.report.document import Document, Section
from lm_eval_rag.harness.report.drawing import why_no_figures
from lm_eval_rag.harness.report.grid import Grid
from lm_eval_rag.harness.report.html_page import HERE, render_page
from lm_eval_rag.harness.report.plot_files import draw

BADGES = {SIGNIFICANT: "yes", NOT_SIGNIFICANT: "open"}


def render_html(document: Document) -> str:
    """The whole page; without matplotlib it says what to install for the figures."""
    from markupsafe import Markup

    no_figures = why_no_figures() if any(section.plots for section in document.sections) else ""
    drawn = [
        [(plot, Markup(draw(plot, f"{i} {j}")) if not no_figures else "") for j, plot in enumerate(section.plots)]
        for i, section in enumerate(document.sections)
    ]
    return render_page(
        HERE,
        "report.html.jinja",
        document=document,
        sections=[
            (section, figures, _contents(i, section))
            for i, (section, figures) in enumerate(zip(document.sections, drawn, strict=True), start=1)
        ],
        tasks=[(f"s{i}", section.title) for i, section in enumerate(document.sections, start=1)],
        no_figures=no_figures,
        badges=BADGES,
        narrow=_narrow,
        is_score=_is_score,
    )


def _contents(number: int, section: Section) -> list[tuple[str, str]]:
    """(id, title) of the parts of a section."""
    verdicts = [(f"s{number}-verdicts", "Verdicts")] if section.verdicts else []
    figures = [(f"s{number}-figures", "Figures")] if section.plots else []
    return verdicts + figures + [(f"s{number}-{i}", grid.title) for i, grid in enumerate(section.grids, start=1)]


def _narrow(grid: Grid) -> Grid:
    return grid.narrow(8)


def _is_score(text: str, grid: Grid) -> bool:
    """Whether a cell is a mean, whose interval is set smaller."""
    return text.endswith("]") or (grid.fixed > 0 and text[-1:].isdigit() and "." in text)
