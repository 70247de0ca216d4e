"""A page as plain text."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from lm_eval_rag.harness.report.cells import cell
from lm_eval_rag.harness.report.mistakes import CLASSES, cells
from lm_eval_rag.harness.report.report_text import wrapped as _wrapped
from lm_eval_rag.harness.report.stats import DRAWS, Interval
from lm_eval_rag.harness.report.table import printable, table
from lm_eval_rag.harness.reproduce.claims import FAILS, HOLDS, UNCLEAR, Comparison
from lm_eval_rag.harness.reproduce.figure_data import FigureData
from lm_eval_rag.harness.reproduce.page import PARTLY_RUN, PUBLISHED_ONLY, RUN, Cell, Line, Page
from lm_eval_rag.harness.reproduce.verdicts import WIDEST, Compared, RowVerdict, points

HOW = (
    f"Scores are means over questions, in percent, with a 95 % bootstrap interval over questions ({DRAWS:,} draws). "
    "Where a line has several seeds, its score is the mean over them; page.json has each seed's mean. Differences are "
    "paired on the same questions. The test is exact McNemar for 0/1 scores, else paired bootstrap. For tasks under "
    "Clusters, whole clusters are resampled, the interval is the widest of their keys, and p is the largest of "
    "cluster-robust t tests. Holm's correction is over all tests that the table declares. "
    f"{HOLDS}: the difference and its interval are above 0, and the corrected p "
    f"is below 0.05. {FAILS}: the same below 0. {UNCLEAR}: anything else; it does not mean that the lines are equally "
    "good."
)
PAPER_HOW = (
    " paper: the number as printed, on the paper's own corpora, rules, questions and generators. The paper's R@k, a "
    "gold answer anywhere in all retrieved documents, is pooled_recall_contains here."
)


MISSING = 8  # names of missing rows that the warning shows


def render_text(page: Page) -> str:
    """The whole text: claims, scores, mistakes, figures, what was not run, and how to read it."""
    title = printable(page.table.title)
    parts = [f"{title}\n{'=' * len(title)}", *map(_wrapped, page.table.notes)]
    parts += [_wrapped(f"! {warning}") for warning in warnings(page)]
    parts += [_verdicts(page), _claims(page), *(_metric(page, metric) for metric in page.table.metrics), _doubts(page)]
    parts += [_mistakes(page), *map(_figure, page.figures), _status(page)]
    parts += ["\n".join(_wrapped(f"{name}: {value}") for name, value in page.facts), _wrapped(how(page))]
    return "\n\n".join(filter(None, parts)) + "\n"


def how(page: Page) -> str:
    """How to read the numbers of a page."""
    return HOW + (PAPER_HOW if page.table.compared else "")


def warnings(page: Page) -> list[str]:
    """What keeps the page from being a result: a limit, rows of claims that are missing, questions without a score."""
    return list(filter(None, (_trial(page), _short_training(page), _provisional(page), _unscored(page))))


def _trial(page: Page) -> str:
    if page.limit is None:
        return ""
    return f"A trial, not a result: only the first {page.limit} questions of each task were run (--limit)."


def _short_training(page: Page) -> str:
    if page.table.max_steps is None:
        return ""
    return f"A trial, not a result: every training of a row ended after {page.table.max_steps} steps (--max-steps)."


def _provisional(page: Page) -> str:
    if not page.provisional:
        return ""
    shown = ", ".join(page.provisional[:MISSING]) + (", ..." if len(page.provisional) > MISSING else "")
    return (
        f"Provisional: {len(page.provisional)} of the rows that claims name were not, or not wholly, run ({shown}). "
        "The correction counts all tests that the table declares, so a claim that holds here holds with the other rows "
        "too; a claim that is not significant may become so."
    )


def _unscored(page: Page) -> str:
    if not page.unscored:
        return ""
    shown = ", ".join(f"{name} {count:,}" for name, count in page.unscored.items())
    return (
        f"Questions without a score: {shown}. They do not count as wrong; a difference is over the questions that all "
        "its lines have a score for. The same command asks them again."
    )


def doubts(page: Page) -> list[str]:
    """What contradicts the published numbers that the page shows, without repetition."""
    scores = (score for line in page.lines for cell in line.cells.values() for score in cell.scores.values())
    return list(dict.fromkeys(doubt for score in scores for doubt in score.doubts))


def signed(one: Comparison, metric: str) -> str:
    """``+3.1 [1.0, 5.2]``."""
    difference = one.difference.interval
    return f"{'+' if difference.mean > 0 else ''}{cell(difference, metric)}"


def verdicts_how(page: Page) -> str:
    """How to read the verdicts of a page."""
    return (
        "reproduces: no published number of the row differs from ours by more than chance explains; this does not show "
        "that they are equal. does not: one differs by more. cannot tell: there is none in this setting, or our 95 % "
        f"interval of a number is wider than {points(WIDEST)}. not run: see the command below. Beside the verdict: how "
        f"many numbers agree so, and how many are at most {points(page.table.margin)} apart. All numbers of a row are "
        "tested together (Hochberg, 5 % for the row). The sampling error of the published run is counted, as if "
        "independent of ours, where its number of questions is known."
    )


def _verdicts(page: Page) -> str:
    rows = [
        [line.label, line.verdict.verdict, _reason(line.verdict)] for line in page.lines if line.verdict is not None
    ]
    if not rows:
        return ""
    shown = table(["", "verdict", ""], rows, left=(0, 1, 2))
    return f"Verdicts\n--------\n\n{shown}\n{_wrapped(verdicts_how(page))}"


def _reason(verdict: RowVerdict) -> str:
    if verdict.why or not verdict.compared:
        return verdict.why
    return f"{verdict.agreement}: {'; '.join(map(compared_text, verdict.compared))}"


def compared_text(one: Compared) -> str:
    """``rag_nq squad_em 35.0, paper 38.9 (up to 4.2 apart by chance): reproduces``."""
    chance = f"up to {one.reach:.1f} apart by chance"
    return f"{one.task} {one.metric} {one.ours:.1f}, paper {one.paper:.1f} ({chance}): {one.verdict}"


def _metric(page: Page, metric: str) -> str:
    rows = []
    for line in page.lines:
        ours = [_ours(line.cells.get(task), metric) for task in page.tasks]
        paper = [_paper(line.cells.get(task), metric) for task in page.tasks]
        if any(ours) or any(paper):
            rows.append([line.label, *ours])
            rows += [["  paper", *paper]] if any(paper) else []
    return f"{metric}\n\n" + table(["", *page.tasks], rows) if rows else ""


def _ours(own: Cell | None, metric: str) -> str:
    if own is None or metric not in own.scores or own.scores[metric].ours is None:
        return ""
    lacking = f", {own.unscored:,} unscored" if own.unscored else ""
    return cell(own.scores[metric].ours, metric) + (f" n={own.questions}" if own.sampled else "") + lacking


def _paper(own: Cell | None, metric: str) -> str:
    if own is None or metric not in own.scores or own.scores[metric].paper is None:
        return ""
    return f"{own.scores[metric].paper:.1f}" + ("!" if own.scores[metric].doubts else "")


def _doubts(page: Page) -> str:
    return "\n".join(_wrapped(f"! {doubt}") for doubt in doubts(page))


def _claims(page: Page) -> str:
    parts = []
    for claim, tests in page.claims:
        if not tests:
            parts.append(_wrapped(f"{claim.text}: not run"))
            continue
        names = list(dict.fromkeys(one.against for test in tests for one in test.comparisons))
        rows = []
        for test in tests:
            shown = {one.against: f"{signed(one, test.metric)} {one.verdict}" for one in test.comparisons}
            n = test.comparisons[0].difference.interval.n
            others = [shown.get(name, "").rstrip() for name in names]
            best = test.comparisons[0].line
            rows.append(
                [
                    test.task,
                    f"{test.metric}, best is {best}" if best else test.metric,
                    f"{n:,}",
                    *others,
                    test.verdict_with_controls,
                ]
            )
        controls = "vs all controls" if any(test.verdict_with_controls for test in tests) else ""
        head = ["", "", "n", "difference", *(f"vs {name}" for name in names[1:]), controls]
        text = f"{claim.text} ({claim.paper})" if claim.paper else claim.text
        parts.append(_wrapped(text) + "\n" + table(head, rows, left=(0, 1, *range(3, len(head)))))
    return "\n\n".join(["Claims\n------", *parts]) if parts else ""


def _mistakes(page: Page) -> str:
    rows = [
        [task, line.label, *cells(own.mistakes)]
        for task in page.tasks
        for line in page.lines
        if (own := line.cells.get(task)) and own.mistakes
    ]
    return "Why answers are wrong\n\n" + table(["", "", "n", *CLASSES], rows, left=(0, 1)) if rows else ""


def _figure(figure: FigureData) -> str:
    head, rows = figure_table(figure)
    return printable(figure.title) + "\n\n" + table(head, rows)


def figure_table(figure: FigureData) -> tuple[list[str], list[list[str]]]:
    """The numbers of a figure: the head, and one row per point, or per part of the rule bank."""

    def with_paper(ours: Interval | None, paper: float | None) -> str:
        return cell(ours, figure.metric) + ("" if paper is None else f" (paper {paper:+.1f})")

    if figure.names:
        rows = [
            [f"trained on {name}", *map(with_paper, gains, paper)]
            for name, gains, paper in zip(figure.names, figure.gains, figure.paper, strict=True)
        ]
        return ["tested on", *figure.names], rows
    points = [(name, point) for name, points in figure.curves.items() for point in points]
    rows = [[name, f"{point.x:g}", cell(point.ours, figure.metric)] for name, point in points]
    head = ["", figure.plot.x_label or "x", "ours"]
    if any(point.paper is not None for _, point in points):
        head.append("paper")
        for row, (_, point) in zip(rows, points, strict=True):
            row.append("" if point.paper is None else f"{point.paper:.1f}")
    return head, rows


def _status(page: Page) -> str:
    """What was not run; with its commands where it needs more than the install, or failed."""
    waiting = [line for line in page.lines if line.status not in (RUN, PUBLISHED_ONLY)]
    plain = [line for line in waiting if line.status in ("not run", PARTLY_RUN)]
    names = [line.name for line in plain]
    words = ["lm-eval-rag", "reproduce", page.table.file or page.table.name, "--only", *names]
    listed = [_wrapped(f"Not run, or only partly: {', '.join(names)}."), f"    {printable(shlex.join(words))}"]
    return "\n".join([*(listed if plain else ()), *_commands(line for line in waiting if line not in plain)])


def _commands(lines: Iterable[Line]) -> Iterable[str]:
    for line in lines:
        yield _wrapped(f"{line.label}: {line.status}")
        yield from (f"    {printable(command)}" for command in line.commands)
