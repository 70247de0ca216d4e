"""Reranking with a tiny random cross-encoder."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common import extras
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval import make_retriever

QUERIES = ["w1 w2", "w3", "w5 w6 w7", "unseen"]


def corpus() -> Corpus:
    rng = random.Random(0)
    texts = [" ".join(rng.choices([f"w{i}" for i in range(12)], k=rng.randint(2, 9))) for _ in range(80)]
    return Corpus.of(Passage(f"d{i}", text) for i, text in enumerate(texts))


def classifier(little_bert: Path, folder: Path, outputs: int) -> Path:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    pytest.importorskip("sentence_transformers")
    shutil.copytree(little_bert, folder)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = transformers.BertForSequenceClassification.from_pretrained(little_bert, num_labels=outputs)
        model.classifier.weight.data *= 20
        model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def cross_encoder(little_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return classifier(little_bert, tmp_path_factory.mktemp("cross") / "encoder", 1)


def restated(folder: Path, pairs: list[tuple[str, str]]) -> list[float]:
    """Relevance of (query, document), one pair at a time: the logistic function of the one output."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model: Any = transformers.BertForSequenceClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        return [float(model(**tokenizer(*pair, return_tensors="pt")).logits[0, 0].sigmoid()) for pair in pairs]


@pytest.mark.parametrize("depth,k", [(20, 5), (3, 5), (80, 80)])
def test_the_best_are_scored_anew(cross_encoder: Path, depth: int, k: int) -> None:
    documents = corpus()
    base = make_retriever("bm25", documents)
    made = make_retriever("bm25", documents, rerank=str(cross_encoder), rerank_depth=depth)
    for query, found in zip(QUERIES, made.search(QUERIES, k), strict=True):
        rows = [row for row, _ in base.search([query], max(depth, k))[0]]
        scores = dict(zip(rows, restated(cross_encoder, [(query, documents.texts[row]) for row in rows]), strict=True))
        assert len(found) == min(k, len(rows)) and len({row for row, _ in found}) == len(found)
        assert [score for _, score in found] == pytest.approx([scores[row] for row, _ in found], abs=1e-5)
        assert [score for _, score in found] == pytest.approx(sorted(scores.values(), reverse=True)[:k], abs=1e-5)


def test_many_small_corpora_load_and_hash_the_model_once(cross_encoder: Path) -> None:
    from lm_eval_rag.harness.checkpoints import locate
    from lm_eval_rag.harness.retrieval import cross_encoder as reranking

    reranking._loaded.cache_clear()
    locate._file_hash.cache_clear()
    for i in range(3):
        small = Corpus.of([Passage("a", f"w1 w{i}"), Passage("b", "w1")])
        assert len(make_retriever("bm25", small, rerank=str(cross_encoder)).search(["w1"], 2)[0]) == 2
    assert (reranking._loaded.cache_info().misses, reranking._loaded.cache_info().hits) == (1, 2)
    hashed = locate._file_hash.cache_info()
    assert hashed.hits == 2 * hashed.misses > 0


def test_ties_go_by_row(cross_encoder: Path) -> None:
    same = Corpus.of(Passage(f"d{i}", "w1 w2") for i in range(9))
    found = make_retriever("bm25", same, rerank=str(cross_encoder)).search(["w1"], 4)[0]
    assert [row for row, _ in found] == [0, 1, 2, 3] and len({score for _, score in found}) == 1


def test_nothing_found_is_nothing_reranked(cross_encoder: Path) -> None:
    assert make_retriever("bm25", corpus(), rerank=str(cross_encoder)).search(["unseen"], 3) == [[]]


def test_parts_of_a_hybrid_may_be_reranked_alone(cross_encoder: Path) -> None:
    made = make_retriever("hybrid", corpus(), second="bm25", first_rerank=str(cross_encoder), first_rerank_depth=7)
    assert made.fingerprint.count("rerank(sha256:") == 1 and "depth=7" in made.fingerprint
    assert len(made.search(["w1"], 5)[0]) == 5


def test_the_fingerprint_names_the_content(cross_encoder: Path, tmp_path: Path) -> None:
    def fingerprint(folder: Path, depth: int = 50) -> str:
        return make_retriever("bm25", corpus(), rerank=str(folder), rerank_depth=depth).fingerprint

    copied = Path(shutil.copytree(cross_encoder, tmp_path / "copy"))
    assert fingerprint(copied) == fingerprint(cross_encoder) != fingerprint(cross_encoder, 49)
    (copied / "model.safetensors").write_bytes((copied / "model.safetensors").read_bytes()[:-1] + b"x")
    assert fingerprint(copied) != fingerprint(cross_encoder)


def test_errors_teach(cross_encoder: Path, little_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two = make_retriever("bm25", corpus(), rerank=str(classifier(little_bert, tmp_path / "two", 2)))
    with pytest.raises(UserError, match="has 2 outputs"):
        two.search(["w1"], 3)
    with pytest.raises(UserError, match="not a local folder and not on the Hub"):
        make_retriever("bm25", corpus(), rerank="nobody/nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="contains no checkpoint"):
        make_retriever("bm25", corpus(), rerank=str(tmp_path / "empty"))
    with pytest.raises(UserError, match="1 or more"):
        make_retriever("bm25", corpus(), rerank=str(cross_encoder), rerank_depth=0)
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r'pip install "lm-eval-rag\[dense\]"'):
        make_retriever("bm25", corpus(), rerank=str(cross_encoder))
