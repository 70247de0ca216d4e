"""Knowledge-graph module (section 4.5): three ways from a question to facts.

``rules``: the model names the domain and what is asked about, rules build the calls (the published baseline, which the
submitted system uses). ``calls``: the model writes function calls as JSON. ``query``: it writes one line of the query
language of :mod:`lm_eval_rag.harness.kg.query`. Whatever it writes is checked before it runs, and a call that fails is
counted and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.asks import generate, has_graph
from lm_eval_rag.harness.core.types import Plan, Query
from lm_eval_rag.harness.kg.building import FIELDS, facts_by_rules, read_fields
from lm_eval_rag.harness.kg.calling import facts_by_calls, listing, read_calls
from lm_eval_rag.harness.kg.evaluate import run_query
from lm_eval_rag.harness.kg.facts import Fact, Found
from lm_eval_rag.harness.kg.functions import DOMAINS
from lm_eval_rag.harness.kg.tree import QueryError
from lm_eval_rag.methods.crag.references import within
from lm_eval_rag.methods.crag.replies import code_line
from lm_eval_rag.methods.crag.wording import END, asked, prompt

Way = Literal["rules", "calls", "query"]


def facts(
    query: Query, way: Way, notes: list[str], *, length: int, prompt_file: str | None, domains: Iterable[str] = DOMAINS
) -> Plan[tuple[str, ...]]:
    """What the graph says about a question, at most ``length`` characters in all (1000 as published).

    Nothing, and the model is not asked, where a question comes without a graph (task 1).

    Args:
        notes: Takes ``graph unread`` where the model's reply asks for nothing that can be read, and ``graph call
            failed`` for each call that was refused or failed.
        domains: Whose functions the model may choose from (not for ``rules``, where it chooses the domain).
    """
    if not (yield from has_graph()):
        return ()
    name, prepare, run = WAYS[way]
    shown = prompt(name, f"{prepare(domains)}\n\n{asked(query)}", prompt_file=prompt_file)
    reply = yield from generate(shown, temperature=0.0, max_tokens=256, stop=("\n\n\n", END))
    found = yield from run(reply, query)
    if found is None:
        notes.append("graph unread")
        return ()
    notes += ["graph call failed"] * len(found.failures)
    return within((fact.text() for fact in found.facts), length)


def _fields(domains: Iterable[str]) -> str:
    lines = []
    for domain, fields in FIELDS.items():
        shown = [f"{name} (one of: {', '.join(values)})" if values else name for name, values in fields.items()]
        lines.append(f"- {domain}: {'; '.join(shown)}")
    return "Domains and their fields:\n" + "\n".join(lines)


def _functions(domains: Iterable[str]) -> str:
    return f"Functions:\n{listing(domains)}"


def _by_rules(reply: str, query: Query) -> Plan[Found | None]:
    fields = read_fields(reply)
    return (yield from facts_by_rules(fields, (query.time or "")[:10] or None)) if fields else None


def _by_calls(reply: str, query: Query) -> Plan[Found | None]:
    calls = read_calls(reply)
    return (yield from facts_by_calls(calls)) if calls.calls or calls.refused else None


def _by_query(reply: str, query: Query) -> Plan[Found | None]:
    line = code_line(reply)
    if not line:
        return None
    try:
        value = yield from run_query(line)
    except (QueryError, CallError) as error:
        return Found(failures=(str(error),))
    return Found() if value in (None, [], {}, "") else Found((Fact(line, value),))


# way -> prompt, what is shown before the question, and how the reply is run
WAYS: dict[str, tuple[str, Callable[[Iterable[str]], str], Callable[[str, Query], Plan[Found | None]]]] = {
    "rules": ("fields", _fields, _by_rules),
    "calls": ("calls", _functions, _by_calls),
    "query": ("query", _functions, _by_query),
}
