"""Standard RAG: the documents that the question retrieves, then the answer (arXiv:2410.22353, section 4.2).

Departures: the wording of the prompt is ours; it asks for the form of answer that the task has. ``n_queries=n`` is a
control that the paper lacks: n retrievals with variants of the question, fused by reciprocal rank, so that rule-guided
retrieval can be compared at equal calls. ``samples=n`` is another: the most frequent of n sampled answers
(self-consistency, arXiv:2203.11171), so that methods of several steps can be compared at equal calls of the model.
``answer_style=cot`` is a third: it reasons before it answers, as methods of several steps do, so that what retrieval in
several steps adds can be told from what reasoning adds. ``evidence`` is a fourth: the sentences that the official
scores of HotpotQA, FEVER and others ask for, chosen without a model or cited by it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.asks import examples, generate, retrieve, sample
from lm_eval_rag.harness.core.parameters import Depth, Natural, NonNegative, Positive
from lm_eval_rag.harness.core.prompts import Prompt, Shot
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query
from lm_eval_rag.harness.retrieval.fusion import reciprocal_rank
from lm_eval_rag.harness.rules.guided import question_asked
from lm_eval_rag.harness.rules.variants import variants
from lm_eval_rag.methods.prompts import AnswerStyle, answer_of, template, template_for
from lm_eval_rag.methods.reasoning.chain_of_thought import REASONED, check_reasoning, reasoned
from lm_eval_rag.methods.reasoning.evidence import CHOICES, Evidence, cited, numbered
from lm_eval_rag.methods.reasoning.rationales import most_frequent
from lm_eval_rag.methods.reasoning.steps import STOP

CITED = "cited_answer"  # prompts of evidence=cite


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
    answer_style: AnswerStyle | Literal["cot"] = "free",
    samples: Positive = 1,
    temperature: NonNegative = 0.7,
    evidence: Evidence = "none",
    evidence_limit: Annotated[int, Ge(1), Le(50)] = 5,
    evidence_tokens: Positive = 96,
    reasoning_tokens: Positive = 256,
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
        answer_style: ``short`` asks for the bare answer and reads it without what explains it; ``cot`` asks for a chain
            of thought that ends in "So the answer is", without ``shots`` and ``evidence=cite``.
        samples: Sampled answers, of which the most frequent is taken; 1 is the task's decoding, without a vote.
        temperature: Of several samples.
        evidence: The sentences that support the answer: ``retrieved``, the first ones of the passages; ``similar``,
            those most like the question, by BM25; ``cite``, those that the model names below its answer, which then is
            one line in each ``answer_style``, without ``shots``.
        evidence_limit: Sentences of evidence, at most.
        evidence_tokens: Limit of tokens of a reply that cites, in place of the task's.
        reasoning_tokens: Limit of tokens of a reply that reasons, in place of the task's.
    """
    # Before anything is asked: a bad file ends the run at once.
    cite = _cites(evidence, shots)
    if answer_style == "cot":
        check_reasoning(shots, cite)
        parts = template(prompt_file, REASONED)
    else:
        parts = template(prompt_file, CITED) if cite else template_for(query, prompt_file, answer_style)
    asked = yield from question_asked(query.text, degenerated)
    found = yield from _search(asked, n_queries, k, evidence != "none")
    worked = []
    for example, answer in (yield from examples(shots, seed)):
        worked.append(Shot(example.text, answer, (yield from _search(example.text, n_queries, k))[:documents]))
    shown, names = numbered(found[:documents]) if cite else (found[:documents], ())
    prompt = Prompt(parts, asked, shown, shots=tuple(worked), order=document_order)
    limits = {"max_tokens": evidence_tokens if cite else reasoning_tokens, "stop": STOP}
    decoding: dict[str, Any] = limits if cite or answer_style == "cot" else {}
    if samples == 1:
        replies: tuple[str, ...] = ((yield from generate(prompt, **decoding)),)
    else:
        replies = yield from sample(prompt, samples, temperature, **decoding)
    if cite:
        answers = [cited(reply, names, evidence_limit) for reply in replies]
    else:
        chosen = CHOICES[evidence](asked, found, evidence_limit)
        if answer_style == "cot":
            answers = [replace(reasoned(reply), evidence=chosen) for reply in replies]
        else:
            answers = [Answer(answer_of(reply, answer_style), evidence=chosen) for reply in replies]
    text = most_frequent([one.text for one in answers])
    return replace(next(one for one in answers if one.text == text), passages=found)


def _cites(evidence: Evidence, shots: int) -> bool:
    """Whether the model is to cite.

    Raises:
        UserError: It is to be shown worked examples too, which cite nothing.
    """
    if evidence == "cite" and shots:
        raise UserError(f"shots={shots} and evidence=cite do not go together: the worked examples cite nothing.")
    return evidence == "cite"


def _search(text: str, n_queries: int, k: int, sentences: bool = False) -> Plan[tuple[Passage, ...]]:
    """The passages of one retrieval, or of several fused."""
    lists = []
    for variant in variants(text, n_queries):
        lists.append((yield from retrieve(variant, k, sentences=sentences)))
    return lists[0] if n_queries == 1 else reciprocal_rank(lists)
