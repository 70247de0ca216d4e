"""What the metrics look at: one question with its gold answers, the answer given, and what was retrieved for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lm_eval_rag.harness.scoring.normalise import has_words, normalise
from lm_eval_rag.harness.scoring.verdict import Verdict, read_verdict

DONT_KNOW = "i don't know"
LABEL = "_label"  # the key of a document under which a person's label of the answer lies


@dataclass(frozen=True)
class Case:
    """One scored question.

    Args:
        answer: The answer as given.
        golds: Accepted answers in normal form; empty when the question has none.
        documents: (text, object or None) of every retrieved passage in normal form, best first; None when the method
            does not retrieve.
        depth: The largest k at which a recall of this list means something: the depth of its run.
        abstained: Whether the method declined to answer.
        verdict: What a judge, or CRAG's rules, made of the answer; None where there was no judge.
        label: A person's label of this answer (``perfect`` and so on), or None.
        seconds: Backend time that the answer took, or None where the run does not say.
    """

    answer: str
    golds: tuple[str, ...]
    documents: tuple[tuple[str, str | None], ...] | None = None
    depth: int = 0
    abstained: bool = False
    verdict: Verdict | None = None
    label: str | None = None
    seconds: float | None = None

    @cached_property
    def given(self) -> str:
        """The answer in normal form."""
        return normalise(self.answer)

    @cached_property
    def missing(self) -> bool:
        """Whether no answer was given: declined, blank, or "i don't know" anywhere in it (CRAG, arXiv:2406.04744)."""
        return self.abstained or declines(self.answer)

    @cached_property
    def answer_rank(self) -> int | None:
        """Rank, from 1, of the first document that states a gold answer; None when no document does.

        A document that is a fact states its object; a free text states whatever stands in it as whole words.
        """
        for rank, (text, stated) in enumerate(self.documents or (), start=1):
            if stated in self.golds or (stated is None and any(has_words(text, gold) for gold in self.golds)):
                return rank
        return None

    @cached_property
    def mention_rank(self) -> int | None:
        """Rank, from 1, of the first document with a gold answer anywhere in its text, inside words too, or None."""
        for rank, (text, _) in enumerate(self.documents or (), start=1):
            if any(gold in text for gold in self.golds):
                return rank
        return None


def read_case(doc: Mapping[str, Any], answer: str, rag: Mapping[str, Any] | None) -> Case:
    """A case from a task's document, a response, and the record that the adapter left (None for a stock model).

    ``depth`` is the record's ``k``, else the list's length.
    """
    rag = rag or {}
    passages = rag.get("passages")
    documents = None
    if passages is not None:
        documents = tuple((normalise(p["text"]), _stated(p.get("object"))) for p in passages)
    depth = rag.get("k")
    return Case(
        answer=answer,
        golds=tuple(gold for gold in dict.fromkeys(map(normalise, doc["answers"])) if gold),
        documents=documents,
        depth=len(documents or ()) if depth is None else depth,
        abstained=bool(rag.get("abstained")),
        verdict=read_verdict(doc),
        label=doc.get(LABEL),
        seconds=rag.get("seconds"),
    )


def declines(answer: str) -> bool:
    """Whether an answer is blank or has "i don't know" anywhere in it."""
    return not answer.strip() or DONT_KNOW in answer.lower().replace("’", "'")


def _stated(name: str | None) -> str | None:
    return None if name is None else normalise(name)
