"""Tree of Thoughts: sampled thoughts, valued by the model, the best go on."""

from __future__ import annotations

import pytest

from lm_eval_rag.methods.tree_of_thoughts import tree_of_thoughts

SMALL = {"steps": 2, "thoughts": 2, "breadth": 1, "votes": 2}


def test_the_best_states_go_on(play):
    played = play(
        tree_of_thoughts,
        [("Bad start. And more.", "Good start."), ("impossible", "likely"), ("sure", "Likely!"),
         ("So the answer is Vale.", "Perhaps not."), ("sure", "sure"), ("likely", "likely")],
        **SMALL,
    )  # fmt: skip
    assert played.names == ["thought", "value", "value", "thought", "value", "value"]
    assert "1. Bad start.\n" in played.prompts("value")[0] and "1. Good start.\n" in played.prompts("value")[1]
    assert "1. Good start.\nNext thought:" in played.prompts("thought")[1]
    assert "1. Good start.\n2. So the answer is Vale." in played.prompts("value")[2]
    assert (played.answer.text, played.answer.notes, played.answer.passages) == ("Vale", (), ())
    assert {ask.temperature for _, ask in played.asks} == {0.7}


def test_one_sure_outweighs_many_likely(play):
    """20 against 1 + 1."""
    replies = [("A.", "B."), ("likely", "likely"), ("sure", "impossible"), "x", ("likely", "likely"), "Vale"]
    played = play(tree_of_thoughts, replies, **SMALL)
    assert "1. B." in played.prompts("thought")[1]


def test_equal_thoughts_count_once_and_states_are_valued_once(play):
    played = play(tree_of_thoughts, ["The answer is Vale.", "sure"], steps=3, thoughts=4, breadth=5, votes=1)
    assert played.names == ["thought", "value"] and played.answer.text == "Vale"


def test_ended_states_wait_for_the_others(play):
    played = play(
        tree_of_thoughts,
        [("The answer is A.", "Wait."), ("likely", "likely"), ("likely", "likely"),
         "The answer is B.", ("sure", "sure")],
        **{**SMALL, "breadth": 2},
    )  # fmt: skip
    assert played.names == ["thought", "value", "value", "thought", "value"] and played.answer.text == "B"


def test_without_an_answer_in_the_thoughts_it_is_asked_for(play):
    played = play(
        tree_of_thoughts, [("A.", "B."), ("sure", "sure"), ("odd", "likely"), "Vale"], **{**SMALL, "steps": 1}
    )
    assert played.names[-1] == "answer" and "1. A." in played.prompts("answer")[0]
    assert (played.answer.text, played.answer.notes) == ("Vale", ("value unparsed", "no answer in thoughts"))


def test_no_thoughts_at_all_abstain(play, abstains):
    assert abstains(play(tree_of_thoughts, [""]).answer, "no thoughts")


def test_thoughts_that_dry_up_keep_what_there_is(play):
    played = play(tree_of_thoughts, [("A.", "A."), ("sure", "sure"), "", "I don't know"], **SMALL)
    assert played.names == ["thought", "value", "thought", "answer"] and played.answer.abstained


@pytest.mark.parametrize("most", [4, 20, 300])
def test_the_papers_breadth_fits_its_limit(play, abstains, most):
    count = iter(range(10**6))

    def endless(name, ask):
        if name == "thought":
            return tuple(f"Thought {next(count)}." for _ in range(ask.n))
        return "sure" if name == "value" else "Vale"

    played = play(tree_of_thoughts, endless, max_calls=most)
    assert played.calls <= most
    assert abstains(played.answer, "max_calls reached") if most < 221 else played.calls == 221
    assert "max_calls reached" not in play(tree_of_thoughts, endless).answer.notes
