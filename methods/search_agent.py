"""A search agent: the model writes search calls and reads their results until it answers.

``protocol=search_r1`` speaks the tags of Search-R1 (arXiv:2503.09516, section 3.2): the model thinks in ``<think>``,
searches by ``<search>``, reads ``<information>``, answers in ``<answer>``; for its checkpoints, with ``chat=False`` for
base models. ``protocol=plain`` (default) is for any model: lines ``Search: ...`` and ``Answer: ...``.

Defaults: 3 passages a search and at most 4 searches, as in the paper; greedy.

Departures: the wording of the prompts is ours, also that of ``search_r1``, while the checkpoints were trained on the
paper's (``prompt_file=`` takes it); the number of turns is limited as the number of searches is: a turn without a call
that can be read counts as one (note ``malformed call``), and the model is told. After the last one it is asked for the
answer, without which it abstains (note ``no answer``). A transcript that is too long for the model loses its oldest
turns, then the lowest-ranked results of the last one (notes ``oldest turns forgotten``, ``results left out``);
Search-R1's code keeps the last tokens, so it loses the question first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lm_eval_rag.harness.common.errors import TooLongError
from lm_eval_rag.harness.core.asks import generate, retrieve
from lm_eval_rag.harness.core.parameters import Depth, Natural, Positive
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query
from lm_eval_rag.methods.prompts.worded import Wording, wordings
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
        closed: Stands after a call in the transcript, by kind.
    """

    call: re.Pattern[str]
    stop: tuple[str, ...]
    closed: str


PROTOCOLS = {
    "plain": Protocol(
        re.compile(r"^[ \t*>#-]*(?P<kind>search|answer)\W{0,3}:(?P<text>[^\n]*)", re.IGNORECASE | re.MULTILINE),
        ("\nResults:", "\nQuestion:"),
        "{reply}",
    ),
    "search_r1": Protocol(
        re.compile(r"<(?P<kind>search|answer)>(?P<text>.*?)(?:</(?:search|answer)>|\Z)", re.IGNORECASE | re.DOTALL),
        ("</search>", "</answer>"),
        "{reply}</search>",
    ),
}


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn in the transcript.

    Args:
        said: What the model wrote, up to the end of its call.
        told: The prompt of what follows: the results, or that the call cannot be read.
        results: The texts of the results, best first.
    """

    said: str
    told: Wording
    results: list[str]

    def __str__(self) -> str:
        return f"\n{self.said}\n{self.told.prompt(results=self.results, reply=self.said[:READ]).render()}\n"


@limited
def search_agent(
    query: Query,
    *,
    k: Depth = 3,
    max_searches: Natural = 4,
    protocol: Literal["plain", "search_r1"] = "plain",
    turn_tokens: Positive = 500,
    prompt_file: str | None = None,
    max_calls: Positive | None = None,
) -> Plan[Answer]:
    """Answer after as many searches as the model makes.

    Args:
        k: Passages of each search.
        max_searches: Searches, at most, and turns before the model is asked for the answer; 0 asks for it at once.
        protocol: Plain lines for any model, or Search-R1's tags for its checkpoints.
        turn_tokens: Limit of tokens of a turn.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
        max_calls: Calls of the model, at most; beyond them it abstains. None is as many as the parameters lead to.
    """
    wording, rules = wordings("search_agent", prompt_file), PROTOCOLS[protocol]
    transcript, lists, notes, replies = list[Turn](), list[tuple[Passage, ...]](), list[str](), list[str]()

    def ask(end: str = "", stop: tuple[str, ...] = ()) -> Plan[str]:
        """The model's next turn, after as much of the transcript as it can read."""
        while True:
            prompt = wording[protocol].prompt(reasoning=f"{''.join(map(str, transcript))}{end}", question=query.text)
            try:
                return (yield from generate(prompt, temperature=0.0, max_tokens=turn_tokens, stop=(*rules.stop, *stop)))
            except TooLongError:
                if not transcript:
                    raise
                notes.append(_shorten(transcript))

    for _ in range(max_searches):
        reply = yield from ask()
        kind, text = _call(reply, rules)
        if kind == "answer":
            return final(text, merged(reversed(lists)), notes, _reasoned([*replies, reply], rules))
        if kind == "search":
            lists.append((yield from retrieve(text, k)))
            said = rules.closed.format(reply=_until_call(reply, rules))
            transcript.append(Turn(said, wording[f"{protocol}_results"], [passage.text for passage in lists[-1]]))
        else:
            notes.append("malformed call")
            transcript.append(Turn(reply.strip(), wording[f"{protocol}_malformed"], []))
        replies.append(reply)
    last = wording[f"{protocol}_last"].prompt(question=query.text).render()
    reply = yield from ask(f"\n{last}", ("\n\n",))
    kind, text = _call(reply, rules)
    text = text if kind == "answer" else reply.strip().partition("\n")[0] if kind is None else ""
    passages = merged(reversed(lists))
    if not text.strip():
        return abstention(passages, *notes, "no answer")
    return final(text, passages, notes, _reasoned(replies, rules))


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
        if match["text"].strip(" \n*<>"):
            return match["kind"].lower(), match["text"].strip(" \n*")
    return None, ""


def _until_call(reply: str, protocol: Protocol) -> str:
    """The turn up to the end of its call: what a model makes up after it, such as results, is left out."""
    match = next(match for match in protocol.call.finditer(reply) if match["text"].strip(" \n*<>"))
    return reply[: match.end("text")].strip()


def _reasoned(turns: Sequence[str], protocol: Protocol) -> str:
    """What the model wrote before the call of each turn, without tags."""
    before = (protocol.call.split(turn, maxsplit=1)[0] for turn in turns)
    return " ".join(" ".join(TAG.sub(" ", text).split()) for text in before).strip()
