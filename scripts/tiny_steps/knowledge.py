"""What the teacher knows of a question: its branches, what a prompt lets a reader see of them, and what follows."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lm_eval_rag.harness.scoring.fever import NOT_ENOUGH_INFO, REFUTES, SUPPORTS
from lm_eval_rag.tasks.reasoning_demo.questions import Reasoning, asked
from lm_eval_rag.tasks.reasoning_demo.relations import RELATIONS, YEARS
from lm_eval_rag.tasks.reasoning_demo.world import WINNERS, Fact, Part

DONT_KNOW = "I don't know"


@dataclass(frozen=True, slots=True)
class Branch:
    """One line of reasoning of a question: relations in order, from an entity that it names."""

    topic: str
    nouns: tuple[str, ...]


def branches(question: Reasoning) -> list[Branch]:
    """A bridge or a claim has one; a comparison or an intersection has one for each entity that it names."""
    found: list[Branch] = []
    for fact in question.chain:
        if found and fact.subject not in question.topics:
            found[-1] = replace(found[-1], nouns=(*found[-1].nouns, fact.relation))
        else:
            found.append(Branch(fact.subject, (fact.relation,)))
    if question.missing:
        found[-1] = replace(found[-1], nouns=(*found[-1].nouns, question.missing[1]))
    return found


def facts_seen(question: Reasoning, text: str | None) -> list[Fact]:
    """The facts of the chain that a text states, each branch as far as it can be followed; all of them for None."""
    if text is None:
        return list(question.chain)
    seen: list[Fact] = []
    broken = False
    for fact in question.chain:
        broken = (broken and fact.subject not in question.topics) or fact.text not in text
        if not broken:
            seen.append(fact)
    return seen


def is_complete(question: Reasoning, facts: Sequence[Fact]) -> bool:
    """Whether the facts are as many as the question's branches need."""
    return len(facts) == sum(len(branch.nouns) for branch in branches(question))


def next_topic(question: Reasoning, facts: Sequence[Fact]) -> list[tuple[str, str]]:
    """(subject, relation) of the next fact of each branch that is not complete."""
    open_, left = [], list(facts)
    for branch in branches(question):
        at = branch.topic
        for noun in branch.nouns:
            fact = next((fact for fact in left if (fact.subject, fact.relation) == (at, noun)), None)
            if fact is None:
                open_.append((at, noun))
                break
            at = fact.object
    return open_


def conclude(question: Reasoning, facts: Sequence[Fact]) -> str:
    """The answer that follows from facts, which may be guessed ones."""
    if question.is_claim and not is_complete(question, facts):
        return NOT_ENOUGH_INFO
    if not is_complete(question, facts):
        return DONT_KNOW
    if question.is_claim:
        return SUPPORTS if facts[-1].object == question.topics[1] else REFUTES
    return CONCLUSIONS.get(question.type, lambda facts: facts[-1].object)(facts)


def _common(facts: Sequence[Fact]) -> str:
    return next((name for name in facts[0].objects if name in facts[1].objects), DONT_KNOW)


CONCLUSIONS = {
    "comparison_same": lambda facts: "yes" if facts[1].object == facts[3].object else "no",
    "comparison_which": lambda facts: min(facts, key=lambda fact: fact.object).subject,
    "intersection": _common,
}


def guessed(question: Reasoning, known: Sequence[Fact], rng: random.Random, part: Part) -> list[Fact]:
    """The facts of all branches: those that are known, and from there invented ones of the right kinds."""
    facts: list[Fact] = []
    for branch in branches(question):
        at = branch.topic
        for noun in branch.nouns:
            fact = next((fact for fact in known if (fact.subject, fact.relation) == (at, noun)), None)
            facts.append(fact or Fact(at, noun, _objects(noun, rng, part)))
            at = facts[-1].object
    return facts


def _objects(noun: str, rng: random.Random, part: Part) -> tuple[str, ...]:
    kind = RELATIONS[noun].object
    if kind == "year":
        return (str(rng.choice(YEARS)),)
    return tuple(rng.sample(part.by_kind[kind], WINNERS if RELATIONS[noun].many else 1))


def steps_of(question: Reasoning) -> list[str]:
    """The sub-questions that lead to the answer."""
    subs = [
        asked(branch.nouns[:length], branch.topic)
        for branch in branches(question)
        for length in range(1, len(branch.nouns) + 1)
    ]
    return subs if question.type.startswith("bridge") else [*subs, question.text]


PATTERNS = {
    noun: re.compile(re.escape(of.sentence).replace(r"\{s\}", "(?P<s>.+)").replace(r"\{o\}", "(?P<o>.+)"))
    for noun, of in RELATIONS.items()
}


def read_fact(sentence: str) -> Fact | None:
    """The fact that a sentence of the world's form states, true or not; None for another sentence."""
    for noun, pattern in PATTERNS.items():
        if match := pattern.fullmatch(sentence.strip()):
            objects = re.split(r", | and ", match["o"]) if RELATIONS[noun].many else [match["o"]]
            return Fact(match["s"], noun, tuple(objects))
    return None


def sub_questions(questions: Sequence[Reasoning], part: Part) -> Mapping[str, Reasoning]:
    """Every question by its text, the beginnings of their chains, and all questions for one fact."""
    known: dict[str, Reasoning] = {}
    for fact in part.by_topic.values():
        text = asked((fact.relation,), fact.subject)
        known[text] = Reasoning(text, fact.object, "bridge_1", (fact,), (fact.subject,))
    for question in questions:
        facts = list(question.chain)
        for branch in branches(question):
            mine, facts = facts[: len(branch.nouns)], facts[len(branch.nouns) :]
            for length in range(1, len(mine) + 1):
                text = asked(branch.nouns[:length], branch.topic)
                known[text] = Reasoning(
                    text, mine[length - 1].object, f"bridge_{length}", tuple(mine[:length]), (branch.topic,)
                )
    return known | {question.text: question for question in questions}
