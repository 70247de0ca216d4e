"""IRCoT: one retrieval for each sentence of a chain of thought (arXiv:2212.10509, section 3).

Retrieves with the question; then in turn the model writes the next sentence of its thoughts from all passages so far,
and this sentence is the next query. It ends when a sentence says "answer is", or after 8 sentences; the last one is no
query. At most 15 passages are kept, the first that came. A separate reader then answers from the question and these
passages.

Defaults: 15 passages and 8 sentences, as the paper says; ``k`` of each retrieval is 6, as in the released base
configuration for HotpotQA (the authors tune it between 2 and 8 for each data set and model); the reader thinks aloud
(``reader=direct`` answers at once). Greedy.

``variant=official`` is the authors' code (StonyBrookNLP/ircot at 68f617e, ``commaqa/inference/ircot.py``), where it
departs from the paper:

- The next query is the last sentence that states a fact. One that begins with thus, so, that is, therefore
  or hence, or that adds or subtracts numbers, is reasoning, and an earlier sentence is the query, or the
  question if there is none.
- Words such as who, which, how and is are left out of every query; a query without other words is not
  asked.
- 10 sentences. They end at "answer is", but not at "answer:".
- Passages of more than 600 words are left out, and a prompt shows the first 350 words of a passage. Here
  the title counts.
- The answer is what follows "answer is" in the first line of the reader's reply, or this whole line.
  (Theirs is always the whole line with ``reader=direct``.)

Not taken over: passages nearly equal to an earlier one are left out (ours: those with the same id); spaCy's sentences;
300 new tokens with Codex and 200 with Flan-T5 (``thought_tokens``, ``reader_tokens``); the page of an IIRC question
stays among the passages.

``variant=flashrag`` is the FlashRAG toolkit's (commit 1ee5249): the first prompt shows the passages best first, those
after a thought show them in ascending order of their scores, worst first; all of them are kept, not 15; a sentence ends
at any full stop, also after "Dr."; "So the answer is:" alone ends the thoughts, and a blank one does not; no reader,
the answer is what follows these words, or all thoughts without them; 2 sentences by default (``sentences=5``: its other
configuration). Our prompt asks for no colon, so one may be left out; line breaks before a sentence are skipped, where
FlashRAG's sentence ends with them.

In a chat the thoughts so far begin the model's reply, in which it goes on; the authors' models and FlashRAG's pipeline
(commit 1ee5249, without a chat template) have them at the end of a raw text. A chat API cannot go on in its reply: it
reads them at the end of the user message, where FlashRAG gives OpenAI's models an assistant message.

Departures: the wording of the prompts is ours, without worked examples. Models that have seen none may begin with
"Reasoning:", "Sure!" or a line that ends in a colon, and write Markdown: neither is part of a thought, except in
``flashrag``. A generation that is blank ends the thoughts (note ``blank thought``); thoughts that end without an answer
are noted ``no answer in thoughts``, a reader's reply that states none ``answer unparsed`` (its last line is the
answer).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Literal

from lm_eval_rag.harness.core.asks import generate, retrieve
from lm_eval_rag.harness.core.parameters import Depth, Positive
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query
from lm_eval_rag.methods.prompts.worded import wordings
from lm_eval_rag.methods.reasoning.rationales import (
    answer_or_first_line,
    answer_or_line,
    first_sentence,
    rationale_of,
    states_answer,
)
from lm_eval_rag.methods.reasoning.steps import STOP, final, limited, merged

SENTENCES = {"paper": 8, "official": 10, "flashrag": 2}
OFFICIAL_END = re.compile(r" answer is:? ")
FLASHRAG_END = re.compile(r"So the answer is:?")
ENDS: dict[str, Callable[[str], object]] = {
    "paper": states_answer,
    "official": OFFICIAL_END.search,
    "flashrag": FLASHRAG_END.search,
}
# of the authors' code
REASONING = re.compile(r"(?:thus|so)[ ,]|that is,|therefore|hence|.*\d [+-] (?:\d[\d,]*\.?)?\d+ = \d", re.IGNORECASE)
NOT_IN_QUERIES = frozenset({"who", "what", "when", "where", "why", "which", "how", "does", "is"})
LONGEST, SHOWN = 600, 350  # words of a passage


@limited
def ircot(
    query: Query,
    *,
    k: Depth = 6,
    paragraphs: Depth = 15,
    sentences: Positive | None = None,
    reader: Literal["cot", "direct"] = "cot",
    variant: Literal["paper", "official", "flashrag"] = "paper",
    thought_tokens: Positive = 100,
    reader_tokens: Positive = 256,
    prompt_file: str | None = None,
    max_calls: Positive | None = None,
) -> Plan[Answer]:
    """Answer from the passages that the thoughts lead to.

    Args:
        k: Passages of each retrieval.
        paragraphs: Passages kept, at most; ``flashrag`` keeps all.
        sentences: Sentences of thought, at most; None is 8, 10 for ``official`` and 2 for ``flashrag``.
        reader: Whether the reader thinks aloud before it answers; ``flashrag`` has none.
        variant: ``paper``, or what the authors' code or FlashRAG makes of it.
        thought_tokens: Limit of tokens of a generation, of which the first sentence is kept.
        reader_tokens: Limit of tokens of the reader.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
        max_calls: Calls of the model, at most; beyond them it abstains. None is as many as the parameters lead to.
    """
    wording, official, flashrag = wordings("ircot", prompt_file), variant == "official", variant == "flashrag"
    most, last = None if flashrag else paragraphs, sentences or SENTENCES[variant]
    passages = merged([(yield from (_short_ones(query.text, k) if official else retrieve(query.text, k)))], most)
    thoughts: list[str] = []
    notes = ["no answer in thoughts"]
    while len(thoughts) < last:
        shown = _cut(passages) if official else passages
        order = "best_last" if flashrag and thoughts else "best_first"
        prompt = wording["thought"].prompt(shown, begun=" ".join(thoughts), order=order, question=query.text)
        reply = yield from generate(prompt, temperature=0.0, max_tokens=thought_tokens, stop=STOP)
        thought = _to_full_stop(reply) if flashrag else first_sentence(reply)
        if not thought:
            notes.append("blank thought")
            if not flashrag:
                break
        thoughts.append(thought)
        if ENDS[variant](thought):
            notes = []
            break
        if len(thoughts) == last and not flashrag:
            break
        new = yield from (_short_ones(_last_fact(query.text, thoughts), k) if official else retrieve(thought, k))
        passages = _best_first([*passages, *new]) if flashrag else merged([passages, new], most)
    if flashrag:
        written = " ".join(thoughts)
        parts = FLASHRAG_END.split(written)
        answer = (parts[1] if len(parts) > 1 else written).strip().rstrip('."*')
        return final(answer, _best_first(passages), notes, rationale_of(written))
    prompt = wording[reader].prompt(_cut(passages) if official else passages, question=query.text)
    reply = yield from generate(prompt, temperature=0.0, max_tokens=reader_tokens, stop=STOP)
    if reader == "cot" and not ENDS[variant](_first_line(reply) if official else reply):
        notes.append("answer unparsed")
    rationale = rationale_of(reply if reader == "cot" else " ".join(thoughts))
    read = answer_or_line if reader == "cot" else answer_or_first_line
    answer = _after_last_end(_first_line(reply)) if official else read(reply)
    return final(answer, passages, notes, rationale)


def _first_line(reply: str) -> str:
    return reply.strip().partition("\n")[0]


def _last_fact(question: str, thoughts: Sequence[str]) -> str:
    """The last sentence that is no reasoning; the question if all are."""
    return next((thought for thought in reversed(thoughts) if not REASONING.match(thought)), question)


def _short_ones(text: str, k: int) -> Plan[list[Passage]]:
    """The passages of up to 600 words among the best ``k`` for a query without question words; none if it is blank."""
    query = " ".join(word for word in text.split(" ") if word.strip().lower() not in NOT_IN_QUERIES)
    passages = (yield from retrieve(query, k)) if query.strip() else ()
    return [passage for passage in passages if len(passage.text.split(" ")) <= LONGEST]


def _cut(passages: Iterable[Passage]) -> list[Passage]:
    """Their first 350 words."""
    return [replace(passage, text=" ".join(passage.text.split(" ")[:SHOWN])) for passage in passages]


def _after_last_end(line: str) -> str:
    """What follows the last "answer is" without one full stop; the whole line without these words."""
    *before, answer = OFFICIAL_END.split(line)
    return answer.removesuffix(".") if before else line


def _to_full_stop(reply: str) -> str:
    """The reply up to its first full stop or line break, whatever stands before it."""
    head, stop, _ = _first_line(reply).partition(".")
    return (head + stop).strip()


def _best_first(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """Each passage once with its best score, in descending order of the scores."""
    best: dict[str, Passage] = {}
    for passage in passages:
        if passage.id not in best or passage.score > best[passage.id].score:
            best[passage.id] = passage
    return tuple(sorted(best.values(), key=lambda passage: passage.score))[::-1]
