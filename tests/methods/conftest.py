"""A small world for methods (the right rule is known, a generator reads the first document), and scripted replies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.asks import (
    Embed,
    Generate,
    HasLoglikelihood,
    Loglikelihood,
    Prepared,
    Rank,
    Retrieve,
    Together,
)
from lm_eval_rag.harness.core.preparing import Product, options_of, preparation_of
from lm_eval_rag.harness.core.types import Answer, Passage, Query, Rule
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.methods.prompts.worded import wordings
from lm_eval_rag.methods.raptor_parts import clusters
from lm_eval_rag.methods.reasoning.steps import DONT_KNOW


class FirstDocument:
    """Answers with the last two words of the first document, deterministic; keeps its prompts."""

    fingerprint = "first document"
    batch = 3

    def __init__(self, limit=None):
        self.limit, self.prompts = limit, []

    def generate(self, prompts, decoding, draws):
        self.prompts += prompts
        return [self._answer(prompt) for prompt in prompts]

    @staticmethod
    def _answer(prompt):
        _, found, after = prompt.rpartition("Documents:\n")
        return f" {' '.join(after.split(chr(10))[0].split()[-2:])}" if found else " I don't know"

    def loglikelihood(self, pairs):
        return [-float(len(continuation)) for _, continuation in pairs]

    def count_tokens(self, text):
        return len(text.split())

    def room(self, max_tokens):
        return self.limit


PEOPLE = [f"Person{i} Alba" for i in range(6)]
TOWNS = [f"Town{i} Burg" for i in range(6)]


def _facts():
    for i, (person, town) in enumerate(zip(PEOPLE, TOWNS, strict=True)):
        yield person, "was born in", town, f"2014-01-0{i + 1}"
        yield person, "visited", TOWNS[(i + 1) % 6], f"2014-02-0{i + 1}"
        yield person, "praised", PEOPLE[(i + 2) % 6], f"2014-03-0{i + 1}"


@pytest.fixture
def corpus():
    passages = [
        Passage(f"d{i:02}", f"Time {time} {s} {r} {o}.", time=time, fact=(s, r, o))
        for i, (s, r, o, time) in enumerate(_facts())
    ]
    rules = [
        Rule("is a citizen of", "was born in", 9, 10, 0.9),
        Rule("is a citizen of", "visited", 3, 10, 0.3),
        Rule("is angry with", "praised", 1, 10, 0.1),
        Rule("praised", "praised", 5, 10, 0.5, repeat=True),
    ]
    examples = [(Query(f"e{i}", f"Time 2014-05-01 what does {PEOPLE[i]} praised ?"), PEOPLE[i - 1]) for i in range(4)]
    return Corpus.of(passages, rules, examples)


@pytest.fixture
def queries():
    return [Query(f"q{i}", f"Time 2014-06-0{i + 1} what does {p} is a citizen of ?") for i, p in enumerate(PEOPLE)]


@pytest.fixture
def generator():
    return FirstDocument()


@pytest.fixture
def narrow():
    """A generator with room for 60 words."""
    return FirstDocument(60)


@pytest.fixture(autouse=True)
def quick_reduction(monkeypatch):
    """UMAP compiles for half a minute in each process; principal components stand in. test_raptor_clusters has UMAP."""
    monkeypatch.setattr(clusters, "MOST", 8)  # 49 mixtures for each cluster take seconds
    monkeypatch.setattr(clusters, "reduced", lambda vectors, dimensions, *_: _components(vectors, dimensions))


def _components(vectors, dimensions):
    centred = vectors - vectors.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    return (left * sizes)[:, :dimensions]


# --- methods of several steps, played ask by ask: replies are scripted, what was asked is kept in order

QUERY = Query("q", "Who wrote the book that Ada Moss read?")


def _documents(*texts: str) -> tuple[Passage, ...]:
    """Passages whose ids are their texts, best first."""
    return tuple(Passage(text, text, 1 / rank) for rank, text in enumerate(texts, start=1))


@dataclass
class Played:
    """An answer, and what was asked for it: (name, ask) pairs."""

    answer: Answer
    asks: list[tuple[str, Any]]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.asks]

    @property
    def queries(self) -> list[str]:
        """What was retrieved with."""
        return [ask.text for _, ask in self.asks if isinstance(ask, Retrieve)]

    def prompts(self, name: str) -> list[str]:
        """The prompts of one step, as they are sent."""
        return [
            _text_of(ask) for given, ask in self.asks if given == name and isinstance(ask, Generate | Loglikelihood)
        ]

    @property
    def calls(self) -> int:
        """What ``max_calls`` counts."""
        return sum(ask.n if isinstance(ask, Generate) else isinstance(ask, Loglikelihood) for _, ask in self.asks)


def _text_of(ask: Any) -> str:
    """A prompt as it is sent."""
    return ask.prompt if isinstance(ask.prompt, str) else str(ask.prompt.render())


def _is_capital(asks: Sequence[tuple[str, Any]]) -> bool:
    """Whether the last ask is that before it, a label, with a capital letter."""
    before, last = [ask for _, ask in asks[-2:]] if len(asks) > 1 else (None, None)
    if not (isinstance(before, Loglikelihood) and isinstance(last, Loglikelihood)):
        return False
    one, other = before.continuation, last.continuation
    return before.prompt == last.prompt and one != other and one.lower() == other.lower()


def _name_of(ask: Any, method: str) -> str:
    """Of a generation its step, else the type's name; of a log-probability ``step=label``."""
    if not isinstance(ask, Generate | Loglikelihood):
        return type(ask).__name__
    steps = [] if isinstance(ask.prompt, str) else wordings(method).items()
    step = next((name for name, wording in steps if wording.template == ask.prompt.template), "text")
    return step if isinstance(ask, Generate) else f"{step}={ask.continuation.strip()}"


