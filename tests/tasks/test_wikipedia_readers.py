"""Readers of the datasets over Wikipedia, and what happens to bad input."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.tasks.wikipedia import fever, hotpot, musique, open_domain, pages
from lm_eval_rag.tasks.wikipedia.records import LONG, Page, Question, UniquePages, checked_questions

CONTEXT = [["Paris", ["Paris is a city.", " It lies on the Seine."]], ["Seine", ["The Seine is a river."]]]
HOTPOT = {
    "_id": "q1", "question": " Where does Paris lie? ", "answer": "on the Seine", "type": "bridge", "level": "hard",
    "supporting_facts": [["Paris", 1], ["Seine", 0]], "context": CONTEXT,
}  # fmt: skip
COLUMNS = {
    **HOTPOT, "supporting_facts": {"title": ["Paris", "Seine"], "sent_id": [1, 0]},
    "context": {"title": [title for title, _ in CONTEXT], "sentences": [lines for _, lines in CONTEXT]},
}  # fmt: skip
TEXTS = {**HOTPOT, "context": json.dumps(CONTEXT), "supporting_facts": json.dumps(HOTPOT["supporting_facts"])}
MUSIQUE = {
    "id": "3hop1__1_2_3", "question": "Who?", "answer": "Ada", "answer_aliases": ["A.", "Ada", ""],
    "paragraphs": [
        {"title": "A", "paragraph_text": "one", "is_supporting": True},
        {"title": "A", "paragraph_text": "two", "is_supporting": False},
    ],
}  # fmt: skip
CLAIM = {
    "id": 7, "claim": "Soul Food is a film.", "label": "SUPPORTS",
    "evidence": [[[1, 2, "Soul_Food_-LRB-film-RRB-", 0]], [[1, 3, "Soul_Food_-LRB-film-RRB-", 0]],
                 [[1, 4, "Soul_Food_-LRB-film-RRB-", 2], [1, 4, "Vale", 1]]],
}  # fmt: skip


def jsonl(path: Path, *rows: Any) -> list[Path]:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return [path]


@pytest.mark.parametrize("row", [HOTPOT, COLUMNS, TEXTS], ids=["official", "columns", "texts"])
def test_hotpotqa_in_three_shapes(row: dict[str, Any], tmp_path: Path) -> None:
    (question,) = hotpot.questions(jsonl(tmp_path / "dev.jsonl", row))
    assert (question.id, question.text, question.answers) == ("q1", "Where does Paris lie?", ("on the Seine",))
    assert question.facts == (("Paris", 1), ("Seine", 0)) and question.triples is None
    assert question.context[0].text == "Paris\nParis is a city. It lies on the Seine."
    assert question.gold == tuple(page.text for page in question.context)


def test_2wikimultihopqa_has_triples(tmp_path: Path) -> None:
    triples = [["Ed Wood", "director", "Tim Burton"]]
    for value in (triples, json.dumps(triples)):
        (question,) = hotpot.questions(jsonl(tmp_path / "dev.jsonl", {**HOTPOT, "evidences": value}))
        assert question.triples == (("Ed Wood", "director", "Tim Burton"),)


def test_sentences_are_joined_with_one_space() -> None:
    assert Page("T", ("One.", " Two.", "", "Three.")).text == "T\nOne. Two. Three."
    assert Page("", ("One.",)).text == "One." and not Page("T", ("", " ")).body


def test_musique_names_gold_by_text_and_keeps_aliases_once(tmp_path: Path) -> None:
    (question,) = musique.questions(jsonl(tmp_path / "dev.jsonl", MUSIQUE))
    assert question.gold == ("A\none",) and question.answers == ("Ada", "A.") and question.type == "3hop1"


def test_fever_claims(tmp_path: Path) -> None:
    nothing = {**CLAIM, "id": 8, "label": "not enough information", "evidence": [[[5, None, None, None]]]}
    first, second = fever.questions(jsonl(tmp_path / "dev.jsonl", CLAIM, nothing))
    page = "Soul_Food_-LRB-film-RRB-"
    assert first.evidence_sets == (((page, 0),), ((page, 2), ("Vale", 1))) and first.gold == (page, "Vale")
    assert (second.answers, second.evidence_sets, second.gold) == (("NOT ENOUGH INFO",), None, None)


def test_fever_pages_keep_their_sentence_numbers(tmp_path: Path) -> None:
    lines = "0\tFirst -LRB- 1 -RRB- .\tlink\tlink\n1\t\n3\tFourth.\nbroken off"
    row = {"id": "Soul_Food_-LRB-film-RRB-", "text": "", "lines": lines}
    with zipfile.ZipFile(tmp_path / "wiki.zip", "w") as archive:
        archive.writestr("wiki-pages/wiki-001.jsonl", json.dumps(row))
    (page,) = fever.wiki_pages([tmp_path / "wiki.zip"])
    assert page.sentences == ("First ( 1 ) .", "", "", "Fourth.")
    assert (page.name, page.title) == ("Soul_Food_-LRB-film-RRB-", "Soul Food (film)")


def test_dpr_passages_and_topics(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "w.tsv.gz", "wt", encoding="utf-8") as file:
        file.write('id\ttext\ttitle\n1\t"He said ""no""."\tAda Moss\n')
    (page,) = pages.dpr([tmp_path / "w.tsv.gz"])
    assert (page.name, page.text) == ("1", 'Ada Moss\nHe said "no".')
    (tmp_path / "t.txt").write_text("Who?\t['Ada', \"O'Hara\"]\n" + '"""Who wrote ""X""?"""\t"[\'""X""\']"\n')
    first, second = open_domain.dpr_topics([tmp_path / "t.txt"])
    assert first.answers == ("Ada", "O'Hara") and second.answers == ('"X"',)
    assert second.text == 'Who wrote "X"?'


def test_damaged_answers_of_the_mirrors_topics_are_split_again(tmp_path: Path) -> None:
    damaged = "['Hitler, Adolf', O'Hara, China, People's Republic, Aunt Erma's Cope Book, by Erma, '30s, '1930s', 'a']"
    rows = [
        {"question": '"""Who wrote """"X""""?"""', "answers": [damaged]},
        {"question": "Who?", "answers": ["A", "B"]},
    ]
    first, second = open_domain.derived_topics(jsonl(tmp_path / "t.jsonl", *rows))
    assert first.answers == (
        "Hitler, Adolf", "O'Hara", "China, People's Republic", "Aunt Erma's Cope Book, by Erma", "'30s", "1930s", "a",
    )  # fmt: skip
    assert (first.text, second.answers, second.id) == ('Who wrote "X"?', ("A", "B"), "topics.dpr.trivia.test-2")


