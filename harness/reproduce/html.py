"""A page as one HTML file: no script, nothing fetched, every text escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files

from lm_eval_rag.harness.report.mistakes import CLASSES, RETRIEVAL, RULE, Counts
from lm_eval_rag.harness.report.report_text import cell
from lm_eval_rag.harness.report.table import printable
from lm_eval_rag.harness.reproduce.claims import FAILS, HOLDS, UNCLEAR, Comparison, Tested
from lm_eval_rag.harness.reproduce.matrix import Claim
from lm_eval_rag.harness.reproduce.page import Cell, Line, Page
from lm_eval_rag.harness.reproduce.page_text import HOW, difference, doubts
from lm_eval_rag.harness.reproduce.plots import svg

CLASS_OF = {HOLDS: "yes", FAILS: "no", UNCLEAR: "open", "": "bound"}


def render_html(page: Page) -> str:
    """The whole document."""
    style = (files("lm_eval_rag.harness.reproduce") / "page.css").read_text(encoding="utf-8")
    notes = "".join(f"<li>{_safe(note)}</li>" for note in page.table.notes)
    trial = "" if page.limit is None else (
        f'<p class="trial">Only the first {page.limit} questions of each task (--limit): a trial, not a result.</p>'
    )  # fmt: skip
    body = [
        f"<h1>{_safe(page.table.title)}</h1>{trial}<ul class='notes'>{notes}</ul>",
        _claims(page),
        _scores(page),
        "".join(f"<p class='doubt'>! {_safe(doubt)}</p>" for doubt in doubts(page)),
        _drawings(page),
        _mistakes(page),
        _commands(page),
        f"<footer>{_safe(HOW)}</footer>",
    ]
    head = f"<meta charset='utf-8'><meta name='viewport' content='width=device-width'><title>{_safe(page.table.title)}"
    return f"<!doctype html><html lang='en'><head>{head}</title><style>{style}</style></head><body><main>" + (
        "\n".join(filter(None, body)) + "</main></body></html>\n"
    )


def _safe(text: str) -> str:
    return escape(printable(text), quote=True)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """Cells are HTML already."""
    top = "".join(f"<th>{one}</th>" for one in head)
    lines = "".join("<tr>" + "".join(f"<td>{one}</td>" for one in row) + "</tr>" for row in rows)
    return (
        f"<div class='scroll'><table class='{kind}'><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def _scores(page: Page) -> str:
    """One table a metric, one column a task; with one task alone one table, one column a metric."""
    metrics, tasks = page.table.metrics, page.tasks
    if len(tasks) == 1:
        return _score_table(page, tasks[0], metrics, [(tasks[0], metric) for metric in metrics])
    return "".join(_score_table(page, metric, tasks, [(task, metric) for task in tasks]) for metric in metrics)


def _score_table(page: Page, title: str, columns: Sequence[str], keys: Sequence[tuple[str, str]]) -> str:
    rows = [[_name(line), *(_score(line.cells.get(task), metric) for task, metric in keys)] for line in page.lines]
    shown = [row for row in rows if any(row[1:])]
    return f"<h2>{_safe(title)}</h2>" + _table(["", *map(_safe, columns)], shown, "scores") if shown else ""


def _name(line: Line) -> str:
    mark = "" if line.status == "run" else f"<small>{_safe(line.status)}</small>"
    return f"<b>{_safe(line.label)}</b>{mark}"


def _score(found: Cell | None, metric: str) -> str:
    if found is None or metric not in found.scores:
        return ""
    score, shown = found.scores[metric], ""
    if score.ours is not None:
        mean, _, ends = cell(score.ours, metric).partition(" ")
        shown = f"<b>{mean}</b> <i>{_safe(ends)}</i>"
        if score.seeds:
            low, high = 100 * min(score.seeds), 100 * max(score.seeds)
            shown += f"<small>{len(score.seeds)} seeds {low:.1f} to {high:.1f}</small>"
        shown += f"<small>{found.questions:,} drawn questions</small>" if found.drawn else ""
        shown += f"<small>{found.unscored:,} unscored</small>" if found.unscored else ""
    if score.paper is not None:
        doubt = f" title='{_safe(' '.join(score.doubts))}'" if score.doubts else ""
        shown += f"<span class='printed'{doubt}>paper {score.paper:.1f}{'!' if score.doubts else ''}</span>"
    return shown


def _claims(page: Page) -> str:
    if not page.claims:
        return ""
    waiting = "".join(f"<li>{_safe(claim.text)}</li>" for claim, tests in page.claims if not tests)
    later = f"<h3>Not run yet</h3><ul class='notes'>{waiting}</ul>" if waiting else ""
    return (
        "<h2>What the paper says, tested here</h2>" + "".join(_claim(*pair) for pair in page.claims if pair[1]) + later
    )


def _claim(claim: Claim, tests: Sequence[Tested]) -> str:
    paper = f"<p class='said'>{_safe(claim.paper)}</p>" if claim.paper else ""
    tasks = dict.fromkeys(test.task for test in tests)
    at = {(test.task, test.metric): test for test in tests}
    head = ["", "", *(_safe(task) for task in tasks)]
    rows = [row for metric in dict.fromkeys(test.metric for test in tests) for row in _tests(metric, tasks, at)]
    verdicts = Counter(test.verdict for test in tests)
    tally = " ".join(f"<span class='{CLASS_OF[v]}'>{n} {v}</span>" for v, n in sorted(verdicts.items()))
    title = f"<h3>{_safe(claim.text)} <small>{tally}</small></h3>"
    return f"<section class='claim'>{title}{paper}{_table(head, rows, 'claims')}</section>"


def _tests(metric: str, tasks: Iterable[str], at: Mapping[tuple[str, str], Tested]) -> Iterable[list[str]]:
    """One row a comparison on one metric, one column a task; the last row says whether it is the rules that help."""
    tests = [at.get((task, metric)) for task in tasks]
    names = dict.fromkeys(one.against for test in tests if test for one in test.comparisons)
    for number, name in enumerate(names):
        told = _safe(name) if number == 0 else f"against {_safe(name)}"
        found = [next((c for c in test.comparisons if c.against == name), None) if test else None for test in tests]
        shown = [_difference(one, metric) if one else "" for one in found]
        yield [f"<b>{_safe(metric)}</b>" if number == 0 else "", told, *shown]
    if any(test and test.by_rules for test in tests):
        badges = [_badge(test.by_rules) if test and test.by_rules else "" for test in tests]
        yield ["", "against all of these", *badges]


def _difference(one: Comparison, metric: str) -> str:
    found = one.difference.interval
    text = difference(one, metric).removesuffix(one.verdict).rstrip()
    mean, _, ends = text.partition(" ")
    told = f"{found.n:,} questions, p {one.difference.p:.2g}"
    p = f" title='{told}, Holm {one.p_holm:.2g}, {one.difference.test}'" if one.verdict else ""
    return f"<span{p}><b>{_safe(mean)}</b> <i>{_safe(ends)}</i><br>{_badge(one.verdict)}</span>"


def _badge(verdict: str) -> str:
    return f"<em class='{CLASS_OF[verdict]}'>{_safe(verdict or 'upper bound')}</em>"


def _drawings(page: Page) -> str:
    figures = "".join(
        f"<figure><figcaption>{_safe(one.plot.title)}, {_safe(one.task)}</figcaption>{svg(one)}</figure>"
        for one in page.drawings
    )
    return f"<div class='figures'>{figures}</div>" if figures else ""


def _mistakes(page: Page) -> str:
    rows = [
        [_safe(task), _safe(line.label), f"{found.mistakes.wrong:,}", _bar(found.mistakes)]
        for task in page.tasks
        for line in page.lines
        if (found := line.cells.get(task)) and found.mistakes
    ]
    if not rows:
        return ""
    keys = "".join(f"<span class='key'><i class='m{i}'></i>{name}</span>" for i, name in enumerate(CLASSES))
    how = (
        f"{RULE}: no selected rule leads to a gold answer in the corpus (striped: the answer was retrieved all the "
        f"same); else {RETRIEVAL}: none of the first 10 documents states one; else attribution error. The paper, by "
        "hand, over 300 wrong answers: 5, 55 and 40 %."
    )
    head = ["", "", "wrong", f"<div class='keys'>{keys}</div>"]
    return f"<h2>Why answers are wrong</h2><p class='said'>{_safe(how)}</p>" + _table(head, rows, "mistakes")


def _bar(counts: Counts) -> str:
    share = {name: 100 * n / counts.wrong for name, n in counts.of.items()}
    both = 100 * counts.retrieved / counts.wrong
    widths = [("m0", share[RULE] - both), ("m0 striped", both), *((f"m{i}", share[CLASSES[i]]) for i in (1, 2))]
    bars = "".join(f"<i class='{kind}' style='width:{width:.2f}%'></i>" for kind, width in widths if width > 0)
    told = " · ".join(f"{share[name]:.0f} %" for name in CLASSES)
    return f"<div class='bar'>{bars}</div><small>{told}</small>"


def _commands(page: Page) -> str:
    rows = []
    for line in page.lines:
        if line.commands:
            typed = "".join(f"<code>{_safe(command)}</code>" for command in line.commands)
            took = f"<small>{line.seconds:,.0f} s</small>" if line.seconds else ""
            rows.append([_safe(line.label), _safe(line.status) + took, typed])
    if not rows:
        return ""
    return "<details><summary>Every line's command</summary>" + _table(["", "", ""], rows, "commands") + "</details>"
