r"""A report as LaTeX: one ``table`` per table, with booktabs; the document needs ``\usepackage{booktabs}``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lm_eval_rag.harness.report.document import Document
from lm_eval_rag.harness.report.grid import Grid
from lm_eval_rag.harness.report.table import printable

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "[": "{[}",  # after the end of a row it would be taken as an option of that row
    "]": "{]}",
    **{character: f"\\{character}" for character in "%_&$#{}"},
}
LONG = 40  # rows; a table with more is a longtable, which continues on the next page
HEAD = r"""% \usepackage{booktabs}
% \usepackage{longtable} for tables of more than 40 rows
% \usepackage[T1]{fontenc}
"""


def escaped(text: str) -> str:
    """The text such that LaTeX prints it as it is."""
    return "".join(SPECIAL.get(character, character) for character in printable(text))


def render_latex(document: Document) -> str:
    """All tables; facts and explanations are comments at the top and the bottom."""
    parts = [HEAD, *(_comment(f"{name}: {value}") for name, value in document.facts)]
    for number, section in enumerate(document.sections, start=1):
        parts += ["", _comment(section.title), *map(_comment, section.verdicts)]
        parts += [_table(grid.narrow(), section.title, f"{number}") for grid in section.grids]
        parts += map(_comment, section.missing)
    return "\n".join([*parts, "", *map(_comment, document.notes)]) + "\n"


def _comment(text: str) -> str:
    return f"% {printable(text)}"


def _table(grid: Grid, section: str, number: str) -> str:
    key = re.sub(r"[^a-z]+", "-", grid.title.lower()).strip("-")
    caption = f"{section}: {grid.title[:1].lower()}{grid.title[1:]}. {' '.join(grid.notes)}".strip()
    columns = "".join("l" if i in grid.left else "r" for i in range(len(grid.head)))
    title = [rf"  \caption{{{escaped(caption)}}}", rf"  \label{{tab:{number}-{key}}}"]
    rows = [r"    \toprule", _row(grid.head), r"    \midrule", *map(_row, grid.rows), r"    \bottomrule"]
    if len(grid.rows) > LONG:
        lines = [rf"\begin{{longtable}}{{{columns}}}", title[0], title[1] + r" \\", *rows, r"\end{longtable}"]
    else:
        inner = [rf"  \begin{{tabular}}{{{columns}}}", *rows, r"  \end{tabular}"]
        lines = [r"\begin{table}[t]", r"  \centering\small", *title, *inner, r"\end{table}"]
    return "\n".join(["", *lines])


def _row(cells: Iterable[str]) -> str:
    return "    " + " & ".join(map(escaped, cells)) + r" \\"
