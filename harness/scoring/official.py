"""What the official scores of a benchmark need of a question: its family, its gold evidence, the predicted evidence.

A task asks for official scores with a key ``scoring`` in its documents: a name in :data:`FAMILIES`. Documents without
the key, as RuleQA's and CRAG's, have none of these scores. Other keys: ``facts`` (list of [passage, sentence]),
``evidence_sets`` (FEVER: list of such lists), ``gold`` (ids of the gold passages in the corpus), ``triples``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_rag.harness.data.parts import document_of

OWN = "own"  # questions of the user's: gold passages may be documents, of which one passage is enough
FAMILIES = ("hotpotqa", "2wiki", "fever", "musique", "open_domain", OWN)

Fact = tuple[str, int]  # id of a passage, index of a sentence from 0
Triple = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Official:
    """One question's input of official scores.

    Args:
        family: Whose rules are in force; a name in :data:`FAMILIES`.
        answers: The gold answers as they are written.
        facts: Gold supporting facts; None if the data have none.
        evidence_sets: FEVER's sets of sentences, each of which is sufficient; None if the data have none.
        gold: Ids of the gold passages; None if they are unknown, or if the corpus lacks one of them.
        triples: Gold facts (subject, relation, object); None if the data have none.
        predicted: The method's evidence, best first; None if the run predicts none.
        predicted_triples: The method's triples; None if the run predicts none.
        retrieved: Ids of the retrieved passages, best first; None if the method does not retrieve.
    """

    family: str
    answers: tuple[str, ...]
    facts: tuple[Fact, ...] | None = None
    evidence_sets: tuple[frozenset[Fact], ...] | None = None
    gold: tuple[str, ...] | None = None
    triples: tuple[Triple, ...] | None = None
    predicted: tuple[Fact, ...] | None = None
    predicted_triples: tuple[Triple, ...] | None = None
    retrieved: tuple[str, ...] | None = None


def read_official(doc: Mapping[str, Any], rag: Mapping[str, Any]) -> Official | None:
    """The official part of a document and its record; None if the task does not ask for official scores."""
    if doc.get("scoring") not in FAMILIES:
        return None
    sets, passages, evidence = doc.get("evidence_sets"), rag.get("passages"), rag.get("evidence")
    gold = None if doc.get("gold") is None else tuple(dict.fromkeys(doc["gold"]))
    retrieved = None if passages is None else tuple(passage["id"] for passage in passages)
    if doc["scoring"] == OWN and gold and retrieved:
        retrieved = tuple(id if id in gold else document_of(id) for id in retrieved)
    return Official(
        family=doc["scoring"],
        answers=tuple(doc["answers"]),
        facts=_facts(doc.get("facts")),
        evidence_sets=None if sets is None else tuple(frozenset(_facts(one) or ()) for one in sets),
        gold=gold,
        triples=_tuples(doc.get("triples")),
        predicted=_facts(evidence),
        predicted_triples=_tuples(rag.get("triples")),
        retrieved=retrieved,
    )


def _facts(rows: Sequence[Any] | None) -> tuple[Fact, ...] | None:
    """Facts from lists [passage, sentence] or from rows of a table with these two keys."""
    if rows is None:
        return None
    pairs = [(row["passage"], row["sentence"]) if isinstance(row, Mapping) else row for row in rows]
    return tuple((str(passage), int(sentence)) for passage, sentence in pairs)


def _tuples(rows: Sequence[Sequence[str]] | None) -> tuple[Triple, ...] | None:
    return None if rows is None else tuple(tuple(row) for row in rows)
