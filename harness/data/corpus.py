"""A corpus: the documents that are retrieved from, with the rules and worked examples that belong to them.

A built corpus is a content-addressed folder ``$LM_EVAL_RAG_CACHE/<task>/<hash>`` of Parquet files. It is opened here
without importing its task. The columns stay in Arrow, and a :class:`Passage` is created on access, because a corpus may
hold half a million documents. :meth:`Corpus.of` builds a corpus in memory from a user's own documents.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir, read_text
from lm_eval_rag.harness.core.types import Passage, Query, Rule
from lm_eval_rag.harness.data.tables import damaged, encoded, one_chunk, read_parquet, values

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
        folder: Path | None = None,
        empty: bool = False,
    ) -> None:
        if not table.num_rows and not empty:
            raise UserError(f"Corpus {id!r} is empty, so nothing can be retrieved. Give at least one document.")
        self.id, self.fingerprint, self.folder = id, fingerprint, folder
        self._columns = {name: one_chunk(table.column(name)) for name in COLUMNS}
        self._rules = tuple(rules)
        self._sources = tuple(sources) if any(sources) else ()
        self._read: dict[int, tuple[Any, ...]] = {}  # by row, so that all passages of a document share their texts
        self._examples = None if examples is None else tuple(examples)

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
        fingerprint, sources = digest.hexdigest()[:16], [p.source for p in passages]
        return cls(table, id=id, fingerprint=fingerprint, rules=rules, examples=examples, sources=sources, empty=empty)

    def __len__(self) -> int:
        return len(self._columns["id"])

    @cached_property
    def texts(self) -> Sequence[str]:
        """The text of every document, by row."""
        texts: list[str] = self._columns["text"].to_pylist()
        return texts

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
            self._read[row] = (id, text, time, (self._sources[row] if self._sources else "") or self.id, whole)
        return [self._passage(int(row), float(score)) for row, score in hits]

    def _passage(self, row: int, score: float) -> Passage:
        id, text, time, source, fact = self._read[row]
        return Passage(id, text, score, time, source, fact)

    def part(self, rows: Sequence[int], id: str) -> Corpus:
        """A corpus of some of the documents, in the order of ``rows``, without rules and examples."""
        import pyarrow as pa

        table = pa.table({name: column.take(pa.array(rows, pa.int64())) for name, column in self._columns.items()})
        sources = [self._sources[row] for row in rows] if self._sources else [self.id] * len(rows)
        fingerprint = hashlib.sha256(json.dumps([self.fingerprint, list(rows)]).encode()).hexdigest()[:16]
        return Corpus(table, id=id, fingerprint=fingerprint, sources=sources, empty=True)

    def rules(self) -> tuple[Rule, ...]:
        """The rule bank, best first."""
        return self._rules

    def examples(self) -> tuple[Example, ...]:
        """The generator training set F_G as (query, first answer) pairs; () if there is none."""
        if self._examples is None:
            assert self.folder is not None
            self._examples = tuple(_read_examples(self.folder, self.id))
        return self._examples

    @cached_property
    def entities(self) -> tuple[str, ...]:
        """Names of all subjects and objects, sorted."""
        return tuple(sorted(self._names("subject") | self._names("object")))

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """Names of all relations of the documents and the rules, sorted."""
        return tuple(sorted(self._names("relation").union(*((rule.head, rule.body) for rule in self._rules))))

    def facts(self, subject: str) -> list[tuple[str, str, str | None]]:
        """(relation, object, time) of every document about a subject, in row order; [] for an unknown subject."""
        starts, rows = self._by_subject
        return [
            tuple(self._columns[name][row].as_py() for name in ("relation", "object", "time"))
            for row in rows[slice(*starts.get(subject, (0, 0)))].tolist()
        ]

    def wordings(self) -> dict[str, str]:
        """Paraphrase of a relation in the documents -> the relation's name.

        A paraphrase is the text between subject and object of a document that does not use the relation's name. If it
        stands for several relations, the most frequent is taken; ties go to the first name in alphabetical order.
        """
        counts = Counter(
            (text.partition(subject)[2].partition(object)[0].strip(), relation)
            for text, subject, relation, object in self._reworded()
        )
        ranked = sorted(counts, key=lambda pair: (-counts[pair], pair[1]), reverse=True)
        return {wording: relation for wording, relation in ranked if wording}

    def _reworded(self) -> list[tuple[str, str, str, str]]:
        """(text, subject, relation, object) of the documents that paraphrase their fact."""
        import pyarrow as pa
        import pyarrow.compute as pc

        join = pc.binary_join_element_wise
        documents: list[tuple[str, str, str, str]] = []
        for start in range(0, len(self), SLICE):
            slices = (self._columns[name].slice(start, SLICE) for name in COLUMNS[1:])
            text, *fact, time = (pc.cast(part, pa.string()) for part in slices)
            undated = join(join(*fact, " "), ".", "")
            rows = pc.indices_nonzero(pc.not_equal(text, pc.coalesce(join("Time", time, undated, " "), undated)))
            documents += zip(*(column.take(rows).to_pylist() for column in (text, *fact)), strict=True)
        pa.default_memory_pool().release_unused()
        return documents

    @cached_property
    def _by_subject(self) -> tuple[dict[str, tuple[int, int]], Any]:
        """Start and end of each subject's rows in the list of rows sorted by subject, and that list."""
        import numpy as np

        subjects = encoded(self._columns["subject"])
        names = subjects.dictionary.to_pylist()
        codes = subjects.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
        ends = np.cumsum(np.bincount(codes, minlength=len(names) + 1)).tolist()
        spans = zip([0, *ends], ends, strict=False)
        return dict(zip(names, spans, strict=False)), np.argsort(codes, kind="stable")

    def _names(self, column: str) -> set[str]:
        return set(encoded(self._columns[column]).dictionary.to_pylist()) - {None}


