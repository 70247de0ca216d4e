"""The rationale that a method leaves in its answer: what it reasoned, without the answer; None if it writes none."""

from __future__ import annotations

import pytest

from lm_eval_rag._register import METHODS
from lm_eval_rag._register import method_of as method
from lm_eval_rag.harness.core.asks import Generate, Loglikelihood, Retrieve
from lm_eval_rag.methods.reasoning.rationales import before_answer

THOUGHT = "Ada Moss read Vale."
COT = f"{THOUGHT} So the answer is Bo Reed."
WRITES = {
    "iter_retgen": {}, "ircot": {}, "tree_of_thoughts": {}, "self_rag": {}, "verify_and_edit": {"variant": "official"},
    "chain_of_knowledge": {}, "search_agent": {}, "crp_rag": {},
}  # fmt: skip
NONE = ("standard_prompting", "standard_rag", "think_then_act")


def reply(name, ask):
    """A model that always thinks the same; labels are the first, log-probabilities even."""
    if isinstance(ask, Retrieve):
        return ask
    if isinstance(ask, Loglikelihood):
        return -1.0
    texts = {
        "value": "sure", "step": "Final: what did Ada Moss read?",
        "segment": f"{THOUGHT[:-1]}, so the answer is Bo Reed.",
        "plain": f"{THOUGHT}\nAnswer: Bo Reed", "verify": "What did she read?", "edit": THOUGHT, "correct": THOUGHT,
        "direct": "Bo Reed", "flashrag": "Bo Reed",
    }  # fmt: skip
    return texts.get(name, COT)


@pytest.fixture
def written(play, documents):
    def of(name, **parameters):
        def answer(step, ask):
            found = reply(step, ask)
            return documents("a", "b") if found is ask else (found,) * ask.n if isinstance(ask, Generate) else found

        return play(method(name), answer, name=name, **parameters).answer

    return of


@pytest.mark.parametrize("name", WRITES)
def test_it_is_the_reasoning_without_the_answer(name, written):
    answer = written(name, **WRITES[name])
    assert answer.text == "Bo Reed"
    assert answer.rationale is not None and "Ada Moss read Vale" in answer.rationale
    assert "answer" not in answer.rationale.lower() and "Bo Reed" not in answer.rationale


def test_a_direct_reader_leaves_the_thoughts(written):
    assert written("ircot", reader="direct", sentences=1).rationale == THOUGHT


def test_bare_answers_have_none(written):
    assert written("iter_retgen", variant="flashrag").rationale is None
    assert set(WRITES) | set(NONE) <= set(METHODS)


def test_what_stands_before_the_answer():
    assert before_answer("He was Dutch, so the answer is: Dutch.") == "He was Dutch"
    assert before_answer("Just text.") == "Just text."
