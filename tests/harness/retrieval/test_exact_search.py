"""One pass over shards, against a plain product and FAISS's flat index."""

from __future__ import annotations

import sys
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.retrieval import exact_search, shards
from lm_eval_rag.harness.retrieval.embeddings import stored_vectors
from lm_eval_rag.harness.retrieval.exact_search import best_rows, memory

N, D = 1500, 24


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles that end within shards, groups of queries, and few pairs at once."""
    for module, name, value in (
        (shards, "SHARD", 700), (exact_search, "TILE", 300), (exact_search, "GROUP", 7),
        (exact_search, "EXACT_BYTES", 16 * D * 50), (exact_search, "CROWDED", 5),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


def in_shards(folder: Path, whole: Any, store: Any = "float32") -> Any:
    return stored_vectors(folder, len(whole), store, lambda a, b: whole[a:b], {"tower": "m"})


def restated(vectors: Any, queries: Any, k: int) -> list[list[tuple[int, float]]]:
    """All products in float64, sorted by score and then by row."""
    rankings = []
    for query in queries:
        scores = (np.asarray(vectors, np.float64) @ query.astype(np.float64)).astype(np.float32)
        order = np.lexsort((np.arange(len(scores)), -scores))[:k]
        rankings.append(list(zip(order.tolist(), scores[order].tolist(), strict=True)))
    return rankings


def normal(rows: int, seed: int) -> Any:
    return np.random.default_rng(seed).normal(size=(rows, D)).astype(np.float32)


@pytest.mark.parametrize("store", ["float16", "float32", "int8"])
@pytest.mark.parametrize("k", [1, 10, 2000])
def test_shards_give_what_the_plain_product_gives(store: str, k: int, tmp_path: Path) -> None:
    vectors, queries = in_shards(tmp_path, normal(N, 0), store), normal(10, 1)
    rankings = best_rows(vectors, queries, k)
    assert rankings == restated(vectors, queries, k)
    assert rankings[3:4] == best_rows(vectors, queries[3:4], k)  # the batch changes nothing
    assert rankings == best_rows(np.asarray(vectors), queries, k)


@pytest.mark.parametrize("store", ["float16", "int8"])
def test_ids_are_those_of_faiss_flat(store: str, tmp_path: Path) -> None:
    faiss = pytest.importorskip("faiss")
    vectors, queries = in_shards(tmp_path, normal(N, 0), store), normal(20, 1)
    flat = faiss.IndexFlatIP(D)
    flat.add(np.asarray(vectors, np.float32))
    scores, rows = flat.search(queries, 10)
    rankings = best_rows(vectors, queries, 10)
    assert [[row for row, _ in ranking] for ranking in rankings] == rows.tolist()
    assert np.allclose([[score for _, score in ranking] for ranking in rankings], scores, atol=1e-5)


def test_ties_go_by_row_over_shards_and_batches(tmp_path: Path) -> None:
    few = np.random.default_rng(2).integers(-1, 2, (N, D)).astype(np.float32)
    few[:, 3:] = 0  # 27 different vectors
    vectors, queries = in_shards(tmp_path, few, "float16"), np.sign(normal(15, 3))
    for k in (1, 40, 200):
        assert best_rows(vectors, queries, k) == restated(few, queries, k)


def test_torch_and_numpy_read_the_same_numbers(tmp_path: Path) -> None:
    """Every float16, also from a mapped file, which cannot be written to."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(-1, 256)
    np.save(tmp_path / "every.npy", every)
    tiles = np.zeros((2, *every.shape), np.float32)
    exact_search._by_numpy(every, tiles[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exact_search._by_torch(np.load(tmp_path / "every.npy", mmap_mode="r"), tiles[1])
    assert np.array_equal(tiles[0], tiles[1], equal_nan=True) and np.isfinite(tiles[1]).any()


def test_torch_is_imported_for_many_numbers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    many = exact_search.IMPORT_REPAID
    assert not exact_search._torch_is_quicker(many - 1) and exact_search._torch_is_quicker(many)
    monkeypatch.setattr(exact_search, "find_spec", lambda name: None)
    assert not exact_search._torch_is_quicker(many)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_vector_that_is_no_number_is_named(value: float, tmp_path: Path) -> None:
    vectors = in_shards(tmp_path, normal(N, 0))
    content = np.load(tmp_path / "00001.npy")
    content[60, 5] = value
    np.save(tmp_path / "00001.npy", content)
    with pytest.raises(UserError, match=r"row 760 of the corpus, in .*00001.npy"):
        best_rows(vectors, normal(2, 1), 3)
    with pytest.raises(UserError, match=r"NaN, infinity or huge numbers \(row 60\)"):
        best_rows(content, normal(2, 1), 3)


@pytest.mark.parametrize("equal", [False, True])
def test_memory_does_not_grow_with_the_corpus(equal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if all vectors are equal: then no product leaves any out."""
    queries, peaks = normal(12, 1), []
    for rows in (1_000, 6_000):
        whole = np.ones((rows, D), np.float32) if equal else normal(rows, 0)
        vectors = in_shards(tmp_path / str(rows), whole)
        tracemalloc.start()
        best_rows(vectors, queries, 20)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0] + 20_000
    assert peaks[1] < memory(len(queries), D, 20) + 60_000  # the lists that are returned, and small objects
