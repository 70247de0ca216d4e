"""Numerical calculator (section 4.3): the model writes expressions, and something that can reckon reckons.

The paper evaluates them as Python; here they are parsed by :mod:`lm_eval_rag.harness.core.calculate`, and what is no
expression of its grammar is dropped and counted. Equal expressions are reckoned once. The model sees all that was
found, the graph's facts too.
"""

from __future__ import annotations

from lm_eval_rag.harness.core.asks import calculate, sample
from lm_eval_rag.harness.core.types import Plan, Query
from lm_eval_rag.methods.crag.references import References
from lm_eval_rag.methods.crag.replies import code_line
from lm_eval_rag.methods.crag.wording import END, asked, prompt

NOTHING = {"", '""', "''", "none", "null", "n/a"}


def calculations(
    query: Query, found: References, notes: list[str], *, samples: int, temperature: float, prompt_file: str | None
) -> Plan[tuple[str, ...]]:
    """``expression = value`` of each distinct expression that has a value.

    Args:
        notes: Takes ``calculation refused: <reason>`` for each that has none.
        samples: Expressions that the model writes.
    """
    shown = prompt("calculator", asked(query), found.passages(), prompt_file=prompt_file)
    replies = yield from sample(shown, samples, temperature, max_tokens=96, stop=("\n\n\n", END))
    lines = dict.fromkeys(code_line(reply) for reply in replies)
    results = []
    for line in (line for line in lines if line.lower() not in NOTHING):
        result = yield from calculate(line)
        if result.refused:
            notes.append(f"calculation refused: {result.refused}")
        else:
            results.append(f"{line} = {result.value}")
    return tuple(results)