def open_corpus(corpus_id: str) -> Corpus:
    """Open the built corpus ``$LM_EVAL_RAG_CACHE/<corpus_id>``.

    Raises:
        UserError: There is no such folder, a file of it is missing or damaged, or it holds no document.
    """
    folder = cache_dir() / corpus_id
    if not (folder / "corpus.parquet").is_file():
        task = corpus_id.split("/")[0]
        raise UserError(
            f"There is no corpus {corpus_id!r} in {cache_dir()}. Build it with `lm-eval-rag build {task}`, "
            f"or set LM_EVAL_RAG_CACHE to the folder in which it was built."
        )
    meta = folder / "meta.json"
    try:
        fingerprint = json.loads(meta.read_text(encoding="utf-8"))["hash"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise damaged(meta, error) from None
    table = read_parquet(folder / "corpus.parquet", COLUMNS, coded=("subject", "relation", "object"))
    names = ("head", "body", "support", "body_support", "confidence", "repeat")
    rules = [Rule(**row) for row in read_parquet(folder / "rules.parquet", names).to_pylist()]
    return Corpus(table, id=corpus_id, fingerprint=fingerprint, rules=rules, examples=None, folder=folder)


def corpus_from_jsonl(path: str | Path, rules: Iterable[Rule] = (), examples: Iterable[Example] = ()) -> Corpus:
    """A corpus in memory from a file with one JSON object per line: id, text and, optionally, time and fact.

    ``fact`` is a list of three strings: subject, relation, object. Empty lines are skipped.

    Raises:
        UserError: The file is missing or a device, a line has the wrong form, an id is repeated, or there is no
            document.
    """
    path = Path(path)
    lines = read_text(path, "Give corpus= a UTF-8 file of JSON Lines.").split("\n")
    passages = [_passage_of(line, f"{path}, line {n}") for n, line in enumerate(lines, 1) if line.strip()]
    return Corpus.of(passages, rules, examples)


def _passage_of(line: str, where: str) -> Passage:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise UserError(f"{where}: not JSON ({error}). Write one object per line.") from None
    fields = row if isinstance(row, dict) else {}
    fact = fields.get("fact")
    good = isinstance(fields.get("id"), str) and isinstance(fields.get("text"), str)
    good = good and isinstance(fields.get("time"), str | None) and not set(fields) - {"id", "text", "time", "fact"}
    good = good and (fact is None or (isinstance(fact, list) and [type(part) for part in fact] == [str] * 3))
    if not good:
        raise UserError(
            f"{where}: found {line.strip()[:80]!r}. Needed: an object with the strings 'id' and 'text'. Optional: "
            f"the string 'time' and 'fact', a list of three strings (subject, relation, object)."
        )
    return Passage(fields["id"], fields["text"], time=fields.get("time"), fact=tuple(fact) if fact else None)


def _read_examples(folder: Path, corpus_id: str) -> Iterable[Example]:
    table = read_parquet(folder / "generator_train.parquet", ("id", "text", "time", "answers"))
    for row in table.to_pylist():
        yield Query(row["id"], row["text"], row["time"], corpus_id), row["answers"][0]
