"""From references to an answer: by the reasoning form with its summariser, or by a prompt for the answer alone."""

from __future__ import annotations

from dataclasses import dataclass

from lm_eval_rag.harness.core.asks import generate
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.methods.crag.corner_cases import settle, summarise
from lm_eval_rag.methods.crag.crag_prompts import ANSWER_ENDS, prompt, question_text
from lm_eval_rag.methods.crag.reasoning import read_premise, read_reasoning, reason
from lm_eval_rag.methods.crag.references import References
from lm_eval_rag.methods.crag.replies import answer_line, one_line

ANSWER_TOKENS = 50  # in the three official baselines; also the competition's limit (arXiv:2408.05141, section 3)


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """How a question is answered.

    Args:
        reasoning: Use the reasoning form; otherwise ask for the answer alone.
        refined: Without the form, use the refined prompt; otherwise that of the official baseline.
        false_premise: Look for a false premise.
        reasoning_tokens: Limit of tokens of a reply in the form.
        answer_tokens: Limit of tokens of an answer alone.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
    """

    reasoning: bool = True
    refined: bool = True
    false_premise: bool = True
    reasoning_tokens: int = 512
    answer_tokens: int = ANSWER_TOKENS
    prompt_file: str | None = None


def baseline_settings(answer_tokens: int, prompt_file: str | None) -> AnswerSettings:
    """Those of the three official baselines: their prompt, and nothing else."""
    return AnswerSettings(False, False, False, answer_tokens=answer_tokens, prompt_file=prompt_file)


def answer_from(query: Query, references: References, notes: list[str], settings: AnswerSettings) -> Plan[Answer]:
    """The answer from the references. The official baseline's is the whole reply, as in the official kit.

    Args:
        notes: Gets ``answer unparsed`` if the reply is not in the form, so that the summariser is asked, and ``false
            premise unparsed`` if only that field is missing.
    """
    if not settings.reasoning:
        read = answer_line if settings.refined else one_line
        return settle((yield from _answer_alone(query, references, settings)), references, notes, read=read)
    reply = yield from reason(
        query,
        references.passages(),
        false_premise=settings.false_premise,
        max_tokens=settings.reasoning_tokens,
        prompt_file=settings.prompt_file,
    )
    reasoned, premise = read_reasoning(reply), read_premise(reply) if settings.false_premise else None
    if reasoned is None:
        notes.append("answer unparsed")
        summary = summarise(query, reply, max_tokens=settings.answer_tokens, prompt_file=settings.prompt_file)
        return settle((yield from summary), references, notes, invalid=premise, read=answer_line)
    if settings.false_premise and premise is None:
        notes.append("false premise unparsed")
    return settle(reasoned.answer, references, notes, invalid=premise)


def _answer_alone(query: Query, references: References, settings: AnswerSettings) -> Plan[str]:
    refined = "refined_false_premise" if settings.false_premise else "refined"
    name = refined if settings.refined else "baseline"
    shown = prompt(name, question_text(query), references.passages(), prompt_file=settings.prompt_file)
    return (yield from generate(shown, temperature=0.0, max_tokens=settings.answer_tokens, stop=ANSWER_ENDS))
