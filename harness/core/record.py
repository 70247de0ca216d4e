"""What the adapter leaves beside every answer for scoring and reports: a JSON-able record, and its carrier."""

from __future__ import annotations

from collections import Counter
from typing import Any

from lm_eval_rag.harness.core.types import Answer, Rule, Trace

SYSTEM = "system_instruction"  # the key of a document under which our tasks hand on lm_eval's --system_instruction


class RagText(str):
    """An answer with its record in ``aux``; it survives lm_eval's filters, pickling and a gather over ranks."""

    aux: dict[str, Any]

    def __new__(cls, text: str, aux: dict[str, Any] | None = None) -> RagText:
        made = super().__new__(cls, text)
        made.aux = aux or {}  # none where lm_eval casts a task's gold answer to the type of the answer
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return RagText, (str(self), self.aux)


def record(answer: Answer, trace: Trace) -> dict[str, Any]:
    """The record of one question: what was retrieved, which rules, which prompt, and what it cost.

    ``passages`` is None when nothing was retrieved from, so that recall stays unscored rather than 0; ``k`` is the
    largest number of documents asked for at once, up to which the merged list may be scored, or the list's own length
    where the method names fewer than came back at once. What Rank chose counts where the method names it as its
    passages: it may rank other texts too. ``rules`` is None for a method that goes by none.
    """
    retrieved = trace.count("Retrieve") > 0 or (trace.count("Rank") > 0 and bool(answer.passages))
    passages = [
        {
            "id": passage.id,
            "text": passage.text,
            "score": round(passage.score, 6),
            "object": passage.fact[2] if passage.fact else None,
            "time": passage.time,
        }
        for passage in answer.passages
    ]
    k = max((step.k for step in trace.steps), default=0)
    cut = len(passages) < max((step.found for step in trace.steps), default=0)
    prompts = [step.request for step in trace.steps if step.ask == "Generate"]
    return {
        "answer": answer.text,
        "abstained": answer.abstained,
        "notes": list(answer.notes),
        "failure": trace.failure,
        "passages": passages if retrieved else None,
        "k": min(k, len(passages)) if retrieved and cut else k,
        "rules": None if answer.rules is None else [_rule(rule) for rule in answer.rules],
        "prompt": prompts[-1] if prompts else None,
        "prompts": len(prompts),
        "calls": dict(sorted(Counter(step.ask for step in trace.steps).items())),
        "prompt_tokens": sum(step.prompt_tokens for step in trace.steps),
        "completion_tokens": sum(step.completion_tokens for step in trace.steps),
        "seconds": round(sum(step.seconds for step in trace.steps), 6),
        "dropped_passages": sum(step.dropped_passages for step in trace.steps),
        "journalled": sum(step.journalled for step in trace.steps),
    }


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "head": rule.head,
        "body": rule.body,
        "confidence": round(rule.confidence, 6),
        "support": rule.support,
        "body_support": rule.body_support,
        "repeat": rule.repeat,
    }
