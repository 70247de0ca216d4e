"""Trivial baseline: the most frequent object of the question's relation.

Our own baseline, with neither rules nor a model; it looks at all documents. A method that does not beat it has learned
no more of a question than its relation.
"""

from __future__ import annotations

from lm_eval_rag.harness.core.asks import facts, recognise
from lm_eval_rag.harness.core.types import Answer, Plan, Query


def mode_of_relation(query: Query) -> Plan[Answer]:
    """Answer with the object that most documents state with the question's relation; ties in alphabetical order."""
    _, relation = yield from recognise(query.text)
    objects = yield from facts(relation=relation)
    return Answer(objects[0].entity if objects else "", abstained=not objects)
