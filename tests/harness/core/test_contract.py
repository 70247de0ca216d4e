"""The contract of a method: each mistake ends in one message that names the method, the mistake and the mend."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.asks import Generate, Rank, Retrieve, generate, match_rules, rank, retrieve
from lm_eval_rag.harness.core.contract import check_ask, check_method
from lm_eval_rag.harness.core.parameters import Positive, bind, runs_with, variant
from lm_eval_rag.harness.core.prompts import Prompt, Shot, Template
from lm_eval_rag.harness.core.types import Answer, Passage, Query, Rule
from lm_eval_rag.harness.plugin.arguments import read_arguments
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.harness.plugin.model import model_class

TEXTS = ["ships in the harbour", "a town", "ferries and ships"]
TEMPLATE = Template("1", "Read.", "Read.", "Read.", "D:\n{documents}", "R:\n{rules}", "Q: {query}", "A:")


class Counting:
    """A generator that counts how often it is called."""

    fingerprint, batch, calls = "counting", 4, 0

    def generate(self, prompts, decoding, draws):
        type(self).calls += 1
        return ["ships" for _ in prompts]

    def count_tokens(self, text):
        return len(text.split())

    def room(self, max_tokens):
        return None


# --- what the signature shows


def plain(query):
    return Answer("x")


def unannotated(query, *, k=5):
    return Answer("x", (yield from retrieve(query.text, k)))


def before_the_star(query, k: int = 5):
    return Answer("x", (yield from retrieve(query.text, k)))


def without_query(*, k: int = 5):
    return Answer("x", (yield from retrieve("x", k)))


async def asynchronous(query):
    return Answer("x")


SIGNATURES = [
    (plain, r"Method 'plain' is not a generator function: it has no `yield`.*`passages = yield from retrieve\("),
    (asynchronous, r"Method 'asynchronous' is not a generator function"),
    (unannotated, r"Method 'unannotated' has no annotation for its parameter 'k'.*Write `k: int = 5`.*Positive"),
    (
        before_the_star,
        r"'before_the_star' has its parameter 'k' before the `\*`.*`def before_the_star\(query, \*, k: int = 5\)`",
    ),
    (without_query, r"Method 'without_query' takes no question.*`def without_query\(query: Query, \*, \.\.\.\)`"),
]


@pytest.mark.parametrize(("method", "message"), SIGNATURES)
def test_a_wrong_signature_ends_before_anything_is_opened(method: Any, message: str) -> None:
    """In ``run``, in lm_eval's model, and where a method is made of another; the corpus is not even looked for."""
    with pytest.raises(UserError, match=message):
        run(method, ["who?"], corpus="no/such/file.jsonl", k=3)
    with pytest.raises(UserError, match=message):
        model_class("mine", method)(journal="off", corpus="no/such/file.jsonl", k=3)
    with pytest.raises(UserError, match=message):
        read_arguments("mine", method, {})
    with pytest.raises(UserError, match=message):
        variant(method, "other", k=3)


def test_what_keeps_the_contract_is_not_refused() -> None:
    def good(query, *, k: Positive = 5, **others):
        return Answer("x", (yield from retrieve(query.text, k)))

    @functools.wraps(good)
    def wrapped(*arguments, **options):
        return good(*arguments, **options)

    for method in (good, wrapped, runs_with(generator="tiny")(good), bind(good, {"k": 2}), variant(good, "other", k=1)):
        check_method(method)
        assert run(method, ["ships"], corpus=TEXTS)[0][0].passages


def test_an_annotation_that_cannot_be_read_is_named() -> None:
    def hidden(query, *, k: Missing = 5):  # type: ignore[name-defined] # noqa: F821
        yield from ()

    with pytest.raises(UserError, match=r"annotations of 'hidden' cannot be read: name 'Missing' is not defined"):
        run(hidden, ["who?"])


# --- what a method asks and returns


def forgets_in_answer(query):
    passages = retrieve(query.text, 2)
    yield from ()
    return Answer("x", passages)


def forgets_in_prompt(query):
    passages = retrieve(query.text, 2)
    return Answer((yield from generate(Prompt(TEMPLATE, query.text, passages))))


def forgets_in_shot(query):
    shot = Shot("who?", "she", retrieve("who?", 2))
    return Answer((yield from generate(Prompt(TEMPLATE, query.text, shots=(shot,)))))


def forgets_in_text(query):
    guess = generate("who?")
    return Answer("x", (yield from retrieve(f"{query.text} {guess}", 2)))


def forgets_and_cuts(query):
    passages = retrieve(query.text, 2)
    return Answer((yield from generate(Prompt(TEMPLATE, query.text, passages[:1]))))


def forgets_and_strips(query):
    yield from ()
    return Answer(generate("who?").strip())


def forgets_and_loops(query):
    ids = [passage.id for passage in retrieve(query.text, 2)]
    return Answer((yield from generate(" ".join(ids))))


def forgets_an_expression(query):
    passages = yield from retrieve(query.text, 2)
    return Answer("x", (passage for passage in passages))


def yields_the_plan(query):
    passages = yield retrieve(query.text, 2)
    return Answer("x", passages)


def yields_a_text(query):
    passages = yield query.text
    return Answer("x", passages)


def yields_the_class(query):
    yield Retrieve


def returns_a_text(query):
    yield from ()
    return "Paris"


