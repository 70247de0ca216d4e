"""Mistakes in documents, questions and rules: each ends in one line that names the place and what to do."""

import json
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.documents.intake import read_documents
from lm_eval_rag.harness.documents.questions import read_questions
from lm_eval_rag.harness.documents.rule_files import read_rules
from lm_eval_rag.harness.plugin.own_data import own_data

FACTS = [("a", "likes", "b"), ("a", "knows", "b")]


def lines(*rows: Any) -> str:
    return "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)


# name of the file, its content, what the message says
DOCUMENTS = {
    "broken JSON": ("d.jsonl", lines({"text": "x"}, '{"text": '), r"d\.jsonl, line 2: not JSON .*one object per line"),
    "a list as a line": ("d.jsonl", lines({"text": "x"}, "", [1]), r"d\.jsonl, line 3: found \[1\]\. Give an object"),
    "no text": (
        "d.jsonl",
        lines({"id": "a", "txt": "x"}),
        r"line 1: there is no 'text' \(columns: id, txt\)\. Name",
    ),
    "a text that is a list": ("d.jsonl", lines({"text": ["x"]}), r"line 1: 'text' is \['x'\]\. Give a text"),
    "a text that is true": ("d.json", lines([{"text": True}]), r"d\.json, row 1: 'text' is True\. Give a text"),
    "an object, not a list": ("d.json", "{}", r"d\.json: found \{\}\. Give a list of objects"),
    "one id twice": ("d.csv", "id,text\na,x\na,y", r"d\.csv, line 3: .*d\.csv, line 2 has the id 'a' too\. Give each"),
    "half a fact": (
        "d.csv",
        "subject,relation,object\na,likes,",
        r"d\.csv, line 2: the fact is \['a', 'likes', None",
    ),
    "two parts": (
        "d.jsonl",
        lines({"text": "x", "fact": ["a", "b"]}),
        r"line 1: the fact is \['a', 'b'\]\. Give a",
    ),
    "one cell too many": ("d.csv", "id,text\na,x, y", r"d\.csv, line 2: 3 cells, .* 2 columns\. Put .*double quotes"),
    "an open quote": ("d.csv", 'id,text\na,"x\nb,y', r"d\.csv, line \d: .*Close every double quote"),
    "semicolons": ("d.csv", "id;text\na;x", r"d\.csv, line 1: .*';'\. Separate them by ','"),
    "a column twice": ("d.csv", "text,text\na,x", r"d\.csv, line 1: the columns are .*a name of its own"),
    "no UTF-8": ("d.csv", b"text\ncaf\xe9", r"d\.csv is not UTF-8: .*Save it as UTF-8"),
    "no Parquet": ("d.parquet", b"PAR1", r"d\.parquet is not a Parquet file, or it is truncated"),
    "an empty file": ("d.jsonl", "\n", r"no documents in '.*d\.jsonl'\. Give a folder"),
    "nothing but blanks": ("d.jsonl", lines({"text": " "}), r"no documents in .*line 1 \(no text in it\)"),
    "an unknown ending": ("d.xml", "<a/>", r"d\.xml has an unknown ending\. Give a folder, a file \(\.txt"),
}
QUESTIONS = {
    "no question": ("q.csv", "qustion,answer\nwho?,me", r"q\.csv, line 2: there is no question \(columns: qustion"),
    "a blank question": (
        *("q.csv", "question,answer\nwho?,me\n ,me", r"q\.csv, line 3: the question in the column 'question' is empty"),
    ),
    "one id twice": ("q.csv", "id,question\na,who?\na,when?", r"q\.csv, line 3: the id 'a' is that of .*line 2 too"),
    "an answer that is an object": (
        "q.jsonl", lines({"question": "who?", "answer": {"name": "me"}}), r"line 1: 'answer' is \{'name': 'me'\}\. Give"
    ),
    "a question that is a list": ("q.jsonl", lines({"query": ["who?"]}), r"line 1: 'query' is \['who\?'\]\. Give a"),
    "a column with a meaning": ("q.csv", "question,corpus\nwho?,x", r"line 2: a column must not be named 'corpus'.*Re"),
    "a slice that is a list": ("q.jsonl", lines({"question": "a", "tags": ["x"]}), r"line 1: 'tags' is \['x'\]\. Give"),
    "no row": ("q.csv", "question,answer\n", r"There are no questions in '.*q\.csv'\. Give a file"),
    "an unknown ending": ("q.txt", "who?", r"Unknown ending of q\.txt '\.txt'.*\.csv.*Give questions as one of these"),
}  # fmt: skip
RULES = {
    "no body": ("r.jsonl", lines({"head": "likes", "confidence": 1}), r"line 1: no rule without head and body"),
    "percent": ("r.csv", "head,body,confidence\na,b,90", r"r\.csv, line 2: confidence=90 .*share from 0 to 1"),
    "a word for a number": ("r.csv", "head,body,support\na,b,many", r"r\.csv, line 2: support='many' is no number"),
    "half a fact": ("r.csv", "subject,relation,object\na,likes,b\na,,b", r"r\.csv, line 3: the fact is"),
    "no rule in the facts": (
        "r.csv",
        "subject,relation,object\na,likes,b\nc,knows,d",
        r"2 facts with 2 relations .*--",
    ),
    "no row": ("r.jsonl", "", r"There are no rules in '.*r\.jsonl'\. Leave it out"),
}
READERS = {
    "documents": (read_documents, DOCUMENTS),
    "questions": (read_questions, QUESTIONS),
    "rules": (read_rules, RULES),
}
CASES = [(kind, name) for kind, (_, cases) in READERS.items() for name in cases]


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{kind}: {name}" for kind, name in CASES])
def test_in_a_file(tmp_path: Path, kind: str, name: str) -> None:
    read, cases = READERS[kind]
    file, content, said = cases[name]
    (tmp_path / file).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UserError, match=said) as error:
        read(tmp_path / file)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("nowhere", "'nowhere' does not exist. Give a folder"),
        ("A long text that was meant to be a document. " * 20, r"does not exist\. Give a folder"),
        (3, r"Documents cannot be read from 3\. Give a folder"),
        ({"id": "a", "text": "x"}, "Documents cannot be read from"),
        (["x", 3], r"document 2: 3 is no document\. Give a folder"),
        ([{"id": "a", "text": "x"}, {"id": "a", "text": "y"}], "document 2: document 1 has the id 'a' too"),
        ([], "There are no documents in"),
        (["", " "], r"There are no documents in .*document 1 \(no text in it\)"),
    ],
)
def test_documents_in_memory(source: Any, said: str) -> None:
    with pytest.raises(UserError, match=said) as error:
        read_documents(source)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tokens": 0}, "passage_tokens=0"),
        ({"tokens": 10, "overlap": 10}, "overlap=10 is not allowed: give less than passage_tokens=10"),
        ({"overlap": -1}, "overlap=-1"),
    ],
)
def test_budgets(options: dict[str, int], said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_documents(["x"], **options)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (3, "Questions cannot be read from '3'"),
        ([3], "question 1: '3' is no question. Give a text or a dictionary"),
        ([], "There are no questions"),
        ([{"question": "a", "_rag": "x"}], "question 1: a column must not be named '_rag'"),
    ],
)
def test_questions_in_memory(source: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_questions(source)


def test_questions_in_a_folder_and_a_dictionary_of_datasets(tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict

    with pytest.raises(UserError, match="is a folder"):
        read_questions(tmp_path)
    with pytest.raises(UserError, match=r"name a split"):
        read_documents(DatasetDict({"train": Dataset.from_list([{"text": "x"}])}))


def test_ids_that_do_not_match(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    questions = [{"question": "who?"}, {"question": "when?", "gold_passages": "doc-1"}]
    with pytest.raises(UserError, match=r"question 2: no document has the id 'doc-1', .* such as 'a'\. Give gold"):
        own_data([{"id": "a", "text": "x"}], questions)


def test_documents_that_hold_the_questions_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    questions = [{"id": "vale_2024_1", "question": "Who built the old bridge?", "answer": "Ada"}]
    documents = [{"id": "bridge", "text": "Ada built the old bridge in Vale. It is 40 m long."}]
    assert not any("leak" in line for line in own_data(documents, questions).odd)
    documents += [{"id": "faq", "text": "Who built the old bridge? Ada."}, {"id": "key", "text": "vale_2024_1: Ada"}]
    assert own_data(documents, questions).odd == (
        "The documents may leak gold: passages with a whole question: 1, such as 'faq'.",
        "The documents may leak gold: passages with the id of a question: 1, such as 'key'.",
    )


def test_rules_mined_from_documents_without_facts() -> None:
    passages = read_documents(["One.", "Two."]).passages
    with pytest.raises(UserError, match=r"none of the 2 passages states a fact\. Give documents with the columns"):
        read_rules("mine", passages)
    with pytest.raises(UserError, match="min_support=0"):
        read_rules("mine", passages, min_support=0)
