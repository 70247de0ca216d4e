"""F, hallucination among attempts, penalties and risk-coverage against counting and enumeration; their intervals."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.report.abstention_scores import RATIOS, area, of_totals, read_weights
from lm_eval_rag.harness.report.report_cli import report_main
from lm_eval_rag.harness.report.stats import interval
from lm_eval_rag.harness.scoring.abstention import (
    PENALTIES,
    f_score,
    hallucination_of_attempts,
    levels,
    penalised,
    risk_areas,
)


def random_questions(rng: random.Random, n: int) -> list[tuple[float, float]]:
    """(correct, missing) of n questions."""
    return [rng.choice([(1.0, 0.0), (0.0, 1.0), (0.0, 0.0), (0.5, 0.0)]) for _ in range(n)]


def totals(rows: list[tuple[float, float]]) -> tuple[Any, Any, Any]:
    return np.array(sum(c for c, _ in rows)), np.array(sum(m for _, m in rows)), np.array(float(len(rows)))


def test_formulas_are_counting() -> None:
    rng = random.Random(0)
    for _ in range(200):
        rows = random_questions(rng, rng.randint(1, 30))
        c, m, n = totals(rows)
        tried = [right for right, missing in rows if not missing]
        recall = sum(right for right, _ in rows) / len(rows)
        if tried:
            precision = sum(tried) / len(tried)
            wanted = 2 * precision * recall / (precision + recall) if precision else 0.0
            assert f_score(c, m, n) == pytest.approx(wanted)
            assert hallucination_of_attempts(c, m, n) == pytest.approx(sum(1 - right for right in tried) / len(tried))
        else:
            assert f_score(c, m, n) == 0.0 and np.isnan(hallucination_of_attempts(c, m, n))
        for penalty in PENALTIES:
            each = [0.0 if missing else right - penalty * (1 - right) for right, missing in rows]
            assert penalised(c, m, n, penalty=penalty) == pytest.approx(sum(each) / len(each))
        assert penalised(c, m, n, penalty=1.0) == pytest.approx((2 * c + m) / n - 1)  # CRAG's


def test_a_denominator_of_0_is_not_a_number_and_warns_of_nothing() -> None:
    one, zero = np.array([1.0, 0.0]), np.zeros(2)
    with np.errstate(all="raise"):
        for scores in (f_score(one, zero, zero), penalised(one, zero, zero, penalty=1.0)):
            assert np.isnan(scores).tolist() == [True, True]
        assert np.isnan(hallucination_of_attempts(zero, one, one)).tolist() == [True, True]
    sizes, errors = levels([1, 0, 0], [2, 2, 5])
    assert (sizes.tolist(), errors.tolist()) == ([1.0, 2.0], [0.0, 1.0])
    assert sizes.dtype == errors.dtype == np.float64


def mean_risk(wrong: list[float]) -> float:
    """The area for one order, the surest first."""
    return sum(sum(wrong[:k]) / k for k in range(1, len(wrong) + 1)) / len(wrong)


def exact_area(wrong: list[float], sure: list[float]) -> float:
    sizes, errors = levels(wrong, sure)
    return float(risk_areas(sizes[None, :], errors[None, :])[0])


def test_area_is_the_mean_over_all_orders_of_ties() -> None:
    rng = random.Random(1)
    for _ in range(60):
        n = rng.randint(1, 6)
        wrong = [rng.choice([0.0, 1.0, 0.5]) for _ in range(n)]
        sure = [rng.choice([0.1, 0.5, 0.9]) for _ in range(n)]
        orders = [o for o in itertools.permutations(range(n)) if [sure[i] for i in o] == sorted(sure, reverse=True)]
        wanted = sum(mean_risk([wrong[i] for i in order]) for order in orders) / len(orders)
        assert exact_area(wrong, sure) == pytest.approx(wanted)


def test_area_rewards_knowing_what_one_knows() -> None:
    wrong = [0.0] * 6 + [1.0] * 4
    knowing, blind, upside_down = list(range(10, 0, -1)), [1] * 10, list(range(10))
    areas = [exact_area(wrong, [float(x) for x in sure]) for sure in (knowing, blind, upside_down)]
    assert areas[0] < areas[1] < areas[2] and areas[1] == pytest.approx(0.4)
    scaled = exact_area(wrong, [x**3 / 7 for x in knowing])  # only the order counts
    assert scaled == pytest.approx(areas[0])
    assert np.isnan(risk_areas(np.zeros((1, 3)), np.zeros((1, 3))))[0]
    assert np.isnan(risk_areas(np.zeros((2, 0)), np.zeros((2, 0)))).tolist() == [True, True]  # no level at all
    assert exact_area([0.0, 1.0], [True, False]) == pytest.approx(0.25)  # confidence on any scale


def test_areas_of_many_draws_are_those_of_each_alone() -> None:
    rng = np.random.default_rng(6)
    sizes = rng.integers(0, 5, size=(40, 4)).astype(float)
    sizes[0] = 0
    errors = np.floor(rng.random((40, 4)) * (sizes + 1))
    together = risk_areas(sizes, errors)
    assert together.shape == (40,) and np.isnan(together[0])
    for row in range(1, 40):
        wrong = [float(j < errors[row, level]) for level in range(4) for j in range(int(sizes[row, level]))]
        sure = [-level for level in range(4) for _ in range(int(sizes[row, level]))]
        assert together[row] == pytest.approx(exact_area(wrong, sure))


def test_interval_of_a_mean_is_the_reports_own() -> None:
    rng = random.Random(2)
    values = [rng.choice([0.0, 0.5, 1.0]) for _ in range(120)]
    rows = np.array([[value, 1.0] for value in values])
    ours, theirs = of_totals(rows, np.divide, draws=20_000), interval(values, draws=20_000)
    assert (ours.mean, ours.n) == (pytest.approx(theirs.mean), 120)
    assert ours.low == pytest.approx(theirs.low, abs=0.005) and ours.high == pytest.approx(theirs.high, abs=0.005)
    assert of_totals(rows, np.divide, seed=3) == of_totals(rows, np.divide, seed=3)
    assert of_totals(np.ones((5, 2)), np.divide).low is None


def test_interval_of_f_is_a_plain_bootstrap() -> None:
    questions = random_questions(random.Random(3), 150)
    found = of_totals(np.array([[c, m, 1.0] for c, m in questions]), f_score, draws=10_000)
    rng = random.Random(4)
    plain = sorted(float(f_score(*totals(rng.choices(questions, k=150)))) for _ in range(3000))
    assert found.mean == pytest.approx(float(f_score(*totals(questions))))
    assert found.low == pytest.approx(plain[75], abs=0.012) and found.high == pytest.approx(plain[2925], abs=0.012)


def test_interval_of_the_area_is_a_plain_bootstrap() -> None:
    rng = random.Random(5)
    sure = [rng.random() for _ in range(80)]
    wrong = [float(rng.random() > s) for s in sure]
    found = area(wrong, sure, draws=5000)
    plain = []
    for _ in range(1500):
        drawn = rng.choices(range(80), k=80)
        plain.append(exact_area([wrong[i] for i in drawn], [sure[i] for i in drawn]))
    plain.sort()
    assert found.mean == pytest.approx(exact_area(wrong, sure))
    assert found.low == pytest.approx(plain[37], abs=0.015) and found.high == pytest.approx(plain[1462], abs=0.015)


def test_report(make_run: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text and JSON of a whole run, recomputed from its samples."""
    make_run(tmp_path / "a", n=60, model="one")
    target = tmp_path / "r.json"
    weights = "popularity:head=3,torso=1"
    assert report_main([str(tmp_path / "a"), "--json", str(target), "--weights", weights]) == 0
    text = capsys.readouterr().out
    (run,) = json.loads(target.read_text())["tasks"][0]["runs"]
    (file,) = (tmp_path / "a").rglob("samples_*.jsonl")
    samples = [json.loads(line) for line in file.read_text().splitlines()]
    rows = [(s["crag_correct"], s["crag_missing"]) for s in samples if "crag_correct" in s]
    found = run["abstention"]["scores"]
    for name, formula in RATIOS.items():
        assert found[name]["mean"] == pytest.approx(float(formula(*totals(rows))))
        assert name in text
    assert found["score_penalty_1"]["mean"] == pytest.approx(run["scores"]["crag_score"]["mean"])
    assert found["score_penalty_1"]["low"] == pytest.approx(run["scores"]["crag_score"]["low"], abs=0.05)
    means = {}
    for group in ("head", "torso"):
        scored = [s["em"] for s in samples if s["doc"]["popularity"] == group and "em" in s]
        means[group] = sum(scored) / len(scored)
    assert run["weighted"]["em"]["mean"] == pytest.approx((3 * means["head"] + means["torso"]) / 4)
    assert "em, weighted" in text and max(map(len, text.splitlines())) <= 120


