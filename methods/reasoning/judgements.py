"""Judgements of a model: the probabilities of a few labels, or the label that it writes where it gives none."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from lm_eval_rag.harness.core.asks import generate, loglikelihood, together
from lm_eval_rag.harness.core.prompts import Prompt
from lm_eval_rag.harness.core.types import Plan
from lm_eval_rag.methods.reasoning.steps import STOP

K = TypeVar("K")
ABSENT = -100.0  # stands for the log-probability of a label that a model did not name
PROXY = "no log-probabilities"  # begins the note of every proxy for them


def label_logs(prompt: Prompt | str, labels: Sequence[str], scored: bool, space: str = " ") -> Plan[dict[str, float]]:
    """ln P(label) after a prompt, for each label.

    Args:
        scored: Whether the generator gives log-probabilities. If not, the model writes a label, which gets 0, and the
            others :data:`ABSENT`; where it writes none of them, all do.
        space: What stands before a label.
    """
    if scored:
        logs = yield from together(loglikelihood(prompt, f"{space}{label}") for label in labels)
        return dict(zip(labels, logs, strict=True))
    reply = yield from generate(prompt, temperature=0.0, max_tokens=8, stop=STOP)
    named = first_label(reply, labels)
    return {label: 0.0 if label == named else ABSENT for label in labels}


def shares(logs: Mapping[K, float]) -> dict[K, float]:
    """The probabilities, divided by their sum; equal shares where none is likelier than another."""
    highest = max(logs.values())
    weights = {key: math.exp(log - highest) if highest > -math.inf else 1.0 for key, log in logs.items()}
    return {key: weight / sum(weights.values()) for key, weight in weights.items()}


def first_label(reply: str, labels: Iterable[str]) -> str | None:
    """The label that stands first in a reply, as a whole word in any case; None without one."""
    places = [
        (match.start(), label)
        for label in labels
        if (match := re.search(rf"(?<!\w){re.escape(label)}(?!\w)", reply, re.IGNORECASE))
    ]
    return min(places)[1] if places else None
