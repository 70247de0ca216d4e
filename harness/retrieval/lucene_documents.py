"""The documents of a Lucene index that was made elsewhere, as rows of a corpus.

Anserini stores the id of each document (field ``id``) and, by default, its source (field ``raw``), which is JSON.
Passages are read from the corpus: the index only says which.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.data.folders import META
from lm_eval_rag.harness.retrieval.document_ids import DocumentIds
from lm_eval_rag.harness.retrieval.lucene_prebuilt import PREBUILT, Naming

ID, RAW = "id", "raw"
LEFT_OUT = ("empty passage", "repeated passage")  # notes of a corpus: what its build has left out


class IndexDocuments:
    """Which document of an index is which row of the corpus.

    Args:
        searcher: Lucene's, over the index.
        corpus: With the same documents.
        name: Of the index, for messages.
        named_by: What is the id in the corpus: the stored id, or the title in the stored source.

    Raises:
        UserError: The index has no stored ids, another number of documents, or ids that the corpus lacks.
    """

    def __init__(self, searcher: Any, corpus: Corpus, name: str, named_by: Naming) -> None:
        self._fields, self._corpus = searcher.storedFields(), corpus
        self._name, self._named_by, self._ids = name, named_by, DocumentIds(corpus)
        check_count(int(searcher.getIndexReader().numDocs()), corpus, name)
        last = int(searcher.getIndexReader().maxDoc()) - 1
        self.rows(sorted({0, last // 2, last}))

    def rows(self, documents: Sequence[int]) -> list[int | None]:
        """The row of each of Lucene's document numbers; None for a document without text, which a corpus leaves out.

        Raises:
            UserError: The corpus lacks a document with text.
        """
        names = [self._id_in_corpus(document) for document in documents]
        rows = self._ids.rows(names)
        for document, name, row in zip(documents, names, rows, strict=True):
            if row is None and _body(self._stored(document)):
                raise _mismatch(self._name, self._corpus, f"the corpus has no document {name!r}")
        return rows

    def _id_in_corpus(self, document: int) -> str:
        stored = self._fields.document(document)
        if self._named_by == "title":
            return str(self._stored(document).get("title", "")).strip()
        id = stored.get(ID)
        if id is None:
            raise UserError(
                f"The documents of the index {self._name} have no stored field {ID!r}, so they cannot be found in the "
                "corpus. Give an index that Anserini or Pyserini has made."
            )
        return str(id)

    def _stored(self, document: int) -> dict[str, Any]:
        """The stored source of a document; {} if there is none."""
        raw = self._fields.document(document).get(RAW)
        try:
            source = json.loads(raw or "{}")
        except ValueError:
            source = {"contents": raw}
        if self._named_by == "title" and "title" not in source:
            raise UserError(
                f"The documents of the index {self._name} have no stored title (field {RAW!r}, JSON with a title). "
                "Leave out retriever_index_names=title, or make the index with -storeRaw."
            )
        return source if isinstance(source, dict) else {}


def check_count(documents: int, corpus: Corpus, name: str) -> None:
    """Raise a UserError if an index of so many documents cannot be that of the corpus.

    A corpus leaves out documents without text and repeated ones, which its build has counted; an index does not.
    """
    if not 0 <= documents - len(corpus) <= _left_out(corpus):
        raise _mismatch(name, corpus, f"it has {documents:,} documents, the corpus {len(corpus):,}")


def _mismatch(name: str, corpus: Corpus, what: str) -> UserError:
    made_from = f" {PREBUILT[name].corpus}" if name in PREBUILT else ""
    return UserError(
        f"The index {name} does not fit the corpus {corpus.id}: {what}. Choose the corpus{made_from} that it was made "
        "from (--metadata '{\"corpus\": ...}'; docs/retrieval.md), or another index."
    )


def _left_out(corpus: Corpus) -> int:
    """How many documents of the source the build of the corpus has left out, by its own count."""
    meta = corpus.folder / META if corpus.folder else None
    if meta is None or not meta.is_file():
        return 0
    notes = json.loads(meta.read_text(encoding="utf-8")).get("notes") or {}
    return sum(int(notes.get(note, 0)) for note in LEFT_OUT)


def _body(source: dict[str, Any]) -> str:
    """The text of a stored source without its title; "?" if it is not stored."""
    if "text" in source:
        return str(source["text"]).strip()
    return str(source.get("contents", "?\n?")).partition("\n")[2].strip()
