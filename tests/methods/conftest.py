"""A small world for methods: the right rule is known, and a generator that reads the first document."""

import pytest

from lm_eval_rag.harness.core.types import Passage, Query, Rule
from lm_eval_rag.harness.data.corpus import Corpus


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
