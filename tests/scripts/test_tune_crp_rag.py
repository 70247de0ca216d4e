"""scripts/tune_crp_rag.py: which pair it chooses, shared calls of pairs, the perplexities of nodes."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.types import Passage, Query
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.generators.base import Completion
from lm_eval_rag.harness.plugin.arguments import read_arguments
from lm_eval_rag.methods.crp_rag import crp_rag


@pytest.fixture(scope="module")
def tune() -> Any:
    path = Path(__file__).parents[2] / "scripts" / "tune_crp_rag.py"
    spec = importlib.util.spec_from_file_location("tune_crp_rag", path)
    assert spec and spec.loader
    module = sys.modules["tune_crp_rag"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_another_pair_is_chosen_only_if_it_is_significantly_better(tune: Any) -> None:
    default = tune.Outcome(1.4, 0.7, (0.0,) * 30, 0.5, 9.0)
    better = tune.Outcome(500.0, 0.7, (1.0,) * 20 + (0.0,) * 10, 0.0, 9.0)
    lucky = tune.Outcome(5.0, 0.9, (1.0,) + (0.0,) * 29, 0.9, 9.0)
    assert tune.choice([lucky, default]).startswith("chosen: threshold=1.4, similarity=0.7 (best: 5, 0.9; +3.3 points")
    assert "not significant, n = 30" in tune.choice([lucky, default])
    assert tune.choice([default, better, lucky]).startswith("chosen: threshold=500, similarity=0.7")
    assert tune.choice([lucky, better]).endswith("the default is not in this grid")
    assert tune.line(better).startswith("threshold 500, similarity 0.7: token F1 66.7 [")


class Reader:
    """Writes one final step, and answers Moss; ln P is -4 a word."""

    fingerprint, batch = "reader", 4

    def __init__(self) -> None:
        self.generated = 0

    def generate(self, prompts: Any, decoding: Any, samples: Any) -> list[str]:
        self.generated += len(prompts)
        return ["Final: who is Ada?" if text.endswith("Next step:") else "So the answer is Moss" for text in prompts]

    def loglikelihood(self, pairs: Any) -> list[float]:
        return [-4.0 * len(text.split()) for _, text in pairs]

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def room(self, max_tokens: int) -> None:
        return None


def test_pairs_share_calls_and_the_threshold_decides(tune: Any, tmp_path: Path) -> None:
    setup = read_arguments("crp_rag", crp_rag, {"k": 1, "samples": 1})
    model = Reader()
    object.__setattr__(setup, "generator", model)
    object.__setattr__(setup.corpora, "given", Corpus.of([Passage("a", "Ada Moss is a writer.")]))
    journal = Journal(tmp_path / "j.sqlite", "tune")
    queries = [Query("q", "Who is Ada?", answer_form="short")]
    low, high, again = (tune.run(setup, journal, queries, [["Moss"]], at, 0.7) for at in (50.0, 60.0, 61.0))
    journal.close()
    assert (low.f1, low.abstained) == ((0.0,), 1.0)  # a perplexity of e^4, about 54.6 a word
    assert (high.f1, high.abstained) == ((1.0,), 0.0) == (again.f1, again.abstained)
    assert high.calls == again.calls and model.generated < high.calls * 2


class Graded(Reader):
    """Proposes two steps; its replies about the n-th node have a perplexity of e^n a word, and one is blank."""

    fingerprint = "graded"

    def generate(self, prompts: Any, decoding: Any, samples: Any) -> list[str]:
        return [self._reply(text, sample) for text, sample in zip(prompts, samples, strict=True)]

    def _reply(self, text: str, sample: int) -> str:
        if text.endswith("Next step:"):
            return ("Final: who is Ada?", "Final: red green", "Final: one two", "Final: blank step")[sample]
        return "" if "Question: blank step" in text else "So the answer is Moss"

    def loglikelihood(self, pairs: Any) -> list[float]:
        about = {"who is Ada": 1, "red green": 2, "one two": 3}
        grades = [sum(n for step, n in about.items() if f"Question: {step}" in prompt) for prompt, _ in pairs]
        return [-grade * float(len(text.split())) for grade, (_, text) in zip(grades, pairs, strict=True)]


class GradedReplies(Graded):
    """The same behind a chat API that gives log-probabilities with its replies, and of no other text."""

    fingerprint, gives_loglikelihood, gives_logs = "graded replies", False, True

    def generate(self, prompts: Any, decoding: Any, samples: Any) -> list[Any]:
        texts = super().generate(prompts, decoding, samples)
        logs = super().loglikelihood(list(zip(prompts, texts, strict=True)))
        tokens = [((text, log),) if text else () for text, log in zip(texts, logs, strict=True)]
        return [Completion(text, tokens=given) for text, given in zip(texts, tokens, strict=True)]


@pytest.mark.parametrize("model", [Graded, GradedReplies])
def test_perplexities_of_nodes_and_what_each_threshold_refuses(tune: Any, tmp_path: Path, model: Any) -> None:
    setup = read_arguments("crp_rag", crp_rag, {"k": 1, "samples": 4})
    object.__setattr__(setup, "generator", model())
    object.__setattr__(setup.corpora, "given", Corpus.of([Passage("a", "Ada Moss is a red writer of one blank step.")]))
    journal = Journal(tmp_path / "j.sqlite", "tune")
    queries = [Query("q", "Who is Ada?", answer_form="short")]
    outcomes = [tune.run(setup, journal, queries, [["Moss"]], at, 0.7) for at in (10.0, 2.0, 500.0)]
    journal.close()
    for one in outcomes:
        assert one.nodes == 4 and sorted(one.perplexities) == pytest.approx([math.exp(n) for n in (1, 2, 3)])
    assert [one.insufficient for one in outcomes] == [0.5, 1.0, 0.25]  # below the threshold suffices; a blank never
    assert [one.refused for one in outcomes] == [0.0, 1.0, 0.0] == [one.abstained for one in outcomes]
    assert tune.spread(outcomes) == [
        "similarity 0.7: perplexity per word of 3 of 4 nodes: lowest 2.72, 10 % 3.65, 25 % 5.05, 50 % 7.39, "
        "75 % 13.7, 90 % 17.5, highest 20.1",
        "  threshold 2: 100 % of nodes insufficient, 100 % of questions refused",
        "  threshold 10: 50 % of nodes insufficient, 0 % of questions refused",
        "  threshold 500: 25 % of nodes insufficient, 0 % of questions refused",
    ]


def test_each_similarity_has_its_own_nodes(tune: Any) -> None:
    one, two = (tune.Outcome(50.0, s, (0.0,), 1.0, 9.0, 1.0, 2, values) for s, values in ((0.5, (4.0,)), (0.9, ())))
    assert tune.spread([one, two]) == [
        "similarity 0.5: perplexity per word of 1 of 2 nodes: lowest 4, 10 % 4, 25 % 4, 50 % 4, 75 % 4, 90 % 4, "
        "highest 4",
        "  threshold 50: 50 % of nodes insufficient, 100 % of questions refused",
        "similarity 0.9: perplexity per word of 0 of 2 nodes: none",
    ]


def test_questions_are_of_the_training_sets(tune: Any) -> None:
    assert tune.TASKS == ("hotpotqa_train_100", "musique_train_100")
