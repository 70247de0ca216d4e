"""BM25 against the formula restated in plain Python, and the index's life on disk."""

from __future__ import annotations

import math
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval import bm25, bm25_compiled, bm25_index, bm25_kernel, bm25_pruned, make_retriever
from lm_eval_rag.harness.retrieval.bm25 import BM25
from lm_eval_rag.harness.retrieval.bm25_shared import shared_tokens
from lm_eval_rag.harness.retrieval.tokens import tokenize


def corpus_of(texts: list[str]) -> Corpus:
    return Corpus.of(Passage(f"d{i}", text) for i, text in enumerate(texts))


def restated(texts: list[str], query: str, k: int, k1: float, b: float) -> list[tuple[int, float]]:
    """Lucene's BM25 over all documents (Kamphuis et al. 2020, table 1, "Lucene (accurate)"), ties by row."""

    def split(text: str) -> list[str]:
        return re.findall(r"\w+", text.lower())

    documents = [Counter(split(text)) for text in texts]
    lengths = [sum(document.values()) for document in documents]
    average = sum(lengths) / len(lengths)
    known = {token: sum(token in document for document in documents) for token in set(split(query))}
    scored = []
    for row, document in enumerate(documents):
        score = 0.0
        for token in split(query):
            if token in document:
                idf = math.log(1 + (len(texts) - known[token] + 0.5) / (known[token] + 0.5))
                tf = document[token]
                score += idf * tf / (tf + k1 * (1 - b + b * lengths[row] / average))
        if score:
            scored.append((-score, row))
    return [(row, -score) for score, row in sorted(scored)[:k]]


def random_texts(rng: random.Random, n: int) -> list[str]:
    words = [f"w{i}" for i in range(40)]
    weights = [1 / (i + 1) for i in range(40)]
    return [" ".join(rng.choices(words, weights, k=rng.randint(0, 12))) for _ in range(n)]


@pytest.mark.parametrize("seed", range(6))
def test_scores_are_the_formulas(seed: int) -> None:
    rng = random.Random(seed)
    texts = random_texts(rng, rng.choice([1, 30, 400]))
    texts.append("time 2014-05-03 w1")
    k1, b = rng.choice([(0.9, 0.4), (1.5, 0.75), (0.0, 0.0), (2.0, 1.0)])
    queries = [*random_texts(rng, 40), "", "unseen", "w1 w1 w1 w30", "on 2014-05-03 w1"]
    for k in (1, 7, 1000):
        for query, found in zip(queries, BM25(corpus_of(texts), k1=k1, b=b).search(queries, k), strict=True):
            expected = dict(restated(texts, query, len(texts), k1, b))
            assert len(found) == min(k, len(expected))
            assert [score for _, score in found] == pytest.approx([expected[row] for row, _ in found], rel=1e-5)
            ranked = sorted(expected.values(), reverse=True)
            assert [score for _, score in found] == pytest.approx(ranked[: len(found)], rel=1e-5)


def demo_corpus(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Corpus:
    from lm_eval_rag.harness.data.corpus import open_corpus
    from lm_eval_rag.tasks.ruleqa_demo.build import build

    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(folder))
    return open_corpus(build())


