"""The written forms of a report: every table read back equals the content, and texts of runs stay texts."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.report.abstention_scores import Abstention
from lm_eval_rag.harness.report.document import Document, document
from lm_eval_rag.harness.report.formats import FORMATS, SUFFIXES, format_of
from lm_eval_rag.harness.report.grid import Grid
from lm_eval_rag.harness.report.plot_files import write_plots
from lm_eval_rag.harness.report.plots import plots_of
from lm_eval_rag.harness.report.report_cli import report_main
from lm_eval_rag.harness.report.report_parts import Comparison, Cost, RunReport, TaskReport
from lm_eval_rag.harness.report.stats import Difference, Interval
from lm_eval_rag.harness.report.verdict_lines import verdict_lines

EVIL = "m_1 50% & $x$ <script>alert(1)</script> | `a` *b* # {c} ~d ^e \\f [g] \"q\" 'r' {{ 7*7 }}"
CONTROL = "red\x1b[31m\u202e"


def run(name: str, em: float, **changes: Any) -> RunReport:
    scores = {
        "em": Interval(em, em - 0.05, em + 0.05, 40),
        "token_f1": Interval(em + 0.125, em, em + 0.25, 40),
        "recall@10": Interval(0.5, None, None, 40),
        "pooled_documents": Interval(10.25, 9.5, 11.0, 40),
    }
    slices = {"direct": {"em": scores["em"]}, EVIL: {"em": Interval(0.0, None, None, 8)}}
    one = RunReport(
        name, "results.json", "1", 40, {}, scores, slices, Cost(4000, 80, 0.5, 1.5, {"Generate": 40}, 0),
        headline=("em", "token_f1", "recall@10"), method=name, date="2026-01-02", versions={"lm_eval": "0.4.13"},
    )  # fmt: skip
    return replace(one, **changes)


def compare(first: str, second: str, mean: float, p: float, metric: str = "em") -> Comparison:
    return Comparison(
        first, second, metric, Difference(Interval(mean, mean - 0.1, mean + 0.1, 40), p, "mcnemar"), 2 * p
    )


@pytest.fixture(scope="module")
def report() -> TaskReport:
    runs = (run(EVIL, 0.25), run(CONTROL, 0.75, unscored={"q1": EVIL}), run("plain", 0.5, cost=None))
    comparisons = (
        compare(EVIL, CONTROL, 0.5, 0.0001),
        compare(EVIL, "plain", 0.25, 0.04),
        compare(CONTROL, "plain", -0.25, 0.3),
    )
    return TaskReport("task_100%", "slice", {"direct": 32, EVIL: 8}, runs, comparisons, ())


@pytest.fixture(scope="module")
def whole(report: TaskReport) -> Document:
    return document([report])


@pytest.fixture(scope="module")
def html(whole: Document) -> str:
    return FORMATS["html"](whole)


def grids(whole: Document) -> list[Grid]:
    return [grid for section in whole.sections for grid in section.grids]


def shown(text: str) -> str:
    """As it is printed: control characters escaped."""
    return text.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")


def test_every_format_has_a_suffix_and_tables_in_one_order(whole: Document) -> None:
    assert set(FORMATS) == set(SUFFIXES.values()) == {"text", "markdown", "html", "latex", "csv", "json"}
    assert [grid.title for grid in grids(whole)] == [
        "Scores",
        "Differences",
        "Other scores",
        "Scores by slice",
        "Costs",
    ]


def test_latex_read_back_is_the_content(whole: Document) -> None:
    text = FORMATS["latex"](whole)
    names = {"textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textless": "<"}
    names |= {"textgreater": ">", "textbar": "|", "textquotedbl": '"'}

    def unescaped(cell: str) -> str:
        pattern = r"\\(text\w+)\{\}|\\([%_&$#{}])|\{([\[\]])\}"
        return re.sub(pattern, lambda match: names.get(match[1], "") or match[2] or match[3], cell.strip())

    bodies = re.findall(r"\\begin\{tabular\}\{([lr]+)\}\n\s*\\toprule\n(.*?)\\bottomrule", text, re.DOTALL)
    assert len(bodies) == len(grids(whole))
    for (columns, body), grid in zip(bodies, map(Grid.narrow, grids(whole)), strict=True):
        lines = [line for line in body.splitlines() if line.strip() not in ("", r"\midrule")]
        cells = [[unescaped(one) for one in re.split(r"(?<!\\)&", line.rstrip().removesuffix(r"\\"))] for line in lines]
        assert cells == [[shown(one) for one in row] for row in (grid.head, *grid.rows)]
        assert columns == "".join("l" if i in grid.left else "r" for i in range(len(grid.head)))
        assert all(line.endswith(r" \\") for line in lines)
    for line in re.sub(r"\\[%_&$#{}\\]", "", text).splitlines():
        assert line.startswith("%") or not re.search(r"[%$#^~]", line), "every special character is escaped"


def latex_mistakes(text: str) -> list[str]:
    """What TeX would stumble over: environments and braces that do not match, special characters, numbers of cells."""
    mistakes, environments, columns = [], [], 0
    for number, line in enumerate(text.splitlines(), start=1):
        code = "" if line.startswith("%") else re.sub(r"\\\\|\\[%_&$#{}]", "~", line)  # without escaped characters
        for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", code):
            if kind == "begin":
                environments.append(name)
            elif not environments or environments.pop() != name:
                mistakes.append(f"line {number}: {name} is closed without being open")
        if tabular := re.search(r"\\begin\{(?:tabular|longtable)\}\{([lr]+)\}", code):
            columns = len(tabular[1])
        if line.rstrip().endswith(r"\\") and r"\label" not in line and code.count("&") != columns - 1:
            mistakes.append(f"line {number}: {code.count('&') + 1} cells in {columns} columns")
        if code.count("{") != code.count("}") or re.search(r"(?<!\\)[%$#^_]", re.sub(r"\\label\{.*?\}", "", code)):
            mistakes.append(f"line {number}: braces or a special character: {line}")
        if not line.isprintable():
            mistakes.append(f"line {number}: control characters")
    return mistakes + [f"{name} stays open" for name in environments]


@pytest.mark.parametrize("repeats", [1, 20], ids=["tables", "longtable"])
def test_latex_needs_no_mending(report: TaskReport, repeats: int) -> None:
    text = FORMATS["latex"](document([replace(report, comparisons=report.comparisons * repeats)]))
    assert latex_mistakes(text) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (r"\end{tabular}", "", "is closed without being open"),
        (r"\end{longtable}", "", "stays open"),
        (" & ", " ", "cells in"),
        (r"\_", "_", "a special character"),
        (r"\%", "%", "a special character"),
        ("{[}", "{[", "braces"),
        (r"\midrule", "\x07", "control characters"),
    ],
)
def test_the_check_of_latex_finds_mistakes(report: TaskReport, before: str, after: str, said: str) -> None:
    text = FORMATS["latex"](document([replace(report, comparisons=report.comparisons * 20)]))
    place = text.index(before, text.index(r"\toprule"))
    assert any(said in one for one in latex_mistakes(text[:place] + after + text[place + len(before) :]))


TEX = next(filter(None, map(shutil.which, ("pdflatex", "tectonic"))), None)


@pytest.mark.skipif(TEX is None, reason="needs TeX: neither pdflatex nor tectonic is installed")
def test_latex_compiles(report: TaskReport, tmp_path: Path) -> None:
    many = document([report, replace(report, comparisons=report.comparisons * 20)])
    packages = "\\usepackage{booktabs}\n\\usepackage{longtable}\n\\usepackage[T1]{fontenc}\n"
    text = f"\\documentclass{{article}}\n{packages}\\begin{{document}}\n{FORMATS['latex'](many)}\\end{{document}}\n"
    (tmp_path / "report.tex").write_text(text, encoding="utf-8")
    options = ["-interaction=nonstopmode", "-halt-on-error"] if Path(str(TEX)).name == "pdflatex" else []
    done = subprocess.run([str(TEX), *options, "report.tex"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert (tmp_path / "report.pdf").stat().st_size > 10_000


def test_a_long_table_goes_on_over_pages(report: TaskReport) -> None:
    many = replace(report, comparisons=report.comparisons * 20)
    text = FORMATS["latex"](document([many]))
    assert text.count(r"\begin{longtable}") == text.count(r"\end{longtable}") == 1
    assert r"\end{longtable}" not in FORMATS["latex"](document([report]))


def test_markdown_read_back_is_the_content(whole: Document) -> None:
    text = FORMATS["markdown"](whole)
    tables = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    assert len(tables) == len(grids(whole))
    for table, grid in zip(tables, map(Grid.narrow, grids(whole)), strict=True):
        head, line, *rows = table.splitlines()
        cells = [
            [re.sub(r"\\(.)", r"\1", cell).strip() for cell in re.findall(r"((?:\\.|[^\\|])*)\|", row[1:])]
            for row in (head, *rows)
        ]
        assert cells == [[shown(one) for one in row] for row in (grid.head, *grid.rows)]
        assert line.count("---:") == len(grid.head) - len(set(grid.left))
    assert not re.search(r"(?<!\\)<", text), "no HTML"


def test_csv_has_every_number_unrounded(whole: Document, report: TaskReport) -> None:
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](whole))))
    scores = {(row["run"], row["metric"]): row for row in rows if row["kind"] == "score"}
    assert len(scores) == sum(len(one.scores) for one in report.runs)
    for one in report.runs:
        for metric, score in one.scores.items():
            row = scores[shown(one.run), metric]
            ends = [None if row[end] == "" else float(row[end]) for end in ("low", "high")]
            assert [float(row["value"]), *ends, int(row["n"])] == [score.mean, score.low, score.high, score.n]
            assert row["task"] == "task_100%"
    differences = [row for row in rows if row["kind"] == "difference"]
    for row, comparison in zip(differences, report.comparisons, strict=True):
        assert (row["run"], row["against"]) == (shown(comparison.second), shown(comparison.first))
        assert [float(row[key]) for key in ("value", "p", "p_holm")] == [
            *(comparison.difference.interval.mean, comparison.difference.p, comparison.p_holm)
        ]
    costs = {(row["run"], row["metric"]): float(row["value"]) for row in rows if row["kind"] == "cost"}
    assert costs[shown(EVIL), "prompt_tokens"] == 4000 and costs[shown(CONTROL), "unscored"] == 1
    assert ("plain", "prompt_tokens") not in costs
    slices = {(row["run"], row["slice"]): float(row["value"]) for row in rows if row["kind"] == "slice"}
    assert slices["plain", shown(EVIL)] == 0.0 and slices["plain", "direct"] == 0.5


def test_json_is_the_content(whole: Document, report: TaskReport) -> None:
    text = FORMATS["json"](whole)
    content = json.loads(text)
    assert all(c.isprintable() or c == "\n" for c in text)
    (task,) = content["tasks"]
    assert [one["run"] for one in task["runs"]] == [EVIL, CONTROL, "plain"]
    assert task["runs"][0]["scores"]["em"] == {"mean": 0.25, "low": 0.2, "high": 0.3, "n": 40}
    assert task["comparisons"][0]["p_holm"] == report.comparisons[0].p_holm
    assert content["facts"]["Runs"] == "2026-01-02" and content["facts"]["Run with"] == "lm_eval 0.4.13"


class Strict(HTMLParser):
    """Collects tags, attributes, texts and tables; fails on a tag that is closed without being open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.cells: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        assert not [name for name in given if name.startswith("on")]
        self.ids += [str(given["id"])] if "id" in given else []
        self.links += [str(given[name]) for name in ("href", "src", "xlink:href") if given.get(name)]
        if tag in ("td", "th"):
            self.cells.append((tag, given))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data if "style" not in self.open else ""


