"""Pages: hostile text, published numbers beside ours, figures, and what a page says of what was not run."""

from __future__ import annotations

import json
import random
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lm_eval_rag.harness.report.drawing import COLOURS, SUFFIXES, why_no_figures
from lm_eval_rag.harness.report.mistakes import ATTRIBUTION, RETRIEVAL, RULE, Mistake
from lm_eval_rag.harness.report.published import PublishedRow
from lm_eval_rag.harness.reproduce.figure_files import write_figures
from lm_eval_rag.harness.reproduce.page import Page, make_page
from lm_eval_rag.harness.reproduce.page_html import render_html
from lm_eval_rag.harness.reproduce.page_text import render_text
from lm_eval_rag.harness.reproduce.reproduce_cli import _jsonable
from lm_eval_rag.harness.reproduce.row_results import Result
from lm_eval_rag.harness.reproduce.table_spec import Claim, Plot, Row, Table

TASK = "ruleqa_i"
HOSTILE = "_<script>alert('x')</script>\"'& $\\frac{1}$ {{ 7 * 7 }}\x1b[31m\u202e"
VOID = {"meta", "br"}


class Strict(HTMLParser):
    """Collects tags and texts; fails on a tag that is closed without being open, and on an id that occurs twice."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.cells: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag in ("td", "th"):
            self.cells.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f"{data} "


def parsed(text: str) -> Strict:
    parser = Strict()
    parser.feed(text)
    assert not parser.open
    ids = [value for name, value in parser.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    return parser


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page with its figures."""
    pytest.importorskip("matplotlib")
    page = page_of("Title", "why")
    return render_html(page, write_figures(page.figures, tmp_path_factory.mktemp("figures")))


def row(name: str, label: str = "", **options: object) -> Row:
    return Row(name, name.split("/")[0], label or name, "rule_vote", {}, (TASK,), **options)  # type: ignore[arg-type]


def result(seed: int, share: float, n: int = 80, banks: bool = False) -> Result:
    rng = random.Random(seed)
    scores = {f"q{i}": float(rng.random() < share) for i in range(n)}
    kinds = [Mistake(RULE, True), Mistake(RULE, False), Mistake(RETRIEVAL, False), Mistake(ATTRIBUTION, True)]
    wrong = {id_: rng.choice(kinds) for id_, value in scores.items() if not value}
    parts = {id_: f"{i % 2 + 1}/2" for i, id_ in enumerate(scores)} if banks else {}
    return Result({"em": scores, "recall@1": scores}, banks=parts, mistakes=wrong, questions=n, seconds=3.0)


def published(value: float = 20.5, **options: str) -> PublishedRow:
    texts = {
        "method": "RuleRAG-FT",
        "retriever": "",
        "generator": "",
        "metric": "em",
        "unit": "%",
        "note": "",
        **options,
    }
    return PublishedRow("RuleRAG", "table_2", TASK, value=value, doubts=("A doubt <b>.",), **texts)  # type: ignore[arg-type]


def page_of(title: str = "T", label: str = "", limit: int | None = None) -> Page:
    rows = (
        row("a/seed0", label, series="s" + label, x=1.0, published={"method": "RuleRAG-FT"}, sample={TASK: 80}),
        row("a/seed1", label, series="s" + label, x=1.0, published={"method": "RuleRAG-FT"}, sample={TASK: 80}),
        row("b", series="s" + label, x=2.0, bank="1/2"),
        row("c", bank="2/2"),
        row("big", needs="a GPU " + label),
        Row("printed", "printed", "printed", "", {}, (TASK,), published={"method": "RuleRAG-FT"}),
    )
    claims = (Claim(f"claim {label}", ("a",), ("b",), ("em",), paper=label, controls={"random " + label: ("c",)}),)
    plots = (
        Plot(f"curve {label}", "recall@{x}", x_label=label),
        Plot("gain", "em", kind="banks", baseline="a"),
    )
    table = Table("t", title, "table_2", (f"note {label}",), ("em",), rows, claims, plots)
    by_row = {"a/seed0": result(0, 0.8, banks=True), "a/seed1": result(1, 0.8, banks=True)}
    by_row |= {"b": result(2, 0.2, banks=True), "c": result(3, 0.5, banks=True)}
    results = {(name, TASK): one for name, one in by_row.items()}
    return make_page(table, results, [published()], failed={"b": label}, limit=limit)


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page = page_of(HOSTILE, HOSTILE)
    html, text = render_html(page, write_figures(page.figures, tmp_path)), render_text(page)
    seen = parsed(html)
    assert "script" not in seen.tags
    assert seen.text.count("alert('x')") > 10 and "{{ 7 * 7 }}" in seen.text
    assert not [name for name, value in seen.attributes if name.startswith("on")]
    assert "\x1b" not in html + text and "\u202e" not in html + text
    assert "\\x1b[31m" in seen.text and "\\x1b[31m" in text


