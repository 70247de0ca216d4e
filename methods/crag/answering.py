"""From references to an answer: the reasoning form with its summariser, or a prompt for the answer alone."""

from __future__ import annotations

from dataclasses import dataclass

from lm_eval_rag.harness.core.asks import generate
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.methods.crag.corner_cases import settle, summarise
from lm_eval_rag.methods.crag.reasoning import read_reasoning, reason
from lm_eval_rag.methods.crag.references import References
from lm_eval_rag.methods.crag.replies import one_line
from lm_eval_rag.methods.crag.wording import END, asked, prompt


@dataclass(frozen=True, slots=True)
class Manner:
    """How it is answered.

    Args:
        reasoning: In the form; else with the answer alone.
        refined: The refined prompt for the answer alone; else the official baseline's.
        false_premise: Whether a false premise is looked for.
        reasoning_tokens: The most tokens of a reply in the form.
        answer_tokens: The most tokens of an answer alone.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
    """

    reasoning: bool = True
    refined: bool = True
    false_premise: bool = True
    reasoning_tokens: int = 512
    answer_tokens: int = 75
    prompt_file: str | None = None


def answered(query: Query, found: References, notes: list[str], manner: Manner) -> Plan[Answer]:
    """The answer that references lead to.

    Args:
        notes: Takes ``answer unread`` where the form is broken, so that the summariser is asked, and ``false premise
            unread`` where only that field is.
    """
    if not manner.reasoning:
        return settle((yield from _plainly(query, found, manner)), found, notes)
    reply = yield from reason(
        query,
        found.passages(),
        false_premise=manner.false_premise,
        max_tokens=manner.reasoning_tokens,
        prompt_file=manner.prompt_file,
    )
    read = read_reasoning(reply)
    if read is None:
        notes.append("answer unread")
        text = yield from summarise(query, reply, max_tokens=manner.answer_tokens, prompt_file=manner.prompt_file)
        return settle(text, found, notes)
    if manner.false_premise and read.false_premise is None:
        notes.append("false premise unread")
    return settle(read.answer, found, notes, invalid=manner.false_premise and read.false_premise)


def _plainly(query: Query, found: References, manner: Manner) -> Plan[str]:
    name = "baseline" if not manner.refined else "refined_false_premise" if manner.false_premise else "refined"
    shown = prompt(name, asked(query), found.passages(), prompt_file=manner.prompt_file)
    stop = ("\n\n\n", END)
    return one_line((yield from generate(shown, temperature=0.0, max_tokens=manner.answer_tokens, stop=stop)))
