"""What all written forms of a report share: titled sections of tables and figures, whose cells are texts.

The renderers (:mod:`.formats`) only lay it out. Verdicts and figures come first, then the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lm_eval_rag.harness.common.extras import DISTRIBUTION, versions
from lm_eval_rag.harness.report.cells import NOT_SIGNIFICANT, SIGNIFICANT
from lm_eval_rag.harness.report.cluster_keys import clustering_text
from lm_eval_rag.harness.report.grid import Grid
from lm_eval_rag.harness.report.plots import PlotData, plots_of
from lm_eval_rag.harness.report.report_parts import ALPHA, TaskReport
from lm_eval_rag.harness.report.report_tables import grids_of, missing_of, title_of
from lm_eval_rag.harness.report.stats import DRAWS
from lm_eval_rag.harness.report.trivial_baselines import trivial_lines, without_trivial
from lm_eval_rag.harness.report.verdict_lines import verdict_lines

CLUSTERED_HOW = (
    "Whole clusters are resampled, with a correction for few and unequal ones; the interval is the widest of all keys. "
    "The p value is the largest of cluster-robust t tests."
)


@dataclass(frozen=True, slots=True)
class Section:
    """One task: what the differences say, figures, tables, and sentences about what is missing."""

    title: str
    verdicts: tuple[str, ...]
    plots: tuple[PlotData, ...]
    grids: tuple[Grid, ...]
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report.

    Args:
        facts: Name -> value: dates and versions.
        sections: One per task.
        notes: How to read the numbers.
        reports: The content behind the texts, for forms made of numbers.
        seed: Seed of the bootstrap.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    notes: tuple[str, ...]
    reports: tuple[TaskReport, ...]
    seed: int = 0


def document(reports: Sequence[TaskReport], seed: int = 0, extra: Iterable[Grid] = (), where: str = "") -> Document:
    """The report of all tasks.

    Args:
        seed: Seed of the bootstrap.
        extra: Further tables, such as the classes of wrong answers, for the last section.
        where: Which questions of the tasks it is about, such as ``slice=rule_required``; "" for all.
    """
    only = f" where {where}" if where else ""
    sections = [
        Section(
            title_of(report) + only,
            (*verdict_lines(report), *trivial_lines(report)),
            tuple(plots_of(report)),
            tuple(grids_of(report)),
            (*missing_of(report), *without_trivial(report)),
        )
        for report in reports
    ]
    if more := tuple(extra):
        sections.append(Section("Wrong answers", (), (), more))
    title = "Report: " + ", ".join(report.task for report in reports) + only
    facts = (*((("Questions", where),) if where else ()), *_facts(reports))
    return Document(title, facts, tuple(sections), tuple(_notes(reports)), tuple(reports), seed)


def _facts(reports: Sequence[TaskReport]) -> Iterable[tuple[str, str]]:
    runs = [run for report in reports for run in report.runs]
    dates = sorted({run.date for run in runs} - {""})
    if dates:
        yield "Runs", dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    tasks = ", ".join(f"{report.task} {report.runs[0].version}" for report in reports)
    yield "Task versions", tasks
    packages = sorted({f"{name} {version}" for run in runs for name, version in run.versions.items()})
    if packages:
        yield "Run with", ", ".join(packages)
    yield "Report by", versions(DISTRIBUTION).replace("=", " ") or DISTRIBUTION


def _notes(reports: Sequence[TaskReport]) -> Iterable[str]:
    yield (
        f"Mean [95 % bootstrap interval over questions, {DRAWS:,} draws]; shares in percent; no interval if all values "
        "are equal; n= if a score covers fewer questions than were answered."
    )
    for report in reports:
        if report.clusters:
            yield f"{report.task}: questions are clustered {clustering_text(report.clusters)}. {CLUSTERED_HOW}"
    tests = sum(len(report.comparisons) for report in reports)
    if tests:
        yield (
            "Differences are paired on the same questions. Unless questions are clustered, the test is exact McNemar "
            "for 0/1 scores, else paired bootstrap. p Holm is "
            f"corrected for the {tests} tests of this report; {SIGNIFICANT}: below {ALPHA:g}."
        )
        yield (
            f"'{NOT_SIGNIFICANT.capitalize()}' means that these questions do not show which run is better. It does not "
            "mean that the runs are equally good: every difference within the interval is compatible with the data."
        )
