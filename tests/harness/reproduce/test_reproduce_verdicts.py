"""Verdicts on rows: what reproduces a published number, what does not, and what cannot tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from lm_eval_rag.harness.report.published import PublishedRow
from lm_eval_rag.harness.report.stats import Interval
from lm_eval_rag.harness.reproduce.page import Cell, Score, make_page
from lm_eval_rag.harness.reproduce.page_html import render_html
from lm_eval_rag.harness.reproduce.page_text import render_text
from lm_eval_rag.harness.reproduce.row_results import Result
from lm_eval_rag.harness.reproduce.running import jobs
from lm_eval_rag.harness.reproduce.table_file import read_table
from lm_eval_rag.harness.reproduce.verdicts import (
    CANNOT_TELL,
    DOES_NOT,
    NOT_RUN,
    REPRODUCES,
    Compared,
    compared_of,
    row_verdict,
)

TABLE = """
title = "T"
source = "table_1"
verdicts = true
tasks = ["hotpotqa", "fever"]
metrics = ["em", "perplexity"]
corpora = { hotpotqa = "own", fever = "beir" }
metadata = { judge = "rules" }

[[row]]
name = "here"
model = "standard_rag"
arguments = { k = 5 }
published = { paper = "P", method = "M" }

[[row]]
name = "other"
model = "standard_rag"
arguments = { k = 4, retriever_query_prefix = "query: " }
published = { paper = "P", method = "M" }
differs = "another model"
first = 10
gen_kwargs = { max_gen_toks = 32 }
system = "Say little."

[[row]]
name = "waits"
model = "standard_rag"
published = { paper = "P", method = "M" }
needs = "a GPU"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "made_up.toml"
    file.write_text(TABLE, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("low", "high", "paper", "verdict"),
    [
        (30, 36, 33, REPRODUCES), (30, 36, 30, REPRODUCES), (30, 36, 29.9, DOES_NOT), (30, 36, 36.1, DOES_NOT),
        (20, 45, 30, CANNOT_TELL), (20, 45, 60, DOES_NOT), (30, 40, 35, REPRODUCES),
    ],
)  # fmt: skip
def test_one_number(low: float, high: float, paper: float, verdict: str) -> None:
    assert Compared("t", "em", (low + high) / 2, low, high, paper).verdict == verdict


def test_a_row_is_as_bad_as_its_worst_number() -> None:
    good, bad, wide = (Compared("t", "em", 33, low, high, 33) for low, high in ((30, 36), (34, 36), (10, 60)))
    assert row_verdict([good], run=True).verdict == REPRODUCES
    assert row_verdict([good, wide], run=True).verdict == CANNOT_TELL
    assert row_verdict([good, wide, bad], run=True).verdict == DOES_NOT
    assert row_verdict([], run=True).verdict == CANNOT_TELL
    assert row_verdict([good], run=True, differs="x").why == "x"
    assert row_verdict([good], run=True, limit=5).verdict == CANNOT_TELL
    assert row_verdict([good], run=False).verdict == NOT_RUN


def test_shares_are_compared_in_percent_and_perplexities_as_they_are() -> None:
    scores = {
        "em": Score(Interval(0.35, 0.32, 0.38, 900), paper=35.1),
        "perplexity": Score(Interval(20, 18, 22, 9), paper=21.4),
    }
    em, perplexity = compared_of({"hotpotqa": Cell(scores)})
    assert (em.ours, em.low, em.high) == (35.0, pytest.approx(31.95), pytest.approx(38.05))
    assert (perplexity.ours, perplexity.verdict) == (20, REPRODUCES)
    assert (
        compared_of({"t": Cell({"em": Score(None, paper=3.0)}), "u": Cell({"em": Score(Interval(0.3, None, None, 1))})})
        == ()
    )


def test_a_page_ends_each_row_in_a_verdict(path: Path) -> None:
    table = read_table(path)
    hits = {str(i): float(i % 3 == 0) for i in range(900)}
    result = Result({"em": hits}, questions=900)
    numbers = (PublishedRow("P", "table_1", "hotpotqa", "M", "", "", "em", 33.5, "%", ""),)
    page = make_page(table, {("here", "hotpotqa"): result, ("other", "hotpotqa"): result}, numbers)
    verdicts = {line.name: line.verdict.verdict for line in page.lines if line.verdict}
    assert verdicts == {"here": REPRODUCES, "other": CANNOT_TELL, "waits": NOT_RUN}
    text, html = render_text(page), render_html(page)
    for words in ("paper 33.5: reproduces", "another model", "not run", "cannot tell"):
        assert words in text and words in html
    assert all(line.verdict is None for line in make_page(read_table(_without_verdicts(path)), {}, numbers).lines)


def _without_verdicts(path: Path) -> Path:
    plain = path.with_name("plain.toml")
    plain.write_text(path.read_text(encoding="utf-8").replace("verdicts = true\n", ""), encoding="utf-8")
    return plain


def test_tasks_over_other_corpora_are_other_jobs_with_their_own_commands(path: Path) -> None:
    here, other, _ = read_table(path).rows
    assert [(job.tasks, job.corpus) for job in jobs(here)] == [(("hotpotqa",), "own"), (("fever",), "beir")]
    (first, second), (limited, _) = jobs(here), jobs(other)
    assert first.metadata == {"corpus": "own", "judge": "rules"}
    assert len({job.name(None) for job in (first, second, limited)}) == 3
    assert limited.first(None) == 10 and limited.first(3) == 3 and first.first(None) is None
    (command,) = limited.commands(Path("out"))
    assert """--metadata '{"corpus": "own", "judge": "rules"}' --limit 10""" in command
    assert "--system_instruction 'Say little.' --gen_kwargs max_gen_toks=32" in command
    assert "retriever_query_prefix=query: " in command
