"""Several plans of one question at once: order, nesting, failures, batches, and equality with one after the other."""

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.asks import Generate, Retrieve, generate, retrieve, together
from lm_eval_rag.harness.core.backend import Served
from lm_eval_rag.harness.core.driver import Driver
from lm_eval_rag.harness.core.types import Answer, Query, Step

QUERIES = [Query(f"q{i}", str(i)) for i in range(7)]


class Echo:
    """Answers with a text made of the ask, in batches, and keeps their sizes."""

    def __init__(self, batch):
        self.batch, self.sizes = batch, []

    def serve(self, asked):
        self.sizes.append(len(asked))
        return [Served((f"<{ask.text}>",), Step("Retrieve", ask.text, "")) for _, ask in asked]


class Model:
    """The same for prompts, one by one, each after a while that differs; fails for some questions."""

    gather = 0

    def __init__(self, fails):
        self.fails, self.random = fails, random.Random(0)

    async def answer(self, query, ask):
        await asyncio.sleep(self.random.choice([0, 0.001, 0.003]))
        if query.id in self.fails:
            return CallError(f"{query.id} failed")
        return Served((f"<{ask.prompt}>",), Step("Generate", ask.prompt, ""))

    async def close(self):
        pass


def chain(name, length):
    """Several asks, each after the one before."""
    texts = []
    for i in range(length):
        texts += yield from retrieve(f"{name}.{i}", 1)
    texts.append((yield from generate("+".join(texts))))
    return tuple(texts)


def run(method, queries=QUERIES, batch=64, fails=()):
    backends = {Retrieve: Echo(batch), Generate: Model(fails)}
    return Driver(method, backends).run(queries), backends


def test_values_and_steps_are_in_the_order_of_the_plans():
    def method(query):
        parts = yield from together(chain(f"{query.id}/{i}", length) for i, length in enumerate((3, 0, 2)))
        return Answer(repr(parts))

    def alone(query):
        parts = []
        for i, length in enumerate((3, 0, 2)):
            parts.append((yield from chain(f"{query.id}/{i}", length)))
        return Answer(repr(tuple(parts)))

    (at_once, _), (one_by_one, _) = run(method), run(alone)
    assert [answer for answer, _ in at_once] == [answer for answer, _ in one_by_one]
    assert [trace.steps for _, trace in at_once] == [trace.steps for _, trace in one_by_one]


def test_their_asks_meet_in_one_batch():
    def method(query):
        lists = yield from together(retrieve(f"{query.id}/{i}", 1) for i in range(5))
        return Answer(str(len(lists)))

    _, backends = run(method)
    assert backends[Retrieve].sizes == [5 * len(QUERIES)]


def test_no_plans_no_values():
    def method(query):
        return Answer(repr((yield from together([]))))

    assert {answer.text for answer, _ in run(method)[0]} == {"()"}


def test_a_failed_plan_fails_its_question_once_the_others_have_ended():
    def method(query):
        def broken():
            yield from retrieve("x", 1)
            raise CallError("broken")

        yield from together([chain(query.id, 2), broken(), chain(query.id + "b", 1)])
        return Answer("never")

    for answer, trace in run(method)[0]:
        assert answer.text == "" and trace.failure == "broken"
        assert len(trace.steps) == 3 + 1 + 2  # nothing that was paid for is lost


def test_a_method_may_handle_the_failure():
    def method(query):
        try:
            yield from together([generate("a"), generate("b")])
        except CallError as error:
            return Answer(f"handled: {error}")
        return Answer("fine")

    results, _ = run(method, fails=("q3",))
    assert [answer.text for answer, _ in results] == [
        "handled: q3 failed" if query.id == "q3" else "fine" for query in QUERIES
    ]


def test_what_is_no_plan_says_what_to_write():
    def method(query):
        passages = yield from retrieve(query.text, 1)
        yield from together([passages])
        return Answer("")

    with pytest.raises(UserError, match=r"gives together\(\.\.\.\) .* is not a plan\. Give asks without `yield from`"):
        run(method)


trees = st.recursive(st.integers(0, 3), lambda inner: st.lists(inner, max_size=3), max_leaves=12)


@given(trees, st.sets(st.integers(0, 6)), st.integers(1, 4))
@settings(max_examples=50, deadline=None)
def test_any_nesting_equals_the_same_plans_one_after_the_other(tree, failing, batch):
    def plan(node, name, at_once):
        if isinstance(node, int):
            try:
                return (yield from chain(name, node))
            except CallError as error:
                return str(error)
        parts = [plan(part, f"{name}.{i}", at_once) for i, part in enumerate(node)]
        if at_once:
            return (yield from together(parts))
        values = []
        for part in parts:
            values.append((yield from part))
        return tuple(values)

    def method(at_once):
        def asked(query):
            return Answer(repr((yield from plan(tree, query.id, at_once))))

        return asked

    fails = {f"q{i}" for i in failing}
    (here, _), (there, _) = run(method(True), batch=batch, fails=fails), run(method(False), batch=batch, fails=fails)
    assert here == there
