"""Chain-of-Knowledge: rationales are corrected in sequence, each by those before it (arXiv:2305.13269, section 3).

Several chains of thought are sampled without documents. If the majority's answer has at least half of the votes, it is
the answer. If not, the first sentence of the majority's rationale is corrected by passages retrieved for it; the model
goes on from the corrected sentence, and its next sentence is corrected in turn, until it states an answer. So an error
in an early sentence does not reach the later ones. The answer is then given from all corrected sentences.

Defaults: 5 samples at temperature 0.7, fewer than 3 votes (half of them, rounded up) lead to correction, 3 passages, at
most 5 corrected sentences.

Departures: the wording of the prompts is ours, without worked examples. The paper first chooses domains with several
sources each (Wikidata by SPARQL, tables, medical and other sites) and has a fine-tuned writer of queries; here the
model writes the query, and the run's retriever and corpus are the one source. The paper has two rationales a question;
here they are sentences, as many as the model needs. Samples that state no answer have no vote (note ``answer
unparsed``); a sentence stays where its correction is blank (note ``sentence not corrected``).
"""

from __future__ import annotations

from lm_eval_rag.harness.core.asks import generate, retrieve, sample
from lm_eval_rag.harness.core.parameters import Depth, NonNegative, Positive
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query
from lm_eval_rag.harness.retrieval.fusion import round_robin
from lm_eval_rag.methods.prompts.worded import wordings
from lm_eval_rag.methods.reasoning.rationales import (
    answer_or_first_line,
    consistency,
    first_sentence,
    lines,
    states_answer,
    without_preamble,
)
from lm_eval_rag.methods.reasoning.steps import STOP, abstention, final, limited


@limited
def chain_of_knowledge(
    query: Query,
    *,
    k: Depth = 3,
    samples: Positive = 5,
    temperature: NonNegative = 0.7,
    sentences: Positive = 5,
    thought_tokens: Positive = 256,
    step_tokens: Positive = 64,
    prompt_file: str | None = None,
    max_calls: Positive | None = None,
) -> Plan[Answer]:
    """Answer by the majority, or by its rationale once it is corrected.

    Args:
        k: Passages of each retrieval.
        samples: Sampled rationales.
        temperature: Of the samples; all else is greedy.
        sentences: Sentences that are corrected, at most.
        thought_tokens: Limit of tokens of a rationale.
        step_tokens: Limit of tokens of a query, of a correction, and of the last answer.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
        max_calls: Calls of the model, at most; beyond them it abstains. None is as many as the parameters lead to.
    """
    wording = wordings("chain_of_knowledge", prompt_file)
    rationale = wording["rationale"].prompt(question=query.text)
    replies = yield from sample(rationale, samples, temperature, max_tokens=thought_tokens, stop=STOP)
    agreed = consistency(replies)
    notes = [] if all(map(states_answer, replies)) else ["answer unparsed"]
    if agreed.votes >= (samples + 1) // 2:
        return final(agreed.answer, (), notes, agreed.rationale)
    lists: list[tuple[Passage, ...]] = []
    known: list[str] = []
    sentence = first_sentence(agreed.rationale)
    while sentence and not states_answer(sentence):
        prompt = wording["query"].prompt(question=query.text, known=known, sentence=sentence)
        reply = yield from generate(prompt, temperature=0.0, max_tokens=step_tokens, stop=STOP)
        lists.append((yield from retrieve(next(iter(lines(without_preamble(reply))), sentence), k)))
        prompt = wording["correct"].prompt(lists[-1], known=known, sentence=sentence)
        reply = yield from generate(prompt, temperature=0.0, max_tokens=step_tokens, stop=STOP)
        notes += [] if reply.strip() else ["sentence not corrected"]
        known.append(first_sentence(reply) or sentence)
        if len(known) == sentences:
            break
        rationale = wording["rationale"].prompt(begun=" ".join(known), question=query.text)
        reply = yield from generate(rationale, temperature=0.0, max_tokens=step_tokens, stop=STOP)
        sentence = first_sentence(reply)
    if not known and not agreed.answer:
        return abstention((), *notes, "no rationale")
    prompt = wording["answer"].prompt(question=query.text, facts=known)
    reply = yield from generate(prompt, temperature=0.0, max_tokens=step_tokens, stop=STOP)
    return final(answer_or_first_line(reply), round_robin(lists), notes, " ".join(known))