def test_the_page_is_self_contained_and_texts_stay_texts(html: str) -> None:
    page = Strict(html)
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    assert len(set(page.ids)) == len(page.ids)
    assert page.links and all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert not re.search(r"@import|http-equiv|url\((?!#)", html)
    for wanted in (EVIL, shown(CONTROL), "2026-01-02", "lm_eval 0.4.13", "not significant", "<0.001"):
        assert " ".join(wanted.split()) in " ".join(page.text.split())
    assert "prefers-color-scheme: dark" in html and "width=device-width" in html


def test_the_page_says_what_every_cell_is_and_what_not_significant_means(html: str) -> None:
    page = Strict(html)
    assert all(given.get("scope") in ("col", "row", "rowgroup") for tag, given in page.cells if tag == "th")
    assert all(given.get("data-label") for tag, given in page.cells if tag == "td")
    places = [html.index(one) for one in ('id="s1-verdicts"', 'id="s1-figures"', "<table", 'id="s1-2"')]
    assert places == sorted(places), "verdicts and figures first, then the tables"
    assert "It does not mean that the runs are equally good" in page.text


def test_verdicts_name_the_best_and_what_is_not_significant(report: TaskReport) -> None:
    (line,) = verdict_lines(report)
    assert line == f"em: best is {CONTROL}, 75.0 [70.0, 80.0]. Significantly worse: {EVIL}; not significant: plain."
    against = replace(report, against="plain", comparisons=(compare("plain", EVIL, -0.25, 0.001),))
    assert list(verdict_lines(against)) == [f"em: compared with plain, 50.0 [45.0, 55.0]. Significantly worse: {EVIL}."]
    lower = replace(report, comparisons=(compare("plain", EVIL, 2.0, 0.001, "pooled_documents"),), against="plain")
    assert next(iter(verdict_lines(lower))).endswith(f"Significantly worse: {EVIL}."), "fewer documents are better"


