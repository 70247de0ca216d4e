"""Re-ranking after a first stage: by the run's retriever, or by the model, which is asked for numbers.

``retriever``: BM25 finds ``depth`` chunks, whatever the run's retriever is, and the run's retriever orders them (a
dense encoder, or a cross-encoder by ``retriever_rerank=``): it scores few texts instead of thousands. ``generator``:
the run's retriever finds the chunks, and the model names the useful ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from lm_eval_rag.harness.core.asks import generate, pages
from lm_eval_rag.harness.core.types import Passage, Plan, Query
from lm_eval_rag.harness.web.rank import bm25
from lm_eval_rag.methods.crag.chunks import best_chunks, chunks_of, pages_by_bm25, ranked
from lm_eval_rag.methods.crag.crag_prompts import END, prompt, question_text
from lm_eval_rag.methods.crag.replies import numbers

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
        depth: Number of chunks of the first stage.
        best_pages, parents: As in :func:`~lm_eval_rag.methods.crag.chunks.best_chunks`; ``rerank=retriever`` ignores
            ``parents``.
    """
    if rerank == "retriever":
        candidates = chunks_of(pages_by_bm25(query, (yield from pages()), best_pages))
        places = bm25(query.text, [chunk.text for chunk in candidates], depth)
        return (yield from ranked(query, [candidates[place] for place, _ in places], k))
    web_pages = (yield from pages()) if best_pages or parents else ()
    first = depth if rerank == "generator" else k
    chunks = yield from best_chunks(query, web_pages, first, best_pages=best_pages, parents=parents)
    return chunks if rerank == "off" else (yield from by_generator(query, chunks, k, notes, prompt_file=prompt_file))


def by_generator(
    query: Query, chunks: Sequence[Passage], k: int, notes: list[str], *, prompt_file: str | None
) -> Plan[tuple[Passage, ...]]:
    """The first ``k`` chunks that the model names; if it names fewer, the best of the others follow.

    Args:
        notes: Gets ``rerank unparsed`` if the model names none.
    """
    if not chunks:
        return ()
    numbered = tuple(Passage(chunk.id, f"[{number}] {chunk.text}") for number, chunk in enumerate(chunks, start=1))
    shown = prompt("rerank", question_text(query), numbered, prompt_file=prompt_file)
    reply = yield from generate(shown, temperature=0.0, max_tokens=64, stop=("\n\n\n", END))
    chosen = [number - 1 for number in numbers(reply, len(chunks))]
    if not chosen:
        notes.append("rerank unparsed")
    others = [place for place in range(len(chunks)) if place not in chosen]
    return tuple(chunks[place] for place in [*chosen, *others][:k])
