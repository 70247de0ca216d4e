"""The hybrid system of team ElectricSheep, third in task 1 of KDD Cup 2024's CRAG (arXiv:2408.05141).

The system abstains from questions that are predicted dynamic. For the others it collects chunks and tables of the web
pages, facts of the knowledge graph, calculations and the model's own knowledge, and the model reasons over all of them
in a form with a false-premise field. Every module is a file in :mod:`lm_eval_rag.methods.crag` with a switch named like
its row of Table 2.

Departures: the wording of the prompts is ours; expressions are parsed, never executed as
Python; the generator and the retriever are the run's (``generator=``, ``retriever=dense,retriever_model=
sentence-transformers/sentence-t5-large``), where the paper has Llama-3-70B-Instruct and sentence-t5-large; the sampling
temperature, which the paper does not give, is 0.7; references come in another order
(:mod:`lm_eval_rag.methods.crag.references`), tables too (``table_order=pages`` is the paper's); the graph has rules for
five domains, where the paper has the official baseline's for two (``graph=published``); the calculator sees tables at
Table 5's length, not appendix D.2's.
Options beyond the paper, all off: ``svm``, ``graph=calls``, ``rerank``, ``best_pages``, ``parents``, ``best_tables``,
``routing``, ``graph_first``, ``verify``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from lm_eval_rag.harness.core.asks import has_graph, pages
from lm_eval_rag.harness.core.parameters import Depth, Natural, NonNegative, Positive
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.methods.crag.answering import ANSWER_TOKENS, AnswerSettings, answer_from
from lm_eval_rag.methods.crag.attribute_predictor import Attribute, predict
from lm_eval_rag.methods.crag.calculator import calculations
from lm_eval_rag.methods.crag.chunks import best_sentences
from lm_eval_rag.methods.crag.demonstrations import Rate
from lm_eval_rag.methods.crag.extractor import own_knowledge
from lm_eval_rag.methods.crag.knowledge_graph import Way, facts
from lm_eval_rag.methods.crag.page_tables import TableOrder, select_tables
from lm_eval_rag.methods.crag.references import References
from lm_eval_rag.methods.crag.rerank import Rerank, reranked
from lm_eval_rag.methods.crag.routing import ALL, BY_DOMAIN
from lm_eval_rag.methods.crag.verify import verified
from lm_eval_rag.methods.reasoning.steps import DONT_KNOW


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
    k: Depth = 10,
    table_length: Natural = 4000,
    svm: str | None = None,
    demonstrations: Natural = 5,
    demonstrations_file: str | None = None,
    slow_changing: Rate = "dynamic",
    samples: Positive = 5,
    temperature: NonNegative = 0.7,
    dynamic: Literal["decline", "answer"] = "decline",
    graph: Way = "rules",
    graph_length: Natural = 1000,
    graph_first: bool = False,
    routing: bool = False,
    best_pages: Natural = 0,
    parents: bool = False,
    rerank: Rerank = "off",
    depth: Depth = 50,
    best_tables: Natural = 0,
    table_order: TableOrder = "question",
    verify: bool = False,
    reasoning_tokens: Positive = 512,
    answer_tokens: Positive = ANSWER_TOKENS,
    seed: Natural = 0,
    prompt_file: str | None = None,
) -> Plan[Answer]:
    """Answer from pages, tables, the knowledge graph, calculations and the model's own knowledge, or abstain.

    Args:
        chunk_extraction: Use the chunks of section 4.1; otherwise the sentences of the official RAG baseline.
        prompt_refinement: Without ``reasoning``, use the refined prompt; otherwise the official baseline's.
        attribute_predictor: Predict whether a question is dynamic.
        table_extractor: Use the tables of the pages.
        calculator: Let the model write expressions, and calculate them.
        reasoning: Use the reasoning form with its summariser; otherwise ask for the answer alone.
        false_premise: Look for a false premise.
        knowledge_extractor: Use the model's own knowledge as a reference.
        knowledge_graph: Use facts of the knowledge graph (tasks 2 and 3; task 1 has none, and the model is not asked).
        k: Number of chunks.
        table_length: Characters of all tables.
        svm: Folder of a trained classifier, instead of the demonstrations.
        demonstrations: Number of examples for the attribute predictor, equally many of each label.
        demonstrations_file: ``official`` takes the examples from the validation part of the files that the task has
            read, a path from that of CRAG's file (JSON Lines or .bz2); otherwise they are ours.
        slow_changing: The label of CRAG's slow-changing questions among the examples of ``demonstrations_file``; the
            paper does not say which (:mod:`lm_eval_rag.methods.crag.demonstrations`).
        samples: Number of samples of an attribute and of an expression.
        temperature: For both.
        dynamic: ``decline`` abstains from dynamic questions, ``answer`` answers them.
        graph: How the knowledge graph is asked: by rules for all domains (``rules``), by the official baseline's
            (``published``, as in the paper), or by function calls that the model writes (``calls``).
        graph_length: Characters of its facts.
        graph_first: Try to answer from the graph alone before any page is read.
        routing: Predict the domain, and use only its sources.
        best_pages: Number of pages that BM25 keeps; 0 keeps all.
        parents: Retrieve sentences, show the chunks around them.
        rerank: Order ``depth`` chunks again.
        depth: Number of chunks of the first stage.
        best_tables: Most tables, by the retriever; 0 takes as many as fit into ``table_length``.
        table_order: ``question`` ranks the tables by the retriever; ``pages`` takes them page by page, as in the paper.
        verify: Abstain if the references do not support the answer.
        reasoning_tokens: Limit of tokens of a reply in the form.
        answer_tokens: Limit of tokens of an answer alone.
        seed: For the choice of demonstrations.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
    """
    notes: list[str] = []
    settings = AnswerSettings(reasoning, prompt_refinement, false_premise, reasoning_tokens, answer_tokens, prompt_file)

    def attribute(name: Attribute) -> Plan[str]:
        return predict(
            query, name, notes, svm=svm, shots=demonstrations, shots_file=demonstrations_file, samples=samples,
            temperature=temperature, seed=seed, prompt_file=prompt_file, slow_changing=slow_changing,
        )  # fmt: skip

    def answer(references: References) -> Plan[Answer]:
        first = yield from answer_from(query, references, notes, settings)
        return (yield from verified(query, first, references, prompt_file=prompt_file)) if verify else first

    with_graph = knowledge_graph and (yield from has_graph())  # first: one that is missing is said before any call
    if attribute_predictor and (yield from attribute("static_or_dynamic")) == "dynamic":
        notes.append("dynamic")
        if dynamic == "decline":
            return Answer(DONT_KNOW, abstained=True, notes=tuple(notes))
    sources = BY_DOMAIN[(yield from attribute("domain"))] if routing else ALL

    references = References()
    if with_graph and sources.graph:
        known = yield from facts(
            query, graph, notes, length=graph_length, prompt_file=prompt_file, domains=sources.domains
        )
        references = replace(references, facts=known)
        if graph_first and known:
            by_graph = yield from answer(references)
            if not by_graph.abstained:
                return by_graph
            notes.append("graph without answer")
    if sources.chunks and chunk_extraction:
        chunks = yield from reranked(
            query, k, notes, rerank=rerank, depth=depth, best_pages=best_pages, parents=parents, prompt_file=prompt_file
        )
        references = replace(references, chunks=chunks)
    elif sources.chunks:
        references = replace(references, chunks=(yield from best_sentences(query, (yield from pages()))))
    if table_extractor and sources.tables:
        tables = yield from select_tables(
            query, (yield from pages()), length=table_length, chunks=references.chunks, order=table_order,
            best=best_tables,
        )  # fmt: skip
        references = replace(references, tables=tables)
    if calculator:
        results = yield from calculations(
            query, references, notes, samples=samples, temperature=temperature, prompt_file=prompt_file
        )
        references = replace(references, calculations=results)
    if knowledge_extractor:
        memory = yield from own_knowledge(query, notes, max_tokens=reasoning_tokens, prompt_file=prompt_file)
        references = replace(references, memory=memory)
    return (yield from answer(references))
