"""``perplexity=True``: what is scored after a method has answered, and that nothing else changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.asks import generate, sample, together
from lm_eval_rag.harness.core.contract import name_of
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.harness.generators.base import Completion
from lm_eval_rag.harness.plugin.answer_likelihood import FAILED, with_likelihood
from lm_eval_rag.harness.plugin.arguments import read_arguments
from lm_eval_rag.harness.plugin.engine import run


class Model:
    """Echoes the last word of a prompt twice; ln P is minus the length of the continuation."""

    fingerprint, batch = "model", 2

    def __init__(self, scored: bool = True, fails: bool = False) -> None:
        self.gives_loglikelihood, self.fails, self.pairs = scored, fails, list[tuple[str, str]]()

    def generate(self, prompts: Sequence[str], decoding: Any, samples: Any) -> list[str]:
        return [f" {text.split()[-1]} {text.split()[-1]}." for text in prompts]

    def loglikelihood(self, pairs: Sequence[tuple[str, str]]) -> list[float | CallError]:
        self.pairs += pairs
        return [CallError("down") if self.fails else -float(len(text)) for _, text in pairs]

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def room(self, max_tokens: int) -> None:
        return None


def method(query: Query) -> Plan[Answer]:
    """Several generations, some at once; the answer is read from the first that says it."""
    first = yield from generate(f"{query.text} one")
    yield from together(generate(f"{query.text} {word}") for word in ("two", "three"))
    yield from sample(f"{query.text} four", 2, 1.0)
    return Answer(first.split()[0], abstained=query.text == "abstain")


def answered(question: str, model: Model) -> Answer:
    ((answer, trace),) = run(with_likelihood(method), [question], generator=model)
    assert trace.failure is None
    return answer


def test_the_reply_with_the_answer_is_scored_after_its_prompt() -> None:
    model = Model()
    answer = answered("who", model)
    assert answer.text == "one" and model.pairs == [("who one", " one one.")]
    assert answer.likelihood == (-9.0, 3)  # two words and a full stop


def test_replies_of_plans_that_run_together_count() -> None:
    def later(query: Query) -> Plan[Answer]:
        yield from together(generate(f"x {word}") for word in ("two", "three"))
        return Answer("three")

    ((answer, _),) = run(with_likelihood(later), ["q"], generator=Model())
    assert answer.likelihood == (-13.0, 3)


@pytest.mark.parametrize(("question", "model"), [("abstain", Model()), ("who", Model(scored=False))])
def test_without_an_answer_or_log_probabilities_there_is_none(question: str, model: Model) -> None:
    assert answered(question, model).likelihood is None and not model.pairs


def test_what_came_with_the_reply_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Likely(Model):
        gives_logs, log = True, -7.0

        def generate(self, prompts: Sequence[str], decoding: Any, samples: Any) -> list[Any]:
            return [
                Completion(text, tokens=((text, self.log),)) for text in super().generate(prompts, decoding, samples)
            ]

    model = Likely(scored=False)
    assert answered("who", model).likelihood == (-7.0, 3) and not model.pairs
    monkeypatch.setattr(Likely, "log", -9999.0)
    untold = answered("who", model)
    assert (untold.text, untold.likelihood, untold.notes) == ("one", None, (FAILED,))


def test_a_judgement_by_first_tokens_is_no_reply_with_the_answer() -> None:
    def judging(query: Query) -> Plan[Answer]:
        yield from generate("x one")
        yield from generate("y one", alternatives=20)
        return Answer("one")

    model = Model()
    ((answer, _),) = run(with_likelihood(judging), ["q"], generator=model)
    assert answer.likelihood is not None and [prompt for prompt, _ in model.pairs] == ["x one"]


def test_a_failed_call_is_noted_and_loses_no_answer() -> None:
    answer = answered("who", Model(fails=True))
    assert (answer.text, answer.likelihood, answer.notes) == ("one", None, (FAILED,))


def test_it_is_an_argument_of_every_model() -> None:
    assert name_of(with_likelihood(method)) == "method"
    plain, asked = (read_arguments("m", method, {"perplexity": given}) for given in (False, True))
    assert plain.fingerprint == asked.fingerprint  # the answers are the same, and so is the journal
    ((answer, _),) = run(asked.bound(), ["who"], generator=Model())
    assert answer.likelihood is not None
    with pytest.raises(UserError, match="perplexity='yes' is not allowed"):
        read_arguments("m", method, {"perplexity": "yes"})
