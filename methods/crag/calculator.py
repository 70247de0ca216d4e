"""Numerical calculator (section 4.3): the model writes expressions, and a program calculates them.

The paper evaluates them as Python. Here :mod:`lm_eval_rag.harness.core.calculate` calculates them without executing
anything; expressions that it refuses are dropped and counted, and so are numbers alone, which are no calculation. Equal
expressions are calculated once. A result that the model wrote itself is not shown again, only the calculated one. The
model sees all references so far, including facts of the knowledge graph.
"""

from __future__ import annotations

from lm_eval_rag.harness.core.asks import calculate, sample
from lm_eval_rag.harness.core.types import Plan, Query
from lm_eval_rag.methods.crag.crag_prompts import END, prompt, question_text
from lm_eval_rag.methods.crag.references import References
from lm_eval_rag.methods.crag.replies import code_line

NOTHING = {"", '""', "''", "none", "null", "n/a"}


def calculations(
    query: Query, references: References, notes: list[str], *, samples: int, temperature: float, prompt_file: str | None
) -> Plan[tuple[str, ...]]:
    """``expression = value`` for each distinct expression that has a value, as it was calculated.

    Args:
        notes: Gets ``calculation refused: <reason>`` for each expression without a value, and ``nothing to calculate``
            for each that is its own value.
        samples: Number of expressions that the model writes.
    """
    shown = prompt("calculator", question_text(query), references.passages(), prompt_file=prompt_file)
    replies = yield from sample(shown, samples, temperature, max_tokens=96, stop=("\n\n\n", END))
    expressions = dict.fromkeys(code_line(reply) for reply in replies)
    results = dict[str, None]()
    for expression in (line for line in expressions if line.lower() not in NOTHING):
        result = yield from calculate(expression)
        if result.refused:
            notes.append(f"calculation refused: {result.refused}")
        elif result.expression == result.value:
            notes.append("nothing to calculate")
        else:
            results[f"{result.expression} = {result.value}"] = None
    return tuple(results)