def test_verdicts_of_runs_that_cannot_be_told_apart(report: TaskReport) -> None:
    equal = replace(report, runs=(run("a", 0.5), run("b", 0.5)), comparisons=(compare("a", "b", 0.0, 1.0),))
    assert list(verdict_lines(equal)) == ["em: all runs have 50.0 [45.0, 55.0]."]
    near = replace(report, runs=(run("a", 0.5), run("b", 0.4)), comparisons=(compare("a", "b", -0.1, 0.5),))
    assert list(verdict_lines(near)) == ["em: highest is a, 50.0 [45.0, 55.0]. Not significant: b."]


def test_figures_have_the_numbers_of_the_report(report: TaskReport) -> None:
    curve = tuple(run(f"a k={k}", em, curve=float(k), method="a") for k, em in ((10, 0.5), (2, 0.3)))
    abstained = Abstention({}, "confidence", ((0.1, 1.0), (0.5, 0.75)))
    runs = (*curve, run("b", 0.4, abstention=abstained, cost=Cost(400, 1, 0, 0, {}, 0)))
    plots = {(plot.kind, plot.metric): plot for plot in plots_of(replace(report, runs=runs))}
    assert [kind for kind, _ in plots] == ["scores"] * 3 + ["k", "k", "tokens", "coverage", "slices"]
    assert {name: marks[0].y.mean for name, marks in plots["scores", "em"].points.items()} == {
        **{"a k=10": 0.5, "a k=2": 0.3, "b": 0.4}
    }
    assert {name: [(m.x, m.y.mean) for m in marks] for name, marks in plots["k", "em"].points.items()} == {
        "a": [(2.0, 0.3), (10.0, 0.5)]
    }
    assert [marks[0].x for marks in plots["tokens", "recall@10"].points.values()] == [100, 100, 10]
    points = plots["coverage", "accuracy of answers"].points
    assert [(mark.x, mark.y.mean) for mark in points["b"]] == [(0.1, 1.0), (0.5, 0.75)] and points["a k=2"] == ()
    assert plots["slices", "em"].names == ("direct", EVIL)


