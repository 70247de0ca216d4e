"""The hybrid system of team ElectricSheep, third in task 1 of KDD Cup 2024's CRAG (arXiv:2408.05141).

A question that is predicted dynamic is declined. For others, chunks and tables of the web pages, facts of the knowledge
graph, calculations and the model's own knowledge are gathered, and the model reasons over all of them in a form with a
false-premise field. Every module is a file in :mod:`lm_eval_rag.methods.crag`, on a switch named as its row of Table 2.

Departures: prompts are in our own words and go as one message; expressions are parsed, never evaluated as Python; the
generator and the retriever are the run's (``generator=``, ``retriever=dense,retriever_model=sentence-transformers/
sentence-t5-large``), where the paper has Llama-3-70B-Instruct and sentence-t5-large; sampling's temperature, which it
does not tell, is 0.7; references stand in another order (:mod:`lm_eval_rag.methods.crag.references`); the calculator
sees tables at Table 5's length, not appendix D.2's. Past the paper, and off: ``svm``, ``graph=calls|query``,
``rerank``, ``best_pages``, ``parents``, ``best_tables``, ``routing``, ``graph_first``, ``verify``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from lm_eval_rag.harness.core.asks import pages
from lm_eval_rag.harness.core.parameters import Natural, Positive
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.methods.crag.answering import Manner, answered
from lm_eval_rag.methods.crag.attributes import Attribute, predict
from lm_eval_rag.methods.crag.calculator import calculations
from lm_eval_rag.methods.crag.chunks import best_sentences
from lm_eval_rag.methods.crag.corner_cases import DONT_KNOW
from lm_eval_rag.methods.crag.extractor import own_knowledge
from lm_eval_rag.methods.crag.knowledge_graph import Way, facts
from lm_eval_rag.methods.crag.references import References
from lm_eval_rag.methods.crag.rerank import Rerank, reranked
from lm_eval_rag.methods.crag.routing import ALL, BY_DOMAIN
from lm_eval_rag.methods.crag.tables import tables
from lm_eval_rag.methods.crag.verify import verified


def crag_hybrid(
    query: Query,
    *,
    chunk_extraction: bool = True,
    prompt_refinement: bool = True,
    attribute_predictor: bool = True,
    table_extractor: bool = True,
    calculator: bool = True,
    reasoning: bool = True,
    false_premise: bool = True,
    knowledge_extractor: bool = True,
    knowledge_graph: bool = True,
    k: Positive = 10,
    table_length: Natural = 4000,
    svm: str | None = None,
    demonstrations: Natural = 5,
    samples: Positive = 5,
    temperature: float = 0.7,
    dynamic: Literal["decline", "answer"] = "decline",
    graph: Way = "rules",
    graph_length: Natural = 1000,
    graph_first: bool = False,
    routing: bool = False,
    best_pages: Natural = 0,
    parents: bool = False,
    rerank: Rerank = "off",
    depth: Positive = 50,
    best_tables: Natural = 0,
    verify: bool = False,
    reasoning_tokens: Positive = 512,
    answer_tokens: Positive = 75,
    seed: Natural = 0,
    prompt_file: str | None = None,
) -> Plan[Answer]:
    """Answer from pages, tables, the knowledge graph, calculations and the model's own knowledge, or decline.

    Args:
        chunk_extraction: Chunks of section 4.1; else the sentences of the official RAG baseline.
        prompt_refinement: The refined prompt, where there is no reasoning; else the official baseline's.
        attribute_predictor: Predict whether a question is dynamic.
        table_extractor: Tables of the pages.
        calculator: Expressions, reckoned.
        reasoning: The reasoning form, with its summariser; else a prompt for the answer alone.
        false_premise: Look for a false premise.
        knowledge_extractor: The model's own knowledge as a reference.
        knowledge_graph: Facts of the knowledge graph (tasks 2 and 3; task 1 has none, and nothing is asked).
        k: Chunks.
        table_length: Characters of all tables.
        svm: Folder of a trained classifier, in place of the demonstrations.
        demonstrations: Examples for the attribute predictor.
        samples: Votes on an attribute, and expressions.
        temperature: Of both.
        dynamic: Whether dynamic questions are declined.
        graph: How the graph is asked.
        graph_length: Characters of its facts.
        graph_first: Try to answer from the graph alone, before any page is looked at.
        routing: Predict the domain, and look only at its sources.
        best_pages: Pages that BM25 keeps; 0 keeps all.
        parents: Search for sentences, show the chunks around them.
        rerank: Order ``depth`` chunks anew.
        depth: Chunks of the first stage.
        best_tables: Tables that are retrieved; 0 takes all, in the order of the pages.
        verify: Decline where the references do not bear the answer out.
        reasoning_tokens: The most tokens of a reply in the form.
        answer_tokens: The most tokens of an answer alone.
        seed: Of the demonstrations.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
    """
    notes: list[str] = []
    manner = Manner(reasoning, prompt_refinement, false_premise, reasoning_tokens, answer_tokens, prompt_file)

    def attribute(name: Attribute) -> Plan[str]:
        return predict(
            query, name, notes, svm=svm, shots=demonstrations, samples=samples, temperature=temperature, seed=seed,
            prompt_file=prompt_file,
        )  # fmt: skip

    def answer(found: References) -> Plan[Answer]:
        given = yield from answered(query, found, notes, manner)
        return (yield from verified(query, given, found, prompt_file=prompt_file)) if verify else given

    if attribute_predictor and (yield from attribute("static_or_dynamic")) == "dynamic":
        notes.append("dynamic")
        if dynamic == "decline":
            return Answer(DONT_KNOW, abstained=True, notes=tuple(notes))
    sources = BY_DOMAIN[(yield from attribute("domain"))] if routing else ALL

    found = References()
    if knowledge_graph and sources.graph:
        told = yield from facts(
            query, graph, notes, length=graph_length, prompt_file=prompt_file, domains=sources.domains
        )
        found = replace(found, facts=told)
        if graph_first and told:
            given = yield from answer(found)
            if not given.abstained:
                return given
            notes.append("graph did not tell")
    if sources.chunks and chunk_extraction:
        chunks = yield from reranked(
            query, k, notes, rerank=rerank, depth=depth, best_pages=best_pages, parents=parents, prompt_file=prompt_file
        )
        found = replace(found, chunks=chunks)
    elif sources.chunks:
        found = replace(found, chunks=(yield from best_sentences(query, (yield from pages()))))
    if table_extractor and sources.tables:
        read = yield from pages()
        found = replace(found, tables=(yield from tables(query, read, length=table_length, best=best_tables)))
    if calculator:
        made = yield from calculations(
            query, found, notes, samples=samples, temperature=temperature, prompt_file=prompt_file
        )
        found = replace(found, calculations=made)
    if knowledge_extractor:
        memory = yield from own_knowledge(query, notes, max_tokens=reasoning_tokens, prompt_file=prompt_file)
        found = replace(found, memory=memory)
    return (yield from answer(found))
