"""Knowledge retrieval and aggregation for each node (section 3.3), and whether it suffices (section 3.4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lm_eval_rag.harness.core.asks import Logs, generate, retrieve
from lm_eval_rag.harness.core.types import Passage, Plan
from lm_eval_rag.harness.scoring.normalise import count_words
from lm_eval_rag.methods.prompts.worded import Wording
from lm_eval_rag.methods.reasoning.judgements import label_logs, log_of
from lm_eval_rag.methods.reasoning.steps import STOP


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What is known about a node.

    Args:
        passages: What was retrieved for it, best first.
        shown: What the model sees: a summary of them, or the passages themselves.
    """

    passages: tuple[Passage, ...] = ()
    shown: tuple[Passage, ...] = ()


def gathered(
    step: str,
    wording: Mapping[str, Wording],
    notes: list[str],
    *,
    k: int,
    summary: bool,
    temperature: float,
    tokens: int,
) -> Plan[Knowledge]:
    """The knowledge of a node (equations 7 and 8).

    Args:
        notes: Gets ``nothing retrieved``, or ``blank summary`` where the passages themselves are shown.
        summary: Whether the model summarises the passages.
    """
    passages = yield from retrieve(step, k)
    if not passages:
        notes.append("nothing retrieved")
    if not summary or not passages:
        return Knowledge(passages, passages)
    return (yield from aggregated(step, passages, wording, notes, temperature=temperature, tokens=tokens))


def aggregated(
    step: str,
    passages: tuple[Passage, ...],
    wording: Mapping[str, Wording],
    notes: list[str],
    *,
    temperature: float,
    tokens: int,
) -> Plan[Knowledge]:
    """The model's summary of passages for a step (equation 8); the passages themselves where it writes none."""
    prompt = wording["summarise"].prompt(passages, step=step)
    reply = (yield from generate(prompt, temperature=temperature, max_tokens=tokens, stop=STOP)).strip()
    if not reply:
        notes.append("blank summary")
        return Knowledge(passages, passages)
    return Knowledge(passages, (Passage("summary", reply),))


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges whether a node's knowledge suffices (equations 9 and 10).

    Args:
        logs: Which log-probabilities the model gives; without any it is asked whether the knowledge suffices.
        threshold: The perplexity per word of the model's reasoning below which it does.
        tokens: Limit of tokens of that reasoning.
    """

    wording: Mapping[str, Wording]
    logs: Logs
    threshold: float
    temperature: float
    tokens: int

    def suffices(self, step: str, knowledge: Knowledge) -> Plan[bool]:
        """Whether the model can reason about a step by this knowledge; without any it cannot."""
        if not knowledge.shown:
            return False
        if not self.logs:
            prompt = self.wording["suffices"].prompt(knowledge.shown, step=step)
            return (yield from label_logs(prompt, ("yes", "no"), ""))["yes"] == 0
        return (yield from self.reasoned(step, knowledge))[1] < self.threshold

    def reasoned(self, step: str, knowledge: Knowledge) -> Plan[tuple[str, float]]:
        """The model's reasoning about a step, and its perplexity per word; infinite where it writes nothing."""
        prompt = self.wording["answer_step"].prompt(knowledge.shown, step=step)
        asked = generate(prompt, temperature=self.temperature, max_tokens=self.tokens, stop=STOP)
        written = yield from asked
        reply = written.strip()
        if not reply:
            return "", math.inf
        return reply, perplexity((yield from log_of(prompt, written, reply, self.logs)), reply)


def perplexity(log: float, text: str) -> float:
    """exp(-ln P / words) of a text, 1 or more."""
    return math.exp(min(-log / count_words(text), 700.0))
