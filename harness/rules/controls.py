"""Controls for the claim that rules help: rules that should not help, in place of the selected ones.

The random generator is seeded by the seed and the text of the question alone, so the order and the batch of the
questions do not matter.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from lm_eval_rag.harness.core.types import Rule


def random_rules(selected: Sequence[Rule], relation: str, bank: Sequence[Rule], rng: random.Random) -> list[Rule]:
    """An equal number of rules from the bank whose head is another relation, without repeats."""
    others = [rule for rule in bank if rule.head != relation]
    return rng.sample(others, min(len(selected), len(others)))


def shuffled_rules(selected: Sequence[Rule], relation: str, bank: Sequence[Rule], rng: random.Random) -> list[Rule]:
    """The selected rules with other bodies, drawn with their frequency in the bank; support and confidence stay.

    No body gives a rule of the bank or the identity, and no body is drawn twice.
    """
    true_bodies = {rule.body for rule in bank if rule.head == relation} | {relation}
    bodies = [rule.body for rule in bank if rule.body not in true_bodies]
    rng.shuffle(bodies)
    drawn = dict.fromkeys(bodies)
    return [replace(rule, body=body, repeat=False) for rule, body in zip(selected, drawn, strict=False)]
