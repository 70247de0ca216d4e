"""What the adapter leaves beside every answer for scoring and reports: a JSON-able record, and its carrier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lm_eval_rag.harness.core.progress import cost_of
from lm_eval_rag.harness.core.types import CALLS, Answer, Rule, Step, Trace

FORM = "answer_form"  # the key of a document for the form of its answers, see Query
PREDICTED = ("evidence", "triples")  # keys of a record that are there only if the method predicts them
CUT_SHORT = ("truncated", "filtered", "cut_passages")  # keys of a record: samples that ended so, passages that were cut
SYSTEM = "system_instruction"  # the key of a document under which our tasks hand on lm_eval's --system_instruction


class RagText(str):
    """An answer with its record in ``aux``; it survives lm_eval's filters, pickling and a gather over ranks."""

    aux: dict[str, Any]

    def __new__(cls, text: str, aux: dict[str, Any] | None = None) -> RagText:
        new = super().__new__(cls, text)
        new.aux = aux or {}  # none where lm_eval casts a task's gold answer to the type of the answer
        return new

    def __reduce__(self) -> tuple[Any, ...]:
        return RagText, (str(self), self.aux)


def record(answer: Answer, trace: Trace, prices: tuple[float, float] | None = None) -> dict[str, Any]:
    """The record of one question: what was retrieved, which rules, which prompt, and what it cost.

    ``passages`` is None when nothing was retrieved from, so that recall stays unscored rather than 0; ``k`` is the
    depth of the list (:func:`depth`), up to which recall@k may be scored; :func:`share_depth` makes it the run's.
    What Rank chose counts where the method names it as its passages: it may rank other texts too. ``rules`` is None
    for a method that uses no rules. ``calls`` has retrievals too, as ``journalled`` has. ``evidence``, ``triples``,
    ``rationale`` and ``confidence`` are there if the method gives them (:func:`share_predicted` adds empty lists of the
    first two), ``likelihood`` (ln P, words) if the run asked for it. ``cost`` is in US dollars, where prices are known.
    """
    retrieved = trace.count("Retrieve") > 0 or (trace.count("Rank") > 0 and bool(answer.passages)) or _named(trace)
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
    prompts = [step.request for step in trace.steps if step.ask == "Generate"]
    return {
        "answer": answer.text,
        "abstained": answer.abstained,
        "notes": list(answer.notes),
        "failure": trace.failure,
        "passages": passages if retrieved else None,
        "k": depth([passage.id for passage in answer.passages] if retrieved else None, trace.steps),
        "rules": None if answer.rules is None else [_rule(rule) for rule in answer.rules],
        "prompt": prompts[-1] if prompts else None,
        "prompts": len(prompts),
        "calls": calls_of_each((step.ask, len(step.finishes)) for step in trace.steps),
        "prompt_tokens": sum(step.prompt_tokens for step in trace.steps),
        "completion_tokens": sum(step.completion_tokens for step in trace.steps),
        "seconds": round(sum(step.seconds for step in trace.steps), 6),
        "dropped_passages": sum(step.dropped_passages for step in trace.steps),
        "journalled": sum(len(step.finishes) or 1 for step in trace.steps if step.journalled),
        **_predicted(answer),
        **_cut_short(trace.steps),
        **_sources(trace.steps),
        **({} if prices is None else {"cost": round(sum(cost_of(step, prices) for step in trace.steps), 8)}),
    }


def _named(trace: Trace) -> bool:
    """Whether a system of the user's named its passages, which may be none."""
    return any(step.ask == "AskSystem" and step.k for step in trace.steps)


def _predicted(answer: Answer) -> dict[str, Any]:
    """Predicted evidence and triples as lists, rationale, likelihood, confidence; nothing of what there is not."""
    predicted = {name: getattr(answer, name) for name in PREDICTED}
    lists = {name: [list(one) for one in items] for name, items in predicted.items() if items is not None}
    likelihood = None if answer.likelihood is None else list(answer.likelihood)
    others = {"rationale": answer.rationale, "likelihood": likelihood, "confidence": answer.confidence}
    return {**lists, **{name: value for name, value in others.items() if value is not None}}


