"""Verify-and-Edit: rationales whose answers disagree are corrected sentence by sentence (arXiv:2305.03268, section 3).

Several chains of thought are sampled without documents. If the majority's answer has at least half of the votes, it is
the answer. If not, the majority's rationale is edited: for each of its sentences the model writes a question to look
up, and the answer from the passages retrieved for it takes the sentence's place. Each sentence is corrected by itself.
The answer is then given anew from the edited rationale.

Defaults: 5 samples at temperature 0.7, fewer than 3 votes (half of them, rounded up) lead to editing, 3 passages.

``variant=official`` is the authors' code since b585f24 (2023-12-09; RuochenZhao/Verify-and-Edit at 0ca0624): it divides
the votes by the number of samples and compares the share with 3, so that every rationale is edited, also where all
samples agree. Of the majority's rationales it edits the one with the highest mean probability; other variants the
first. Before that commit the code compared the sum of the mean probabilities of equal answers with 3. Not taken over:
for HotpotQA it samples at temperature 0, and ``consistency.py`` passes an argument too many, which is an error.

Departures: the wording of the prompts is ours, without worked examples; the run's retriever finds passages, where the
paper takes the three best sentences of DrQA's, Wikipedia's or Google's results. The mean probability is the geometric
mean over words, not tokens; without log-probabilities the first rationale is edited (note ``no log-probabilities: first
rationale``). Samples that state no answer have no vote (note ``answer unparsed``). A sentence stays where the model
writes no question or no answer (note ``sentence not edited``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from lm_eval_rag.harness.core.asks import (
    generate,
    log_probabilities,
    retrieve,
    sample,
    together,
)
from lm_eval_rag.harness.core.parameters import Depth, NonNegative, Positive
from lm_eval_rag.harness.core.prompts import Prompt
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.harness.retrieval.fusion import round_robin
from lm_eval_rag.harness.scoring.normalise import count_words
from lm_eval_rag.methods.prompts.worded import wordings
from lm_eval_rag.methods.reasoning.judgements import PROXY, log_of
from lm_eval_rag.methods.reasoning.rationales import (
    answer_or_first_line,
    consistency,
    first_sentence,
    lines,
    rationale_of,
    sentences,
    states_answer,
    without_preamble,
)
from lm_eval_rag.methods.reasoning.steps import STOP, abstention, final, limited


@limited
def verify_and_edit(
    query: Query,
    *,
    k: Depth = 3,
    samples: Positive = 5,
    temperature: NonNegative = 0.7,
    variant: Literal["paper", "official"] = "paper",
    thought_tokens: Positive = 256,
    step_tokens: Positive = 64,
    prompt_file: str | None = None,
    max_calls: Positive | None = None,
) -> Plan[Answer]:
    """Answer by the majority, or by its rationale once it is edited.

    Args:
        k: Passages of each retrieval.
        samples: Sampled rationales.
        temperature: Of the samples; all else is greedy.
        variant: What counts as agreement, and which rationale of the majority is edited.
        thought_tokens: Limit of tokens of a rationale.
        step_tokens: Limit of tokens of a question to look up, of its answer, and of the last answer.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
        max_calls: Calls of the model, at most; beyond them it abstains. None is as many as the parameters lead to.
    """
    wording = wordings("verify_and_edit", prompt_file)
    prompt = wording["rationale"].prompt(question=query.text)
    replies = yield from sample(prompt, samples, temperature, max_tokens=thought_tokens, stop=STOP)
    agreed = consistency(replies)
    notes = [] if all(map(states_answer, replies)) else ["answer unparsed"]
    if not _is_edited(agreed.votes, samples, variant):
        return final(agreed.answer, (), notes, agreed.rationale)
    lists, facts = [], []
    rationale = agreed.rationale
    if variant == "official" and len(set(agreed.replies)) > 1:
        rationale = yield from _likeliest(prompt, agreed.replies, notes)
    for sentence in sentences(rationale):
        prompt = wording["verify"].prompt(question=query.text, sentence=sentence)
        reply = yield from generate(prompt, temperature=0.0, max_tokens=step_tokens, stop=STOP)
        question = next(iter(lines(without_preamble(reply))), "")
        fact = ""
        if question:
            lists.append((yield from retrieve(question, k)))
            prompt = wording["edit"].prompt(lists[-1], question=question)
            fact = first_sentence((yield from generate(prompt, temperature=0.0, max_tokens=step_tokens, stop=STOP)))
        notes += [] if fact else ["sentence not edited"]
        facts.append(fact or sentence)
    if not facts and not agreed.answer:
        return abstention((), *notes, "no rationale")
    prompt = wording["answer"].prompt(question=query.text, facts=facts)
    reply = yield from generate(prompt, temperature=0.0, max_tokens=step_tokens, stop=STOP)
    return final(answer_or_first_line(reply), round_robin(lists), notes, " ".join(facts))


def _likeliest(prompt: Prompt, replies: Sequence[str], notes: list[str]) -> Plan[str]:
    """The rationale of the reply with the highest mean probability; of equal ones the first."""
    given = yield from log_probabilities()
    if not given:
        notes.append(f"{PROXY}: first rationale")
        return rationale_of(replies[0])
    logs = yield from together(log_of(prompt, reply, reply.strip(), given) for reply in replies)
    means = [log / count_words(reply) for log, reply in zip(logs, replies, strict=True)]
    return rationale_of(replies[means.index(max(means))])


def _is_edited(votes: int, samples: int, variant: str) -> bool:
    """Whether the agreement is too low: fewer votes than half of the samples, rounded up."""
    half = (samples + 1) // 2
    return votes / samples < half if variant == "official" else votes < half
