"""A search agent: the model writes search calls and reads their results until it answers.

``protocol=plain`` (default) is for any model: lines ``Search: ...`` and ``Answer: ...``. What was said and found stands
at the end of the user message. After the last search the model is told to answer.

``protocol=search_r1`` is for the checkpoints of Search-R1 (arXiv:2503.09516, section 3.2): the model thinks in
``<think>``, searches by ``<search>``, reads ``<information>``, answers in ``<answer>``. It does what the evaluation of
the authors' code does (commit a14dc3a, ``search_r1/llm_agent/generation.py`` and ``scripts/nq_hotpotqa/evaluate.sh``):
the question ends in a question mark; all turns are one reply, in which the model goes on, thoughts included, through
the chat template where the tokenizer has one, also for base models; a turn ends at ``</search>``, ``</answer>`` or 500
tokens; a turn without a call is followed by a notice and counts as a search. After the last search the model has one
more turn, without another word; if that has no answer, there is none. Their ``infer.py`` differs: turns of 1,024
tokens, as many as the model takes, sampled at temperature 0.7, each after an empty line.

Defaults: 3 passages a search and at most 4 searches, as in the paper; greedy. That evaluation samples at temperature 1
with top_p 0.95: it asks for greedy decoding, but the batch of each turn is built without that setting
(``run_llm_loop``), and the engine's default is to sample. ``temperature=1.0`` does so, with top_p 1.

Departures: the wording of the prompts is ours, also that of ``search_r1``, while the checkpoints were trained on the
authors' (``scripts/search_r1_prompt.py`` makes a ``prompt_file=`` of it, with its form of results and its notice). A
turn without a call that can be read has the note ``malformed call``; a model without an answer abstains (note ``no
answer``). Search-R1's code searches for a blank query and takes a blank answer, which are malformed here; does not read
a call that the limit of tokens cuts off, which is read here; shows the first 500 tokens of results and the last 4,096
of the whole, so that the question is lost first. Here a transcript that is too long for the model loses its oldest
turns, then the lowest-ranked results of the last one (notes ``oldest turns forgotten``, ``results left out``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lm_eval_rag.harness.common.errors import TooLongError
from lm_eval_rag.harness.core.asks import generate, retrieve
from lm_eval_rag.harness.core.parameters import Depth, Natural, NonNegative, Positive
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query
from lm_eval_rag.methods.prompts.worded import Wording, wordings
from lm_eval_rag.methods.reasoning.rationales import answer_or_first_line
from lm_eval_rag.methods.reasoning.steps import abstention, final, limited, merged

TAG = re.compile(r"</?\w+>")
READ = 500  # characters of a malformed call that the model is shown again
FORGOTTEN, LEFT_OUT = "oldest turns forgotten", "results left out"


@dataclass(frozen=True, slots=True)
class Protocol:
    """How calls are written.

    Args:
        call: Finds a call: its kind (``search``, ``answer``) and its text.
        stop: What ends a turn; the model's reply comes without it.
        searched: A turn with a search in the transcript: what the model ``said``, and what it is ``told``.
        malformed: A turn without a call.
        one_reply: Whether the transcript is the beginning of a reply, in which the model goes on, each turn as it is;
            else it is told to the model, without white space around a turn and what the model makes up after a call.
    """

    call: re.Pattern[str]
    stop: tuple[str, ...]
    searched: str = "\n{said}\n{told}\n\n"
    malformed: str = "\n{said}\n{told}\n\n"
    one_reply: bool = False


PROTOCOLS = {
    "plain": Protocol(
        re.compile(
            # begins a line or a sentence, as "2. " and "Action:" do
            r"(?:^[ \t*>#`-]*(?:\(?\d{1,2}[.):][ \t*`]*)?(?:action[ \t*]*[:：][ \t*`]*)?|(?<=[.!?][ \t])[*`]*)"
            r"(?:final[ \t]+)?(?P<kind>search|answer)(?:[ \t]+query)?[^\w\n]{0,3}[:：]"
            r"(?:[ \t*`]*\n\s*(?!\W*(?:search|answer|final)\b))?(?P<text>[^\n]*)",  # on this line or on the next
            re.IGNORECASE | re.MULTILINE,
        ),
        ("\nResults:", "\nQuestion:"),
    ),
    "search_r1": Protocol(
        re.compile(r"<(?P<kind>search|answer)>(?P<text>.*?)(?:</(?:search|answer)>|\Z)", re.IGNORECASE | re.DOTALL),
        ("</search>", "</answer>"),
        "{said}</search>\n\n{told}\n\n",
        "{said}\n{told}\n",
        one_reply=True,
    ),
}


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn in the transcript.

    Args:
        form: How it is written.
        said: What the model wrote, up to the end of its call.
        told: The prompt of what follows: the results, or that the call cannot be read.
        results: The texts of the results, best first.
    """

    form: str
    said: str
    told: Wording
    results: list[str]

    def __str__(self) -> str:
        told = self.told.prompt(results=self.results, reply=self.said[:READ]).render()
        return self.form.format(said=self.said, told=told.strip())


