"""``answer_style=cot``: a chain of thought before the answer, for methods that otherwise answer at once."""

from __future__ import annotations

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Answer
from lm_eval_rag.methods.reasoning.rationales import answer_or_line, rationale_of, states_answer

REASONED = "reasoned_answer"  # its prompts


def check_reasoning(shots: int, cite: bool = False) -> None:
    """Raise a UserError for what does not go together with it: worked examples and cited sentences do not reason."""
    if shots or cite:
        given = f"shots={shots}" if shots else "evidence=cite"
        raise UserError(f"{given} and answer_style=cot do not go together: leave one of them out.")


def reasoned(reply: str) -> Answer:
    """The answer that a chain of thought states, else its last line; its reasoning is the rationale."""
    notes = () if states_answer(reply) else ("answer unparsed",)
    return Answer(answer_or_line(reply), notes=notes, rationale=rationale_of(reply))
