"""CRAG's official knowledge-graph baseline: sentences of the pages, and facts of the graph (arXiv:2406.04744).

The model names the domain and the entities; rules turn these into calls of the mock API. As in the official kit
(models/rag_knowledge_graph_baseline.py), 2000 characters are for the pages and 2000 for the graph. Departures: those
of ``crag_rag_baseline``; by default rules for all five domains and the closest name, where the kit has rules for two
and takes the first hit (``graph=published``); a fact that no longer fits is left out, where the kit cuts it (a first
fact that is too long is cut here too); the model names the entities in at most 256 tokens, where the kit allows 4096.
The hybrid system's paper (arXiv:2408.05141, appendix D.5) gives its own facts 1000 characters.
"""

from __future__ import annotations

from lm_eval_rag.harness.core.asks import has_graph, pages
from lm_eval_rag.harness.core.parameters import Depth, Natural, Positive
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.methods.crag.answering import ANSWER_TOKENS, answer_from, baseline_settings
from lm_eval_rag.methods.crag.chunks import NO_PAGES, SENTENCE, SENTENCES, TEXT, best_sentences
from lm_eval_rag.methods.crag.knowledge_graph import Rules, facts
from lm_eval_rag.methods.crag.references import References


def crag_kg_baseline(
    query: Query,
    *,
    k: Depth = SENTENCES,
    sentence_length: Positive = SENTENCE,
    text_length: Natural = TEXT // 2,
    graph: Rules = "rules",
    graph_length: Natural = TEXT // 2,
    answer_tokens: Positive = ANSWER_TOKENS,
    prompt_file: str | None = None,
) -> Plan[Answer]:
    """Answer from the best sentences and the facts that rules look up.

    Args:
        k: Number of sentences.
        sentence_length: Characters of a sentence.
        text_length: Characters of all sentences.
        graph: ``published`` looks facts up as the kit does, ``rules`` in all five domains and by the closest name.
        graph_length: Characters of all facts.
        answer_tokens: Limit of tokens of an answer.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
    """
    notes: list[str] = []
    known: tuple[str, ...] = ()
    if (yield from has_graph()):
        known = yield from facts(query, graph, notes, length=graph_length, prompt_file=prompt_file)
    read = yield from pages()
    if not read:
        notes.append(NO_PAGES)
    chunks = yield from best_sentences(query, read, k=k, longest=sentence_length, length=text_length)
    settings = baseline_settings(answer_tokens, prompt_file)
    return (yield from answer_from(query, References(chunks=chunks, facts=known), notes, settings))
