"""Scores that files of the project record: reproduced pages, the tables of RESULTS.md, entries of the board.

No number is typed here: each is read from its file, and keeps the name of that file. Numbers that papers print come
from ``leaderboards/published``, apart from ours.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path

import polars as pl

from lm_eval_rag._register import MODELS
from lm_eval_rag.describe.tasks import first_scores, task_names
from lm_eval_rag.harness.report.cells import cell
from lm_eval_rag.harness.report.published import PublishedRow, read_published
from lm_eval_rag.harness.report.stats import Interval
from lm_eval_rag.harness.reproduce.published_numbers import numbers_of
from lm_eval_rag.harness.reproduce.table_file import read_table
from lm_eval_rag.harness.reproduce.table_spec import Table
from lm_eval_rag.harness.scoring import METRICS
from lm_eval_rag.leaderboards.submissions.answer_key import scorer_hash

BOARDS = "leaderboards"
VALUE = re.compile(r"(-?[\d,]+(?:\.\d+)?)(?: (\[-?[\d,.]+, -?[\d,.]+\]))?(?: n=([\d,]+))?")
SHARE = re.compile(r"\d\.\d{3}")  # RESULTS.md prints evidence recall as shares with three decimals, all else in percent
HEADING = re.compile(r"^#{2,3} (.+)$", re.MULTILINE)
BLOCK = re.compile(r"^([a-z][\w@]*)\n\n(.*)\n([- ]*-)\n((?:.+\n)+)", re.MULTILINE)  # a metric and its table
TABLE = re.compile(r"(?:^\|.*\|\n)+", re.MULTILINE)
FAMILIES = {name.partition("@")[0] for name in METRICS}
NOT_OURS = re.compile(r"published|paired|minus| - ")  # rows of RESULTS.md that are no score of one run


@dataclass(frozen=True, slots=True)
class Recorded:
    """One score.

    Args:
        task: Name of the task.
        method: Name of the model; "" for a row that names none, such as a retriever alone.
        row: What the row is called where it is recorded.
        metric: Name of the score.
        value: In percent, as it is printed; other units as the metric has them.
        interval: Its 95 % interval, such as ``[13.3, 16.9]``; "" if none is recorded.
        questions: Number of sampled questions; "" where that is not recorded.
        source: The file, or the section of RESULTS.md.
    """

    task: str
    method: str
    row: str
    metric: str
    value: str
    interval: str
    questions: str
    source: str


@cache
def tables(root: Path) -> Mapping[str, Table]:
    """The tables that can be reproduced, by name."""
    return {path.stem: read_table(path) for path in sorted((root / BOARDS / "reproduce").glob("*.toml"))}


@cache
def older(root: Path) -> Mapping[str, str]:
    """A note for each page that was made on older data than today's, by the page's name."""
    file = root / BOARDS / "reproduced" / "older.toml"
    content = tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return {page: f" ({name} data version {one['version']})" for name, one in content.items() for page in one["pages"]}


@cache
def recorded(root: Path) -> tuple[Recorded, ...]:
    """All scores, source by source; RESULTS.md repeats some of the reproduced pages."""
    pages = [one for path in sorted((root / BOARDS / "reproduced").glob("*.txt")) for one in of_page(path, root)]
    return (*pages, *of_results((root / "RESULTS.md").read_text(encoding="utf-8")), *of_board(root))


def of_page(path: Path, root: Path) -> Iterator[Recorded]:
    """The scores of a reproduced page. Which model a line is, the table's file says; a line it no longer has is ""."""
    models = {row.label: row.model for row in tables(root)[path.stem].rows}
    source = f"{BOARDS}/reproduced/{path.name}{older(root).get(path.stem, '')}"
    for metric, head, ruler, body in BLOCK.findall(path.read_text(encoding="utf-8")):
        spans = [match.span() for match in re.finditer("-+", ruler)]
        tasks = [head[low:high].strip() for low, high in spans]
        for line in body.splitlines():
            label, *cells = (line[low:high].strip() for low, high in spans)
            for task, text in zip(tasks[1:], cells, strict=True):
                if _is_metric(metric) and (value := _value(text)) and not line.startswith(" "):
                    yield Recorded(task, models.get(label, ""), label, metric, *value, source)