def _sources(steps: Iterable[Step]) -> dict[str, Any]:
    """How many queries the run and its fallback served; nothing for a retriever without a fallback."""
    sources = [step.source for step in steps if step.source]
    return {"retrieved_by": counted(sources)} if sources else {}


def calls_of_each(asks: Iterable[tuple[str, int]]) -> dict[str, int]:
    """How often each was asked, of (ask, samples that came back): a generation counts once for each sample.

    ``HasLoglikelihood`` is left out: it asks no model.
    """
    return counted([name for name, samples in asks for _ in range(samples or 1) if name != "HasLoglikelihood"])


def counted(names: list[str]) -> dict[str, int]:
    """How often each name occurs, by name. Names are few and different ones fewer, where a Counter is slow to make."""
    return {name: names.count(name) for name in sorted(set(names))}


def _cut_short(steps: Iterable[Step]) -> dict[str, Any]:
    """Samples truncated and filtered, passages cut, and what the model thought aloud; nothing where that is nothing."""
    steps = tuple(steps)
    finishes = [finish for step in steps for finish in step.finishes]
    ended = {
        "truncated": finishes.count("length"),
        "filtered": finishes.count("content_filter"),
        "cut_passages": sum(step.cut_passages for step in steps),
        "thinking": "\n".join(step.thinking for step in steps if step.thinking),
    }
    return {name: value for name, value in ended.items() if value}


def counts_of(record: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """What a record adds to the counts of a run, by name."""
    yield from ((f"note: {note}", 1) for note in record["notes"])
    yield from record["calls"].items()
    yield "calls", sum(record["calls"].get(name, 0) for name in CALLS)
    yield "journalled", record["journalled"]
    yield from ((name, record[name]) for name in CUT_SHORT if name in record)
    yield from ((f"retrieved by {name}", n) for name, n in record.get("retrieved_by", {}).items())


def depth(ids: Sequence[str] | None, steps: Iterable[Step]) -> int:
    """The largest k at which recall over one question's merged list is honest: how many documents it stands for.

    That is the most documents asked for at once; or the list's own length, if it is larger; or, over several hops whose
    passages are all in the list, the sum of what they asked for, although hops may have found the same passages. A list
    that was cut stands for its own length alone.

    Args:
        ids: Of the list, best first; None for no list.
    """
    steps = tuple(steps)
    at_once = max((step.k for step in steps), default=0)
    if ids is None:
        return at_once
    if len(ids) < max((step.found for step in steps), default=0):
        return len(ids)
    named, asked = set(ids), {step.request: step for step in steps if step.passages}
    used = [step for step in asked.values() if named & set(step.passages)]
    whole = all(named.issuperset(step.passages) for step in used)
    return max(at_once, len(ids), sum(step.k for step in used) if whole else 0)


def deepest(records: Iterable[Mapping[str, Any]]) -> int:
    """The largest depth of any list among the records; 0 where there is none."""
    return max((record["k"] for record in records if _has_list(record)), default=0)


def share_depth(records: Iterable[dict[str, Any]], depth: int) -> None:
    """Give every list the depth of its run over one task, in place.

    So a run scores the same questions at each k. A method may stop early on some questions, or cut their lists: these
    are scored over what it named.
    """
    for record in records:
        if _has_list(record):
            record["k"] = depth


def predicted(records: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Which of evidence and triples any of the records has."""
    return frozenset(name for record in records for name in PREDICTED if name in record)


def share_predicted(records: Iterable[dict[str, Any]], names: Iterable[str]) -> None:
    """Give every record an empty list of what its run over one task predicts, where it has none, in place.

    So a run scores the same questions by their evidence: the official scripts count a question without evidence as 0,
    and a method does not gain by naming evidence only where it is sure.
    """
    for name in names:
        for record in records:
            record.setdefault(name, [])


def _has_list(record: Mapping[str, Any]) -> bool:
    return record["passages"] is not None and record["failure"] is None


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "head": rule.head,
        "body": rule.body,
        "confidence": round(rule.confidence, 6),
        "support": rule.support,
        "body_support": rule.body_support,
        "repeat": rule.repeat,
        **({"inverse": True} if rule.inverse else {}),
        **({"path": list(rule.path)} if rule.path else {}),
    }
