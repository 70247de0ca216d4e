"""A corpus: the documents that are retrieved from, with the rules and worked examples that belong to them.

A built corpus is a content-addressed folder ``$LM_EVAL_RAG_CACHE/<task>/<hash>`` of Parquet files. It is opened here
without importing its task. The columns stay in Arrow, and a :class:`Passage` is created on access, because a corpus may
hold half a million documents. :meth:`Corpus.of` builds a corpus in memory from a user's own documents.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir, storing
from lm_eval_rag.harness.core.types import Passage, Query, Rule
from lm_eval_rag.harness.data.corpus_files import built_folder, read_examples, read_files, write_files, write_meta
from lm_eval_rag.harness.data.fact_columns import relations_beside, spans
from lm_eval_rag.harness.data.paraphrases import wordings_of
from lm_eval_rag.harness.data.question_forms import read_forms
from lm_eval_rag.harness.data.tables import encoded, one_chunk, values

COLUMNS = ("id", "text", "subject", "relation", "object", "time")
SLICE = 1 << 15  # documents that are worked on at once, where that takes memory
KEPT = 1 << 15  # documents whose texts are kept once they were read
Example = tuple[Query, str]


class Corpus:
    """Documents in a fixed order. A document's row is its index in this order, from 0; ties are broken by row.

    Args:
        table: Arrow table with the text columns ``COLUMNS``; all but id and text may be null.
        id: ``<task>/<hash>`` of a built corpus, or a name.
        fingerprint: Hash of the content.
        rules: The rule bank, best first.
        examples: (query, answer) pairs of F_G; None reads them from ``folder`` on first use.
        sources: Where each document comes from, by row; "" and () mean the corpus itself.
        metadata: Further fields of each document, by row; () for none.
        folder: The folder it was opened from; indexes may be stored there. None for a corpus in memory.
        empty: Whether a corpus without documents is allowed.
    """

    def __init__(
        self,
        table: Any,
        *,
        id: str,
        fingerprint: str,
        rules: Iterable[Rule] = (),
        examples: Iterable[Example] | None = (),
        sources: Sequence[str] = (),
        metadata: Sequence[Mapping[str, Any]] = (),
        folder: Path | None = None,
        empty: bool = False,
    ) -> None:
        if not table.num_rows and not empty:
            raise UserError(f"Corpus {id!r} is empty, so nothing can be retrieved. Give at least one document.")
        self.id, self.fingerprint, self.folder = id, fingerprint, folder
        self._columns = {name: one_chunk(table.column(name)) for name in COLUMNS}
        self._rules = tuple(rules)
        self._sources = tuple(sources) if any(sources) else ()
        self._metadata = tuple(metadata) if any(metadata) else ()
        self._read: dict[int, tuple[Any, ...]] = {}  # by row, so that all passages of a document share their texts
        self._examples = None if examples is None else tuple(examples)
        self.questions = folder  # the folder of its worked examples and of F_R
        self.forms: Mapping[str, str] = {}  # how questions about a relation are worded, where that is known
        self.whole: tuple[Corpus, Sequence[int]] | None = None  # what it is a part of, and its rows there

    @classmethod
    def of(
        cls,
        passages: Iterable[Passage],
        rules: Iterable[Rule] = (),
        examples: Iterable[Example] = (),
        *,
        id: str = "memory",
        empty: bool = False,
    ) -> Corpus:
        """A corpus in memory. Passage ids must be unique.

        Raises:
            UserError: No passage (unless ``empty``), or a duplicate id.
        """
        import pyarrow as pa

        passages = tuple(passages)
        rows = [(p.id, p.text, *(p.fact or (None, None, None)), p.time) for p in passages]
        rules, digest, seen = tuple(rules), hashlib.sha256(), set[str]()
        for row in rows:
            if row[0] in seen:
                raise UserError(f"Two documents have the id {row[0]!r}. Give each document its own id.")
            seen.add(row[0])
            digest.update(json.dumps(row).encode())
        digest.update(repr(rules).encode())
        columns = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
        table = pa.table({name: pa.array(column, pa.string()) for name, column in zip(COLUMNS, columns, strict=True)})
        return cls(
            table,
            id=id,
            fingerprint=digest.hexdigest()[:16],
            rules=rules,
            examples=examples,
            sources=[p.source for p in passages],
            metadata=[p.metadata for p in passages],
            empty=empty,
        )

    def __len__(self) -> int:
        return len(self._columns["id"])

    @classmethod
    def open(cls, folder: str | Path, id: str = "") -> Corpus:
        """Open the corpus in a folder, as :meth:`save` writes it.

        Args:
            id: Its id; "" for the folder's name.

        Raises:
            UserError: A file is missing or damaged, or there is no document.
        """
        folder = Path(folder)
        return cls(id=id or folder.name, examples=None, folder=folder, **vars(read_files(folder, COLUMNS)))

    def save(self, folder: str | Path) -> Path:
        """Write the corpus into a new folder: documents, rules and worked examples, as Parquet files.

        Returns:
            The folder. :meth:`open` reads it, and a task's YAML may name it as its ``corpus``.

        Raises:
            UserError: The folder exists and is not empty.
            MachineError: It cannot be written.
        """
        folder = Path(folder)
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError(f"{folder} exists already. Give Corpus.save a new folder.")
        with storing(folder, "Give Corpus.save another folder."):
            folder.mkdir(parents=True, exist_ok=True)
            self.write(folder)
            write_meta(folder, self.fingerprint)
        return folder

    def write(self, folder: Path) -> None:
        """Write the Parquet files of the corpus into a folder, without ``meta.json``."""
        examples = [(query.id, query.text, query.time, [answer]) for query, answer in self.examples()]
        write_files(folder, self._columns, self._sources, self._metadata, self._rules, examples)

    @cached_property
    def texts(self) -> Sequence[str]:
        """The text of every document, by row."""
        texts: list[str] = self._columns["text"].to_pylist()
        return texts

    def each_text(self) -> Iterator[str]:
        """The text of every document, by row; unlike ``texts``, it keeps none in memory."""
        for start in range(0, len(self), SLICE):
            yield from self._columns["text"].slice(start, SLICE).to_pylist()

    def texts_of(self, rows: Sequence[int]) -> list[str]:
        """The texts of some rows; unlike ``texts``, it keeps no text of the others in memory."""
        return values(self._columns["text"], rows)

    @property
    def ids(self) -> Any:
        """The ids of all documents by row, as an Arrow array of texts."""
        return self._columns["id"]

    def passage(self, row: int, score: float = 0.0) -> Passage:
        """The document at a row, with its retrieval score."""
        return self.passages([(row, score)])[0]

    def passages(self, hits: Sequence[tuple[int, float]]) -> list[Passage]:
        """The documents of (row, retrieval score) pairs; much faster for many at once than one by one."""
        if len(self._read) > KEPT:
            self._read.clear()
        rows = sorted({int(row) for row, _ in hits} - self._read.keys())
        columns = (values(self._columns[name], rows) for name in COLUMNS)
        for row, id, text, subject, relation, object, time in zip(rows, *columns, strict=True):
            whole = None if subject is None or relation is None or object is None else (subject, relation, object)
            source = (self._sources[row] if self._sources else "") or self.id
            self._read[row] = (id, text, time, source, whole, self._metadata[row] if self._metadata else {})
        return [self._passage(int(row), float(score)) for row, score in hits]

    def _passage(self, row: int, score: float) -> Passage:
        id, text, time, source, fact, metadata = self._read[row]
        return Passage(id, text, score, time, source, fact, metadata)

    def part(self, rows: Sequence[int], id: str) -> Corpus:
        """A corpus of some of the documents, in the order of ``rows``, without rules and examples."""
        import pyarrow as pa

        table = pa.table({name: column.take(pa.array(rows, pa.int64())) for name, column in self._columns.items()})
        sources = [self._sources[row] for row in rows] if self._sources else [self.id] * len(rows)
        metadata = [self._metadata[row] for row in rows] if self._metadata else ()
        fingerprint = hashlib.sha256(json.dumps([self.fingerprint, list(rows)]).encode()).hexdigest()[:16]
        part = Corpus(table, id=id, fingerprint=fingerprint, sources=sources, metadata=metadata, empty=True)
        part.whole = self, rows
        return part

    def worded(self, id: str, forms: Mapping[str, str], questions: Path) -> Corpus:
        """The same documents and rules with other wordings of the questions; indexes are shared.

        Args:
            forms: Relation -> form of its questions (:mod:`lm_eval_rag.harness.data.question_forms`).
            questions: The folder of the worked examples and of F_R.
        """
        other = copy.copy(self)
        other.id, other.forms, other.questions = id, forms, questions
        other._examples, other._read = None, {}
        return other

    def with_rules(self, rules: Iterable[Rule]) -> Corpus:
        """The same documents with another rule bank, in memory."""
        import pyarrow as pa

        rules, table = tuple(rules), pa.table(self._columns)
        fingerprint = hashlib.sha256(repr((self.fingerprint, rules)).encode()).hexdigest()[:16]
        other = Corpus(
            table,
            id=self.id,
            fingerprint=fingerprint,
            rules=rules,
            examples=self.examples(),
            sources=self._sources,
            metadata=self._metadata,
        )
        other.forms = self.forms
        return other

    def rules(self) -> tuple[Rule, ...]:
        """The rule bank, best first."""
        return self._rules

    def examples(self) -> tuple[Example, ...]:
        """The generator training set F_G as (query, first answer) pairs; () if there is none."""
        if self._examples is None:
            assert self.questions is not None
            rows = read_examples(self.questions)
            self._examples = tuple((Query(id, text, time, self.id), answers[0]) for id, text, time, answers in rows)
        return self._examples

    @cached_property
    def entities(self) -> tuple[str, ...]:
        """Names of all subjects and objects, sorted."""
        return tuple(sorted(self._names("subject") | self._names("object")))

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """Names of all relations of the documents and the rules, sorted."""
        return tuple(sorted(self._names("relation").union(*((rule.head, *rule.relations) for rule in self._rules))))

    def facts(self, subject: str) -> list[tuple[str, str, str | None]]:
        """(relation, object, time) of every document about a subject, in row order; [] for an unknown subject."""
        starts, rows = self._by_subject
        return [
            tuple(self._columns[name][row].as_py() for name in ("relation", "object", "time"))
            for row in rows[slice(*starts.get(subject, (0, 0)))].tolist()
        ]

    def fact_table(self) -> Any:
        """The facts of all documents as an Arrow table (subject, relation, object, time); null where there is none."""
        import pyarrow as pa

        return pa.table({name: self._columns[name] for name in ("subject", "relation", "object", "time")})

    def beside(self, relation: str) -> Mapping[str, int]:
        """Relations of the subjects that have ``relation`` too -> number of documents with it; {} if it is unknown."""
        return self._beside.get(relation, {})

    @cached_property
    def _beside(self) -> dict[str, dict[str, int]]:
        return relations_beside(self.fact_table())

    def wordings(self) -> dict[str, str]:
        """Paraphrase of a relation in the documents -> the relation's name; see :func:`.paraphrases.wordings_of`."""
        return wordings_of(self._columns, SLICE)

    @cached_property
    def _by_subject(self) -> tuple[dict[str, tuple[int, int]], Any]:
        """Start and end of each subject's rows in the list of rows sorted by subject, and that list."""
        return spans(self._columns["subject"])

    def _names(self, column: str) -> set[str]:
        return set(encoded(self._columns[column]).dictionary.to_pylist()) - {None}


def open_corpus(corpus_id: str) -> Corpus:
    """Open the built corpus ``$LM_EVAL_RAG_CACHE/<corpus_id>``.

    Raises:
        UserError: There is no such folder, a file of it is missing or damaged, or it holds no document.
    """
    if (reworded := read_forms(cache_dir() / corpus_id)) is not None:
        return open_corpus(reworded[0]).worded(corpus_id, reworded[1], cache_dir() / corpus_id)
    return Corpus.open(built_folder(corpus_id), corpus_id)
