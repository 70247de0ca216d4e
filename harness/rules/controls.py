"""Controls for every claim that rules help: rules that should not help, and rules that are known to.

Each takes the rules that would have been selected and gives others in their place. What is drawn depends on the seed
and the question's text alone, not on the order or the batch of the questions.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from lm_eval_rag.harness.core.types import Rule


def random_rules(selected: Sequence[Rule], relation: str, bank: Sequence[Rule], rng: random.Random) -> list[Rule]:
    """As many rules of the bank whose head is another relation, each at most once."""
    others = [rule for rule in bank if rule.head != relation]
    return rng.sample(others, min(len(selected), len(others)))


def shuffled_rules(selected: Sequence[Rule], relation: str, bank: Sequence[Rule], rng: random.Random) -> list[Rule]:
    """The selected rules with other bodies, drawn as often as the bank's rules have them; the numbers stay.

    No body makes a rule that the bank holds, or the identity; none comes twice.
    """
    true = {rule.body for rule in bank if rule.head == relation} | {relation}
    bodies = [rule.body for rule in bank if rule.body not in true]
    rng.shuffle(bodies)
    drawn = dict.fromkeys(bodies)
    return [replace(rule, body=body, repeat=False) for rule, body in zip(selected, drawn, strict=False)]
