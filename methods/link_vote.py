"""Trivial baseline: the entity most linked to the question's subject that the relation can have as its object.

Our own baseline, with neither rules nor a model; it looks at all documents. It knows what kind of thing is asked for,
and what belongs to the subject, but not how.
"""

from __future__ import annotations

from collections import Counter

from lm_eval_rag.harness.core.asks import facts, recognise
from lm_eval_rag.harness.core.types import Answer, Plan, Query


def link_vote(query: Query) -> Plan[Answer]:
    """Answer with the entity that most documents link to the subject, in either direction, in the relation's range.

    The range are the objects that any document states with the relation. Without such a link, the answer is the most
    frequent object of the relation. Ties go to the more frequent object of the relation.
    """
    subject, relation = yield from recognise(query.text)
    objects = yield from facts(relation=relation)
    links: Counter[str] = Counter()
    for inverse in (False, True) if subject else ():
        for one in (yield from facts(subject, inverse=inverse)):
            links[one.entity] += one.documents
    best = max(objects, key=lambda one: links[one.entity], default=None)  # the first of equals is the most frequent
    return Answer(best.entity if best else "", abstained=best is None)
