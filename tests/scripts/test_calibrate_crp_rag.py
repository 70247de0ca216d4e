"""scripts/calibrate_crp_rag.py: the hops of a question, what is judged, and what is chosen."""

from __future__ import annotations

import importlib.util
import math
import random
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.parameters import defaults
from lm_eval_rag.harness.plugin.arguments import read_arguments
from lm_eval_rag.harness.scoring.normalise import count_words
from lm_eval_rag.methods import crp_rag as crp_module
from lm_eval_rag.methods.crp_rag import crp_rag


@pytest.fixture(scope="module")
def calibrate() -> Any:
    path = Path(__file__).parents[2] / "scripts" / "calibrate_crp_rag.py"
    spec = importlib.util.spec_from_file_location("calibrate_crp_rag", path)
    assert spec and spec.loader
    module = sys.modules["calibrate_crp_rag"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(name: str) -> dict[str, Any]:
    texts = ["Vale is a book by Bo Reed.", "Bo Reed was born in Corford.", "Corford has a river.", "Bo Reed walks."]
    texts += [f"Ada Moss {word} far, where the author of Vale was born." for word in ("swam", "ran", "rode", "sailed")]
    return {
        "id": name,
        "paragraphs": [{"title": f"T{i}", "paragraph_text": text} for i, text in enumerate(texts)],
        "question_decomposition": [
            {"question": "Vale >> author", "answer": "Bo Reed", "paragraph_support_idx": 0},
            {"question": "Where was #1 born?", "answer": "Corford", "paragraph_support_idx": 1},
        ],
    }


def test_hops_name_the_answers_of_earlier_ones(calibrate: Any) -> None:
    first, second = calibrate.hops([row("a")])
    assert (first.step, second.step) == ("What is the author of Vale?", "Where was Bo Reed born?")
    assert (first.gold, second.gold) == ("T0\nVale is a book by Bo Reed.", "T1\nBo Reed was born in Corford.")
    assert len(first.others) == 5 and not any("Bo Reed" in text for text in first.others)
    assert [text[:2] for text in second.others] == ["T0", "T3", "T4", "T5", "T6", "T7"]  # T2 names Corford


class Reader:
    """Copies the documents as a summary, and reasons with the first of them: likely (e a word) if it names Bo."""

    fingerprint, batch = "reader", 4

    def __init__(self) -> None:
        self.summarised: list[str] = []

    def generate(self, prompts: Any, decoding: Any, samples: Any) -> list[str]:
        return [self._reply(text) for text in prompts]

    def _reply(self, text: str) -> str:
        documents = text.partition("Documents:\n")[2]
        if not text.endswith("Summary:"):
            return f"It says: {documents.splitlines()[0]}"
        self.summarised.append(documents)
        return documents.splitlines()[1]

    def loglikelihood(self, pairs: Any) -> list[float]:
        return [-(1.0 if "Bo" in text else 5.0) * count_words(text) for _, text in pairs]

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def room(self, max_tokens: int) -> None:
        return None


def setup_of(model: Any, **arguments: Any) -> Any:
    setup = read_arguments("crp_rag", crp_rag, arguments)
    object.__setattr__(setup, "generator", model)
    return setup


def test_each_hop_is_judged_with_and_without_its_paragraph(calibrate: Any) -> None:
    model = Reader()
    cases = calibrate.judged(setup_of(model, k=3), Journal(None), calibrate.hops([row("a"), row("b")]))
    assert [one.given for one in cases] == [True, False] * 4 and [one.question for one in cases] == list("aaaabbbb")
    shown = {tuple(re.findall(r"^T\d$", text, re.MULTILINE)) for text in model.summarised}
    assert len(model.summarised) == len(shown) == 4 and {len(names) for names in shown} == {3}  # equal hops once
    author = [text for text in model.summarised if "Topic: What is the author of Vale?" in text]
    assert sorted("T0\n" in text for text in author) == [False, True]
    assert sum("T1" in names for names in shown) == 1
    with_it, without = cases[0], cases[1]
    assert with_it.right and not without.right
    assert with_it.perplexity == pytest.approx(math.e) and without.perplexity == pytest.approx(math.e**5)


def test_a_model_without_log_probabilities_has_no_threshold(calibrate: Any) -> None:
    model = Reader()
    model.gives_loglikelihood = False  # type: ignore[attr-defined]
    with pytest.raises(UserError, match="no log-probabilities, so there is no threshold"):
        calibrate.judged(setup_of(model), Journal(None), calibrate.hops([row("a")]))


def cases_of(calibrate: Any, rng: random.Random, n: int, gap: float) -> list[Any]:
    """Hops whose perplexity without the paragraph is exp(gap) times as high, with noise."""
    return [
        calibrate.Judged(f"q{i // 2}", given, math.exp(rng.gauss(0 if given else gap, 1)), given)
        for i in range(n)
        for given in (True, False)
    ]


@pytest.mark.parametrize("seed", range(20))
def test_the_area_is_the_share_of_pairs_in_order(calibrate: Any, seed: int) -> None:
    rng = random.Random(seed)
    a, b = ([float(rng.randint(1, 5)) for _ in range(rng.randint(1, 9))] for _ in range(2))
    pairs = [1.0 if x < y else 0.5 if x == y else 0.0 for x in a for y in b]
    assert calibrate.area(a, b) == pytest.approx(sum(pairs) / len(pairs))
    assert calibrate.area(a, b) + calibrate.area(b, a) == pytest.approx(1)


@pytest.mark.parametrize("seed", range(5))
def test_no_other_threshold_is_better(calibrate: Any, seed: int) -> None:
    cases = cases_of(calibrate, random.Random(seed), 12, 1.0)
    best = calibrate.balanced(cases, calibrate.best_threshold(cases))
    assert best == max(calibrate.balanced(cases, value) for value in np.exp(np.linspace(-6, 8, 4_000)))
    right = sum((one.perplexity < 1.5) == one.given for one in cases)
    assert calibrate.balanced(cases, 1.5) == pytest.approx(right / 24)


def test_on_unseen_questions_a_useless_perplexity_is_chance(calibrate: Any) -> None:
    apart, useless = (cases_of(calibrate, random.Random(0), 300, gap) for gap in (6.0, 0.0))
    assert calibrate.unseen(apart)[1] > 0.99 and calibrate.unseen(useless)[1] == pytest.approx(0.5, abs=0.05)
    low, high = calibrate.resampled(useless[:80], lambda drawn: calibrate.area_by(drawn, "given"))
    assert low < 0.5 < high and high - low < 0.4


def test_what_is_printed(calibrate: Any) -> None:
    lines = calibrate.summary(cases_of(calibrate, random.Random(1), 20, 8.0), 50.0)
    assert lines[0].startswith("with the paragraph: perplexity per word") and lines[0].endswith("in 100.0 %")
    assert lines[2].startswith("area under the ROC curve, the paragraph is there: 1.000 [1.000, 1.000]")
    assert "balanced accuracy on the other half 100.0 %" in lines[5]
    alike = [calibrate.Judged(q, given, 2.0, False) for q in "ab" for given in (True, False)]
    assert calibrate.summary(alike, 50.0)[3].endswith("the reasoning names the answer: none, since all are alike")


def test_the_steps_that_a_similarity_would_merge(calibrate: Any) -> None:
    steps = ["Where was Bo born?", "Where was Al born?", "Who wrote Vale in the end?"]  # 3 of 4 words, then none
    asked = [calibrate.Hop("a", step, "x", "", ()) for step in steps]
    told = "pairs of different steps that would be merged, of 3: 0.5: 33.3 %, 0.6: 33.3 %, 0.7: 33.3 %, 0.8: 0.0 %, 0.9"
    assert calibrate.merging(asked).startswith(told)
    other = calibrate.Hop("b", steps[0], "x", "", ())  # of another question
    assert calibrate.merging([*asked, other]) == calibrate.merging(asked)


def test_the_default_is_what_the_docstring_says_was_chosen() -> None:
    """1.42 on all questions, rounded; a threshold below 1 would refuse everything."""
    assert defaults(crp_rag)["threshold"] == 1.4 and defaults(crp_rag)["similarity"] == 0.7
    assert "1.42" in (crp_module.__doc__ or "") and "53.4 %" in (crp_module.__doc__ or "")