def test_printed_passages(tmp_path: Path) -> None:
    printed = ['"Title: Ada Text:  Ada ""the"" first."', "Ada   Ada Moss was born.", "and a piece without a title", "."]
    found = list(pages.retrieved(jsonl(tmp_path / "r.jsonl", {"passages": printed})))
    assert [(page.title, page.body) for page in found] == [
        ("Ada", 'Ada "the" first.'), ("Ada", "Ada Moss was born."), ("", ""), ("", ""),
    ]  # fmt: skip


Reader = Callable[[Sequence[Path]], Iterator[Any]]
BAD: list[tuple[Reader, Any, str]] = [
    (hotpot.questions, {**HOTPOT, "context": [["Paris"]]}, "row 1 does not have the dataset's form"),
    (hotpot.questions, {"_id": "q"}, "row 1 does not have the dataset's form .KeyError"),
    (musique.questions, {**MUSIQUE, "paragraphs": None}, "row 1 does not have the dataset's form"),
    (fever.questions, {**CLAIM, "label": "PERHAPS"}, r"^dev\.jsonl, row 1: unknown label 'PERHAPS'. Allowed: SUPPORTS"),
    (open_domain.questions, {"question": "Who?", "answers": [3]}, "not a text or a list of texts"),
    (open_domain.questions, {"question": "Who?", "answers": None}, "not a text or a list of texts"),
    (open_domain.derived_topics, {"question": "Who?", "answers": ["['Ada', Bob"]}, "is no list of answers"),
]


@pytest.mark.parametrize(("read", "row", "message"), BAD)
def test_a_bad_row_is_named(read: Reader, row: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        list(read(jsonl(tmp_path / "dev.jsonl", row)))


def test_a_line_that_is_not_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "dev.jsonl").write_text('{"question": "Who?", "answer": "Ada"}\n{"a"')
    with pytest.raises(UserError, match=r"dev\.jsonl, line 2 is not JSON"):
        list(open_domain.questions([tmp_path / "dev.jsonl"]))


def question(id: str, answers: tuple[str, ...] = ("yes",), **fields: Any) -> Question:
    return Question(id, fields.pop("text", "Is it?"), answers, **fields)


def test_questions_without_gold_or_with_a_repeated_id_are_counted_and_kept() -> None:
    notes: Counter[str] = Counter()
    asked = [question("a"), question("a"), question("a", text="Another?"), question("a", text="A third?")]
    asked += [question("b", ())]
    kept = list(checked_questions(asked, notes))
    assert [one.id for one in kept] == ["a", "a-2", "a-3", "b"]
    assert {note: n for note, n in notes.items() if n} == {
        "repeated question": 1, "id of several questions": 2, "question without a gold answer": 1,
    }  # fmt: skip


def test_empty_repeated_and_long_passages_are_counted() -> None:
    notes: Counter[str] = Counter()
    unique = UniquePages(notes)
    huge = Page("Huge", ("word " * 2_000_000,))
    given = [
        Page("A", ("one",)),
        Page("A", ("one",)),
        Page("A", ("two",)),
        Page("A", ("three",)),
        Page("E", (" ",)),
        huge,
    ]
    assert [unique.add(page) for page in given] == [
        (0, "A"), (0, None), (1, "A#2"), (2, "A#3"), (None, None), (3, "Huge"),
    ]  # fmt: skip
    assert len(huge.text) > 9 * LONG and notes == {
        "repeated passage": 1, "id of several passages": 2, "empty passage": 1,
        "passage of more than a million characters": 1,
    }  # fmt: skip
