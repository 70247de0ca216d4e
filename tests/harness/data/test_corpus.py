"""Corpora in memory, from a file, and opened from a built folder."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Passage, Query, Rule
from lm_eval_rag.harness.data import corpus as corpus_module
from lm_eval_rag.harness.data import tables
from lm_eval_rag.harness.data.corpus import Corpus, open_corpus
from lm_eval_rag.harness.data.question_forms import write_forms
from lm_eval_rag.harness.retrieval.bm25 import BM25

PASSAGES = (
    Passage("d0", "Time 2014-01-02 Ann visit Rome.", time="2014-01-02", fact=("Ann", "visit", "Rome")),
    Passage("d1", "Ann travelled to Paris.", time="2014-01-03", fact=("Ann", "visit", "Paris")),
    Passage("d2", "Bob praise Ann.", fact=("Bob", "praise", "Ann")),
    Passage("d3", "No fact is stated here."),
)
RULES = (Rule("visit", "praise", 3, 4, 0.75), Rule("visit", "visit", 2, 4, 0.5, repeat=True))


def test_passages_come_back_with_score_and_source() -> None:
    corpus = Corpus.of(PASSAGES, RULES, [(Query("q", "who?"), "Ann")])
    assert len(corpus) == 4
    assert list(corpus.texts) == [passage.text for passage in PASSAGES]
    for row, given in enumerate(PASSAGES):
        found = corpus.passage(row, 1.5)
        assert (found.id, found.text, found.time, found.fact) == (given.id, given.text, given.time, given.fact)
        assert (found.score, found.source) == (1.5, corpus.id)
    assert corpus.rules() == RULES
    assert corpus.examples() == ((Query("q", "who?"), "Ann"),)


def test_many_passages_at_once_are_those_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no more texts are kept, and the passages of one document share theirs."""
    hits = [(3, 1.0), (0, 2.0), (3, 0.5), (1, 2.0)]
    expected = [Corpus.of(PASSAGES).passage(*hit) for hit in hits]
    corpus = Corpus.of(PASSAGES)
    assert corpus.passages(hits) == expected and corpus.passages([]) == []
    first, *_, third, _ = corpus.passages(hits)
    assert first.text is third.text
    monkeypatch.setattr(corpus_module, "KEPT", 0)
    assert [corpus.passages([hit])[0] for hit in hits] == expected
    assert len(corpus._read) == 1


def test_wordings_do_not_depend_on_the_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = Corpus.of(PASSAGES).wordings()
    monkeypatch.setattr(corpus_module, "SLICE", 1)
    assert Corpus.of(PASSAGES).wordings() == expected == {"travelled to": "visit"}


def test_names_facts_and_wordings() -> None:
    corpus = Corpus.of(PASSAGES, [Rule("meet", "visit")])
    assert corpus.entities == ("Ann", "Bob", "Paris", "Rome")
    assert corpus.relations == ("meet", "praise", "visit")
    assert corpus.facts("Ann") == [("visit", "Rome", "2014-01-02"), ("visit", "Paris", "2014-01-03")]
    assert corpus.facts("Bob") == [("praise", "Ann", None)]
    assert corpus.facts("Rome") == corpus.facts("nobody") == []
    assert corpus.wordings() == {"travelled to": "visit"}


def test_a_wording_means_the_relation_that_it_says_most_often() -> None:
    said = ["visit", "leave", "leave", "go"]
    passages = [
        Passage(f"{i}", f"In spring a{i} went off to b{i}, it is said.", fact=(f"a{i}", relation, f"b{i}"))
        for i, relation in enumerate(said)
    ]
    assert Corpus.of(passages).wordings() == {"went off to": "leave"}
    assert Corpus.of(passages[:1] + passages[3:]).wordings() == {"went off to": "go"}  # a tie goes by name


def test_the_fingerprint_is_of_the_content() -> None:
    prints = [
        Corpus.of(PASSAGES).fingerprint,
        Corpus.of(PASSAGES[::-1]).fingerprint,
        Corpus.of(PASSAGES[:3]).fingerprint,
        Corpus.of(PASSAGES, RULES).fingerprint,
    ]
    assert len(set(prints)) == 4
    assert Corpus.of(list(PASSAGES)).fingerprint == prints[0]


def test_no_document_or_one_id_twice() -> None:
    with pytest.raises(UserError, match="empty"):
        Corpus.of([])
    with pytest.raises(UserError, match="Two documents have the id 'd0'"):
        Corpus.of([PASSAGES[0], PASSAGES[0]])


def test_a_saved_corpus_is_opened_as_it_was(tmp_path: Path) -> None:
    passages = [
        Passage("a", "One.", time="2014", source="a.md", fact=("s", "r", "o"), metadata={"year": 2014, "tags": ["x"]}),
        Passage("b", "Two."),
    ]
    examples = [(Query("e", "who?", "2014"), "me")]
    corpus = Corpus.of(passages, RULES, examples)
    saved = Corpus.open(corpus.save(tmp_path / "mine"))
    assert [replace(saved.passage(row), source="") for row in (0, 1)] == [replace(p, source="") for p in passages]
    assert [saved.passage(row).source for row in (0, 1)] == ["a.md", "mine"]
    assert (saved.rules(), saved.fingerprint, len(saved)) == (RULES, corpus.fingerprint, 2)
    assert [(query.text, answer) for query, answer in saved.examples()] == [("who?", "me")]
    with pytest.raises(UserError, match="exists already"):
        corpus.save(tmp_path / "mine")
    with pytest.raises(UserError, match="missing or damaged"):
        Corpus.open(tmp_path / "other")


