"""Think-then-Act: is the question clear, and does the model need documents at all? (arXiv:2406.13050, section 3).

First the model calls the question clear, incomplete or ambiguous. An incomplete one is written anew, an ambiguous one
becomes several precise ones. Then the model's confidence that it can answer from memory decides: at the threshold or
above it answers, below it retrieves and answers from the passages.

Defaults: threshold 0.5, about which the paper finds its best results; 5 passages.

Departures: the wording of the prompts is ours. The confidence is P(yes) / (P(yes) + P(no)) of the question whether it
can be answered without looking anything up; where the model gives no log-probabilities it is the number of 0 to 100
that the model states (note ``no log-probabilities: stated confidence``), and 0 where it states none (note ``confidence
unparsed``). The passages of several questions are merged in turn. Labels and rewritings that cannot be read leave the
question as it is (notes ``clarity unparsed``, ``rewriting unparsed``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lm_eval_rag.harness.core.asks import generate, log_probabilities, retrieve
from lm_eval_rag.harness.core.parameters import Depth, NonNegative, Positive
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.harness.retrieval.fusion import round_robin
from lm_eval_rag.methods.prompts.worded import Wording, wordings
from lm_eval_rag.methods.reasoning.judgements import PROXY, first_label, label_logs, shares
from lm_eval_rag.methods.reasoning.rationales import answer_or_first_line, lines, without_preamble
from lm_eval_rag.methods.reasoning.steps import STOP, final, limited

LABELS = ("clear", "incomplete", "ambiguous")
NUMBER = re.compile(r"\d+(?:\.\d+)?")


@limited
def think_then_act(
    query: Query,
    *,
    k: Depth = 5,
    documents: Positive = 5,
    threshold: NonNegative = 0.5,
    n_questions: Positive = 3,
    rewriting_tokens: Positive = 128,
    answer_tokens: Positive = 64,
    prompt_file: str | None = None,
    max_calls: Positive | None = None,
) -> Plan[Answer]:
    """Answer from memory where the model is confident, else from passages.

    Args:
        k: Passages of each retrieval.
        documents: Passages in the prompt, at most.
        threshold: The lowest confidence with which it answers from memory: 0 always does, above 1 it always retrieves.
        n_questions: Precise questions of an ambiguous one, at most.
        rewriting_tokens: Limit of tokens of a rewriting.
        answer_tokens: Limit of tokens of the answer.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
        max_calls: Calls of the model, at most; beyond them it abstains. None is as many as the parameters lead to.
    """
    wording = wordings("think_then_act", prompt_file)
    notes: list[str] = []
    assess = wording["assess"].prompt(question=query.text)
    label = first_label((yield from generate(assess, temperature=0.0, max_tokens=8, stop=STOP)), LABELS)
    notes += [] if label else ["clarity unparsed"]
    understood = [query.text]
    if label in ("incomplete", "ambiguous"):
        prompt = wording[label].prompt(question=query.text)
        reply = yield from generate(prompt, temperature=0.0, max_tokens=rewriting_tokens, stop=STOP)
        rewritten = lines(without_preamble(reply))[: 1 if label == "incomplete" else n_questions]
        notes += [] if rewritten else ["rewriting unparsed"]
        understood = rewritten or understood
    confidence = yield from _confidence(query.text, understood, wording, notes)
    lists = []
    if confidence < threshold:
        for question in understood:
            lists.append((yield from retrieve(question, k)))
    passages = round_robin(lists)
    prompt = wording["answer"].prompt(passages[:documents], question=query.text, questions=understood)
    reply = yield from generate(prompt, temperature=0.0, max_tokens=answer_tokens, stop=STOP)
    return final(answer_or_first_line(reply), passages, notes)


def _confidence(question: str, understood: list[str], wording: Mapping[str, Wording], notes: list[str]) -> Plan[float]:
    """How sure the model is that it can answer from memory, in [0, 1]."""
    logs = yield from log_probabilities()
    if logs:
        prompt = wording["confidence"].prompt(question=question, questions=understood)
        return shares((yield from label_logs(prompt, ("yes", "no"), logs)))["yes"]
    notes.append(f"{PROXY}: stated confidence")
    prompt = wording["stated"].prompt(question=question, questions=understood)
    stated = NUMBER.search((yield from generate(prompt, temperature=0.0, max_tokens=8, stop=STOP)))
    if stated is None:
        notes.append("confidence unparsed")
        return 0.0
    return min(float(stated[0]), 100.0) / 100