def test_a_whole_corpus_ranks_as_restated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Long and short lists of documents a token, so that the search both prunes and does not."""
    corpus = demo_corpus(monkeypatch, tmp_path)
    texts, rng = list(corpus.texts), random.Random(0)
    facts = [corpus.passage(rng.randrange(len(corpus))).fact for _ in range(5)]
    queries = [f"Time 2034-01-01 what does {fact[0]} {fact[1]} ?" for fact in facts if fact]
    queries += [f"{query} [Entity1, {facts[0][1]}, Entity2] leads to" for query in queries if facts[0]]
    for query, found in zip(queries, BM25(corpus).search(queries, 10), strict=True):
        expected = restated(texts, query, 10, 0.9, 0.4)
        assert [score for _, score in found] == pytest.approx([score for _, score in expected], rel=1e-5)
        clear = [row for row, score in expected if score > expected[-1][1] * (1 + 1e-5)]
        assert set(clear) <= {row for row, _ in found}


def test_pruning_changes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    corpus = demo_corpus(monkeypatch, tmp_path)
    retriever, rng = BM25(corpus), random.Random(1)
    queries = [corpus.texts[rng.randrange(len(corpus))] + " " + corpus.texts[rng.randrange(9)] for _ in range(60)]
    answers = []
    for cost in (0, 12, 10**9):  # always try to stop early, as measured, never
        monkeypatch.setattr(bm25_pruned, "LOOKUP", cost)
        answers.append(retriever.search(queries, 10))
    assert answers[0] == answers[1] == answers[2]


@pytest.fixture
def not_started() -> Iterator[None]:
    """numba is started by no earlier test."""
    bm25_compiled.compiled_kernel.cache_clear()
    yield
    bm25_compiled.compiled_kernel.cache_clear()


def queries_with_ties(seed: int) -> tuple[list[str], list[str]]:
    """Texts of which many are equal, and queries with repeated, common and unknown words, of which many end alike."""
    rng = random.Random(seed)
    texts = [*random_texts(rng, rng.choice([1, 60, 500])), "w1 w2", "..."] * rng.choice([1, 3, 9])
    plain = [*random_texts(rng, 40), "", "unseen", "w1", "w1 w1 w1 w30", "w39 w38 w0 w0"]
    ends = [" ".join(f"w{word}" for word in rng.choices(range(40), k=9)) for _ in range(3)]
    return texts, plain + [f"{start} {end}" for end in ends for start in plain[::3]]


@pytest.mark.usefixtures("not_started")
@pytest.mark.parametrize("seed", range(4))
def test_numba_gives_the_results_of_numpy(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    pytest.importorskip("numba")
    texts, queries = queries_with_ties(seed)
    retriever = BM25(corpus_of(texts))
    cutoffs = (1, 7, 100, 10_000)
    monkeypatch.setattr(bm25, "LONG", math.inf)
    expected = [retriever.search(queries, k) for k in cutoffs]
    assert not bm25_compiled.is_started()
    monkeypatch.setattr(bm25, "LONG", 0)
    assert [retriever.search(queries, k) for k in cutoffs] == expected
    assert retriever._compiled is not None and not retriever._index.weights.flags.writeable
    assert all(retriever._compiled.serves(retriever._index.numbers(text, "split"), 9) for text in ("w1", "w1 w2 w1"))


@pytest.mark.usefixtures("not_started")
@pytest.mark.parametrize(("scan", "listed"), [(0, 100), (12, 100), (10**9, 100), (12, 0)])
@pytest.mark.parametrize("seed", range(4))
def test_the_kernel_gives_the_results_of_numpy(
    monkeypatch: pytest.MonkeyPatch, seed: int, scan: int, listed: int
) -> None:
    """Uncompiled, so that every line counts; whether it looks tokens up always, as measured, or never."""
    texts, queries = queries_with_ties(seed)
    monkeypatch.setattr(bm25_kernel, "SCAN", scan)
    monkeypatch.setattr(bm25_compiled, "LISTED", listed)
    monkeypatch.setattr(bm25, "LONG", math.inf)
    retriever = BM25(corpus_of(texts))
    with monkeypatch.context() as patch:
        patch.setattr(bm25_compiled, "compiled_kernel", lambda: bm25_kernel.search_all)
        kernel = bm25_compiled.CompiledSearch(retriever._index, len(texts))
    numbers = [retriever._index.numbers(text, "split") for text in queries]
    assert any(len(group.queries) > 9 and group.common for group in shared_tokens(numbers))
    for k in (1, 7, 100):
        with np.errstate(over="raise", invalid="raise"):
            assert kernel.search(numbers, k) == retriever.search(queries, k)


def test_the_kernel_stops_early() -> None:
    """Of a common and a rare word, the common one is looked up for the documents of the rare one alone."""
    texts = ["common"] * 400 + ["common rare"] * 5
    index = BM25(corpus_of(texts))._index
    totals, candidates = np.zeros(405), np.zeros(405, np.int32)
    nothing = np.zeros(0), np.zeros(0, np.int32), np.zeros(0, np.int32)
    query = np.array([index.vocabulary["rare"], index.vocabulary["common"]])
    rows, scores = np.zeros(3, np.int32), np.zeros(3)
    postings = (index.starts, index.rows, index.weights, index.highest)
    assert bm25_kernel.search_one(postings, query, nothing, totals, candidates, rows, scores) == 3
    assert rows.tolist() == [400, 401, 402] and not totals.any()
    assert not set(candidates.tolist()) - {0, *range(400, 405)}


def test_rows_behind_the_listed_ones_are_looked_at_when_these_are_candidates() -> None:
    texts = ["end first"] * 40 + ["end and more words"] * 2
    index = BM25(corpus_of(texts))._index
    common, first = index.vocabulary["end"], index.vocabulary["first"]
    postings = (index.starts, index.rows, index.weights, index.highest)
    groups = (np.array([0, 2]), np.array([common]), np.array([0, 1]))
    others = (np.array([first]), np.array([0, 1, 1]))  # of the first query; the second has the common token alone
    rows, scores, counts = np.zeros((2, 41), np.int32), np.zeros((2, 41)), np.zeros(2, np.int64)
    bm25_kernel.search_all(postings, len(texts), groups, others, 40, rows, scores, counts)
    assert counts.tolist() == [41, 41] and rows.tolist() == [list(range(41))] * 2


@pytest.mark.parametrize("seed", range(5))
def test_every_query_is_in_one_group_with_all_its_tokens(seed: int) -> None:
    rng = random.Random(seed)
    queries = [rng.choices(range(6), k=rng.randint(0, 4)) + rng.choice([[], [7, 8, 9, 7], [8, 9]]) for _ in range(60)]
    groups = shared_tokens(queries)
    assert sorted(i for group in groups for i in group.queries) == list(range(60))
    for group in groups:
        assert len(group.queries) > 1 or not group.common
        for i, others in zip(group.queries, group.others, strict=True):
            assert Counter(group.common) + Counter(others) == Counter(queries[i])


def test_questions_with_one_rule_share_its_tokens() -> None:
    rule = [7, 8, 9, 7, 6]
    groups = shared_tokens([[1, 2, *rule], [3], [2, 4, *rule], [5, *rule], [4]])
    (group,) = (group for group in groups if group.common)
    assert sorted(group.queries) == [0, 2, 3] and sorted(group.common) == sorted(rule)


@pytest.mark.usefixtures("not_started")
def test_numba_is_used_from_enough_queries_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """And at once by the next retriever, since it has been started."""
    pytest.importorskip("numba")
    corpus = corpus_of([f"a w{i}" for i in range(50)])
    calls: list[int] = []
    search = bm25_compiled.CompiledSearch.search

    def counted(
        self: bm25_compiled.CompiledSearch, queries: Sequence[Sequence[int]], k: int
    ) -> list[bm25_pruned.Ranking]:
        calls.append(len(queries))
        return search(self, queries, k)

    monkeypatch.setattr(bm25_compiled.CompiledSearch, "search", counted)
    monkeypatch.setattr(bm25, "LONG", 10)
    retriever = BM25(corpus)
    retriever.search(["a"] * 9, 3)
    assert not calls
    retriever.search(["a", "w4", "", "unseen"], 3)
    BM25(corpus).search(["a"], 3)
    BM25(corpus).search(["a"], bm25_compiled.WIDE + 1)  # left to numpy
    assert calls == [4, 1, 0]


def test_sums_that_float64_may_round_are_left_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A weight of 2^-40 beside one of 1 leaves 2^53 * 2^-63 = 2^-10 as the largest sum that is surely exact."""
    pytest.importorskip("numba")
    monkeypatch.setattr(bm25, "LONG", 0)
    retriever = BM25(corpus_of(["a b", "a c", "a d"]))
    weights = retriever._index.weights.copy()
    weights[0] = 2.0**-40
    object.__setattr__(retriever._index, "weights", weights)
    assert retriever._compiled is not None
    assert not retriever._compiled.serves(retriever._index.numbers("b", "split"), 3)
    assert [row for row, _ in retriever.search(["a"], 3)[0]] == [1, 2, 0]


