"""Tables in Markdown, for the other scripts."""

from __future__ import annotations

from collections.abc import Iterable

from lm_eval_rag.harness.report.stats import Interval


def cell(interval: Interval | None) -> str:
    """A percentage with its 95 % interval."""
    if interval is None:
        return ""
    mean = f"{100 * interval.mean:.1f}"
    if interval.low is None or interval.high is None:
        return mean
    return f"{mean} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    names = list(head)
    rows = [names, ["---", *["---:"] * (len(names) - 1)], *map(list, lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"
