"""The folders of metrics, loaded by `evaluate` without a network, against the scores of harness/scoring."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lm_eval_rag.harness.scoring import score

evaluate = pytest.importorskip("evaluate", reason="the extra evaluate")

FOLDER = Path(__file__).parents[2] / "metrics"
NAMES = ("acc_lm", "crag_score", "token_f1")
ANSWERS = ["Paris", "the city of Oslo", "I don't know", "", "Rome or so"]
GOLDS = [["Paris", "City of Paris"], ["Oslo"], ["Bern"], ["Wien"], ["Madrid"]]


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """``load(name)``: by path, with caches of these tests and no network."""
    folder = tmp_path_factory.mktemp("evaluate")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluate.config, "HF_EVALUATE_OFFLINE", True)
        patch.setattr(evaluate.config, "HF_MODULES_CACHE", str(folder / "modules"))
        yield lambda name: evaluate.load(str(FOLDER / name), cache_dir=str(folder / "cache"))


def test_there_is_a_folder_with_a_card_for_each():
    assert sorted(path.name for path in FOLDER.iterdir() if (path / "README.md").is_file()) == sorted(NAMES)
    for name in NAMES:
        card = (FOLDER / name / "README.md").read_text(encoding="utf-8")
        front = yaml.safe_load(card.split("---\n")[1])
        assert front["title"] == name and "metric" in front["tags"] and front["description"]
        assert f'evaluate.load("{name}")' in card


@pytest.mark.parametrize("name", ["token_f1", "crag_score"])
def test_the_mean_is_that_of_our_scores(name, load):
    result = load(name).compute(predictions=ANSWERS, references=GOLDS)
    ours = [score({"answers": gold}, answer, None)[name] for answer, gold in zip(ANSWERS, GOLDS, strict=True)]
    assert result == {name: pytest.approx(sum(ours) / 5), "unscored": 0}


def test_by_hand(load):
    """token_f1: 1; one of the three words of "city of Oslo", so 2 / (3 + 1); 0, 0, 0. crag_score: 1, -1, 0, 0, -1."""
    assert load("token_f1").compute(predictions=ANSWERS, references=GOLDS)["token_f1"] == pytest.approx(1.5 / 5)
    assert load("crag_score").compute(predictions=ANSWERS, references=GOLDS)["crag_score"] == pytest.approx(-1 / 5)


def test_one_gold_answer_may_be_a_text(load):
    assert load("token_f1").compute(predictions=["Paris"], references=["Paris"]) == {"token_f1": 1.0, "unscored": 0}


def test_acc_lm_is_by_verdicts_and_never_without(load):
    metric = load("acc_lm")
    verdicts = [0.0, 1.0, 1.0, 1.0, None]  # exact and missing answers are settled without
    result = metric.compute(predictions=ANSWERS, references=GOLDS, verdicts=verdicts)
    assert result == {"acc_lm": pytest.approx((1 + 1 + 0 + 0) / 4), "unscored": 1}
    assert load("acc_lm").compute(predictions=ANSWERS, references=GOLDS) == {"acc_lm": None, "unscored": 5}
    with pytest.raises(ValueError, match="not allowed"):
        load("acc_lm").compute(predictions=["x"], references=[["y"]], verdicts=[2.0])
    with pytest.raises(ValueError, match="one value for each"):
        load("acc_lm").compute(predictions=["x"], references=[["y"]], verdicts=[])


def test_answers_without_gold_answers_are_unscored(load):
    result = load("token_f1").compute(predictions=["a", "b"], references=[["a"], []])
    assert result == {"token_f1": 1.0, "unscored": 1}
