"""Think-then-Act: clear, incomplete or ambiguous; then from memory or from passages."""

from __future__ import annotations

import math

import pytest

from lm_eval_rag.harness.core.written import Written
from lm_eval_rag.methods.think_then_act import think_then_act

QUESTION = "Who wrote the book that Ada Moss read?"
SURE, UNSURE = [math.log(0.6), math.log(0.4)], [math.log(0.4), math.log(0.6)]


def test_clear_and_sure_answers_from_memory(play):
    played = play(think_then_act, ["Clear.", *SURE, "Bo Reed"])
    assert played.names == ["assess", "HasLoglikelihood", "confidence=yes", "confidence=no", "answer"]
    assert "Documents" not in played.prompts("answer")[0] and f"Question: {QUESTION}" in played.prompts("answer")[0]
    assert (played.answer.text, played.answer.passages, played.answer.notes) == ("Bo Reed", (), ())


def test_clear_and_unsure_retrieves(play, documents):
    played = play(think_then_act, ["clear", *UNSURE, documents("a", "b"), "Bo Reed"], documents=1)
    assert played.queries == [QUESTION] and "Documents:\na\nQuestion" in played.prompts("answer")[0]
    assert [passage.id for passage in played.answer.passages] == ["a", "b"]


def test_an_incomplete_question_is_written_anew(play, documents):
    replies = ["incomplete", "Who wrote Vale, which Ada Moss read in 1994?\nor else", *UNSURE, documents("a"), "Bo"]
    played = play(think_then_act, replies)
    assert played.names[1] == "incomplete" and played.queries == ["Who wrote Vale, which Ada Moss read in 1994?"]
    assert f"Question: {QUESTION}\nUnderstood as:\n1. Who wrote Vale, which" in played.prompts("answer")[0]


def test_an_ambiguous_question_becomes_several(play, documents):
    replies = ["It is AMBIGUOUS", "1. Who wrote A?\n2. Who wrote B?\n3. C?\n4. D?", *UNSURE]
    replies += [documents("a", "x"), documents("b", "x"), documents("c"), "Bo"]
    played = play(think_then_act, replies)
    assert played.names[1] == "ambiguous" and played.queries == ["Who wrote A?", "Who wrote B?", "C?"]
    assert [passage.id for passage in played.answer.passages] == ["a", "b", "c", "x"]


@pytest.mark.parametrize(("threshold", "retrievals"), [(0.39, 0), (0.41, 1), (1.1, 1), (0.0, 0)])
def test_the_threshold_decides(play, documents, threshold, retrievals):
    replies = ["clear", *UNSURE, *[documents("a")] * retrievals, "Bo"]
    assert play(think_then_act, replies, threshold=threshold).names.count("Retrieve") == retrievals


@pytest.mark.parametrize(
    ("stated", "retrievals", "notes"),
    [("80", 0, ()), ("about 50 %", 0, ()), ("20", 1, ()), ("200", 0, ()), ("very", 1, ("confidence unparsed",))],
)
def test_without_log_probabilities_the_model_states_its_confidence(play, documents, stated, retrievals, notes):
    played = play(think_then_act, ["clear", stated, *[documents("a")] * retrievals, "Bo"], scored=False)
    assert played.names[:3] == ["assess", "HasLoglikelihood", "stated"]
    assert played.answer.notes == ("no log-probabilities: stated confidence", *notes)


@pytest.mark.parametrize(("sure", "retrievals"), [(0.6, 0), (0.4, 1)])
def test_the_likeliest_first_tokens_tell_the_confidence(play, documents, sure, retrievals):
    """Whatever the model writes: 0.6 of yes and no together are for yes."""
    first = [("Well", math.log(0.5)), ("Yes", math.log(sure / 2)), (" no", math.log((1 - sure) / 2))]
    reply = (Written("Well", [("Well", math.log(0.5))], first),)
    played = play(think_then_act, ["clear", reply, *[documents("a")] * retrievals, "Bo"], scored="replies")
    assert played.names[:3] == ["assess", "HasLoglikelihood", "confidence"]
    assert played.names.count("Retrieve") == retrievals and played.answer.notes == ()


def test_what_cannot_be_read_leaves_the_question_as_it_is(play):
    odd = play(think_then_act, ["who knows", *UNSURE, (), "Bo"])
    assert odd.answer.notes == ("clarity unparsed",) and odd.queries == [QUESTION]
    blank = play(think_then_act, ["ambiguous", " \n- ", *UNSURE, (), "I don't know"])
    assert blank.answer.notes == ("rewriting unparsed",) and blank.answer.abstained and blank.queries == [QUESTION]


def test_it_abstains_at_its_limit(play, abstains):
    played = play(think_then_act, ["clear", -1.0], max_calls=2)
    assert abstains(played.answer, "max_calls reached") and played.calls == 3 - 1