def test_area_in_a_report_needs_a_confidence(make_run: Callable[..., Path], tmp_path: Path, capsys: Any) -> None:
    """All first passages of these runs have one score; with the method's own confidence there is an area."""
    make_run(tmp_path / "a", n=40)
    assert report_main([str(tmp_path / "a"), "--json", str(tmp_path / "r.json")]) == 0
    (run,) = json.loads((tmp_path / "r.json").read_text())["tasks"][0]["runs"]
    assert "risk_coverage_area" not in run["abstention"]["scores"] and run["abstention"]["confidence"] == ""
    (file,) = (tmp_path / "a").rglob("samples_*.jsonl")
    samples, rng = [json.loads(line) for line in file.read_text().splitlines()], random.Random(0)
    for sample in samples:
        sample["doc"]["_rag"]["confidence"] = rng.random()
    file.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    assert report_main([str(tmp_path / "a"), "--json", str(tmp_path / "r.json")]) == 0
    (run,) = json.loads((tmp_path / "r.json").read_text())["tasks"][0]["runs"]
    tried = [s for s in samples if s.get("crag_missing") == 0]
    wanted = exact_area([1 - s["crag_correct"] for s in tried], [s["doc"]["_rag"]["confidence"] for s in tried])
    assert run["abstention"]["scores"]["risk_coverage_area"]["mean"] == pytest.approx(wanted)
    assert "confidence is confidence" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text", ["", "popularity", "popularity:", "popularity:head", "popularity:head=x", ":a=1", "p:a=-1"]
)
def test_bad_weights(text: str) -> None:
    with pytest.raises(UserError, match="KEY:GROUP=WEIGHT"):
        read_weights(text)