def test_texts_beyond_the_two_gigabytes_of_arrows_type_string(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is lowered here; the file has several row groups, whose texts are joined."""
    small = Corpus.open(Corpus.of(PASSAGES, RULES).save(tmp_path / "c"))
    file = tmp_path / "c" / "corpus.parquet"
    pq.write_table(pq.read_table(file), file, row_group_size=1)
    monkeypatch.setattr(tables, "SMALL", 3)
    large = Corpus.open(tmp_path / "c")
    assert large._columns["text"].type == pa.large_string() != small._columns["text"].type
    assert large.texts == small.texts == list(large.each_text()) and large.ids.to_pylist() == small.ids.to_pylist()
    rows = list(range(len(small)))
    assert large.passages([(row, 1.0) for row in rows]) == small.passages([(row, 1.0) for row in rows])
    assert large.part(rows[:2], "p").texts == small.texts[:2]
    assert BM25(large).search(small.texts, 3) == BM25(small).search(small.texts, 3)
    large.save(tmp_path / "again")
    assert Corpus.open(tmp_path / "again").texts == small.texts


def test_other_rules_change_the_fingerprint_and_nothing_else() -> None:
    corpus = Corpus.of(PASSAGES)
    ruled = corpus.with_rules(RULES)
    assert ruled.rules() == RULES and corpus.rules() == ()
    assert list(ruled.texts) == list(corpus.texts) and ruled.fingerprint != corpus.fingerprint
    assert corpus.with_rules(RULES).fingerprint == ruled.fingerprint


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Path]:
    """The demo's corpus, id and folder, in a cache of its own."""
    from lm_eval_rag.tasks.ruleqa_demo.build import build

    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    return (corpus_id := build()), tmp_path / corpus_id


def test_open_a_built_corpus(built: tuple[str, Path]) -> None:
    import pyarrow.parquet as pq

    corpus_id, folder = built
    corpus = open_corpus(corpus_id)
    documents = pq.read_table(folder / "corpus.parquet").to_pylist()
    assert (corpus.id, corpus.folder, len(corpus)) == (corpus_id, folder, len(documents))
    assert corpus.fingerprint == corpus_id.split("/")[1]
    for row in (0, len(documents) // 2, len(documents) - 1):
        wanted, found = documents[row], corpus.passage(row)
        assert found.fact == (wanted["subject"], wanted["relation"], wanted["object"])
        assert (found.id, found.text, found.time) == (wanted["id"], wanted["text"], wanted["time"])
    subject = documents[7]["subject"]
    own = [(d["relation"], d["object"], d["time"]) for d in documents if d["subject"] == subject]
    assert corpus.facts(subject) == own
    rules = pq.read_table(folder / "rules.parquet").to_pylist()
    assert [(rule.head, rule.body, rule.support) for rule in corpus.rules()] == [
        (rule["head"], rule["body"], rule["support"]) for rule in rules
    ]
    train = pq.read_table(folder / "generator_train.parquet").to_pylist()
    query, answer = corpus.examples()[3]
    assert (query.text, query.time, query.corpus) == (train[3]["text"], train[3]["time"], corpus_id)
    assert answer == train[3]["answers"][0] and len(corpus.examples()) == len(train)


def test_open_a_corpus_with_other_questions(built: tuple[str, Path]) -> None:
    id, folder = built
    other = folder.parents[1] / "natural" / "0"
    other.mkdir(parents=True)
    write_forms(other, id, {"visit": "Where is {subject}?"})
    shutil.copy(folder / "generator_train.parquet", other)
    plain, natural = open_corpus(id), open_corpus("natural/0")
    assert natural.id == natural.passage(0).source == "natural/0" and natural.questions == other
    assert dict(natural.forms) == {"visit": "Where is {subject}?"} and not plain.forms
    assert (natural.folder, natural.fingerprint) == (plain.folder, plain.fingerprint)
    assert natural.texts == plain.texts and natural.rules() == plain.rules()
    assert natural.with_rules(()).forms == natural.forms
    (other / "forms.json").write_text("{}")
    with pytest.raises(UserError, match=r"forms\.json is missing or damaged"):
        open_corpus("natural/0")


def test_no_such_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    with pytest.raises(UserError, match="lm-eval-rag build ruleqa_i"):
        open_corpus("ruleqa_i/123")


@pytest.mark.parametrize("name", ["corpus.parquet", "rules.parquet", "meta.json", "generator_train.parquet"])
@pytest.mark.parametrize("harm", ["truncated", "missing", "foreign"])
def test_a_damaged_file_is_named(built: tuple[str, Path], name: str, harm: str) -> None:
    corpus_id, folder = built
    path = folder / name
    if harm == "truncated":
        path.write_bytes(path.read_bytes()[:-100])
    elif harm == "missing":
        path.unlink()
    else:
        shutil.copy(folder / "queries.parquet", path)
    if (name, harm) == ("generator_train.parquet", "foreign"):
        return  # queries have its columns too
    wanted = "lm-eval-rag build" if (name, harm) == ("corpus.parquet", "missing") else name.replace(".", r"\.")
    with pytest.raises(UserError, match=wanted):
        open_corpus(corpus_id).examples()