@limited
def search_agent(
    query: Query,
    *,
    k: Depth = 3,
    max_searches: Natural = 4,
    protocol: Literal["plain", "search_r1"] = "plain",
    turn_tokens: Positive = 500,
    temperature: NonNegative = 0.0,
    prompt_file: str | None = None,
    max_calls: Positive | None = None,
) -> Plan[Answer]:
    """Answer after as many searches as the model makes.

    Args:
        k: Passages of each search.
        max_searches: Searches, at most, and turns before the last one, which should answer; 0 has that alone.
        protocol: Plain lines for any model, or Search-R1's tags for its checkpoints.
        turn_tokens: Limit of tokens of a turn.
        temperature: Of all turns.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
        max_calls: Calls of the model, at most; beyond them it abstains. None is as many as the parameters lead to.
    """
    wording, rules = wordings("search_agent", prompt_file), PROTOCOLS[protocol]
    question = _asked(query.text) if rules.one_reply else query.text
    transcript, lists, notes, replies = list[Turn](), list[tuple[Passage, ...]](), list[str](), list[str]()

    def ask(end: str = "") -> Plan[str]:
        """The model's next turn, after as much of the transcript as it can read."""
        decoding: dict[str, Any] = {"temperature": temperature, "max_tokens": turn_tokens, "stop": rules.stop}
        while True:
            so_far = f"{''.join(map(str, transcript))}{end}"
            told, begun = ("", so_far) if rules.one_reply else (so_far, "")
            prompt = wording[protocol].prompt(reasoning=told, begun=begun, question=question)
            try:
                return (yield from generate(prompt, **decoding, thinking=rules.one_reply))
            except TooLongError:
                if not transcript:
                    raise
                notes.append(_shorten(transcript))

    for _ in range(max_searches):
        reply = yield from ask()
        kind, text = _call(reply, rules)
        if kind == "answer":
            text = text if rules.one_reply else answer_or_first_line(text)
            return final(text, merged(reversed(lists)), notes, _reasoned([*replies, reply], rules))
        if kind == "search":
            lists.append((yield from retrieve(text, k)))
            said, results = _until_call(reply, rules), [passage.text for passage in lists[-1]]
            transcript.append(Turn(rules.searched, said, wording[f"{protocol}_results"], results))
        else:
            notes.append("malformed call")
            said = reply if rules.one_reply else reply.strip()
            transcript.append(Turn(rules.malformed, said, wording[f"{protocol}_malformed"], []))
        replies.append(reply)
    if rules.one_reply:
        replies.append((yield from ask()))
        kind, text = _call(replies[-1], rules)
    else:
        last = wording["plain_last"].prompt(question=question).render()
        reply = yield from ask(f"\n{last}")
        kind, text = _call(reply, rules)
        if kind != "answer":  # it goes on after "Answer:", perhaps with another search behind it
            kind, text = "answer", rules.call.split(reply, maxsplit=1)[0]
        text = answer_or_first_line(text)
    text = text if kind == "answer" else ""
    passages = merged(reversed(lists))
    if not text.strip():
        return abstention(passages, *notes, "no answer")
    return final(text, passages, notes, _reasoned(replies, rules))


def _asked(question: str) -> str:
    """The question as Search-R1 asks it."""
    return question if question.strip().endswith("?") else f"{question.strip()}?"


def _shorten(transcript: list[Turn]) -> str:
    """Take the least from a transcript: its oldest turn, but of the last one a result; returns the note on it."""
    if len(transcript) == 1 and transcript[0].results:
        transcript[0].results.pop()
        return LEFT_OUT
    del transcript[0]
    return FORGOTTEN


def _call(reply: str, protocol: Protocol) -> tuple[str | None, str]:
    """The first call of a turn: ``search`` or ``answer``, and its text; (None, "") without one, or with a blank one."""
    for match in protocol.call.finditer(reply):
        if match["text"].strip(" \n*`<>"):
            return match["kind"].lower(), match["text"].strip(" \n*`")
    return None, ""


def _until_call(reply: str, protocol: Protocol) -> str:
    """The turn up to the end of its call: what a model makes up after it, such as results, is left out."""
    if protocol.one_reply:
        return reply
    match = next(match for match in protocol.call.finditer(reply) if match["text"].strip(" \n*`<>"))
    return reply[: match.end("text")].strip()


def _reasoned(turns: Sequence[str], protocol: Protocol) -> str:
    """What the model wrote before the call of each turn, without tags."""
    before = (protocol.call.split(turn, maxsplit=1)[0] for turn in turns)
    return " ".join(" ".join(TAG.sub(" ", text).split()) for text in before).strip()
