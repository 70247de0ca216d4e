"""Vectors made elsewhere, against our own search of the same vectors; and what the encoding of a corpus says first."""

from __future__ import annotations

import logging
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval import encoding_cost, make_retriever
from lm_eval_rag.harness.retrieval.prebuilt_vectors import open_vectors

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")
faiss = pytest.importorskip("faiss")

RNG = random.Random(0)
WORDS = [f"w{j}" for j in range(10)]
TEXTS = list(dict.fromkeys(" ".join(RNG.choices(WORDS, k=RNG.randint(4, 12))) for _ in range(400)))
CORPUS = Corpus.of(Passage(f"d{i}", text) for i, text in enumerate(TEXTS))
N, IDS = len(TEXTS), [f"d{i}" for i in range(len(TEXTS))]
TEXT_QUERIES = ["w1 w2", "w3", "w7 w8 w9 w9"]


def unit(rows: int, seed: int) -> Any:
    """Random vectors (rows, 32) of length 1: no two scores are equal."""
    vectors = np.random.default_rng(seed).normal(size=(rows, 32)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


VECTORS, QUERIES = unit(N, 0), unit(5, 1)


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))


def dense(model: Path, **options: Any) -> Any:
    return make_retriever("dense", CORPUS, model=str(model), dtype="float32", store="float32", **options)


def expected(k: int) -> list[list[tuple[int, float]]]:
    """Plain products."""
    scores = (QUERIES.astype(np.float64) @ VECTORS.T.astype(np.float64)).astype(np.float32)
    orders = [sorted(range(N), key=lambda row: -of_query[row])[:k] for of_query in scores]
    return [[(row, float(of_query[row])) for row in order] for order, of_query in zip(orders, scores, strict=True)]


def wrote(path: Path, content: Any, ids: list[str] | None = None) -> str:
    """A file of vectors with its id file."""
    if path.suffix == ".npy":
        np.save(path, content)
    elif path.suffix == ".safetensors":
        from safetensors.numpy import save_file

        save_file({"embeddings": np.ascontiguousarray(content)}, path)
    else:
        faiss.write_index(content, str(path))
    if ids is not None:
        path.with_name(f"{path.name}.ids.txt").write_text("\n".join(ids) + "\n")
    return str(path)


def index_of(vectors: Any, kind: str = "Flat", metric: int = faiss.METRIC_INNER_PRODUCT) -> Any:
    index = faiss.index_factory(vectors.shape[1], kind, metric)
    index.train(vectors)
    index.add(vectors)
    return index


def same(ours: Any, theirs: Any) -> None:
    assert [[row for row, _ in ranking] for ranking in ours] == [[row for row, _ in ranking] for ranking in theirs]
    for our, their in zip(ours, theirs, strict=True):
        assert [score for _, score in our] == pytest.approx([score for _, score in their], abs=1e-5)


@pytest.mark.parametrize("name", ["v.npy", "v.safetensors", "v.faiss"])
def test_flat_vectors_are_searched_exactly(name: str, tmp_path: Path) -> None:
    content = index_of(VECTORS) if name == "v.faiss" else VECTORS
    given = open_vectors(wrote(tmp_path / name, content, IDS), CORPUS)
    assert given.search(QUERIES, 9, 128) == expected(9)
    assert given.search(QUERIES, N, 128) == expected(N)
    shuffled = RNG.sample(range(N), N)
    content = index_of(VECTORS[shuffled]) if name == "v.faiss" else VECTORS[shuffled]
    path = wrote(tmp_path / f"shuffled{Path(name).suffix}", content, [IDS[i] for i in shuffled])
    other = open_vectors(path, CORPUS)
    assert other.search(QUERIES, 9, 128) == expected(9) and other.identity != given.identity


