"""scripts/tune_crp_rag.py: which pair it chooses, and that it runs pairs on the same questions with shared calls."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.types import Passage, Query
from lm_eval_rag.harness.data.corpus import Corpus
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
    default = tune.Outcome(50.0, 0.7, (0.0,) * 30, 0.5, 9.0)
    better = tune.Outcome(500.0, 0.7, (1.0,) * 20 + (0.0,) * 10, 0.0, 9.0)
    lucky = tune.Outcome(5.0, 0.9, (1.0,) + (0.0,) * 29, 0.9, 9.0)
    assert tune.choice([lucky, default]).startswith("chosen: threshold=50, similarity=0.7 (best: 5, 0.9; +3.3 points")
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


def test_questions_are_of_the_training_sets(tune: Any) -> None:
    assert tune.TASKS == ("hotpotqa_train_100", "musique_train_100")
