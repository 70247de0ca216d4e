"""The trivial baselines against plain counting over the same facts, and what they say without facts."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from typing import Any

import pytest

from lm_eval_rag._register import method_of
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Answer, Passage, Query
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.plugin.engine import run

SUBJECTS, RELATIONS = ("Ada Moss", "Bo Vale", "Cy Kell"), ("was born in", "lives in", "works for")
OBJECTS = ("Norn", "Alba", "Burg", "Ada Moss")
Fact = tuple[str, str, str, str]


def drawn(seed: int, n: int = 60) -> list[Fact]:
    """Facts that repeat, at few times, so that there are ties; nothing is said of Cy Kell's work."""
    rng = random.Random(seed)
    facts = [
        (rng.choice(SUBJECTS), rng.choice(RELATIONS), rng.choice(OBJECTS), f"201{rng.randrange(3)}") for _ in range(n)
    ]
    return [fact for fact in facts if fact[:2] != ("Cy Kell", "works for")]


def corpus_of(facts: list[Fact]) -> Corpus:
    return Corpus.of(Passage(f"d{i}", f"{s} {r} {o}.", time=t, fact=(s, r, o)) for i, (s, r, o, t) in enumerate(facts))


def asked(name: str, corpus: Any, **parameters: Any) -> dict[tuple[str, str], Answer]:
    pairs = list(product(SUBJECTS, RELATIONS))
    queries = [Query(f"q{i}", f"what does {s} {r} ?") for i, (s, r) in enumerate(pairs)]
    answers = run(method_of(name), queries, corpus=corpus, **parameters)
    return {pair: answer for pair, (answer, _) in zip(pairs, answers, strict=True)}


def mode(counts: Counter[str]) -> str:
    return min(counts, key=lambda name: (-counts[name], name)) if counts else ""


def expected(name: str, facts: list[Fact], subject: str, relation: str) -> str:
    of_relation = Counter(o for _, r, o, _ in facts if r == relation)
    of_subject = Counter(o for s, _, o, _ in facts if s == subject)
    if name == "mode_of_relation":
        return mode(of_relation)
    if name == "mode_of_subject":
        return mode(of_subject)
    if name == "last_object":
        own = [(t, o) for s, r, o, t in facts if (s, r) == (subject, relation)]
        counts, last = Counter(o for _, o in own), max((t for t, _ in own), default="")
        return mode(Counter({o: counts[o] for t, o in own if t == last}))
    links = of_subject + Counter(s for s, _, o, _ in facts if o == subject)
    return min(of_relation, key=lambda o: (-links[o], -of_relation[o], o), default="")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["mode_of_relation", "mode_of_subject", "last_object", "link_vote"])
def test_they_count_over_all_documents(name: str, seed: int) -> None:
    facts = drawn(seed)
    answers = asked(name, corpus_of(facts))
    for (subject, relation), answer in answers.items():
        assert answer.text == expected(name, facts, subject, relation), (subject, relation)
        assert answer.abstained == (not answer.text)
        assert answer.passages == () and answer.rules is None  # recall stays unscored
    assert name != "last_object" or answers["Cy Kell", "works for"].abstained


def test_copy_vote_counts_over_its_own_retrieval() -> None:
    answers = asked("copy_vote", corpus_of(drawn(1)), k=7)
    for (subject, _), answer in answers.items():
        assert len(answer.passages) == 7
        own = [p.fact[2] for p in answer.passages if p.fact and p.fact[0] == subject]
        most = max((own.count(one) for one in own), default=0)
        assert answer.text == next((one for one in own if own.count(one) == most), "")  # ties go to the best ranked
        assert answer.abstained == (not own)
        assert answer.confidence == (most / len(own) if own else None)
    assert sum(answer.abstained for answer in answers.values()) < len(answers) / 2


def test_link_vote_counts_links_in_both_directions_and_falls_back_on_the_relation() -> None:
    facts = [
        *[("Bo Vale", "lives in", town, "2010") for town in ("Norn", "Norn", "Alba")],
        ("Alba", "is the home of", "Ada Moss", "2010"),
        ("Ada Moss", "visited", "Burg", "2010"),  # no one is known to live in Burg
    ]
    answers = run(
        method_of("link_vote"), ["what does Ada Moss lives in ?", "what does Burg lives in ?"], corpus=corpus_of(facts)
    )
    assert [answer.text for answer, _ in answers] == ["Alba", "Norn"]


@pytest.mark.parametrize("name", ["mode_of_relation", "mode_of_subject", "last_object", "link_vote", "copy_vote"])
def test_documents_without_facts_are_refused(name: str) -> None:
    with pytest.raises(UserError, match=r"fact.*\(subject, relation, object\).*such as ruleqa_i"):
        run(method_of(name), ["Ada Moss was born where?"], corpus=["Ada Moss was born in Vale.", "Vale is a town."])
