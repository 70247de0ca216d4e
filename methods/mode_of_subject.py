"""Trivial baseline: the most frequent object of the question's subject.

Our own baseline, with neither rules nor a model; it looks at all documents. It ignores what is asked of the subject.
"""

from __future__ import annotations

from lm_eval_rag.harness.core.asks import facts, recognise
from lm_eval_rag.harness.core.types import Answer, Plan, Query


def mode_of_subject(query: Query) -> Plan[Answer]:
    """Answer with the object that most documents state of the question's subject; ties in alphabetical order."""
    subject, _ = yield from recognise(query.text)
    objects = (yield from facts(subject=subject)) if subject else ()
    return Answer(objects[0].entity if objects else "", abstained=not objects)
