"""Documents read once: equal to the dataset's own, new at each access, and references that read nothing."""

from __future__ import annotations

import pytest
from datasets import Dataset

from lm_eval_rag.harness.plugin.rows import Rows
from lm_eval_rag.harness.plugin.wording import first_answer, question, question_with_time

DOCS = [{"id": f"q{i}", "answers": ["a", f"b{i}"], "time": None if i else "2014"} for i in range(4)]


def test_rows_are_those_of_the_dataset() -> None:
    dataset = Dataset.from_list(DOCS)
    rows = Rows(dataset)
    assert list(rows) == list(dataset) == DOCS
    assert len(rows) == 4 and rows[2] == DOCS[2] and rows[-1] == DOCS[-1] and rows[1:3] == DOCS[1:3]
    assert list(rows.features) == ["id", "answers", "time"]
    with pytest.raises(IndexError):
        rows[4]


def test_a_document_that_is_filled_is_nobody_elses() -> None:
    rows = Rows(Dataset.from_list(DOCS))
    for access in (lambda: next(iter(rows)), lambda: rows[0]):
        access()["_rag"] = {}
        assert access() == DOCS[0]


def test_references_read_nothing_until_they_are_looked_into() -> None:
    rows = Rows(Dataset.from_list(DOCS))
    references = rows.references()
    assert "columns" not in vars(rows)
    assert [dict(row) for row in references] == DOCS and references[3] == DOCS[3] and len(references[0]) == 3


def test_wording() -> None:
    doc = {"query": "who?", "time": None, "answers": ["a", "b"]}
    assert question(doc) == question_with_time(doc) == "Question: who?\nAnswer:"
    assert question_with_time({**doc, "time": "2024"}) == "Asked at: 2024\nQuestion: who?\nAnswer:"
    assert first_answer(doc) == "a"
