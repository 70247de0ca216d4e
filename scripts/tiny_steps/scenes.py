"""Small scenes of a freshly drawn world: a few linked passages, and questions about them.

All prompts of a scene begin with the same passages, so that many questions share the cost of reading them.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, islice

from lm_eval_rag.harness.scoring.fever import NOT_ENOUGH_INFO, REFUTES, SUPPORTS
from lm_eval_rag.tasks.reasoning_demo.questions import LABELS, Reasoning, asked, both, chains, phrase, same, which
from lm_eval_rag.tasks.reasoning_demo.relations import COMPARED, RELATIONS
from lm_eval_rag.tasks.reasoning_demo.world import Fact, Part


def scene(rng: random.Random, part: Part, questions: int = 6) -> tuple[list[str], list[Reasoning]]:
    """(titles of passages in random order, questions about them).

    Most questions can be answered from the passages; some lack a passage.
    """
    theme = rng.choice(THEMES)(rng, part)
    titles = list(dict.fromkeys(fact.subject for question in theme for fact in question.chain))[:6]
    lost = titles.pop(rng.randrange(len(titles))) if len(titles) > 3 and rng.random() < 0.25 else None
    others = _alike(part, titles) if rng.random() < 0.7 else list(part.facts)
    titles += [name for name in rng.sample(others, min(len(others), 2)) if name not in titles and name != lost]
    rng.shuffle(titles)
    more = list(within(rng, part, titles))
    rng.shuffle(more)
    chosen = {question.text: question for question in [*theme[:2], *_varied(more)]}
    return titles, list(chosen.values())[:questions]


def _varied(questions: Sequence[Reasoning]) -> Iterator[Reasoning]:
    """The questions, types in turn."""
    by_type = defaultdict[str, list[Reasoning]](list)
    for question in questions:
        by_type[question.type + question.answer * question.is_claim].append(question)
    while by_type:
        for kind in list(by_type):
            yield by_type[kind].pop()
            if not by_type[kind]:
                del by_type[kind]


def _alike(part: Part, titles: Sequence[str]) -> list[str]:
    """Names that share a word with one of the titles."""
    words = {word for title in titles for word in title.split()}
    return [name for name in part.facts if not words.isdisjoint(name.split())]


def _walks(rng: random.Random, part: Part) -> list[Reasoning]:
    """Questions along two chains of three facts."""
    found = islice(chains(rng, part, 3), 2)
    return [_bridge(chain) for chain in found]


THEMES = (
    _walks,
    _walks,
    lambda rng, part: list(islice(same(rng, part, True), 1)) + list(islice(same(rng, part, False), 1)),
    lambda rng, part: list(islice(both(rng, part), 2)),
    lambda rng, part: list(islice(which(rng, part), 2)) + _walks(rng, part)[:1],
)


def _bridge(chain: Sequence[Fact]) -> Reasoning:
    text = asked([fact.relation for fact in chain], chain[0].subject)
    return Reasoning(text, chain[-1].object, f"bridge_{len(chain)}", tuple(chain), (chain[0].subject,))


def within(rng: random.Random, part: Part, titles: Sequence[str]) -> Iterator[Reasoning]:
    """Questions of all types whose facts a set of passages states; claims also without enough information."""
    inside = set(titles)
    paths: list[tuple[Fact, ...]] = [(fact,) for title in titles for fact in part.facts[title]]
    paths = [path for path in paths if not RELATIONS[path[0].relation].many]
    longest = list(paths)
    for _ in range(3):
        longest = [(*p, f) for p in longest if p[-1].object in inside for f in part.facts[p[-1].object]
                   if f.object not in {one.subject for one in p} and not RELATIONS[f.relation].many]  # fmt: skip
        paths += longest
    yield from map(_bridge, paths)
    two = [path for path in paths if len(path) == 2]
    for path in two:
        yield from _claims(rng, part, path)
    for (a, b), (c, d) in combinations(two, 2):
        if (a.relation, b.relation) == (c.relation, d.relation) and b.subject != d.subject:
            text = f"Do the {a.relation} of {a.subject} and the {a.relation} of {c.subject} have the same {b.relation}?"
            answer = "yes" if b.object == d.object else "no"
            yield Reasoning(text, answer, "comparison_same", (a, b, c, d), (a.subject, c.subject))
    dated = [fact for title in titles for fact in part.facts[title] if fact.relation in COMPARED]
    for one, other in combinations(dated, 2):
        if one.relation == other.relation and one.object != other.object:
            pair = tuple(rng.sample((one, other), 2))
            first = min(pair, key=lambda fact: fact.object)
            text = f"Which {COMPARED[one.relation]}, {pair[0].subject} or {pair[1].subject}?"
            yield Reasoning(text, first.subject, "comparison_which", pair, (pair[0].subject, pair[1].subject))


def _claims(rng: random.Random, part: Part, path: tuple[Fact, ...]) -> Iterator[Reasoning]:
    one, two = path
    lacking = [n for n, r in RELATIONS.items()
               if r.subject == part.kinds[one.object] and (one.object, n) not in part.by_topic]  # fmt: skip
    label = rng.choice((SUPPORTS, REFUTES, NOT_ENOUGH_INFO) if lacking else (SUPPORTS, REFUTES))
    relation, missing, chain = two.relation, None, path
    if label == NOT_ENOUGH_INFO:
        relation, chain = rng.choice(lacking), (one,)
        missing = (one.object, relation)
    names = [name for name in part.by_kind[RELATIONS[relation].object] if name != two.object]
    claimed = two.object if label == SUPPORTS else rng.choice(names)
    text = f"Claim: T{phrase([one.relation, relation], one.subject)[1:]} is {claimed}. {LABELS}?"
    yield Reasoning(text, label, "claim", chain, (one.subject, claimed), missing)
