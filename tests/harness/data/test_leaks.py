"""Gold in passages: what is found, what is not searched for, and what is said of it."""

from __future__ import annotations

from lm_eval_rag.harness.data.leaks import LeakCheck

SEINE = "Where does the river Seine end?"


def test_leaks_are_found() -> None:
    check = LeakCheck([("q1_2345678", SEINE), ("12345678", "Who was it?"), ("b", f"{SEINE} Say where.")], size=7)
    for number, text in enumerate((
        "Rivers. Where does the RIVER Seine end? In the sea.",  # a question
        "Where does the river Seine begin?",
        "Who was it? 12345678",  # too short a question; a number is no id
        "see q1_2345678 for more",  # an id
        '{"question": "Who?", "golden_answers": []}',  # a record
        "q1_23456789",
        f"{SEINE} Say where.",  # two questions, one passage
    )):  # fmt: skip
        check.look(f"p{number}", text)
    assert check.counts == {
        "passages searched": 7, "questions of fewer than 5 words, not searched for": 1,
        "passages with a whole question": 2, "passages with the id of a question": 1,
        "passages that look like a dataset's record": 1,
    }  # fmt: skip
    assert list(check.leaks()) == [
        "passages with a whole question: 2, such as 'p0'",
        "passages with the id of a question: 1, such as 'p3'",
        "passages that look like a dataset's record: 1, such as 'p4'",
    ]


def test_of_a_large_corpus_every_nth_passage_is_searched() -> None:
    check = LeakCheck([("a", SEINE)], size=2_500_000)
    for number in range(9):
        check.look(str(number), SEINE)
    assert (check.counts["passages searched"], check.counts["passages with a whole question"]) == (3, 3)