@pytest.mark.parametrize("name", ["v.npy", "v.faiss"])
def test_stored_vectors_give_what_encoding_gives(name: str, little_bert: Path, tmp_path: Path) -> None:
    own = dense(little_bert)
    rankings = own.search(TEXT_QUERIES, 9)
    vectors = np.array(own.vectors)
    content = index_of(vectors) if name == "v.faiss" else vectors
    given = dense(little_bert, index=wrote(tmp_path / name, content, IDS))
    assert given.search(TEXT_QUERIES, 9) == rankings and given.search([], 9) == []
    assert given.fingerprint != own.fingerprint
    assert given.fingerprint == dense(little_bert, index=str(tmp_path / name)).fingerprint
    changed = wrote(tmp_path / "changed.npy", vectors[:, ::-1].copy(), IDS)
    assert dense(little_bert, index=changed).fingerprint != given.fingerprint


def test_nothing_is_encoded_for_stored_vectors(little_bert: Path, tmp_path: Path) -> None:
    dense(little_bert, index=wrote(tmp_path / "v.npy", VECTORS, IDS)).search(TEXT_QUERIES, 9)
    assert not list((tmp_path / "cache").rglob("*.npy"))


@pytest.mark.parametrize("kind", ["HNSW16", "IVF8,Flat", "SQ8", "PQ4x4", "IVF8,PQ4x4", "OPQ4,IVF8,PQ4x4", "Flat"])
@pytest.mark.parametrize("metric", [faiss.METRIC_INNER_PRODUCT, faiss.METRIC_L2])
def test_any_index_of_faiss(kind: str, metric: int, tmp_path: Path) -> None:
    """Exact kinds find all; compressed ones find most of it; no score depends on the batch."""
    given = open_vectors(wrote(tmp_path / "v.index", index_of(VECTORS, kind, metric), IDS), CORPUS)
    rankings = given.search(QUERIES, 20, 128)
    assert rankings == [given.search(query[None], 20, 128)[0] for query in QUERIES]
    assert all(len(ranking) == 20 and ranking == sorted(ranking, key=lambda hit: -hit[1]) for ranking in rankings)
    exact = expected(20)
    if "PQ" not in kind and "SQ" not in kind:  # of length 1: both metrics have one order
        for ours, theirs in zip(rankings, exact, strict=True):
            products = [score if metric == faiss.METRIC_INNER_PRODUCT else 1 + score / 2 for _, score in ours]
            assert [row for row, _ in ours] == [row for row, _ in theirs]
            assert products == pytest.approx([score for _, score in theirs], abs=1e-5)
    overlap = sum(len(dict(ours).keys() & dict(theirs).keys()) for ours, theirs in zip(rankings, exact, strict=True))
    assert overlap >= (95 if "PQ" not in kind else 20)  # of 100; by chance 5


def test_ids_within_an_index(tmp_path: Path) -> None:
    for name, ids, fits in (("a", np.arange(N), True), ("b", np.arange(N) + 7, False)):
        for inner in (faiss.IndexFlatIP(32), faiss.IndexHNSWFlat(32, 8, faiss.METRIC_INNER_PRODUCT)):
            index = faiss.IndexIDMap(inner)
            index.add_with_ids(VECTORS, ids)
            path = wrote(tmp_path / name, index, IDS)
            if fits:
                found = open_vectors(path, CORPUS).search(QUERIES, 5, 128)
                assert [[row for row, _ in ranking] for ranking in found] == [
                    [row for row, _ in ranking] for ranking in expected(5)
                ]
            else:
                with pytest.raises(UserError, match="has ids of its own"):
                    open_vectors(path, CORPUS)


def test_a_folder_and_the_order_of_the_corpus(tmp_path: Path) -> None:
    pyserini = tmp_path / "pyserini"
    pyserini.mkdir()
    wrote(pyserini / "index", index_of(VECTORS))
    with pytest.raises(UserError, match=r"no id file.*index\.ids\.txt or ids\.txt.*retriever_index_ids=rows"):
        open_vectors(str(pyserini), CORPUS)
    assert open_vectors(str(pyserini), CORPUS, "rows").search(QUERIES, 5, 128) == expected(5)
    (pyserini / "docid").write_text("\n".join(IDS))
    assert open_vectors(str(pyserini), CORPUS).search(QUERIES, 5, 128) == expected(5)
    wrote(pyserini / "more.npy", VECTORS)
    with pytest.raises(UserError, match=r"must hold one file.*index, more\.npy"):
        open_vectors(str(pyserini), CORPUS)


