"""Questions and rules of every kind that is read."""

from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag import Query, Rule
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.documents.intake import read_documents
from lm_eval_rag.harness.documents.questions import read_questions
from lm_eval_rag.harness.documents.rule_files import read_rules

ROWS = [
    {
        "id": "a",
        "question": "who?",
        "answers": ["Ada", "A. Moss"],
        "gold_passages": ["d1", "d2"],
        "kind": "old",
        "n": 3,
    },
    {"id": "b", "question": "when?", "answers": ["1901"], "gold_passages": None, "kind": None, "n": 4},
]


def sources(tmp_path: Path) -> dict[str, Any]:
    import json

    import pandas as pd
    import polars as pl
    from datasets import Dataset

    frame = pl.DataFrame(ROWS)
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    frame.write_parquet(tmp_path / "q.parquet")
    cells = frame.with_columns(
        pl.Series("answers", ['["Ada", "A. Moss"]', "1901"]), pl.Series("gold_passages", ['["d1", "d2"]', None])
    )
    cells.write_csv(tmp_path / "q.csv")
    return {
        "list": ROWS, "polars": frame, "pandas": pd.DataFrame(ROWS), "datasets": Dataset.from_list(ROWS),
        "jsonl": tmp_path / "q.jsonl", "parquet": str(tmp_path / "q.parquet"), "csv": tmp_path / "q.csv",
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["list", "polars", "pandas", "datasets", "jsonl", "parquet", "csv"])
def test_the_same_questions_from_all_sources(tmp_path: Path, kind: str) -> None:
    a, b = read_questions(sources(tmp_path)[kind])
    assert (a.id, a.text, a.answers, a.gold) == ("a", "who?", ("Ada", "A. Moss"), ("d1", "d2"))
    assert (b.id, b.text, b.answers, b.gold) == ("b", "when?", ("1901",), ())
    assert (dict(a.slices), dict(b.slices)) == ({"kind": "old", "n": "3"}, {"n": "4"})


def test_texts_queries_and_other_names_of_columns() -> None:
    first, second, third = read_questions(
        ["who?", Query("x", "when?", "1901"), {"query": "where?", "answer": 5, "time": 1900}]
    )
    assert (first.id, first.text, first.answers) == ("q0", "who?", ())
    assert (second.id, second.text, second.time) == ("x", "when?", "1901")
    assert (third.text, third.answers, third.time) == ("where?", ("5",), "1900")


def test_a_text_in_brackets_is_one_answer(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("question,answer\nwho?,[sic] me\n")
    assert read_questions(tmp_path / "q.csv")[0].answers == ("[sic] me",)


def test_two_columns_of_answers_are_refused() -> None:
    with pytest.raises(UserError, match=r"question 1: there are both 'answers' and 'answer'\. Keep one"):
        read_questions([{"question": "who?", "answer": "Ada", "answers": ["Bo"]}])


def test_rules_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("head,body,confidence,support,body_support\na,b,0.5,3,6\na,a,,,\n")
    assert read_rules(tmp_path / "r.csv") == (
        Rule("a", "b", 3, 6, 0.5),
        Rule("a", "a", 1, 1, 1.0, repeat=True),
    )
    rules = (Rule("a", "b"),)
    assert read_rules(rules) == rules and read_rules(None) == ()


def test_rules_are_mined_with_their_counts() -> None:
    """Of the three people who were born in a town two are citizens of it."""
    facts = [(f"p{i}", relation, f"t{i}") for i in range(3) for relation in ("born in", "citizen of")[: 1 + (i < 2)]]
    documents = [dict(zip(("subject", "relation", "object"), fact, strict=True)) for fact in facts]
    expected = {("citizen of", "born in"): (2, 3, 2 / 3), ("born in", "citizen of"): (2, 2, 1.0)}
    for rules in (read_rules("mine", read_documents(documents).passages), read_rules(documents)):
        assert {(r.head, r.body): (r.support, r.body_support, r.confidence) for r in rules} == expected
    assert [rule.head for rule in rules] == ["born in", "citizen of"]  # best first


def test_dated_facts_give_temporal_rules() -> None:
    """A body counts only before its head, and a relation may repeat itself."""
    visits = [("a", "visit", "b", "2014-01-01"), ("a", "visit", "b", "2014-01-05"), ("a", "praise", "b", "2014-01-03")]
    facts = [dict(zip(("subject", "relation", "object", "time"), fact, strict=True)) for fact in visits]
    rules = read_rules(facts, min_support=1)
    assert {(r.head, r.body, r.repeat, r.confidence) for r in rules} == {
        ("visit", "visit", True, 0.5),
        ("praise", "visit", False, 0.5),
        ("visit", "praise", False, 1.0),
    }


def test_a_repeated_question_is_named(caplog: pytest.LogCaptureFixture) -> None:
    assert len(read_questions(["who?", "when?", "who?"])) == 3
    said = "Repeated questions: 1, such as 'who?'. Each is asked and counted as often as it is there."
    assert caplog.messages == [said]
