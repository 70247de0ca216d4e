"""Judgements of a model: the probabilities of a few labels, or the label that it writes where it gives none."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.asks import Logs, generate, loglikelihood, together
from lm_eval_rag.harness.core.prompts import Prompt
from lm_eval_rag.harness.core.types import Plan
from lm_eval_rag.harness.core.written import UNTOLD, Written
from lm_eval_rag.methods.reasoning.steps import STOP

K = TypeVar("K")
ABSENT = -100.0  # stands for the log-probability of a label that a model did not name
ALTERNATIVES = 20  # first tokens among which labels are looked for: the most that OpenAI's API gives
PROXY = "no log-probabilities"  # begins the note of every proxy for them
NEGATED = re.compile(r"(?:\b(?:can)?not|n['’]t)[\s*_]+(?:[\w'’-]+[\s*_]+)?$", re.IGNORECASE)  # stands before a label


def label_logs(prompt: Prompt | str, labels: Sequence[str], logs: Logs, space: str = " ") -> Plan[dict[str, float]]:
    """ln P(label) after a prompt, for each label; a label in words counts with a small and with a capital first letter.

    Args:
        logs: Which log-probabilities the generator gives. Of replies alone: those of the :data:`ALTERNATIVES` likeliest
            tokens in the place of the reply's first word, added up by the label that they begin. None, or no such
            token: the label that the model writes gets 0, the others :data:`ABSENT`; where it writes none, all do.
        space: What stands before a label, where any text has a log-probability: a space before words, "" before
            tokens, which have one form.
    """
    if logs == "texts":
        forms = [(label, form) for label in labels for form in (_forms(label) if space else (label,))]
        given = yield from together(loglikelihood(prompt, f"{space}{form}") for _, form in forms)
        return _sums((label, log) for (label, _), log in zip(forms, given, strict=True))
    reply = yield from generate(prompt, temperature=0.0, max_tokens=8, stop=STOP, alternatives=ALTERNATIVES)
    if isinstance(reply, Written) and (found := begun(reply.first, labels)):
        return found
    named = first_label(reply, labels)
    return {label: 0.0 if label == named else ABSENT for label in labels}


def _forms(label: str) -> tuple[str, ...]:
    """yes and Yes: chat models begin with a capital letter, whatever they are told."""
    return tuple(dict.fromkeys((label, label[:1].upper() + label[1:])))


def _sums(logs: Iterable[tuple[str, float]]) -> dict[str, float]:
    """ln of the sum of P, for each label."""
    by_label: dict[str, list[float]] = {}
    for label, log in logs:
        by_label.setdefault(label, []).append(log)
    highest = {label: max(of_label) for label, of_label in by_label.items()}
    return {
        label: top if top == -math.inf else top + math.log(math.fsum(math.exp(log - top) for log in by_label[label]))
        for label, top in highest.items()
    }


def begun(tokens: Iterable[tuple[str, float]], labels: Sequence[str]) -> dict[str, float]:
    """ln of the sum of P over the tokens that begin a label, with two characters of it or all.

    A token that begins several labels counts for none. Case and the characters around it that are no letters or digits,
    such as quotation marks, do not matter. A label without a token gets the most that it can have: P of the unlikeliest
    of the tokens, or what they all leave over. {} where no token begins a label.
    """
    tokens = [(token, log) for token, log in tokens if log > UNTOLD]
    found: dict[str, list[float]] = {label: [] for label in labels}
    for token, log in tokens:
        start = re.sub(r"^[\W_]+|[\W_]+$", "", token).lower()
        meant = [label for label in labels if start in (label.lower(), label.lower()[: max(2, len(start))])]
        if len(meant) == 1:
            found[meant[0]].append(log)
    if not any(found.values()):
        return {}
    left = 1 - math.fsum(math.exp(log) for _, log in tokens)
    most = min([math.log(left) if left > 0 else ABSENT, *(log for _, log in tokens)])
    totals = {label: math.fsum(map(math.exp, logs)) for label, logs in found.items()}
    return {label: min(math.log(total), 0.0) if total > 0 else max(most, ABSENT) for label, total in totals.items()}


def log_of(prompt: Prompt | str, reply: str, part: str, logs: Logs, space: str = " ") -> Plan[float]:
    """ln P of ``part``, with which a reply to a prompt begins: asked for, or what the model gave with the reply.

    Raises:
        CallError: It gives those of replies, but this one came without.
    """
    if logs == "texts":
        return (yield from loglikelihood(prompt, f"{space}{part}"))
    if not isinstance(reply, Written):
        raise CallError("a reply came without log-probabilities, or with those of another text")
    return reply.log(part)


def shares(logs: Mapping[K, float]) -> dict[K, float]:
    """The probabilities, divided by their sum; equal shares where none is likelier than another."""
    highest = max(logs.values())
    weights = {key: math.exp(log - highest) if highest > -math.inf else 1.0 for key, log in logs.items()}
    return {key: weight / sum(weights.values()) for key, weight in weights.items()}


def first_label(reply: str, labels: Iterable[str]) -> str | None:
    """The label that stands first in a reply, as a whole word in any case; None without one.

    A label right after "not" or "n't", or with one word between ("not very likely"), does not count.
    """
    places = [
        (match.start(), label)
        for label in labels
        for match in re.finditer(rf"(?<!\w){re.escape(label)}(?!\w)", reply, re.IGNORECASE)
        if not NEGATED.search(reply[max(0, match.start() - 40) : match.start()])
    ]
    return min(places)[1] if places else None