def test_nothing_is_fetched(html: str) -> None:
    seen = parsed(html)
    assert {"link", "script", "img", "image", "iframe", "object"}.isdisjoint(seen.tags)
    links = [value for name, value in seen.attributes if name.endswith(("href", "src")) and value]
    assert all(link.startswith("#") for link in links + re.findall(r"url\(([^)]*)", html)) and "@import" not in html


def test_every_table_says_what_its_cells_are(html: str) -> None:
    """For a reader of the screen by the heading's scope, on a narrow screen by the cell's own label."""
    seen = parsed(html)
    assert {attributes.get("scope") for tag, attributes in seen.cells if tag == "th"} == {"col", "row", "rowgroup"}
    assert all(attributes.get("data-label") for tag, attributes in seen.cells if tag == "td")


def test_claims_and_figures_stand_before_the_scores(html: str) -> None:
    text = render_text(page_of("Title", "why"))
    order = [html.index(part) for part in ("<svg", "What the paper says", f">{TASK}</h2>")]
    assert order == sorted(order)
    assert text.index("Claims") < text.index("\nem\n")


def test_a_verdict_stands_with_its_numbers(html: str) -> None:
    ((_, (tested,)),) = page_of("Title", "why").claims
    text = " ".join(parsed(html).text.split())
    for one in tested.comparisons:
        assert one.verdict in text
        p, holm = (f"{p:.3f}" if p >= 0.001 else "<0.001" for p in (one.difference.p, one.p_holm))
        assert f"80 questions, {one.difference.test}, p {p}, Holm {holm}" in text
    assert f"baseline and all controls {tested.verdict_with_controls}" in text


def test_ours_stands_beside_the_papers() -> None:
    page = page_of()
    cell = page.lines[0].cells[TASK]
    score = cell.scores["em"]
    seeds = [sum(result(seed, 0.8).scores["em"].values()) / 80 for seed in (0, 1)]
    assert score.ours is not None and score.ours.mean == pytest.approx(sum(seeds) / 2)
    assert score.seeds == pytest.approx(tuple(seeds)) and score.paper == 20.5 and cell.sampled
    text, html = render_text(page), render_html(page)
    assert "20.5!" in text and "A doubt <b>." in text
    assert "paper 20.5!" in html and "A doubt &lt;b&gt;." in html
    low, high = (f"{100 * end:.1f}" for end in (min(seeds), max(seeds)))
    assert f"2 seeds {low} to {high}" in html and "80 sampled questions" in html


def test_every_status_is_shown() -> None:
    page = page_of(label="why")
    assert {line.name: line.status for line in page.lines} == {
        "a": "run", "b": "failed: why", "c": "run", "big": "not run: needs a GPU why", "printed": "published only",
    }  # fmt: skip
    text, html = render_text(page), render_html(page)
    assert "lm_eval run --model rule_vote --tasks ruleqa_i" in text
    for status in ("failed: why", "not run: needs a GPU why"):
        assert status in text and status in html
    waiting = replace(page, lines=tuple(replace(one, status="not run") for one in page.lines if one.name in "bc"))
    assert "partly: b, c.\n    lm-eval-rag reproduce t --only b c\n" in f"{render_text(waiting)}\n"
    assert "partly: " not in text


