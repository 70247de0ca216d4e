"""Knowledge-graph module (section 4.5): three ways from a question to facts.

``published``: the model names the domain and the entities, and the official baseline's rules build the calls. The
submitted system uses this way; it has rules for films and the encyclopedia alone
(:mod:`lm_eval_rag.harness.kg.published_rules`). ``rules``: the same with rules for all five domains and a search for
the closest name (:mod:`lm_eval_rag.harness.kg.building`). ``calls``: the model writes function calls as JSON. Every
call is checked before it runs; a call that fails is counted and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from lm_eval_rag.harness.core.asks import generate
from lm_eval_rag.harness.core.prompts import Shot
from lm_eval_rag.harness.core.types import Plan, Query
from lm_eval_rag.harness.kg.building import FIELDS, facts_by_rules, read_fields
from lm_eval_rag.harness.kg.calling import facts_by_calls, listing, read_calls, signatures
from lm_eval_rag.harness.kg.facts import GraphFacts
from lm_eval_rag.harness.kg.functions import DOMAINS
from lm_eval_rag.harness.kg.published_rules import PUBLISHED_FIELDS, facts_as_published
from lm_eval_rag.methods.crag.crag_prompts import END, call_examples, prompt, question_text
from lm_eval_rag.methods.crag.references import within

Rules = Literal["rules", "published"]
Way = Literal["rules", "published", "calls"]


def facts(
    query: Query, way: Way, notes: list[str], *, length: int, prompt_file: str | None, domains: Iterable[str] = DOMAINS
) -> Plan[tuple[str, ...]]:
    """Facts of the graph about a question, at most ``length`` characters in all (1000 as published).

    Args:
        notes: Gets ``graph unparsed`` if no fields or calls can be parsed in the model's reply, and ``graph call
            failed`` for each call that was refused or failed.
        domains: The model chooses among the functions of these (only for ``calls``; otherwise it chooses the domain).
    """
    name, choices, run = WAYS[way]
    shots = _worked(domains, prompt_file) if way == "calls" else ()
    shown = prompt(name, f"{choices(domains)}\n\n{question_text(query)}", shots=shots, prompt_file=prompt_file)
    reply = yield from generate(shown, temperature=0.0, max_tokens=256, stop=("\n\n\n", END))
    result = yield from run(reply, query)
    if result is None:
        notes.append("graph unparsed")
        return ()
    notes += ["graph call failed"] * len(result.failures)
    return within((fact.text(length) for fact in result.facts), length)


def _fields(domains: Iterable[str]) -> str:
    return _listed(FIELDS)


def _published_fields(domains: Iterable[str]) -> str:
    return _listed(PUBLISHED_FIELDS)


def _listed(by_domain: Mapping[str, Mapping[str, tuple[str, ...]]]) -> str:
    lines = []
    for domain, fields in by_domain.items():
        shown = [f"{name} (one of: {', '.join(values)})" if values else name for name, values in fields.items()]
        lines.append(f"- {domain}: {'; '.join(shown)}")
    return "Domains and their fields:\n" + "\n".join(lines)


def _functions(domains: Iterable[str]) -> str:
    return f"Functions:\n{listing(domains)}"


def _worked(domains: Iterable[str], prompt_file: str | None) -> tuple[Shot, ...]:
    """Worked examples with functions of these domains, as in appendix D.4."""
    known = {schema["function"]["name"] for schema in signatures(domains)}
    return call_examples(known, prompt_file)


def _by_rules(reply: str, query: Query) -> Plan[GraphFacts | None]:
    fields = read_fields(reply)
    return (yield from facts_by_rules(fields, (query.time or "")[:10] or None)) if fields else None


def _as_published(reply: str, query: Query) -> Plan[GraphFacts | None]:
    fields = read_fields(reply)
    return (yield from facts_as_published(fields)) if fields else None


def _by_calls(reply: str, query: Query) -> Plan[GraphFacts | None]:
    calls = read_calls(reply)
    return (yield from facts_by_calls(calls)) if calls.calls or calls.refused else None


# way -> name of the prompt, the choices that it lists, and what runs the reply
WAYS: dict[str, tuple[str, Callable[[Iterable[str]], str], Callable[[str, Query], Plan[GraphFacts | None]]]] = {
    "rules": ("fields", _fields, _by_rules),
    "published": ("fields", _published_fields, _as_published),
    "calls": ("calls", _functions, _by_calls),
}
