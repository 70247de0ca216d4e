"""Trivial baseline: the most recent object of the question's subject and relation.

Our own baseline, with neither rules nor a model; it looks at all documents. Most facts of YAGO and WIKI stay as they
are from year to year, so that the last known one is often right.
"""

from __future__ import annotations

from lm_eval_rag.harness.core.asks import facts, recognise
from lm_eval_rag.harness.core.types import Answer, Plan, Query


def last_object(query: Query) -> Plan[Answer]:
    """Answer with the object that a document states last of subject and relation; without times, most frequently.

    Of objects with the same last time, the most frequent is taken; ties are in alphabetical order.
    """
    subject, relation = yield from recognise(query.text)
    objects = (yield from facts(subject, relation)) if subject and relation else ()
    best = max(objects, key=lambda one: one.last or "", default=None)  # the first of equals is the most frequent
    return Answer(best.entity if best else "", abstained=best is None)