@pytest.mark.usefixtures("not_started")
def test_without_numba_numpy_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25, "LONG", 0)
    monkeypatch.setitem(sys.modules, "numba", None)
    retriever = BM25(corpus_of(["a b", "b c"]))
    assert [row for row, _ in retriever.search(["c b"], 5)[0]] == [1, 0] and retriever._compiled is None


def test_scores_agree_with_bm25s_own() -> None:
    import bm25s

    rng = random.Random(3)
    texts = [text or "w0" for text in random_texts(rng, 300)]
    peer = bm25s.BM25(k1=0.9, b=0.4, method="lucene")
    peer.index([tokenize(text) for text in texts], show_progress=False)
    for query in ("w0 w3", "w5 w6 w6", "w39"):
        scores = peer.get_scores(tokenize(query))
        found = BM25(corpus_of(texts)).search([query], 300)[0]
        assert [score for _, score in found] == pytest.approx(sorted(scores[scores > 0], reverse=True), rel=1e-5)


def test_ties_go_by_row() -> None:
    texts = ["b x", "a x", "x a", "a x", "c"] * 4
    found = BM25(corpus_of(texts)).search(["a", "x", "a b"], 6)
    assert [row for row, _ in found[0]] == [1, 2, 3, 6, 7, 8]
    assert [row for row, _ in found[1]] == [0, 1, 2, 3, 5, 6]
    assert len({score for _, score in found[0]}) == 1
    assert [row for row, _ in found[2]] == [0, 5, 10, 15, 1, 2]