def test_figures_are_files_for_papers(whole: Document, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    small = replace(whole, sections=(replace(whole.sections[0], plots=whole.sections[0].plots[-1:]),))
    files = write_plots(small, tmp_path)
    assert [path.name for path in files] == [f"task_100__slices.{suffix}" for suffix in ("svg", "pdf", "png")]
    assert [path.read_bytes()[:4] for path in files] == [b"<?xm", b"%PDF", b"\x89PNG"]
    svg = files[0].read_text(encoding="utf-8")
    assert "<script" not in svg and "&lt;script&gt;" in svg
    monkeypatch.setattr("lm_eval_rag.harness.report.plot_files.why_no_figures", lambda: "needs matplotlib: pip ...")
    with pytest.raises(UserError, match="needs matplotlib"):
        write_plots(whole, tmp_path)


def test_without_matplotlib_the_page_says_what_to_install(whole: Document, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lm_eval_rag.harness.report.report_html.why_no_figures", lambda: "Install X.")
    page = Strict(FORMATS["html"](whole))
    assert "The figures are not drawn. Install X." in page.text and "svg" not in page.tags


def test_an_unknown_suffix() -> None:
    assert format_of(Path("a/B.HTML")) == "html"
    with pytest.raises(UserError, match=r"Unknown suffix of --out '\.tx'.*Did you mean.*\.txt"):
        format_of(Path("report.tx"))


def test_metrics_hold_everywhere(make_run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "a", model="standard_rag", n=30)
    make_run(tmp_path / "b", model="rulerag_icl", n=30, right=0.6, seed=1)
    outs = [str(tmp_path / f"report{suffix}") for suffix in (".txt", ".md", ".html", ".tex", ".csv", ".json")]
    argv = [str(tmp_path / "a"), str(tmp_path / "b"), "--metrics", "recall@10,em"]
    assert report_main([*argv, *(word for out in outs for word in ("--out", out))]) == 0
    assert capsys.readouterr().out.split() == outs
    for out in outs:
        text = Path(out).read_text(encoding="utf-8").replace("\\_", "_")
        assert not re.findall(r"token_f1|em_contains|crag_\w+|recall@5|mrr|attributed|f_score", text), out
        assert "recall@10" in text
    tasks = json.loads(Path(outs[-1]).read_text(encoding="utf-8"))["tasks"]
    assert [list(one["scores"]) for one in tasks[0]["runs"]] == [["recall@10", "em"]] * 2
    assert report_main([*argv, "--format", "csv"]) == 0
    assert capsys.readouterr().out == Path(outs[4]).read_text(encoding="utf-8")
    assert report_main([*argv, "--out", str(tmp_path / "report.docx")]) == 2
    assert "Unknown suffix of --out '.docx'" in capsys.readouterr().err
    assert report_main([*argv[:2], "--metrics", "f_score"]) == 0, "scores of abstention can be chosen too"
