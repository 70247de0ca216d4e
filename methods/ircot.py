"""IRCoT: one retrieval for each sentence of a chain of thought (arXiv:2212.10509, section 3).

Retrieves with the question; then in turn the model writes the next sentence of its thoughts from all passages so far,
and this sentence is the next query. It ends when a sentence says "answer is", or after 10 sentences. At most 15
passages are kept, the first that came. A separate reader then answers from the question and these passages.

Defaults: 15 passages and 10 sentences, as in the released code; ``k`` of each retrieval is 6, as in its base
configuration for HotpotQA (the authors tune it between 2 and 8 for each data set and model); the reader thinks aloud
(``reader=direct`` answers at once). Greedy.

``variant=flashrag`` is the FlashRAG toolkit's (commit 1ee5249): passages in ascending order of their scores, so that
the worst stands first, all of them and not 15; a sentence ends at any full stop, also after "Dr."; "So the answer is:"
alone ends the thoughts, and a blank one does not; no reader, the answer is what follows these words, or all thoughts
without them; 2 sentences by default (``sentences=5``: its other configuration). Our prompt asks for no colon, so one
may be left out; line breaks before a sentence are skipped, where FlashRAG's sentence ends with them.

In a chat the thoughts so far begin the model's reply, in which it goes on; the authors' models and FlashRAG's pipeline
(commit 1ee5249, without a chat template) have them at the end of a raw text. A chat API cannot go on in its reply: it
reads them at the end of the user message, where FlashRAG gives OpenAI's models an assistant message.

Departures: the wording of the prompts is ours, without worked examples. A generation that is blank ends the thoughts
(note ``blank thought``); thoughts that end without an answer are noted ``no answer in thoughts``, a reader's reply that
states none ``answer unparsed`` (its last line is the answer).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from lm_eval_rag.harness.core.asks import generate, retrieve
from lm_eval_rag.harness.core.parameters import Depth, Positive
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query
from lm_eval_rag.methods.prompts.worded import wordings
from lm_eval_rag.methods.reasoning.rationales import (
    answer_or_line,
    first_sentence,
    rationale_of,
    states_answer,
)
from lm_eval_rag.methods.reasoning.steps import STOP, final, limited, merged

SENTENCES = {"paper": 10, "flashrag": 2}
FLASHRAG_END = re.compile(r"So the answer is:?")


@limited
def ircot(
    query: Query,
    *,
    k: Depth = 6,
    paragraphs: Depth = 15,
    sentences: Positive | None = None,
    reader: Literal["cot", "direct"] = "cot",
    variant: Literal["paper", "flashrag"] = "paper",
    thought_tokens: Positive = 100,
    reader_tokens: Positive = 256,
    prompt_file: str | None = None,
    max_calls: Positive | None = None,
) -> Plan[Answer]:
    """Answer from the passages that the thoughts lead to.

    Args:
        k: Passages of each retrieval.
        paragraphs: Passages kept, at most; ``flashrag`` keeps all.
        sentences: Sentences of thought, at most; None is 10, and 2 for ``flashrag``.
        reader: Whether the reader thinks aloud before it answers; ``flashrag`` has none.
        variant: ``paper``, or what FlashRAG makes of it.
        thought_tokens: Limit of tokens of a generation, of which the first sentence is kept.
        reader_tokens: Limit of tokens of the reader.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
        max_calls: Calls of the model, at most; beyond them it abstains. None is as many as the parameters lead to.
    """
    wording, paper = wordings("ircot", prompt_file), variant == "paper"
    most = paragraphs if paper else None
    passages = merged([(yield from retrieve(query.text, k))], most)
    thoughts: list[str] = []
    notes = ["no answer in thoughts"]
    while len(thoughts) < (sentences or SENTENCES[variant]):
        prompt = wording["thought"].prompt(passages, begun=" ".join(thoughts), question=query.text)
        reply = yield from generate(prompt, temperature=0.0, max_tokens=thought_tokens, stop=STOP)
        thought = first_sentence(reply) if paper else _to_full_stop(reply)
        if not thought:
            notes.append("blank thought")
            if paper:
                break
        thoughts.append(thought)
        if states_answer(thought) if paper else FLASHRAG_END.search(thought):
            notes = []
            break
        new = yield from retrieve(thought, k)
        passages = merged([passages, new], most) if paper else _worst_first([*passages, *new])
    if not paper:
        written = " ".join(thoughts)
        parts = FLASHRAG_END.split(written)
        answer = (parts[1] if len(parts) > 1 else written).strip().rstrip('."*')
        return final(answer, _worst_first(passages)[::-1], notes, rationale_of(written))
    prompt = wording[reader].prompt(passages, question=query.text)
    reply = yield from generate(prompt, temperature=0.0, max_tokens=reader_tokens, stop=STOP)
    if reader == "cot" and not states_answer(reply):
        notes.append("answer unparsed")
    rationale = rationale_of(reply if reader == "cot" else " ".join(thoughts))
    return final(answer_or_line(reply), passages, notes, rationale)


def _to_full_stop(reply: str) -> str:
    """The reply up to its first full stop or line break, whatever stands before it."""
    head, stop, _ = reply.strip().partition("\n")[0].partition(".")
    return (head + stop).strip()


def _worst_first(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """Each passage once with its best score, in ascending order of the scores."""
    best: dict[str, Passage] = {}
    for passage in passages:
        if passage.id not in best or passage.score > best[passage.id].score:
            best[passage.id] = passage
    return tuple(sorted(best.values(), key=lambda passage: passage.score))
