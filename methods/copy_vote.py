"""Copy vote: the reader's baseline, with neither rules nor a model, on the documents that a generator would read.

Our own baseline: the most frequent object of the question's subject among the documents of one retrieval. A generator
that reads the same documents and scores less does not read them well.
"""

from __future__ import annotations

from collections import Counter

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.asks import retrieve
from lm_eval_rag.harness.core.parameters import Depth
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.harness.rules.guided import NO_SUBJECT, facts_about


def copy_vote(query: Query, *, k: Depth = 10) -> Plan[Answer]:
    """Answer with the object that most retrieved documents state of the question's subject; ties go to the best ranked.

    The confidence of an answer is its share of the documents that state an object of the subject.

    Args:
        k: Documents retrieved.
    """
    documents = yield from retrieve(query.text, k)
    if documents and not any(one.fact for one in documents):
        raise UserError(
            "copy_vote copies from facts, and no retrieved document states one (subject, relation, object). Take a "
            "task with facts, such as ruleqa_i, or documents with these three fields."
        )
    votes = Counter(answer for _, answer, _ in facts_about(query.text, documents))
    best = max(votes, key=lambda name: votes[name], default="")  # the first of equals is the best ranked
    share = votes[best] / votes.total() if best else None
    notes = (NO_SUBJECT,) if documents and not votes else ()
    return Answer(best, documents, abstained=not best, notes=notes, confidence=share)
