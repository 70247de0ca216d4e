"""Input of the metrics: one question's gold answers, its answer, and the documents retrieved for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lm_eval_rag.harness.scoring.normalise import has_words, normalise
from lm_eval_rag.harness.scoring.official import Official, read_official
from lm_eval_rag.harness.scoring.squad import CLOSED
from lm_eval_rag.harness.scoring.verdict import Verdict, read_verdict

DONT_KNOW = "i don't know"
GROUNDING = "grounding"  # key in a record: judges' verdict on the rationale
LABEL = "_label"  # key in a task document: a person's label of the answer


@dataclass(frozen=True)
class Case:
    """One scored question.

    Args:
        answer: The answer, unchanged.
        golds: Gold answers in normal form; empty if the question has none.
        documents: (text, object or None) of every retrieved passage, best first; None if the method does not retrieve.
            They are brought into normal form when a score looks at them: most scores need the first few alone.
        depth: The largest k for which recall@k is scored: the depth of the run.
        abstained: Whether the method abstained.
        verdict: Verdict of a judge or of CRAG's rules; None if there was no judge.
        label: A person's label of this answer (such as ``perfect``), or None.
        seconds: Backend time of this answer, or None if the run does not record it.
        official: What a benchmark's official scores need; None if the task does not ask for them.
        question: The question, unchanged.
        rationale: The reasoning that led to the answer; None if the method writes none.
        likelihood: ln P of the reply that holds the answer, and its number of words; None if the run did not ask.
        grounded: Judges' verdict on the rationale, in [0, 1]; None without one.
    """

    answer: str
    golds: tuple[str, ...]
    documents: tuple[tuple[str, str | None], ...] | None = None
    depth: int = 0
    abstained: bool = False
    verdict: Verdict | None = None
    label: str | None = None
    seconds: float | None = None
    official: Official | None = None
    question: str = ""
    rationale: str | None = None
    likelihood: tuple[float, int] | None = None
    grounded: float | None = None

    @cached_property
    def normal_answer(self) -> str:
        """The answer in normal form."""
        return normalise(self.answer)

    @cached_property
    def sought(self) -> tuple[str, ...]:
        """The gold answers that a document may state: with official scores no label, and neither yes nor no."""
        if self.official is None:
            return self.golds
        return () if self.official.family == "fever" else tuple(gold for gold in self.golds if gold not in CLOSED)

    @property
    def closed(self) -> bool:
        """Whether every gold answer is a label, or yes or no, so that no document states one."""
        return bool(self.golds) and not self.sought

    @cached_property
    def missing(self) -> bool:
        """Whether the method abstained, or the answer is blank or contains "i don't know" (CRAG, arXiv:2406.04744)."""
        return self.abstained or is_missing(self.answer)

    @cached_property
    def answer_rank(self) -> int | None:
        """Rank, from 1, of the first document that states a gold answer, or None.

        A fact states its object; a free text states every phrase that it contains as whole words.
        """
        for rank, (text, stated) in enumerate(self.documents or (), start=1):
            if self.states(text, stated):
                return rank
        return None

    def states(self, text: str, stated: str | None) -> bool:
        """Whether a document with this text, or a fact with this object, states a gold answer."""
        if stated is not None:
            return normalise(stated) in self.sought
        normal = normalise(text)
        return any(has_words(normal, gold) for gold in self.sought)

    @cached_property
    def mention_rank(self) -> int | None:
        """Rank, from 1, of the first document whose text contains a gold answer, also as part of a word, or None."""
        for rank, (text, _) in enumerate(self.documents or (), start=1):
            normal = normalise(text)
            if any(gold in normal for gold in self.sought):
                return rank
        return None


def read_case(doc: Mapping[str, Any], answer: str, rag: Mapping[str, Any] | None) -> Case:
    """A case from a task's document, a response, and the record that the adapter wrote (None for a stock model).

    ``depth`` is the record's ``k``, else the number of passages.
    """
    rag = rag or {}
    passages = rag.get("passages")
    documents = None
    if passages is not None:
        documents = tuple((p["text"], p.get("object")) for p in passages)
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
        official=read_official(doc, rag),
        question=str(doc.get("query") or ""),
        rationale=rag.get("rationale"),
        likelihood=tuple(rag["likelihood"]) if rag.get("likelihood") else None,
        grounded=(rag.get(GROUNDING) or {}).get("grounded"),
    )


def is_missing(answer: str) -> bool:
    """Whether an answer is blank or contains "i don't know"."""
    return not answer.strip() or DONT_KNOW in answer.lower().replace("’", "'")