def _play(
    method: Callable[..., Any],
    replies: Sequence[Any] | Callable[[str, Any], Any],
    *,
    query: Query = QUERY,
    scored: bool | str = True,
    name: str | None = None,
    tables: Mapping[str, Any] | None = None,
    **parameters: Any,
) -> Played:
    """Run a method on a script.

    Args:
        replies: One for each ask in order, all of them needed; or a function of (name, ask). A text is every sample.
        scored: Which log-probabilities the model gives: of any text, none, or as ``log_probabilities`` says.
        name: Of the method's prompt file.
        tables: What its preparation made. None prepares a small corpus with a model that says the same each time, and
            finds the first rows of a table, whatever is retrieved with.
    """
    found = _usual_tables(method) if tables is None and preparation_of(method) else tables
    asks: list[tuple[str, Any]] = []
    left = None if callable(replies) else list(replies)
    given = {True: "texts", False: ""}.get(scored, scored)

    def reply_to(ask: Any) -> Any:
        if isinstance(ask, Together):  # one plan after the other, in the order in which they are given
            outcomes = [_outcome(served, part) for part in ask.plans]
            return next((one for one in outcomes if isinstance(one, CallError)), tuple(outcomes))
        asks.append((_name_of(ask, name or method.__name__), ask))
        assert len(asks) < 5_000, "the method does not end"
        if isinstance(ask, HasLoglikelihood):
            return given
        if isinstance(ask, Prepared):
            return ask.read(found)
        if isinstance(ask, Retrieve) and ask.among and tables is None:
            return tuple(Passage(row["id"], row["text"]) for row in found[ask.among][: ask.k])
        assert isinstance(ask, Generate | Retrieve | Rank | Loglikelihood), ask
        if left is not None and _is_capital(asks):
            del asks[-1]  # a script has one number for a label: its form with a capital letter is impossible
            return -math.inf
        assert left is None or left, f"no reply left for {asks[-1]}"
        reply = replies(asks[-1][0], ask) if left is None else left.pop(0)
        return (reply,) * ask.n if isinstance(ask, Generate) and isinstance(reply, str) else reply

    def served(plan: Any) -> Any:
        reply = None
        while True:
            try:
                ask = plan.throw(reply) if isinstance(reply, CallError) else plan.send(reply)
            except StopIteration as stop:
                return stop.value
            reply = reply_to(ask)

    answer = served(method(query, **parameters))
    assert not left, f"replies left over: {left}"
    return Played(answer, asks)


def _outcome(served: Callable[[Any], Any], plan: Any) -> Any:
    try:
        return served(plan)
    except CallError as error:
        return error


USUAL = tuple(Passage(f"p{i}", f"Person{i} of Town{i % 3} met Person{i + 1}.") for i in range(14))


def _usual_tables(method: Callable[..., Any]) -> Mapping[str, Any]:
    reply = "entity | Ada | person | a reader\nentity | Bo | person | a writer\nrelation | Ada | Bo | reads | 5"
    preparation = preparation_of(method)
    return _prepare(preparation.function, lambda ask: reply, USUAL, **options_of(preparation, method)).tables


def _prepare(
    function: Callable[..., Any], replies: Callable[[Any], Any], passages: Sequence[Passage] = USUAL, **options: Any
) -> Product:
    """What a preparation makes of passages.

    Args:
        replies: Of each Generate a text, or a CallError.
    """

    def served(plan: Any) -> Any:
        reply: Any = None
        while True:
            try:
                ask = plan.throw(reply) if isinstance(reply, CallError) else plan.send(reply)
            except StopIteration as stop:
                return stop.value
            if isinstance(ask, Together):
                reply = tuple(map(served, ask.plans))
            elif isinstance(ask, Embed):
                reply = np.array([_vector(text) for text in ask.texts], np.float32)
            else:
                reply = replies(ask)
                reply = (reply,) if isinstance(reply, str) else reply

    return served(function(passages, **options))


def _vector(text: str) -> Any:
    """A vector that follows from the text, near that of texts with the same towns."""
    seed = int.from_bytes(blake2b(text.encode(), digest_size=4).digest())
    place = [10.0 * (f"Town{i}" in text) for i in range(3)]
    return np.concatenate([place, np.random.default_rng(seed).normal(size=13)])


@pytest.fixture(scope="session")
def prepare() -> Callable[..., Product]:
    return _prepare


def _abstains(answer: Answer, note: str) -> bool:
    """Whether it is a clear abstention for that reason."""
    return (answer.text, answer.abstained) == (DONT_KNOW, True) and note in answer.notes


@pytest.fixture(scope="session")
def play() -> Callable[..., Played]:
    return _play


@pytest.fixture(scope="session")
def documents() -> Callable[..., tuple[Passage, ...]]:
    return _documents


@pytest.fixture(scope="session")
def abstains() -> Callable[[Answer, str], bool]:
    return _abstains
