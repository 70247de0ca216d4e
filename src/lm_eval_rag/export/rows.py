"""A task's questions and passages as rows, read as the retrieval metrics read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_rag.harness.backends.corpora import Corpora
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Passage, Query
from lm_eval_rag.harness.data.page_store import split_id

SLICE = 10_000  # passages that are in memory at once
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Exported:
    """What is exported of one task.

    Args:
        name: Of the task.
        docs: Its documents, one a question.
    """

    name: str
    docs: Sequence[Mapping[str, Any]]

    @property
    def corpora(self) -> list[str]:
        """The corpora of the questions, each once."""
        return list(dict.fromkeys(doc["corpus"] for doc in self.docs))

    @property
    def own(self) -> bool:
        """Whether each question comes with passages of its own."""
        return split_id(self.corpora[0])[1] is not None

    @property
    def folders(self) -> list[str]:
        """The built folders of the corpora, ``<task>/<hash>``, each once."""
        return list(dict.fromkeys(split_id(corpus)[0] for corpus in self.corpora))

    def questions(self, with_answers: bool) -> Iterator[Row]:
        """id, question and time of each question; with gold answers and, where they are known, gold passages."""
        for doc in self.docs:
            row = {"id": str(doc["id"]), "question": doc["query"], "time": doc.get("time")}
            if with_answers:
                row |= {"answers": list(doc["answers"]), "gold_passages": doc.get("gold")}
            yield row

    def passages(self) -> Iterator[Row]:
        """id, text, time and fact of each passage, in the order of the corpus; ``question`` where it has its own."""
        corpora = Corpora()
        try:
            for query in self._queries():
                corpus = corpora.corpus(query)
                for start in range(0, len(corpus), SLICE):
                    rows = range(start, min(start + SLICE, len(corpus)))
                    for passage in corpus.passages([(row, 0.0) for row in rows]):
                        yield _row(passage) | ({"question": query.id} if self.own else {})
        finally:
            corpora.reading.close()

    def _queries(self) -> Iterator[Query]:
        """A query for each corpus."""
        seen: set[str] = set()
        for doc in self.docs:
            if doc["corpus"] not in seen:
                seen.add(doc["corpus"])
                yield Query(str(doc["id"]), doc["query"], doc.get("time"), doc["corpus"])


def exported(name: str, task: Any, limit: int | None = None) -> Exported:
    """A task of lm_eval, as it is exported.

    Raises:
        UserError: Its questions have no corpus.
    """
    docs = task.eval_docs
    rows = [docs[i] for i in range(len(docs) if limit is None else min(limit, len(docs)))]
    if not rows or any("query" not in doc or not doc.get("corpus") for doc in rows):
        raise UserError(f"The questions of {name} have no corpus, so there is nothing to index. Name a task of ours.")
    return Exported(name, rows)


def _row(passage: Passage) -> Row:
    """A line as ``corpus=FILE.jsonl`` takes it: what a passage lacks is left out."""
    row: Row = {"id": passage.id, "text": passage.text}
    row |= {"time": passage.time} if passage.time is not None else {}
    return row | ({"fact": list(passage.fact)} if passage.fact is not None else {})
