"""Standard RAG: the documents that the question retrieves, then the answer (arXiv:2410.22353, section 4.2).

Departures: the wording of the prompt is ours; it asks for the form of answer that the task has. ``n_queries=n`` is a
control that the paper lacks: n retrievals with variants of the question, fused by reciprocal rank, so that rule-guided
retrieval can be compared at equal calls. ``samples=n`` is another: the most frequent of n sampled answers
(self-consistency, arXiv:2203.11171), so that methods of several steps can be compared at equal calls of the model.
"""

from __future__ import annotations

from typing import Literal

from lm_eval_rag.harness.core.asks import examples, generate, retrieve, sample
from lm_eval_rag.harness.core.parameters import Depth, Natural, Positive
from lm_eval_rag.harness.core.prompts import Prompt, Shot
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query
from lm_eval_rag.harness.retrieval.fusion import reciprocal_rank
from lm_eval_rag.harness.rules.guided import question_asked
from lm_eval_rag.harness.rules.variants import variants
from lm_eval_rag.methods.prompts import AnswerStyle, answer_of, template_for
from lm_eval_rag.methods.reasoning.rationales import most_frequent


def standard_rag(
    query: Query,
    *,
    k: Depth = 10,
    n_queries: Depth = 1,
    documents: Natural = 10,
    document_order: Literal["best_first", "best_last"] = "best_first",
    shots: Natural = 0,
    seed: Natural = 0,
    degenerated: bool = False,
    prompt_file: str | None = None,
    answer_style: AnswerStyle = "free",
    samples: Positive = 1,
    temperature: float = 0.7,
) -> Plan[Answer]:
    """Answer from the best documents.

    Args:
        k: Documents of each retrieval.
        n_queries: Retrievals, with variants of the question; 1 is the question as it is.
        documents: Documents in the prompt.
        document_order: Where the best document stands.
        shots: Fixed worked examples of F_G, each with documents of its own.
        seed: Of the choice of examples.
        degenerated: Ask what the question's best rule makes of it, which needs no rule (Table 5).
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
        answer_style: ``short`` asks for the bare answer and takes the first line of the reply.
        samples: Sampled answers, of which the most frequent is taken; 1 is the task's decoding, without a vote.
        temperature: Of several samples.
    """
    parts = template_for(query, prompt_file, answer_style)  # before anything is asked: a bad file ends the run at once
    asked = yield from question_asked(query.text, degenerated)
    found = yield from _search(asked, n_queries, k)
    worked = []
    for example, answer in (yield from examples(shots, seed)):
        worked.append(Shot(example.text, answer, (yield from _search(example.text, n_queries, k))[:documents]))
    prompt = Prompt(parts, asked, found[:documents], shots=tuple(worked), order=document_order)
    if samples == 1:
        return Answer(answer_of((yield from generate(prompt)), answer_style), found)
    texts = yield from sample(prompt, samples, temperature)
    return Answer(most_frequent([answer_of(text, answer_style) for text in texts]), found)


def _search(text: str, n_queries: int, k: int) -> Plan[tuple[Passage, ...]]:
    """The passages of one retrieval, or of several fused."""
    lists = []
    for variant in variants(text, n_queries):
        lists.append((yield from retrieve(variant, k)))
    return lists[0] if n_queries == 1 else reciprocal_rank(lists)
