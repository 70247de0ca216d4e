"""Builds a corpus on first use: fetch, read, make ids unique, write ``$LM_EVAL_RAG_CACHE/<corpus>/<hash>``.

Corpora are folders of their own, because several tasks share one, and Wikipedia should not lie on disk four times.
``corpus.parquet`` has the columns of every corpus, and ``title`` and ``sentences`` (null if the source does not split
its passages); sentence i of a passage is what evidence (passage, i) names.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.data.folders import CARD, content_folder, content_hash
from lm_eval_rag.harness.data.own_passages import FILE as OWN
from lm_eval_rag.harness.data.sources import Source, fetch, read_manifest, sha256_of
from lm_eval_rag.tasks.wikipedia import card
from lm_eval_rag.tasks.wikipedia.corpus_specs import CORPORA, Corpus
from lm_eval_rag.tasks.wikipedia.records import Page, Question, UniquePages, checked_questions

log = logging.getLogger(__name__)
VERSION = 1  # part of the folder's hash; increase it when the built data change
BATCH = 10_000  # passages of a row group
LOGGED = 1_000_000  # passages between two log messages
LARGE = 1_000_000  # passages from which a build is announced


@cache
def manifest() -> dict[str, Source]:
    """All upstream files by their name in the mirror."""
    return read_manifest(files(__package__) / "sources.toml")


def sources_of(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What cards and meta.json say of files; the hash of an unverified file is that of the fetched one."""
    known = [manifest()[name] for name in names]
    return {
        s.path: {"url": s.url, "sha256": sha256_of(s), "verified": s.verified, "licence": s.licence, "terms": s.terms}
        for s in known
    }


def corpus_id(name: str) -> str:
    """The id ``<corpus>/<hash>`` of a corpus, whether or not it is built: the hash is of its sources' hashes.

    Raises:
        UserError: Unknown corpus, or a source whose hash is not pinned and that is not available.
    """
    return f"{name}/{content_hash(_inputs(name, sources_of(_spec(name).files)))}"


def is_large(name: str) -> bool:
    """Whether it takes a long time and much disk to build a corpus."""
    return _spec(name).size >= LARGE


def _spec(name: str) -> Corpus:
    if name not in CORPORA:
        raise unknown("corpus", name, CORPORA)
    return CORPORA[name]


def _inputs(name: str, about: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """All that a corpus depends on."""
    return {"corpus": name, "version": VERSION, "sources": {path: one["sha256"] for path, one in about.items()}}


def build_corpus(name: str) -> str:
    """The id ``<corpus>/<hash>`` of a corpus, which is built if it does not exist.

    Raises:
        UserError: Unknown corpus, an unavailable or malformed source, or a damaged folder.
    """
    spec = _spec(name)
    about = sources_of(spec.files)
    inputs = _inputs(name, about)

    def write(folder: Path) -> Mapping[str, Any]:
        if is_large(name):
            log.warning("building %s, about %d passages: this takes a long time and much disk", name, spec.size)
        counts, notes = _write(folder, spec)
        meta = {**inputs, "about": spec.about, "counts": counts, "notes": notes, "sources": about}
        (folder / CARD).write_text(card.corpus_text(meta), encoding="utf-8")
        return meta

    return content_folder(name, inputs, write)


def _write(folder: Path, spec: Corpus) -> tuple[dict[str, int], dict[str, int]]:
    """Write the tables; return (counts, notes)."""
    import polars as pl

    notes: Counter[str] = Counter()
    unique, rows_of = UniquePages(notes), defaultdict[str, list[int]](list)
    with CorpusWriter(folder / "corpus.parquet") as writer:
        for question, page in _pages(spec, notes):
            row, id = unique.add(page)
            if id is not None:
                writer.add(id, page)
            if question is not None and row is not None and row not in rows_of[question]:
                rows_of[question].append(row)
    if not unique.size:
        raise UserError(f"No passage with text was found in {', '.join(spec.files)}.")
    if spec.own:
        pl.DataFrame(
            {"question": list(rows_of), "rows": list(rows_of.values())},
            schema={"question": pl.String, "rows": pl.List(pl.Int64)},
        ).write_parquet(folder / OWN)
    write_empty(folder)
    return {"passages": unique.size}, {note: n for note, n in notes.items() if n}


def _pages(spec: Corpus, notes: Counter[str]) -> Iterator[tuple[str | None, Page]]:
    """(question, passage) pairs; the question is None for a passage that belongs to none."""
    for read, names in spec.parts:
        items: Iterator[Any] = read([fetch(manifest()[name]) for name in names])
        first = next(items, None)
        if isinstance(first, Question):
            for question in checked_questions(_with(first, items), Counter()):
                yield from ((question.id, page) for page in question.context)
        elif first is not None:
            yield from ((None, page) for page in _with(first, items))


def _with(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


class CorpusWriter:
    """Writes passages in row groups, because a corpus may be larger than memory."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        text = ("id", "text", "subject", "relation", "object", "time", "title")
        fields = [(name, pa.large_string()) for name in text]
        self.schema = pa.schema([*fields, ("sentences", pa.list_(pa.large_string()))])
        self.file = pq.ParquetWriter(path, self.schema, compression="zstd")
        self.rows: list[dict[str, Any]] = []
        self.written = 0

    def __enter__(self) -> CorpusWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
        self.file.close()

    def add(self, id: str, page: Page) -> None:
        """Append one passage."""
        sentences = None if page.whole else list(page.sentences)
        self.rows.append({"id": id, "text": page.text, "title": page.title, "sentences": sentences})
        if len(self.rows) == BATCH:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        self.written += len(self.rows)
        if self.rows:
            self.file.write_table(pa.Table.from_pylist(self.rows, schema=self.schema))
        if self.rows and self.written % LOGGED == 0:
            log.info("%d passages written", self.written)
        self.rows = []


def write_empty(folder: Path) -> None:
    """The tables that every corpus has and these leave empty: rules, and worked examples."""
    import polars as pl

    text, whole = pl.String, pl.Int64
    rules: dict[str, Any] = {"head": text, "body": text, "support": whole, "body_support": whole}
    pl.DataFrame(schema={**rules, "confidence": pl.Float64, "repeat": pl.Boolean}).write_parquet(
        folder / "rules.parquet"
    )
    examples: dict[str, Any] = {"id": text, "text": text, "time": text, "answers": pl.List(text)}
    pl.DataFrame(schema=examples).write_parquet(folder / "generator_train.parquet")