def test_results_depend_on_neither_batch_nor_k() -> None:
    rng = random.Random(4)
    texts, queries = random_texts(rng, 200), random_texts(rng, 30)
    retriever = BM25(corpus_of(texts))
    together = retriever.search(queries, 9)
    assert together == [retriever.search([query], 9)[0] for query in queries]
    assert together == retriever.search(queries[::-1], 9)[::-1]
    assert [found[:4] for found in together] == retriever.search(queries, 4)
    assert retriever.search([], 3) == []


def test_an_iso_date_is_three_tokens_unless_whole() -> None:
    assert tokenize("Time 2014 Évora's co-op, x_1.") == ["time", "2014", "évora", "s", "co", "op", "x_1"]
    assert tokenize("2014-05-03") == ["2014", "05", "03"] and tokenize("2014-05-03", "whole") == ["2014-05-03"]
    corpus = corpus_of(["on 2014-05-03 it", "on 2014-06-04 it", "on 2013-05-03 it"])
    assert [row for row, _ in BM25(corpus, dates="whole").search(["2014-05-03"], 3)[0]] == [0]
    assert [row for row, _ in BM25(corpus).search(["2014-05-03"], 3)[0]] == [0, 2, 1]


def test_a_corpus_without_tokens_finds_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    corpus = corpus_of(["...", ""])
    assert BM25(corpus).search(["anything"], 5) == [[]]
    corpus.folder = tmp_path
    assert BM25(corpus).search(["anything"], 5) == BM25(corpus).search(["anything"], 5) == [[]]


def test_the_index_is_kept_mapped_and_mended(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    corpus = corpus_of(random_texts(random.Random(5), 100))
    expected = BM25(corpus).search(["w1 w2"], 5)
    corpus.folder = tmp_path
    assert BM25(corpus).search(["w1 w2"], 5) == expected
    (folder,) = tmp_path.iterdir()
    kept = BM25(corpus)
    assert kept.search(["w1 w2"], 5) == expected
    assert isinstance(kept._index.weights.base, np.memmap) and not caplog.records
    for harm in (
        lambda: (folder / "weights.npy").write_bytes((folder / "weights.npy").read_bytes()[:-8]),
        lambda: (folder / "rows.npy").write_bytes(b""),
        lambda: (folder / "vocabulary.json").write_text('{"w1": 0'),
        lambda: (folder / "starts.npy").unlink(),
    ):
        harm()
        caplog.clear()
        assert BM25(corpus).search(["w1 w2"], 5) == expected
        assert "damaged" in caplog.text
    BM25(corpus, k1=1.2)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_large_index_says_what_it_costs(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(bm25_index, "LARGE", 3)
    BM25(corpus_of(["a", "b"]))
    assert not caplog.records
    BM25(corpus_of(["a", "b", "c"]))
    assert re.search(r"index of 3 documents is built in memory.*retriever=lucene.*retriever=run", caplog.text)


def test_a_folder_that_cannot_be_written_costs_a_warning_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    corpus = corpus_of(["a b", "b c"])
    corpus.folder = tmp_path / "file"
    corpus.folder.write_text("in the way")
    assert BM25(corpus).search(["c"], 1)[0][0][0] == 1
    assert "could not be stored" in caplog.text


def test_many_may_build_at_once(tmp_path: Path) -> None:
    corpus = corpus_of(random_texts(random.Random(6), 200))
    corpus.folder = tmp_path
    assert corpus.texts
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: BM25(corpus).search(["w1 w2"], 5), range(16)))
    assert all(one == found[0] for one in found)
    assert len(list(tmp_path.iterdir())) == 1


def test_make_retriever_and_its_errors() -> None:
    corpus = corpus_of(["a b", "b c"])
    assert make_retriever("bm25", corpus, k1=1.2).search(["c"], 1)[0][0][0] == 1
    for name, options, message in (
        ("bm52", {}, "Did you mean 'bm25'"),
        ("bm25", {"kk1": 1.0}, "Did you mean 'k1'"),
        ("bm25", {"k1": "high"}, "give a number"),
        ("bm25", {"b": 1.5}, r"b in \[0, 1\]"),
        ("bm25", {"dates": "none"}, "Allowed: split, whole"),
    ):
        with pytest.raises(UserError, match=message):
            make_retriever(name, corpus, **options)
    with pytest.raises(UserError, match="k=0 is not allowed"):
        BM25(corpus).search(["a"], 0)


def test_the_fingerprint_names_settings_version_and_content() -> None:
    one, other = corpus_of(["a b"]), corpus_of(["a c"])
    prints = {BM25(one).fingerprint, BM25(other).fingerprint, BM25(one, k1=1).fingerprint}
    prints.add(BM25(one, dates="whole").fingerprint)
    assert len(prints) == 4
    assert BM25(one).fingerprint == BM25(corpus_of(["a b"])).fingerprint
    assert "bm25s=" in BM25(one).fingerprint