def test_weights_of_unknown_groups(make_run: Callable[..., Path], tmp_path: Path, capsys: Any) -> None:
    make_run(tmp_path / "a", n=40)
    assert report_main([str(tmp_path / "a"), "--weights", "popularity:top=1"]) == 2
    assert "it has head, tail, torso" in capsys.readouterr().err


def test_clustered_totals_agree_with_the_clustered_interval_of_a_mean() -> None:
    """Sums over counts are a mean; the widest key is shown, and clusters widen the interval."""
    rng = np.random.default_rng(5)
    sizes = [40, 30, 20, 20, 15, 10, 10, 5, 3, 2]
    coarse = [cluster for cluster, size in enumerate(sizes) for _ in range(size)]
    values = (rng.random(len(coarse)) < np.repeat(rng.random(10), sizes)).astype(float)
    rows = np.column_stack([values, np.ones(len(values))])
    keys = [list(range(len(values))), coarse]
    ours, theirs = of_totals(rows, np.divide, clusters=keys), interval(values, clusters=keys)
    assert (ours.low, ours.high) == (pytest.approx(theirs.low, abs=0.02), pytest.approx(theirs.high, abs=0.02))
    plain = of_totals(rows, np.divide)
    assert ours.low < plain.low < plain.high < ours.high  # type: ignore[operator]
    assert of_totals(rows, np.divide, clusters=[[0] * len(values)]).low is None
