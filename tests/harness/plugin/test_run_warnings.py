"""Warnings at the end of a run, from the records alone."""

import logging

import pytest

from lm_eval_rag.harness.plugin.run_warnings import warn_of_all, warn_of_cuts, warn_of_fallbacks, warn_of_kept


def records(n, **of_all):
    return [(f"q{i}", {"failure": None, "abstained": False, "notes": [], **of_all}) for i in range(n)]


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.WARNING, "lm_eval_rag")
    return lambda: [record.getMessage() for record in caplog.records]


def test_abstentions_and_notes_of_all_questions(said):
    warn_of_all("rule_vote", records(5, abstained=True, notes=["no fact", "one more"]))
    assert said() == [
        "rule_vote abstained on all 5 questions.",
        "rule_vote: each of the 5 questions has the note 'no fact'.",
        "rule_vote: each of the 5 questions has the note 'one more'.",
    ]


def test_one_other_question_or_too_few_are_no_warning(said):
    warn_of_all("rule_vote", records(4, abstained=True, notes=["no fact"]))
    warn_of_all("rule_vote", [*records(4, abstained=True, notes=["no fact"]), *records(1)])
    assert said() == []


def test_failed_questions_do_not_count(said):
    warn_of_all("m", [*records(5, notes=["n"]), *records(2, failure="timeout")])
    assert said() == ["m: each of the 5 questions has the note 'n'."]


def test_cut_replies_name_ten_questions(said):
    warn_of_cuts([*records(12, truncated=1), *records(1)])
    (line,) = said()
    assert "12 questions (q0, q1, " in line and "q9 and 2 more)" in line and "q10" not in line


def test_cut_passages_are_said_too(said):
    warn_of_cuts([*records(2, cut_passages=3), *records(1)])
    (line,) = said()
    assert line.startswith("Passages cut in 2 questions (q0, q1). They are longer than a whole prompt may be")


def test_a_limit_of_calls_names_its_questions(said):
    warn_of_cuts([*records(1, notes=["max_calls reached"]), *records(9)])
    assert said() == ["max_calls reached in 1 questions (q0). They abstain; max_calls=N sets the limit of a question."]


def test_replies_that_were_kept_are_counted(said):
    warn_of_kept(9, 0)
    warn_of_kept(0, 4)  # they repeat calls of the run itself
    warn_of_kept(9, 4)
    (line,) = said()
    assert line.startswith("4 replies and retrievals are from the journal, which held 9 of an earlier run")
    assert line.endswith("give journal=off.")


def test_queries_that_the_run_lacks_are_counted(said):
    warn_of_fallbacks([*records(2, retrieved_by={"run": 1, "bm25": 7}), *records(1, retrieved_by={"run": 1})])
    assert said() == ["The retrieval run held 3 of 17 queries; for the others: bm25 14."]


def test_a_run_that_holds_all_queries_is_no_warning(said):
    warn_of_fallbacks([*records(2, retrieved_by={"run": 1}), *records(1)])
    assert said() == []
