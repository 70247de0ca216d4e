"""Perplexity and factual consistency (CRP-RAG, Tables 3 and 4): formulas restated, what is unscored, the judge."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.scoring import score
from lm_eval_rag.harness.scoring.judge import Item, RulesJudge
from lm_eval_rag.harness.scoring.judge.choose import rationale_judges
from lm_eval_rag.harness.scoring.judge.grounding import groundings, rationale_item
from lm_eval_rag.harness.scoring.judge.llm import ModelJudge, prompt
from lm_eval_rag.harness.scoring.judge.reading import STOP

WORDS = ["Ada", "Bo", "river", "town", "the", "is", "of", "born", "1912", "Moss", "who", "lake"]
NAMES = ("perplexity", "factual_consistency", "consistency_overlap")


def record(**changes: Any) -> dict[str, Any]:
    passages = [{"id": "a", "text": "Ada Moss was born in 1912.", "object": None}]
    return {"passages": passages, "k": 1, "rationale": "Moss was born in 1912.", **changes}


def scores(rag: dict[str, Any] | None, question: str = "When was Ada born?") -> dict[str, float]:
    return score({"query": question, "answers": ["1912"]}, "1912", rag)


def test_perplexity_is_the_inverse_geometric_mean_of_the_words_probabilities() -> None:
    rng = random.Random(0)
    for _ in range(200):
        chances = [rng.uniform(0.001, 1) for _ in range(rng.randint(1, 12))]
        wanted = math.prod(chances) ** (-1 / len(chances))
        found = scores(record(likelihood=[sum(map(math.log, chances)), len(chances)]))["perplexity"]
        assert found == pytest.approx(wanted, rel=1e-9) and found >= 1
    assert scores(record(likelihood=[-1e9, 3]))["perplexity"] < math.inf


def overlap(rationale: str, question: str, texts: list[str]) -> float | None:
    """Each word once, without stop words and the question's; at least 4 of 5 must stand in the passages."""

    def words(text: str) -> set[str]:
        return {word for word in re.findall(r"\w+", text.lower()) if word not in STOP}

    own = words(rationale).difference(words(question))
    if not own:
        return None
    return 1.0 if 5 * sum(any(word in words(text) for text in texts) for word in own) >= 4 * len(own) else 0.0


def test_overlap_is_its_formula() -> None:
    rng, seen = random.Random(1), set()
    for _ in range(1000):
        texts = [" ".join(rng.choices(WORDS, k=rng.randint(1, 8))) + "." for _ in range(rng.randint(0, 4))]
        rationale, question = (" ".join(rng.choices(WORDS, k=rng.randint(1, n))) for n in (10, 3))
        passages = [{"id": str(i), "text": text, "object": None} for i, text in enumerate(texts)]
        found = scores(record(passages=passages, rationale=rationale), question).get("consistency_overlap")
        assert found == overlap(rationale, question, texts), (rationale, question, texts)
        seen.add(found)
    assert seen == {None, 0.0, 1.0}


@pytest.mark.parametrize(
    ("changes", "unscored"),
    [
        ({}, {"perplexity", "factual_consistency"}),  # no log-probabilities, no judge
        ({"rationale": None}, set(NAMES)),
        ({"passages": None}, set(NAMES)),
        ({"abstained": True}, set(NAMES)),
        ({"grounding": {"grounded": None}}, {"perplexity", "factual_consistency"}),  # a judge failed
        ({"grounding": {"grounded": 0.5}, "likelihood": [-2.0, 4]}, set()),
    ],
)
def test_what_is_missing_is_unscored_and_never_0(changes: dict[str, Any], unscored: set[str]) -> None:
    assert {name for name in NAMES if name not in scores(record(**changes))} == unscored
    assert not set(NAMES) & set(scores(None))


class Reader:
    """A judge's model: grounded if every word of the rationale stands in a document; it fails on one rationale."""

    batch, fingerprint = 4, "reader"

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def generate(self, prompts: Any, decoding: Any, samples: Any) -> list[str]:
        self.prompts += prompts
        return [self.reply(text) for text in prompts]

    @staticmethod
    def reply(text: str) -> str:
        (line,) = (line for line in text.splitlines() if line.startswith("{"))
        (check,) = re.findall(r'with the value "([0-9a-f]{8})"', text)
        data = json.loads(line)
        assert set(data) == {"question", "documents", "rationale"}
        if data["rationale"] == "fail":
            return "no idea"
        known = " ".join(data["documents"]).split()
        return json.dumps({"check": check, "reason": "r", "correct": set(data["rationale"].split()) <= set(known)})

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def room(self, max_tokens: int) -> None:
        return None


def test_a_judge_reads_documents_and_rationale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))  # an earlier run's journal would answer for the judge
    model = Reader()
    judges = rationale_judges({"consistency": "True"}, (ModelJudge("m", model),))
    items = [Item("Q?", ("a b", "c"), text) for text in ("a c", "a d", "fail", "a c")]
    verdicts = groundings(judges, items)
    assert [verdicts[item]["grounded"] for item in items] == [1.0, 0.0, None, 1.0]
    assert verdicts[items[0]]["judges"] == ["m"] and len(model.prompts) == 3
    assert judges[0].fingerprint != ModelJudge("m", model).fingerprint
    assert "reference_answers" in prompt(items[0], "0a1b2c3d") and "documents" in prompt(items[0], "1", "rationale")


def test_what_judges_are_asked() -> None:
    doc = {"query": "Q?"}
    assert rationale_item(doc, record()) == Item("Q?", ("Ada Moss was born in 1912.",), "Moss was born in 1912.")
    for changes in ({"failure": "x"}, {"abstained": True}, {"passages": []}, {"rationale": " "}, {"rationale": None}):
        assert rationale_item(doc, record(**changes)) is None
    assert rationale_judges({}, (RulesJudge(),)) == () == rationale_judges({"consistency": False}, ())


@pytest.mark.parametrize("judges", [(), (RulesJudge(),)])
def test_rules_and_nobody_judge_no_rationales(judges: Any) -> None:
    with pytest.raises(UserError, match="needs judges that are language models"):
        rationale_judges({"consistency": True}, judges)
    with pytest.raises(UserError, match="consistency='maybe' is not allowed"):
        rationale_judges({"consistency": "maybe"}, judges)
