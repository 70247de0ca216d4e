"""The part of a page with the scores that are recorded for a method or a task, and the numbers that papers print."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from page_anchors import anchor
from recorded_results import Recorded, published, published_of_methods, recorded

from lm_eval_rag.describe.tasks import first_scores
from lm_eval_rag.harness.common.card_table import card_table
from lm_eval_rag.harness.report.published import COUNTERPARTS, PublishedRow

OURS = (
    "In percent where the score is a share, with 95 % intervals over questions. *n* is the number of questions, where "
    "a table has a sample of them. The source says what else rows were run with; compare rows within a table only."
)
PUBLISHED = "As papers and toolkits print them, on their own data and with their own models; none was measured here."
NONE = "None recorded. This command measures it:"
OPEN = 20  # rows; a table with more is folded


HEADING = re.compile(r"^#{2,3} (.+)$", re.MULTILINE)


def discussed(name: str, root: Path) -> str:
    """Links to the sections of RESULTS.md that name a method or task; "" if none does."""
    text = (root / "RESULTS.md").read_text(encoding="utf-8")
    titles = list(HEADING.finditer(text))
    ends = [*(title.start() for title in titles[1:]), len(text)]
    sections = ((title[1], text[title.end() : end]) for title, end in zip(titles, ends, strict=True))
    named = [title for title, body in sections if f"`{name}`" in title + body]
    links = ", ".join(f"[{title.replace('`', '')}](../results.md#{anchor(title)})" for title in named)
    return f"Results says more: {links}." if links else ""


def of_method(name: str, usage: str, root: Path) -> str:
    """The section of a method's page.

    Args:
        usage: The command that runs it.
        root: The project's folder.
    """
    own = [one for one in recorded(root) if one.method == name]
    printed = published_of_methods(root).get(name, ())
    return _section(
        "Measured", own, printed, usage, discussed(name, root), lambda one: (one.task, one.row), ("task", "row")
    )


def of_task(name: str, usage: str, root: Path) -> str:
    """The section of a task's page; see :func:`of_method`."""
    own = [one for one in recorded(root) if one.task == name]
    printed = [one for one in published(root) if one.task == name]
    return _section(
        "Baselines", own, printed, usage, discussed(name, root), lambda one: (one.method, one.row), ("method", "row")
    )


def _section(
    title: str,
    own: Sequence[Recorded],
    printed: Sequence[PublishedRow],
    usage: str,
    links: str,
    key: Callable[[Recorded], tuple[str, str]],
    names: tuple[str, str],
) -> str:
    parts = [f"## {title}"]
    if own:
        parts.append(OURS)
        for source, scores in groupby(own, key=lambda one: one.source):
            parts.append(_folded(_where(source), *_pivot(list(scores), key, names)))
    else:
        parts.append(f"{NONE}\n\n```\n{usage}\n```")
    parts.append(links)
    if printed:
        head = ("task", "method as printed", "retriever", "generator", "score", "value", "from")
        parts += ["### Published, not verified", PUBLISHED]
        parts.append(_folded("All numbers", head, [_printed(one) for one in printed]))
        doubts = dict.fromkeys(doubt for one in printed for doubt in one.doubts)
        otherwise = dict.fromkeys(one.read_otherwise for one in printed if one.read_otherwise)
        parts.append("\n".join([*(f"- {text}" for text in otherwise), *(f"- ! {doubt}" for doubt in doubts)]))
    return "\n\n".join(filter(None, parts))


def _where(source: str) -> str:
    """The file; a section of RESULTS.md as a link."""
    file, _, heading = source.partition(": ")
    return f"[{source.replace('`', '')}](../results.md#{anchor(heading)})" if heading else f"`{file}`"


def _pivot(
    scores: Sequence[Recorded], key: Callable[[Recorded], tuple[str, str]], names: tuple[str, str]
) -> tuple[list[str], list[list[str]]]:
    """A row for each row of the source and a column for each score, those to look at first in front."""
    first = [metric for task in dict.fromkeys(one.task for one in scores) for metric in first_scores(task)]
    there = dict.fromkeys(one.metric for one in scores)
    metrics = [
        *(name for name in dict.fromkeys(first) if name in there),
        *(name for name in there if name not in first),
    ]
    rows: dict[tuple[str, ...], dict[str, Recorded]] = {}
    for one in scores:
        rows.setdefault((*key(one), one.questions), {})[one.metric] = one
    cells = [[*head, *(_cell(row.get(metric)) for metric in metrics)] for head, row in rows.items()]
    return _without_empty([*names, "n", *metrics], cells)


def _without_empty(head: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Without columns in which no row says anything."""
    kept = [place for place in range(len(head)) if any(row[place] for row in rows)]
    return [head[place] for place in kept], [[row[place] for place in kept] for row in rows]


def _cell(one: Recorded | None) -> str:
    return "" if one is None else f"{one.value} {one.interval}".strip()


def _printed(one: PublishedRow) -> list[str]:
    score = one.metric if one.counterpart in (None, one.metric) else f"{one.metric} (here {one.counterpart})"
    if one.counterpart is None and one.metric in COUNTERPARTS:
        score += " (no counterpart here)"
    value = f"{one.value:g}{' %' if one.unit == '%' else ''}{'!' if one.doubts else ''}"
    where = f"{one.paper}, {one.table.replace('_', ' ')}"
    return [one.task, one.method, one.retriever, one.generator, score, value, where]


def _folded(title: str, head: Iterable[str], rows: Sequence[Sequence[str]]) -> str:
    """A table under its title; one that is long opens on a click."""
    table = card_table(tuple(head), rows)
    if len(rows) <= OPEN:
        return f"**{title}**\n\n{table}"
    plain = re.sub(r"\[(.+?)\]\(.+?\)|`", r"\1", title)
    return "\n".join([f'??? note "{plain}, {len(rows)} rows"', *_indented(f"{title}\n\n{table}")])


def _indented(text: str) -> Iterator[str]:
    yield ""
    yield from (f"    {line}" if line else "" for line in text.splitlines())