def of_results(text: str) -> Iterator[Recorded]:
    """The scores in the tables of RESULTS.md, of which a task and a metric can be told."""
    titles = list(HEADING.finditer(text))
    for title, end in zip(titles, [*(one.start() for one in titles[1:]), len(text)], strict=True):
        body = text[title.end() : end]
        for table in TABLE.finditer(body):
            named = [word for word in re.findall(r"\w+", body[: table.start()]) if word in task_names()]
            lines = [_cells(line) for line in table[0].splitlines()]
            yield from _of_table(lines, named[-1] if named else "", f"RESULTS.md: {title[1]}")


def _of_table(lines: list[list[str]], before: str, source: str) -> Iterator[Recorded]:
    """The scores of a table; the corner holds for all of it, as does the task named ``before`` it."""
    head, _, *rows = lines
    tasks, last = set(task_names()), ""
    for row in rows:
        label = ", ".join(text for text in row[: _leading(head)] if text and text not in tasks)
        label = f"{last}; {label[2:]}" if label.startswith("- ") else label
        last = label.partition("; ")[0]
        if NOT_OURS.search(label):
            continue
        for column, text in zip(head[_leading(head) :], row[_leading(head) :], strict=True):
            places = (column, row[0], head[0], before)
            task = next((one for place in places for one in re.findall(r"\w+", place) if one in tasks), "")
            metric = next(filter(_is_metric, (column.replace(" ", "_"), head[0].partition(",")[0])), "")
            if task and metric and (value := _value(text)):
                yield Recorded(task, _method(label, head[0]), label or head[0], metric, *value, source)


def _leading(head: list[str]) -> int:
    """Number of columns that name a row."""
    return 2 if head[:2] == ["task", "retriever"] else 1


def _method(label: str, corner: str) -> str:
    """The model that a row names, in the part after ``;`` if that names one, or else the corner of its table."""
    above, _, own = label.partition("; ")
    words = [*re.findall(r"\w+", own), *re.findall(r"\w+", above)[:1], *re.findall(r"\w+", corner)[:1]]
    return next((word for word in words if word in MODELS), "")


def _is_metric(name: str) -> bool:
    return name.partition("@")[0] in FAMILIES


def _value(text: str) -> tuple[str, str, str] | None:
    """Value, interval and number of sampled questions of a cell; shares in percent."""
    match = VALUE.fullmatch(text)
    if match is None:
        return None
    value, ends, sampled = (part or "" for part in match.groups())
    if SHARE.fullmatch(value):
        value, ends = _percent(value), re.sub(SHARE, lambda share: _percent(share[0]), ends)
    return value, ends, sampled


def _percent(share: str) -> str:
    return str(100 * Decimal(share))[:-2]


def _cells(line: str) -> list[str]:
    return [text.strip().replace("`", "") for text in line.strip().strip("|").split("|")]


def of_board(root: Path) -> Iterator[Recorded]:
    """The entries of our own board, as ``make board`` scored them with today's scorers: the scores to look at first."""
    for file in sorted((root / BOARDS / "history").glob(f"*.{scorer_hash()}.parquet")):
        task = file.name.partition(".")[0]
        rows = pl.read_parquet(file).filter(pl.col("digest").is_not_null() & pl.col("metric").is_in(first_scores(task)))
        for row in rows.unique(["name", "metric"], keep="last", maintain_order=True).iter_rows(named=True):
            shown = cell(Interval(row["mean"], row["low"], row["high"], row["questions"]), row["metric"])
            if value := _value(shown):
                yield Recorded(task, row["method"], row["name"], row["metric"], *value, f"{BOARDS}/entries")


@cache
def published(root: Path) -> tuple[PublishedRow, ...]:
    """All numbers that papers and toolkits print."""
    return read_published(root / BOARDS / "published")


@cache
def published_of_methods(root: Path) -> Mapping[str, tuple[PublishedRow, ...]]:
    """Model -> the published numbers of it: by ``names.csv``, and by the rows of the tables that compare with them."""
    of: dict[str, dict[PublishedRow, None]] = {}
    for number in published(root):
        if number.ours:
            of.setdefault(number.ours, {})[number] = None
    by_task: dict[str, list[PublishedRow]] = {}
    for number in published(root):
        by_task.setdefault(number.task, []).append(number)
    for table in tables(root).values():
        for row in table.rows:
            for task in row.tasks:
                printed = by_task.get(row.published.get("task", task), ())
                numbers = numbers_of(row, task, table.source, printed).values()
                of.setdefault(row.model, {}).update(dict.fromkeys(numbers))
    return {method: tuple(numbers) for method, numbers in of.items() if method and numbers}
