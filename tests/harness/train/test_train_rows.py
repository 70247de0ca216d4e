"""F_R as training reads it: oracle documents restated from the table, the two modes, the split, bad input."""

import json
from pathlib import Path

import polars as pl
import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import Corpus, open_corpus
from lm_eval_rag.harness.rules.guided import JOINS
from lm_eval_rag.harness.train.rows import examples, read_questions, split

FACTS = [
    ("Ada", "praised", "Bo", "2014-01-01"),
    ("Ada", "met", "Bo", "2014-01-02"),
    ("Ada", "met", "Cy", "2014-01-03"),
    ("Ada", "called", "Bo", "2014-01-04"),
    ("Ada", "met", "Bo", "2014-01-05"),
    ("Bo", "met", "Ada", "2014-01-06"),
    ("Bo", "called", "Cy", "2014-01-07"),
]
ASKED = [("Ada", "praised", ["Bo"]), ("Bo", "praised", ["Dee"]), ("Bo", "praised", ["Cy", "Ada"])]
RULES = [("praised", "met", 9, 10), ("praised", "called", 4, 8)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built corpus with three rows of F_R."""
    made = tmp_path / "made" / "abc"
    made.mkdir(parents=True)
    documents = [
        {"id": f"d{i}", "text": f"Time {t} {s} {r} {o}.", "subject": s, "relation": r, "object": o, "time": t}
        for i, (s, r, o, t) in enumerate(FACTS)
    ]
    pl.DataFrame(documents).write_parquet(made / "corpus.parquet")
    rules = [
        {"head": h, "body": b, "support": n, "body_support": m, "confidence": n / m, "repeat": False}
        for h, b, n, m in RULES
    ]
    pl.DataFrame(rules).write_parquet(made / "rules.parquet")
    asked = [
        {"text": f"Time 2014-02-01 what does {s} {r} ?", "subject": s, "relation": r, "answers": a} for s, r, a in ASKED
    ]
    pl.DataFrame(asked).write_parquet(made / "retriever_train.parquet")
    (made / "meta.json").write_text(json.dumps({"task": "made", "hash": "abc"}))
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    return made


def test_oracle_documents_state_the_body_about_subject_and_answer(folder: Path) -> None:
    corpus = open_corpus("made/abc")
    found = read_questions(corpus)
    assert [[rule.body for rule in question.rules] for question in found] == [["met", "called"]] * 3
    for question, (subject, relation, answers) in zip(found, ASKED, strict=True):
        for rule, rows in zip(question.rules, question.oracle, strict=True):
            wanted = [i for i, (s, r, o, _) in enumerate(FACTS) if (s, r) == (subject, rule.body) and o in answers]
            assert list(rows) == wanted
        own = [i for i, (s, r, o, _) in enumerate(FACTS) if (s, r) == (subject, relation) and o in answers]
        assert list(question.own) == own


def test_rgft_has_one_example_a_rule_and_ssft_one_a_question(folder: Path) -> None:
    questions = read_questions(open_corpus("made/abc"))
    rgft, ssft = examples(questions, "rgft"), examples(questions, "ssft")
    assert [e.text for e in rgft] == [
        JOINS["rule"](q.text, rule) for q in questions for rule, rows in zip(q.rules, q.oracle, strict=True) if rows
    ]
    assert [e.positives for e in rgft] == [(1, 4), (3,), (5,), (6,)]
    assert [(e.text, e.positives) for e in ssft] == [(questions[0].text, (1, 3, 4)), (questions[2].text, (5, 6))]
    assert rgft[0].stating == ssft[0].stating == {0, 1, 3, 4}
    assert [e.positives for e in examples(questions, "rgft", latest=1)] == [(4,), (3,), (5,), (6,)]
    assert examples(questions, "ssft", latest=1)[0].positives == (3, 4)


def test_inputs_are_those_of_inference(folder: Path) -> None:
    question = read_questions(open_corpus("made/abc"), n_rules=1)[0]
    assert question.inputs == (JOINS["rule"](question.text, question.rules[0]),)
    assert question.inputs[0] == f"{question.text} [Entity1, met, Entity2] leads to [Entity1, praised, Entity2]"


def test_split_is_disjoint_and_seeded(folder: Path) -> None:
    questions = read_questions(open_corpus("made/abc")) * 20
    questions = [q for i, q in enumerate(questions)]
    training, dev = split(questions, 5, 0)
    assert len(dev) == 5 and len(training) == 55
    assert all(any(question.oracle) for question in dev)
    assert (training, dev) == split(questions, 5, 0)
    fewer, same = split(questions, 5, 0, rows=10)
    assert len(fewer) == 10 and same == dev
    assert len(split(questions, 1000, 0)[1]) == 8  # a fifth of the 40 that a rule leads from


def test_no_training_rows(folder: Path) -> None:
    (folder / "retriever_train.parquet").unlink()
    with pytest.raises(UserError, match="has no F_R"):
        read_questions(open_corpus("made/abc"))
    with pytest.raises(UserError, match="has no F_R"):
        read_questions(Corpus.of([Passage("a", "Ada met Bo.")]))


def test_rules_that_lead_nowhere(folder: Path) -> None:
    path = folder / "retriever_train.parquet"
    pl.read_parquet(path)[1:2].write_parquet(path)
    with pytest.raises(UserError, match="no rule leads"):
        read_questions(open_corpus("made/abc"))
