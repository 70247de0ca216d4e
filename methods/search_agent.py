"""A search agent: the model writes search calls and reads their results until it answers.

``protocol=search_r1`` speaks the tags of Search-R1 (arXiv:2503.09516, section 3.2): the model thinks in ``<think>``,
searches by ``<search>``, reads ``<information>``, answers in ``<answer>``; for its checkpoints, with ``chat=False`` for
base models. ``protocol=plain`` (default) is for any model: lines ``Search: ...`` and ``Answer: ...``.

Defaults: 3 passages a search and at most 4 searches, as in the paper; greedy.

Departures: the wording of the prompts is ours, also that of ``search_r1``, while the checkpoints were trained on the
paper's (``prompt_file=`` takes it); the number of turns is limited as the number of searches is: a turn without a call
that can be read counts as one (note ``malformed call``), and the model is told. After the last one it is asked for the
answer, without which it abstains (note ``no answer``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lm_eval_rag.harness.core.asks import generate, retrieve
from lm_eval_rag.harness.core.parameters import Depth, Natural, Positive
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query
from lm_eval_rag.methods.prompts.worded import wordings
from lm_eval_rag.methods.reasoning.steps import abstention, final, limited, merged

TAG = re.compile(r"</?\w+>")
READ = 500  # characters of a malformed call that the model is shown again


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


@limited
def search_agent(
    query: Query,
    *,
    k: Depth = 3,
    max_searches: Natural = 4,
    protocol: Literal["plain", "search_r1"] = "plain",
    turn_tokens: Positive = 500,
    prompt_file: str | None = None,
    max_calls: Positive = 10,
) -> Plan[Answer]:
    """Answer after as many searches as the model makes.

    Args:
        k: Passages of each search.
        max_searches: Searches, at most, and turns before the model is asked for the answer; 0 asks for it at once.
        protocol: Plain lines for any model, or Search-R1's tags for its checkpoints.
        turn_tokens: Limit of tokens of a turn.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
        max_calls: Calls of the model, at most; beyond them it abstains.
    """
    wording, rules = wordings("search_agent", prompt_file), PROTOCOLS[protocol]
    transcript, lists = "", list[tuple[Passage, ...]]()
    notes: list[str] = []
    turns: list[str] = []
    for _ in range(max_searches):
        prompt = wording[protocol].prompt(reasoning=transcript, question=query.text)
        reply = yield from generate(prompt, temperature=0.0, max_tokens=turn_tokens, stop=rules.stop)
        kind, text = _call(reply, rules)
        if kind == "answer":
            return final(text, merged(reversed(lists)), notes, _reasoned([*turns, reply], rules))
        if kind == "search":
            lists.append((yield from retrieve(text, k)))
            told = wording[f"{protocol}_results"].prompt(results=_shown(lists[-1])).render()
            turn = rules.closed.format(reply=_until_call(reply, rules))
        else:
            notes.append("malformed call")
            told = wording[f"{protocol}_malformed"].prompt(reply=reply.strip()[:READ]).render()
            turn = reply.strip()
        turns.append(reply)
        transcript = f"{transcript}\n{turn}\n{told}\n"
    last = wording[f"{protocol}_last"].prompt(question=query.text).render()
    prompt = wording[protocol].prompt(reasoning=f"{transcript}\n{last}", question=query.text)
    reply = yield from generate(prompt, temperature=0.0, max_tokens=turn_tokens, stop=(*rules.stop, "\n\n"))
    kind, text = _call(reply, rules)
    text = text if kind == "answer" else reply.strip().partition("\n")[0] if kind is None else ""
    passages = merged(reversed(lists))
    if not text.strip():
        return abstention(passages, *notes, "no answer")
    return final(text, passages, notes, _reasoned(turns, rules))


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


def _shown(passages: Sequence[Passage]) -> list[str]:
    return [passage.text for passage in passages]
