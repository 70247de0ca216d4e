"""Fusion of two retrievers, and how options reach its parts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from lm_eval_rag.harness import retrieval
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval import make_retriever
from lm_eval_rag.harness.retrieval.hybrid import Hybrid


class Fixed:
    """Gives seeded rankings, the same for every k but for their length."""

    def __init__(self, seed: int, n: int = 60) -> None:
        self.fingerprint, self._seed, self._n = f"fixed({seed})", seed, n

    def search(self, texts: Sequence[str], k: int) -> list[list[tuple[int, float]]]:
        return [[(row, -float(i)) for i, row in enumerate(self.order(text)[:k])] for text in texts]

    def order(self, text: str) -> list[int]:
        rng = random.Random(f"{self._seed} {text}")
        return rng.sample(range(100), rng.randint(0, self._n))


def corpus_of(texts: list[str]) -> Corpus:
    return Corpus.of(Passage(f"d{i}", text) for i, text in enumerate(texts))


@pytest.mark.parametrize("constant,depth", [(60, 100), (0, 5), (3, 1)])
def test_it_sums_reciprocal_ranks(constant: int, depth: int) -> None:
    parts = [Fixed(1), Fixed(2)]
    texts = [f"q{i}" for i in range(30)]
    for text, found in zip(texts, Hybrid(parts, constant=constant, depth=depth).search(texts, 7), strict=True):
        orders = [part.order(text)[: max(depth, 7)] for part in parts]
        sums = [
            (sum(1 / (constant + order.index(row) + 1) for order in orders if row in order), row) for row in range(100)
        ]
        expected = sorted(((total, row) for total, row in sums if total), key=lambda pair: (-pair[0], pair[1]))[:7]
        assert [row for row, _ in found] == [row for _, row in expected]
        assert [score for _, score in found] == pytest.approx([total for total, _ in expected])


def test_ties_go_by_row() -> None:
    class Rows(Fixed):
        def order(self, text: str) -> list[int]:
            return [10, 9] if self._seed else [9, 10]

    assert [row for row, _ in Hybrid([Rows(0), Rows(1)]).search(["x"], 2)[0]] == [9, 10]


def test_a_retriever_with_itself_ranks_as_itself() -> None:
    corpus = corpus_of(["a b", "b c", "c d", "a a d"])
    one = make_retriever("bm25", corpus).search(["a d", "c", "none"], 3)
    both = make_retriever("hybrid", corpus, first="bm25", second="bm25").search(["a d", "c", "none"], 3)
    assert [[row for row, _ in found] for found in both] == [[row for row, _ in found] for found in one]


def test_options_reach_the_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def spy(corpus: Corpus, *, adapter: str = "rgft") -> Fixed:
        seen["adapter"] = adapter
        return Fixed(3)

    monkeypatch.setitem(retrieval.RETRIEVERS, "spy", spy)
    corpus = corpus_of(["a b", "b c"])
    made = make_retriever(
        "hybrid", corpus, first="bm25", first_k1=1.5, second="hybrid", second_second="spy",
        second_second_adapter="ssft", depth=9,
    )  # fmt: skip
    assert seen == {"adapter": "ssft"}
    assert "k1=1.5" in made.fingerprint and "fixed(3)" in made.fingerprint and "depth=9" in made.fingerprint


def test_errors_name_what_is_allowed() -> None:
    corpus = corpus_of(["a b"])
    both = {"first": "bm25", "second": "bm25"}
    for options, message in (
        ({**both, "dept": 3}, "Did you mean 'depth'"),
        ({**both, "frist_k1": 1.0}, r"Allowed: constant, depth, first, first_\*, rerank, rerank_depth, second"),
        ({**both, "first_kk1": 1.0}, "Did you mean 'k1'"),
        ({"first": "bm52"}, "Did you mean 'bm25'"),
        ({**both, "constant": -1}, "0 or more"),
        ({**both, "depth": 0}, "1 or more"),
        ({**both, "rerank_depth": 5}, "rerank=MODEL"),
    ):
        with pytest.raises(UserError, match=message):
            make_retriever("hybrid", corpus, **options)
    with pytest.raises(UserError, match="k=0"):
        make_retriever("hybrid", corpus, **both).search(["a"], 0)
