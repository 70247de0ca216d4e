"""Nearest neighbours against a plain product: exact, ties by row, in blocks, and the graph's life on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_eval_rag.harness.retrieval import nearest

pytest.importorskip("faiss")


def restated(vectors: Any, query: Any, k: int) -> list[tuple[int, float]]:
    scores = (np.asarray(vectors, np.float64) @ np.asarray(query, np.float64)).astype(np.float32)
    return [(row, float(scores[row])) for row in sorted(range(len(scores)), key=lambda row: (-scores[row], row))[:k]]


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("n", [1, 40, 700])
def test_flat_is_the_plain_product(kind: Any, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(n)
    vectors, queries = rng.normal(size=(n, 24)).astype(kind), rng.normal(size=(50, 24)).astype(np.float32)
    for block in (33, 65_536):
        monkeypatch.setattr(nearest, "BLOCK", block)
        for k in (1, 10, 1000):
            found = nearest.search(vectors, nearest.flat(vectors), queries, k, exact=True)
            assert found == [restated(vectors, query, k) for query in queries]


def test_many_ties_go_by_row() -> None:
    """Far more documents tie with the k-th than candidates are fetched at first."""
    rng = np.random.default_rng(0)
    vectors = np.repeat(rng.normal(size=(3, 8)), 300, axis=0).astype(np.float32)[rng.permutation(900)]
    queries = rng.normal(size=(20, 8)).astype(np.float32)
    found = nearest.search(vectors, nearest.flat(vectors), queries, 5, exact=True)
    assert found == [restated(vectors, query, 5) for query in queries]
    assert nearest.search(vectors, nearest.flat(vectors), queries[:1], 5, exact=True) == found[:1]


def test_near_ties_are_told_apart() -> None:
    """Scores that differ in the last digits of float32, where FAISS's sums are not to be trusted."""
    rng = np.random.default_rng(1)
    vectors = (rng.normal(size=(1, 64)) + 1e-7 * rng.normal(size=(500, 64))).astype(np.float32)
    queries = rng.normal(size=(5, 64)).astype(np.float32)
    found = nearest.search(vectors, nearest.flat(vectors), queries, 3, exact=True)
    assert found == [restated(vectors, query, 3) for query in queries]


def test_the_graph_finds_nearly_all_and_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(2)
    vectors, queries = rng.normal(size=(2000, 16)).astype(np.float16), rng.normal(size=(40, 16)).astype(np.float32)
    file = tmp_path / "graph.faiss"
    found = nearest.search(vectors, nearest.hnsw(vectors, 16, 64, file), queries, 10, exact=False)
    hits = [len(set(one) & set(restated(vectors, q, 10))) for one, q in zip(found, queries, strict=True)]
    assert sum(hits) / 400 > 0.95
    built = file.stat().st_mtime_ns
    assert nearest.search(vectors, nearest.hnsw(vectors, 16, 64, file), queries, 10, exact=False) == found
    assert file.stat().st_mtime_ns == built
    file.write_bytes(file.read_bytes()[:1000])
    assert nearest.search(vectors, nearest.hnsw(vectors, 16, 64, file), queries, 10, exact=False) == found
    assert "damaged" in caplog.text
    assert nearest.search(vectors, nearest.hnsw(vectors, 16, 64, None), queries, 10, exact=False) == found
