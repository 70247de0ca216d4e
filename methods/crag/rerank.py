"""Re-ranking after a first stage: by the run's retriever, or by the model, which is asked for numbers.

``retriever``: BM25 finds ``depth`` chunks, whatever the run's retriever is, and that one (a dense encoder, a
cross-encoder by ``retriever_rerank=``) orders them: it sees few texts where there are thousands. ``generator``: the
run's retriever finds them, and the model names the useful ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from lm_eval_rag.harness.core.asks import generate, pages
from lm_eval_rag.harness.core.types import Passage, Plan, Query
from lm_eval_rag.harness.web.rank import bm25
from lm_eval_rag.methods.crag.chunks import best_chunks, chunks_of, preferred, ranked
from lm_eval_rag.methods.crag.replies import numbers
from lm_eval_rag.methods.crag.wording import END, asked, prompt

Rerank = Literal["off", "retriever", "generator"]


def reranked(
    query: Query,
    k: int,
    notes: list[str],
    *,
    rerank: Rerank,
    depth: int,
    best_pages: int,
    parents: bool,
    prompt_file: str | None,
) -> Plan[tuple[Passage, ...]]:
    """The ``k`` best chunks of the question's pages, best first.

    Args:
        depth: Chunks of the first stage.
        best_pages, parents: As in :func:`~lm_eval_rag.methods.crag.chunks.best_chunks`; ``rerank=retriever`` ranks
            chunks as they are.
    """
    if rerank == "retriever":
        parts = chunks_of(preferred(query, (yield from pages()), best_pages))
        first = [parts[place] for place, _ in bm25(query.text, [part.text for part in parts], depth)]
        return (yield from ranked(query, first, k))
    read = (yield from pages()) if best_pages or parents else ()
    wanted = depth if rerank == "generator" else k
    found = yield from best_chunks(query, read, wanted, best_pages=best_pages, parents=parents)
    return found if rerank == "off" else (yield from by_generator(query, found, k, notes, prompt_file=prompt_file))


def by_generator(
    query: Query, found: Sequence[Passage], k: int, notes: list[str], *, prompt_file: str | None
) -> Plan[tuple[Passage, ...]]:
    """The ``k`` that the model names first; where it names fewer, the best of the others follow.

    Args:
        notes: Takes ``rerank unread`` where it names none.
    """
    if not found:
        return ()
    shown = tuple(Passage(p.id, f"[{number}] {p.text}") for number, p in enumerate(found, start=1))
    reply = yield from generate(
        prompt("rerank", asked(query), shown, prompt_file=prompt_file),
        temperature=0.0,
        max_tokens=64,
        stop=("\n\n\n", END),
    )
    named = numbers(reply, len(found))
    if not named:
        notes.append("rerank unread")
    chosen = [number - 1 for number in named]
    return tuple(found[place] for place in [*chosen, *(i for i in range(len(found)) if i not in chosen)][:k])
