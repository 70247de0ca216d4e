"""Verdicts on rows: what reproduces a published number, what does not, and what cannot tell."""

from __future__ import annotations

import math
import random
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from lm_eval_rag.harness.common.errors import UserError
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
    RowVerdict,
    compared_of,
    compared_together,
    level,
    row_verdict,
)

TABLE = """
title = "T"
source = "table_1"
verdicts = true
margin = 3
published_questions = { hotpotqa = 1000 }
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


def number(paper: float, error: float = 1.5, ours: float = 35.0, width: float = 6.0) -> Compared:
    return Compared("t", "em", ours, ours - width / 2, ours + width / 2, paper, error)


@pytest.mark.parametrize(
    ("paper", "width", "verdict"),
    [
        (35, 6, REPRODUCES), (37.98, 6, REPRODUCES), (32.02, 6, REPRODUCES), (38.0, 6, DOES_NOT), (32.0, 6, DOES_NOT),
        (35, 10, REPRODUCES), (35, 10.1, CANNOT_TELL), (39, 25, DOES_NOT),
    ],
)  # fmt: skip
def test_one_number(paper: float, width: float, verdict: str) -> None:
    """1.96 standard errors, and half a unit of the last printed digit."""
    (one,) = compared_together([number(paper, width=width)])
    assert one.verdict == verdict and one.reach == pytest.approx(0.05 + 1.959964 * 1.5)


def test_the_numbers_of_a_row_are_compared_together() -> None:
    """By Hochberg's rule, restated: reject H(1) ... H(k) for the largest k with p(k) <= 0.05 / (n - k + 1)."""
    rng = random.Random(0)
    for _ in range(200):
        numbers = [number(35 + rng.gauss(0, 3)) for _ in range(rng.randint(1, 8))]
        p = sorted(one.p for one in numbers)
        rejected = max((k for k in range(1, len(p) + 1) if p[k - 1] <= 0.05 / (len(p) - k + 1)), default=0)
        tested = compared_together(numbers)
        assert sum(one.verdict == DOES_NOT for one in tested) == rejected
        assert len({one.reach for one in tested}) == 1
    assert compared_together([]) == ()


def test_p_values() -> None:
    """2 (1 - Phi(|d| / error)); a difference of rounding is none."""
    assert number(38).p == pytest.approx(2 * (1 - NormalDist().cdf(2.95 / 1.5)))
    assert (number(35.05).p, number(35.0, error=0).p, number(36.0, error=0).p) == (1.0, 1.0, 0.0)
    assert [level([0.2]), level([0.04]), level([0.2, 0.04]), level([0.2, 0.02])] == [0.05, 0.05, 0.025, 0.025]
    assert level([0.04, 0.05, 0.001]) == 0.05  # all three are rejected


def test_a_row_is_as_bad_as_its_worst_number() -> None:
    good, bad, wide = number(35), number(45), number(35, width=30)

    def verdict(*numbers: Compared) -> str:
        return row_verdict(compared_together(numbers), run=True).verdict

    assert (verdict(good), verdict(good, wide), verdict(good, wide, bad)) == (REPRODUCES, CANNOT_TELL, DOES_NOT)
    assert row_verdict([], run=True).verdict == CANNOT_TELL
    assert row_verdict([good], run=True, differs="x").why == "x"
    assert row_verdict([good], run=True, limit=5).verdict == CANNOT_TELL
    assert row_verdict([good], run=False).verdict == NOT_RUN


def test_beside_the_verdict_is_how_many_numbers_agree() -> None:
    numbers = compared_together([number(35), number(37), number(37.1), number(45)])
    assert row_verdict(numbers, run=True).agreement == "3 of 4 agree, 2 within 2 points"
    assert row_verdict(numbers, run=True, margin=1).agreement == "3 of 4 agree, 1 within 1 point"
    assert row_verdict(numbers, run=True, margin=2.5).agreement == "3 of 4 agree, 3 within 2.5 points"
    assert RowVerdict(NOT_RUN).agreement == ""


def drawn(rng: np.random.Generator, numbers: int, shift: float, questions: int = 1000) -> RowVerdict:
    """The verdict on a run beside a published one whose system is better by ``shift``; both are drawn independently."""
    cells = {}
    for task in map(str, range(numbers)):
        p = rng.uniform(0.2, 0.6)
        ours, paper = (float(rng.binomial(questions, share)) / questions for share in (p, p + shift))
        half = 1.959964 * math.sqrt(ours * (1 - ours) / questions)
        score = Score(Interval(ours, ours - half, ours + half, questions), paper=round(100 * paper, 1))
        cells[task] = Cell({"em": score})
    return row_verdict(compared_of(cells, dict.fromkeys(cells, questions)), run=True)