def returns_nothing(query):
    yield from ()


def returns_a_number(query):
    yield from ()
    return Answer(3)


def returns_texts(query):
    passages = yield from retrieve(query.text, 2)
    return Answer("x", tuple(passage.text for passage in passages))


def returns_a_rule(query):
    yield from ()
    return Answer("x", rules=Rule("a", "b"))


def returns_evidence_without_a_sentence(query: Query) -> Any:
    """Names a passage, but no sentence of it."""
    yield from ()
    return Answer("x", evidence=(("d0", "first"),))  # type: ignore[arg-type]


def returns_a_triple(query: Query) -> Any:
    """Gives one triple in place of a tuple of them."""
    yield from ()
    return Answer("x", triples=("a", "b", "c"))  # type: ignore[arg-type]


RUNS = [
    (forgets_in_answer, r"'forgets_in_answer' puts a generator object into Answer\.passages.*`yield from retrieve\("),
    (forgets_in_prompt, r"'forgets_in_prompt' puts a generator object into Prompt\.passages.*`yield from retrieve\("),
    (forgets_in_shot, r"'forgets_in_shot' puts a generator object into Shot\.passages.*`yield from retrieve\("),
    (forgets_in_text, r"'forgets_in_text' puts a generator object into Retrieve\.text.*`yield from generate\("),
    (forgets_and_cuts, r"'forgets_and_cuts' uses an ask in place of its reply \('generator' object is not subscript.*"
                       r"test_contract\.py, line \d+\)\. Write `yield from` before the ask"),
    (forgets_and_strips, r"'forgets_and_strips' uses an ask in place of its reply \('generator' object has no attr"),
    (forgets_and_loops, r"'forgets_and_loops' uses an ask in place of its reply \('Retrieve' object has no attribute"),
    (forgets_an_expression, r"puts a generator object into Answer\.passages.*Write `tuple\(\.\.\.\)`"),
    (yields_the_plan, r"'yields_the_plan' has `yield retrieve\(\.\.\.\)`, which asks nothing\. Write `yield from"),
    (yields_a_text, r"'yields_a_text' yields 'where are ships\?' \(a str\), which is not an ask.*`passages = yield"),
    (yields_the_class, r"'yields_the_class' yields <class.*Retrieve.* \(a type\), which is not an ask"),
    (returns_a_text, r"'returns_a_text' returns 'Paris' \(a str\), which is not an Answer.*`return Answer\(text\)`"),
    (returns_nothing, r"'returns_nothing' returns None, which is not an Answer.*`return Answer\(text\)`"),
    (returns_a_number, r"'returns_a_number' returns Answer\(text=3 \(a int\)\)\. Give a text"),
    (returns_texts, r"'returns_texts' returns an Answer whose passages hold '.*' \(a str\)\. Give a tuple of Passage"),
    (returns_a_rule, r"'returns_a_rule' returns an Answer whose rules hold Rule.*Give a tuple of Rule"),
    (returns_evidence_without_a_sentence, r"an Answer whose evidence hold \('d0', 'first'\).*\(str, int\), or None"),
    (returns_a_triple, r"an Answer whose triples hold 'a' \(a str\)\. Give a tuple of \(str, str, str\), or None"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "message"), RUNS)
def test_a_wrong_ask_or_answer_is_one_message(method: Any, message: str) -> None:
    Counting.calls = 0
    with pytest.raises(UserError, match=message) as raised:
        run(method, ["where are ships?"], corpus=TEXTS, generator=Counting())
    assert "\n" not in str(raised.value)
    assert Counting.calls == 0


def test_the_model_names_the_mistake_too() -> None:
    from lm_eval.api.instance import Instance

    model = model_class("mine", yields_the_plan)(journal="off")
    with pytest.raises(UserError, match="'yields_the_plan' has `yield retrieve"):
        model.generate_until([Instance("generate_until", {"id": "q0", "query": "who?"}, ("who?", {}), 0)])


def test_other_errors_of_a_method_stay_its_own() -> None:
    def fails(query):
        yield from ()
        return Answer(query.name)

    def adds(query):
        yield from ()
        return Answer("x" + 1)

    with pytest.raises(AttributeError, match="'Query' object has no attribute 'name'"):
        run(fails, ["who?"])
    with pytest.raises(TypeError, match="can only concatenate str"):
        run(adds, ["who?"])


def test_right_asks_pass() -> None:
    passage = Passage("d0", "A town.")
    prompt = Prompt(TEMPLATE, "who?", (passage,), shots=(Shot("a?", "b", (passage,)),), reasoning="So far.")
    for ask in (Retrieve("who?", 2), Generate(prompt), Generate("a generator object is a thing"), Rank("a", ("b",), 1)):
        check_ask(plain, ask)
    for plan in (retrieve("a", 1), match_rules("a", 1), rank("a", iter(["b"]), 1), generate("a")):
        check_ask(plain, next(plan))


def test_a_mistake_in_the_second_question_names_the_method_all_the_same() -> None:
    def sometimes(query):
        passages = yield from retrieve(query.text, 2)
        return Answer("x", passages) if query.id == "a" else "x"

    with pytest.raises(UserError, match="Method 'sometimes' returns 'x'"):
        run(sometimes, [Query("a", "ships"), Query("b", "ships")], corpus=TEXTS)