def test_a_trial_is_called_one() -> None:
    page = page_of(limit=7)
    assert "first 7 questions" in render_text(page) and "first 7 questions" in render_html(page)
    assert not page.lines[0].cells[TASK].sampled
    assert "A trial" not in render_text(page_of()) + render_html(page_of())


def test_a_page_whose_claims_miss_rows_is_provisional() -> None:
    whole = page_of()
    assert whole.provisional and set(whole.provisional) <= {line.name for line in whole.lines if line.status != "run"}
    for text in (render_text(whole).replace("\n  ", " "), render_html(whole)):
        assert "Provisional: " in text and whole.provisional[0] in text
    complete = replace(whole, lines=tuple(replace(line, status="run") for line in whole.lines))
    assert complete.provisional == ()
    assert "Provisional" not in render_text(complete) + render_html(complete)


def test_the_json_holds_the_numbers() -> None:
    page = json.loads(json.dumps(page_of(), default=_jsonable))
    assert page["lines"][0]["cells"][TASK]["scores"]["em"]["paper"] == 20.5
    assert len(page["claims"][0][1][0]["comparisons"]) == 2


def test_mistakes_fill_their_bar() -> None:
    page = page_of()
    html = render_html(page)
    bars = re.findall(r'<div class="bar">(.*?)</div>', html)
    assert len(bars) == 3  # of a, b and c
    for bar in bars:
        assert sum(map(float, re.findall(r"width:([\d.]+)%", bar))) == pytest.approx(100, abs=0.05)
    assert bars[0].count("striped") == 1


def test_figures_show_every_point_and_gain(tmp_path: Path) -> None:
    curve, gains = page_of().figures
    assert [point.x for point in curve.curves["s"]] == [1.0]  # at x = 2 no recall@2 was scored
    own = [[one.mean for one in row if one] for row in gains.gains]
    scores = {name: result(seed, share).scores["em"] for name, seed, share in (("b", 2, 0.2), ("c", 3, 0.5))}
    base = {id_: (result(0, 0.8).scores["em"][id_] + result(1, 0.8).scores["em"][id_]) / 2 for id_ in scores["b"]}
    for i, name in enumerate(("b", "c")):
        for j in range(2):
            ids = [f"q{n}" for n in range(80) if n % 2 == j]
            assert own[i][j] == pytest.approx(sum(scores[name][id_] - base[id_] for id_ in ids) / 40)
    pytest.importorskip("matplotlib")
    first, second = write_figures([curve, gains], tmp_path)
    assert len(re.findall(f"<use [^>]*fill: {COLOURS[0]}", first)) == 2  # a point, and its line in the legend
    assert all(f">{100 * gain:+.1f}<" in second.replace("\u2212", "-") for row in own for gain in row)


def test_figures_are_files_that_a_paper_can_use_and_equal_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figures = page_of().figures
    for folder in ("first", "second"):
        write_figures(figures, tmp_path / folder)
    names = {f"figure_{number}.{suffix}" for number in (1, 2) for suffix in SUFFIXES}
    assert {path.name for path in (tmp_path / "first").iterdir()} == names
    magic = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}
    for name in names:
        content = (tmp_path / "first" / name).read_bytes()
        assert content.startswith(magic[name[-3:]]) and content == (tmp_path / "second" / name).read_bytes()


def test_without_matplotlib_a_page_has_the_numbers_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lm_eval_rag.harness.common.extras.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = page_of()
    text = parsed(render_html(page, [], why_no_figures())).text
    assert "The figures are not drawn." in text and "needs matplotlib" in text and "[plots]" in text
    gain = page.figures[1].gains[0][0]
    assert gain is not None and f"{100 * gain.mean:.1f}" in text
    without_plots = replace(page, figures=())
    assert "not drawn" not in render_html(without_plots, [], why_no_figures())