def test_a_perfect_reimplementation_reproduces_and_a_shift_of_five_points_does_not() -> None:
    """16 numbers on 1,000 questions each. By each number's own 95 % interval few reimplementations would reproduce."""
    rng = np.random.default_rng(0)
    same = [drawn(rng, 16, 0.0) for _ in range(1000)]
    assert sum(one.verdict == REPRODUCES for one in same) / len(same) >= 0.94
    alone = [all(number.low <= number.paper <= number.high for number in one.compared) for one in same]
    assert sum(alone) / len(alone) < 0.1
    shifted = [drawn(rng, 16, 0.05).verdict for _ in range(200)]
    assert shifted.count(DOES_NOT) / len(shifted) >= 0.97


@pytest.mark.parametrize("numbers", [1, 4, 16])
def test_five_points_off_everywhere_does_not_reproduce(numbers: int) -> None:
    """By no more and no less: Bonferroni's rule would let 4 and 16 such numbers pass."""
    half = 1.959964 * math.sqrt(0.35 * 0.65 / 1000)
    score = Score(Interval(0.35, 0.35 - half, 0.35 + half, 1000), paper=40.0)
    cells = {str(task): Cell({"em": score}) for task in range(numbers)}
    verdict = row_verdict(compared_of(cells, dict.fromkeys(cells, 1000)), run=True)
    assert (verdict.verdict, verdict.agreement) == (DOES_NOT, f"0 of {numbers} agree, 0 within 2 points")


def test_the_error_of_the_published_run_is_counted_where_its_questions_are_known() -> None:
    cells = {"t": Cell({"em": Score(Interval(0.35, 0.32, 0.38, 900), paper=35.1)})}

    def error(asked: dict[str, int]) -> float:
        (one,) = compared_of(cells, asked)
        return one.error

    ours = 100 * 0.06 / (2 * 1.959964)
    assert error({}) == error({"u": 10}) == pytest.approx(ours)
    assert error({"t": 900}) == pytest.approx(ours * math.sqrt(2))
    assert error({"t": 225}) == pytest.approx(ours * math.sqrt(1 + 4))


def test_where_all_questions_have_one_score_the_published_number_gives_the_error() -> None:
    """No hit in 1,000 questions is what a system of 0.1 % has often, and one of 2 % never."""
    for paper, verdict in ((0.1, REPRODUCES), (2.0, DOES_NOT)):
        cells = {"t": Cell({"em": Score(Interval(0.0, None, None, 1000), paper=paper)})}
        (one,) = compared_of(cells)
        assert one.error == pytest.approx(100 * math.sqrt(paper / 100 * (1 - paper / 100) / 1000))
        assert one.verdict == verdict


def test_shares_are_compared_in_percent_and_perplexities_as_they_are() -> None:
    scores = {
        "em": Score(Interval(0.35, 0.32, 0.38, 900), paper=35.1),
        "perplexity": Score(Interval(20, 18, 22, 9), paper=21.4),
    }
    em, perplexity = compared_of({"hotpotqa": Cell(scores)})
    assert (em.ours, em.low, em.high) == (35.0, pytest.approx(32), pytest.approx(38))
    assert (perplexity.ours, perplexity.error, perplexity.verdict) == (20, pytest.approx(4 / 3.919928), REPRODUCES)
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
    compared = "hotpotqa em 33.3, paper 33.5 (up to 4.3 apart by chance): reproduces"
    for words in (compared, "1 of 1 agree, 1 within 3 points", "another model", "not run", "cannot tell"):
        assert words in text and words in html
    assert "at most 3 points apart" in " ".join(text.split()) and "at most 3 points apart" in html
    assert all(line.verdict is None for line in make_page(read_table(_without_verdicts(path)), {}, numbers).lines)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("margin = 3", "margin = -1", "margin = -1.0 is not allowed. Give a number of points, 0 or more"),
        ("hotpotqa = 1000 }", "hotpotqa = 0 }", "published_questions of hotpotqa = 0 is not allowed"),
        ("{ hotpotqa = 1000 }", "1000", "published_questions of row 'here' = 1000 is not allowed. Write"),
    ],
)
def test_a_wrong_margin_or_number_of_questions_is_refused(path: Path, old: str, new: str, message: str) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        read_table(path)
    assert message in str(caught.value)


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