def test_what_does_not_fit_is_refused(little_bert: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    (tmp_path / "v.pkl").write_bytes(pickle.dumps(VECTORS))
    (tmp_path / "broken.index").write_bytes(b"nothing")
    (tmp_path / "empty").mkdir()
    cases: list[tuple[str, str]] = [
        (
            wrote(tmp_path / "short.npy", VECTORS[:-1], IDS[:-1]),
            f"{N - 1} vectors, the corpus memory has {N} ",
        ),
        (wrote(tmp_path / "ids.npy", VECTORS, IDS[:-1]), f"{N - 1} ids, the corpus {N}"),
        (wrote(tmp_path / "other.npy", VECTORS, [*IDS[:-1], "x"]), rf"no document 'x' \(line {N}\)"),
        (wrote(tmp_path / "twice.npy", VECTORS, [*IDS[:-1], "d0"]), "an id twice"),
        (wrote(tmp_path / "narrow.npy", VECTORS[:, :8], IDS), "gives 32 dimensions, the vectors of retriever_index"),
        (wrote(tmp_path / "numbers.npy", np.arange(N), IDS), "int64 numbers of shape"),
        (str(tmp_path / "objects.npy"), "cannot be read as vectors"),
        (str(tmp_path / "v.pkl"), "may be a pickle"),
        (str(tmp_path / "broken.index"), "cannot be read as vectors"),
        (str(tmp_path / "empty"), "It holds none"),
        (str(tmp_path / "none.faiss"), "Allowed: flat, hnsw"),
    ]
    for path, message in cases:
        with pytest.raises(UserError, match=message):
            dense(little_bert, index=path).search(TEXT_QUERIES, 3)
    with pytest.raises(UserError, match="give index=FILE_OR_FOLDER"):
        dense(little_bert, index_ids="rows")


@pytest.mark.parametrize(("large", "said"), [(300, True), (500, False)])
def test_the_cost_of_encoding_is_said_first(
    large: int, said: bool, little_bert: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(encoding_cost, "LARGE", large)
    with caplog.at_level(logging.WARNING, "lm_eval_rag.harness.retrieval.encoding_cost"):
        dense(little_bert, batch_size=8).search(["w1"], 1)
        texts = [record.getMessage() for record in caplog.records if "encoding_cost" in record.name]
        assert len(texts) == (2 if said else 0)
        if said:
            assert f"All {N} documents" in texts[0] and "retriever=run" in texts[0] and "retriever_index=" in texts[0]
            assert "takes about" in texts[1] and "sample of 32 documents" in texts[1]
        caplog.clear()
        dense(little_bert, batch_size=8).search(["w2"], 1)  # stored by now
        assert not caplog.records


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "about 0 s"), (100, "about 100 s"), (600, "about 10 min"), (9000, "about 2.5 h")]
)
def test_times_in_words(seconds: float, words: str) -> None:
    assert encoding_cost.in_words(seconds) == words


def test_the_estimate_is_the_time_of_the_rest(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A clock that moves a second per encoded text: 9,000 documents left take 9,000 seconds."""
    clock = [0.0]

    class Slow:
        batch_size = 16

        def encode(self, texts: list[str]) -> None:
            clock[0] += len(texts)

    monkeypatch.setattr(encoding_cost.time, "perf_counter", lambda: clock[0])
    slow: Any = Slow()
    corpus = Corpus.of(Passage(str(i), "x") for i in range(10_000))
    encoding_cost.estimate(slow, corpus, 1_000)
    assert "about 2.5 h" in caplog.text
    caplog.clear()
    encoding_cost.estimate(slow, corpus, 9_000)
    assert not caplog.text
