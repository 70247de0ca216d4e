"""What lm_eval's requests say: questions, which of them are the same, and how to decode."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_rag.harness.core.record import FORM
from lm_eval_rag.harness.core.types import ENTITY, Query
from lm_eval_rag.harness.generators.base import Decoding

log = logging.getLogger(__name__)
MAX_GEN_TOKS = 256  # lm_eval's own, for tasks that say nothing


def queries_of(requests: Sequence[Any]) -> list[Query]:
    """The question of each request: without its gold answers, and where a task is not ours, its context."""
    seen: Counter[tuple[str, str]] = Counter()
    queries = []
    for request in requests:
        doc = request.doc
        ours = "query" in doc and "id" in doc
        id = str(doc["id"]) if ours else f"{request.task_name}/{request.doc_id}"
        repeat = seen[request.task_name, id] % (request.repeats or 1)
        seen[request.task_name, id] += 1
        if ours:
            form = doc.get(FORM) or ENTITY
            query = Query(id, doc["query"], doc.get("time"), doc.get("corpus"), repeat=repeat, answer_form=form)
        else:
            query = Query(id, request.args[0], repeat=repeat)
        queries.append(query)
    return queries


def first_places(requests: Sequence[Any], queries: Sequence[Query]) -> list[int]:
    """Where each question stands first: lm_eval fills up the shorter share of a rank with its last request."""
    places: dict[tuple[str, Query], int] = {}
    return [
        places.setdefault((request.task_name, query), i)
        for i, (request, query) in enumerate(zip(requests, queries, strict=True))
    ]


def decoding_of(options: Mapping[str, Any]) -> Decoding:
    unused = sorted(set(options) - {"until", "max_gen_toks", "do_sample", "temperature"})
    if unused:
        log.warning("Generation arguments that methods do not use: %s.", ", ".join(unused))
    until = options.get("until") or ["\n"]
    return Decoding(
        max_tokens=int(options.get("max_gen_toks", MAX_GEN_TOKS)),
        stop=(until,) if isinstance(until, str) else tuple(until),
        temperature=float(options.get("temperature", 0.0)) if options.get("do_sample", True) else 0.0,
    )
