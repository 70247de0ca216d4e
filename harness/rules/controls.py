"""Controls for the claim that rules help: other rules in place of the selected ones.

``random`` and ``shuffled`` are sanity checks: a random rule has another head, and a shuffled one a body that may have
nothing to do with the subject, so that selected rules beat them nearly by construction. ``permuted`` and ``matched``
can be as good as the selected rules. They keep the head, and their bodies are relations that documents state of
subjects of which they also state the head: other subjects' evidence that the relation fits. ``permuted`` takes bodies
with about as many documents as the selected ones, ``matched`` bodies of rules with about the same confidence. Support
and confidence stay those of the selected rule, so that prompts and votes differ only in the bodies.

The random generator is seeded by the seed and the text of the question alone, so the order and the batch of the
questions do not matter.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from lm_eval_rag.harness.core.types import Rule

NEAREST = 5  # bodies of the most similar size or confidence, of which one is drawn


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a control draws from.

    Args:
        selected: The rules in whose place it draws.
        relation: Their head.
        bank: All rules, without repeats if these are not wanted.
        rng: Seeded.
        beside: Relations that documents state of subjects of which they also state the head -> number of documents.
    """

    selected: Sequence[Rule]
    relation: str
    bank: Sequence[Rule]
    rng: random.Random
    beside: Callable[[str], Mapping[str, int]]

    def true_bodies(self) -> set[str]:
        """Bodies that give a rule of the bank or the identity."""
        return {rule.body for rule in self.bank if rule.head == self.relation} | {self.relation}


def random_rules(of: Drawn) -> list[Rule]:
    """An equal number of rules from the bank whose head is another relation, without repeats."""
    others = [rule for rule in of.bank if rule.head != of.relation]
    return of.rng.sample(others, min(len(of.selected), len(others)))


def shuffled_rules(of: Drawn) -> list[Rule]:
    """The selected rules with other bodies, drawn with their frequency in the bank; support and confidence stay.

    No body gives a rule of the bank or the identity, and no body is drawn twice.
    """
    true_bodies = of.true_bodies()
    bodies = [rule.body for rule in of.bank if rule.body not in true_bodies]
    of.rng.shuffle(bodies)
    drawn = dict.fromkeys(bodies)
    return [replace(rule, body=body, repeat=False) for rule, body in zip(of.selected, drawn, strict=False)]


def permuted_rules(of: Drawn) -> list[Rule]:
    """The selected rules with bodies of about as many documents, which subjects of the head have.

    No body gives a rule of the bank or the identity, and no body is drawn twice.
    """
    documents, true_bodies = of.beside(of.relation), of.true_bodies()
    pool = [(body, math.log(number)) for body, number in sorted(documents.items()) if body not in true_bodies]
    # A body without documents retrieves nothing; its place takes a rare one.
    return _nearest(of, pool, lambda rule: math.log(documents.get(rule.body, 1)))


def matched_rules(of: Drawn) -> list[Rule]:
    """The selected rules with bodies of other heads' rules of about the same confidence.

    Subjects of the head have these relations. No body gives a rule of the bank or the identity; none is drawn twice.
    """
    documents, true_bodies = of.beside(of.relation), of.true_bodies()
    rules = sorted({(rule.body, rule.confidence) for rule in of.bank if not rule.repeat})
    pool = [(body, value) for body, value in rules if body in documents and body not in true_bodies]
    return _nearest(of, pool, lambda rule: rule.confidence)


def _nearest(of: Drawn, pool: Sequence[tuple[str, float]], value_of: Callable[[Rule], float]) -> list[Rule]:
    """For each selected rule one of the ``NEAREST`` bodies of the pool by value, as long as there are others."""
    taken: set[str] = set()
    drawn = []
    for rule in of.selected:
        value = value_of(rule)
        free = sorted((abs(other - value), body) for body, other in pool if body not in taken)
        bodies = list(dict.fromkeys(body for _, body in free))[:NEAREST]
        if not bodies:
            break
        body = of.rng.choice(bodies)
        taken.add(body)
        drawn.append(replace(rule, body=body, repeat=False))
    return drawn


# name in rules=... -> what is drawn in place of the selected rules
CONTROL_RULES: dict[str, Callable[[Drawn], list[Rule]]] = {
    "random": random_rules,
    "shuffled": shuffled_rules,
    "permuted": permuted_rules,
    "matched": matched_rules,
}
