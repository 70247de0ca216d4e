"""Pages: hostile text, published numbers beside ours, plots, and what a page says of what was not run."""

from __future__ import annotations

import json
import random
from html.parser import HTMLParser

import pytest

from lm_eval_rag.harness.report.mistakes import ATTRIBUTION, RETRIEVAL, RULE, Mistake
from lm_eval_rag.harness.report.published import PublishedRow
from lm_eval_rag.harness.reproduce.html import render_html
from lm_eval_rag.harness.reproduce.matrix import Claim, Plot, Row, Table
from lm_eval_rag.harness.reproduce.page import Page, make_page
from lm_eval_rag.harness.reproduce.page_text import render
from lm_eval_rag.harness.reproduce.plots import svg
from lm_eval_rag.harness.reproduce.reproduce_cli import _jsonable
from lm_eval_rag.harness.reproduce.row_results import Result

TASK = "ruleqa_i"
HOSTILE = "<script>alert('x')</script>\"'&\x1b[31m\u202e"
VOID = {"meta", "br", "line", "circle", "polyline", "rect"}


class Strict(HTMLParser):
    """Collects tags, and fails on one that is closed without being open."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(text: str) -> Strict:
    made = Strict()
    made.feed(text)
    assert not made.open
    return made


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
    told = {
        "method": "RuleRAG-FT",
        "retriever": "",
        "generator": "",
        "metric": "em",
        "unit": "%",
        "note": "",
        **options,
    }
    return PublishedRow("RuleRAG", "table_2", TASK, value=value, doubts=("A doubt <b>.",), **told)  # type: ignore[arg-type]


def page_of(title: str = "T", label: str = "", limit: int | None = None) -> Page:
    rows = (
        row("a/seed0", label, series="s" + label, x=1.0, published={"method": "RuleRAG-FT"}, sample={TASK: 80}),
        row("a/seed1", label, series="s" + label, x=1.0, published={"method": "RuleRAG-FT"}, sample={TASK: 80}),
        row("b", series="s" + label, x=2.0, bank="1/2"),
        row("c", bank="2/2"),
        row("big", needs="a GPU " + label),
        Row("told", "told", "told", "", {}, (TASK,), published={"method": "RuleRAG-FT"}),
    )
    claims = (Claim(f"claim {label}", ("a",), ("b",), ("em",), paper=label, controls={"random " + label: ("c",)}),)
    plots = (
        Plot(f"curve {label}", "recall@{x}", x_label=label),
        Plot("gain", "em", kind="banks", baseline="a"),
    )
    table = Table("t", title, "table_2", (f"note {label}",), ("em",), rows, claims, plots)
    made = {"a/seed0": result(0, 0.8, banks=True), "a/seed1": result(1, 0.8, banks=True)}
    made |= {"b": result(2, 0.2, banks=True), "c": result(3, 0.5, banks=True)}
    found = {(name, TASK): one for name, one in made.items()}
    return make_page(table, found, [published()], failed={"b": label}, limit=limit)


def test_hostile_text_stays_text() -> None:
    page = page_of(HOSTILE, HOSTILE)
    html, text = render_html(page), render(page)
    seen = parsed(html)
    assert "script" not in seen.tags and "alert('x')" in seen.text
    assert not [value for name, value in seen.attributes if name.startswith("on") or name in ("src", "href")]
    assert "\x1b" not in html + text and "\u202e" not in html + text


def test_nothing_is_fetched() -> None:
    html = render_html(page_of())
    assert {"link", "script", "img", "iframe"}.isdisjoint(parsed(html).tags)
    assert "url(" not in html and "@import" not in html


def test_ours_stands_beside_the_papers() -> None:
    page = page_of()
    cell = page.lines[0].cells[TASK]
    score = cell.scores["em"]
    seeds = [sum(result(seed, 0.8).scores["em"].values()) / 80 for seed in (0, 1)]
    assert score.ours is not None and score.ours.mean == pytest.approx(sum(seeds) / 2)
    assert score.seeds == pytest.approx(tuple(seeds)) and score.paper == 20.5 and cell.drawn
    text, html = render(page), render_html(page)
    assert "20.5!" in text and "A doubt <b>." in text
    assert "paper 20.5!" in html and "A doubt &lt;b&gt;." in html


def test_every_status_is_told() -> None:
    statuses = {line.name: line.status for line in page_of(label="why").lines}
    assert statuses == {
        "a": "run", "b": "failed: why", "c": "run", "big": "not run: needs a GPU why", "told": "only published",
    }  # fmt: skip
    text = render(page_of(label="why"))
    assert "lm_eval run --model rule_vote --tasks ruleqa_i" in text


def test_a_trial_is_called_one() -> None:
    page = page_of(limit=7)
    assert "first 7 questions" in render(page) and "first 7 questions" in render_html(page)
    assert not page.lines[0].cells[TASK].drawn
    assert "a trial" not in render(page_of())


def test_the_json_holds_the_numbers() -> None:
    told = json.loads(json.dumps(page_of(), default=_jsonable))
    assert told["lines"][0]["cells"][TASK]["scores"]["em"]["paper"] == 20.5
    assert len(told["claims"][0][1][0]["comparisons"]) == 2


def test_plots_show_every_point_and_gain() -> None:
    curve, gains = page_of().drawings
    assert [point.x for point in curve.curves["s"]] == [1.0]  # at x = 2 no recall@2 was scored
    assert svg(curve).count("<circle") == 1
    own = [[one.mean for one in line if one] for line in gains.gains]
    scores = {name: result(seed, share).scores["em"] for name, seed, share in (("b", 2, 0.2), ("c", 3, 0.5))}
    base = {id_: (result(0, 0.8).scores["em"][id_] + result(1, 0.8).scores["em"][id_]) / 2 for id_ in scores["b"]}
    for i, name in enumerate(("b", "c")):
        for j in range(2):
            ids = [f"q{n}" for n in range(80) if n % 2 == j]
            assert own[i][j] == pytest.approx(sum(scores[name][id_] - base[id_] for id_ in ids) / 40)
    parsed(svg(gains))
