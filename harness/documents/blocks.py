"""``lm-eval-rag build DOCUMENTS --out CORPUS``: a folder of documents becomes a corpus, block by block.

A block is some of the files, read and cut into passages. Finished blocks lie in ``$LM_EVAL_RAG_CACHE/documents`` until
all are there, so that an interrupted command goes on, and Ray's workers may make them (``--engine ray``). The corpus is
what :func:`~lm_eval_rag.harness.documents.intake.as_corpus` makes of the same folder, and only one block is in memory
at a time.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.extras import version
from lm_eval_rag.harness.common.paths import cache_dir, storing, written_whole
from lm_eval_rag.harness.common.progress import Meter
from lm_eval_rag.harness.common.ray_engine import RayEngine
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import COLUMNS
from lm_eval_rag.harness.data.corpus_files import DOCUMENTS, OPTIONAL, write_banks, write_meta
from lm_eval_rag.harness.documents.cutting import check_budget
from lm_eval_rag.harness.documents.intake import ALLOWED, OVERLAP, TOKENS, files_of, pieces, read_file, reasons
from lm_eval_rag.harness.documents.text_files import TextFiles

FORMAT = 1
BYTES, FILES = 32 << 20, 1000  # of a block at most, but for a single file that is larger
SHARED = "All machines need the same disk at this path: put the documents and LM_EVAL_RAG_CACHE on it."


@dataclass(frozen=True, slots=True)
class Block:
    """Some of the files.

    Args:
        folder: Where the finished block is written.
        number: Of the block, from 0.
        root: The folder of the documents.
        files: Their paths.
        alone: Whether there is one file in all.
        tokens: Limit of words and signs in a passage.
        overlap: Of two neighbouring passages.
    """

    folder: str
    number: int
    root: str
    files: tuple[str, ...]
    alone: bool
    tokens: int
    overlap: int

    @property
    def table(self) -> Path:
        """Its passages."""
        return Path(self.folder) / f"{self.number:05}.parquet"

    @property
    def note(self) -> Path:
        """What is in it, written last."""
        return self.table.with_suffix(".json")


@dataclass(frozen=True, slots=True)
class Note:
    """What a finished block has.

    Args:
        files: Number of files.
        passages: Number of passages.
        documents: (id, where it stands) of each document.
        unread: (file or row, why) of all that could not be read.
        sources: Whether any passage has a source.
        metadata: Whether any passage has further fields.
    """

    files: int
    passages: int
    documents: list[tuple[str, str]]
    unread: list[tuple[str, str]]
    sources: bool
    metadata: bool


@dataclass(frozen=True, slots=True)
class Built:
    """What was built: numbers of documents and passages, and (file or row, why) of all that could not be read."""

    documents: int
    passages: int
    unread: tuple[tuple[str, str], ...]


def build_corpus(
    source: Path, out: Path, *, tokens: int = TOKENS, overlap: int = OVERLAP, engine: RayEngine | None = None
) -> Built:
    """Write the corpus of a folder or file into a new folder, which :meth:`Corpus.open` opens.

    Args:
        source: Documents, as :func:`~lm_eval_rag.harness.documents.intake.read_documents` reads them.
        out: A folder that does not exist yet.
        tokens: Limit of words and signs in a passage, 1 or more.
        overlap: Words and signs that neighbouring passages of a document share at most, below ``tokens``.
        engine: Ray; None reads all in this process.

    Raises:
        UserError: ``out`` exists, a row of the wrong form, an id that is repeated, or no document.
        MachineError: A folder cannot be written, or a worker was killed again and again.
    """
    check_budget(tokens, overlap)
    if out.exists():
        raise UserError(f"--out {out} exists already. Give a new folder.")
    blocks = blocks_of(source, tokens, overlap)
    missing = [block for block in blocks if not block.note.exists()]
    sizes = [len(block.files) for block in missing]
    if engine is not None and missing:
        engine.run("reading of documents", read_block, missing, sizes, "files")
        unseen = [block.note.name for block in missing if not block.note.exists()]
        if unseen:
            raise UserError(f"Workers have written {', '.join(unseen)}, and {blocks[0].folder} lacks them. {SHARED}")
    elif missing:
        with Meter("reading of documents", sum(sizes), "files") as meter:
            for block in missing:
                meter.update(read_block(block))
    built = _merge(blocks, out, source)
    shutil.rmtree(blocks[0].folder, ignore_errors=True)
    return built


def blocks_of(source: Path, tokens: int, overlap: int) -> list[Block]:
    """The files of a folder, divided; the name of the blocks' folder depends on all that decides what is in them."""
    root, files = files_of(source)
    stats = [(str(file.absolute()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    if not stats:
        raise UserError(f"There are no documents in {source}. Give {ALLOWED}.")
    key = (FORMAT, version("lm_eval_rag"), tokens, overlap, BYTES, FILES, stats)
    folder = (cache_dir() / "documents" / hashlib.sha256(repr(key).encode()).hexdigest()[:16]).absolute()
    parts: list[list[str]] = [[]]
    held = 0
    for path, size, _ in stats:
        if parts[-1] and (held + size > BYTES or len(parts[-1]) == FILES):
            parts.append([])
            held = 0
        parts[-1].append(path)
        held += size
    place, alone = str(root.absolute()), len(stats) == 1
    return [Block(str(folder), number, place, tuple(part), alone, tokens, overlap) for number, part in enumerate(parts)]


def read_block(block: Block) -> int:
    """Read the files of one block, and write its passages; returns the number of files.

    Raises:
        UserError: A file is not there, or a row has the wrong form.
    """
    rows: list[tuple[Any, ...]] = []
    documents: list[tuple[str, str]] = []
    unread: list[tuple[str, str]] = []
    with TextFiles() as reader:
        for file in map(Path, block.files):
            if not file.is_file():
                raise UserError(f"{file} does not exist here. {SHARED}")
            for item in read_file(reader, file, Path(block.root), alone=block.alone):
                if isinstance(item, tuple):
                    unread.append(item)
                    continue
                documents.append((item.passage.id, item.where))
                rows += map(_row, pieces(item, block.tokens, block.overlap))
    note = Note(
        len(block.files), len(rows), documents, unread, any(row[6] for row in rows), any(row[7] for row in rows)
    )
    with storing(block.note):
        block.table.parent.mkdir(parents=True, exist_ok=True)
        _write_table(block.table, rows)
        beside = block.note.with_suffix(".new")
        beside.write_text(json.dumps(asdict(note)), encoding="utf-8")
        beside.replace(block.note)
    return note.files


def _row(passage: Passage) -> tuple[Any, ...]:
    fact = passage.fact or (None, None, None)
    metadata = json.dumps(passage.metadata) if passage.metadata else None
    return passage.id, passage.text, *fact, passage.time, passage.source or None, metadata


def _write_table(path: Path, rows: Sequence[tuple[Any, ...]]) -> None:
    import pyarrow.parquet as pq

    beside = path.with_suffix(".part")
    pq.write_table(_table(rows), beside, compression="zstd")
    beside.replace(path)


def _table(rows: Sequence[tuple[Any, ...]]) -> Any:
    import pyarrow as pa

    names = (*COLUMNS, *OPTIONAL)
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table({name: pa.array(values, pa.string()) for name, values in zip(names, columns, strict=True)})


def _merge(blocks: Sequence[Block], out: Path, source: Path) -> Built:
    """Write the blocks, in their order, as one corpus; its fingerprint is that of :meth:`Corpus.of`."""
    import pyarrow.parquet as pq

    notes = [Note(**json.loads(block.note.read_text(encoding="utf-8"))) for block in blocks]
    unread = tuple((where, why) for note in notes for where, why in note.unread)
    documents = _distinct(notes)
    passages = sum(note.passages for note in notes)
    if not passages:
        raise UserError(f"There are no documents in {source}{reasons(unread)}. Give {ALLOWED}.")
    wanted = [any(note.sources for note in notes), any(note.metadata for note in notes)]
    names = [*COLUMNS, *(name for name, has in zip(OPTIONAL, wanted, strict=True) if has)]
    digest, written = hashlib.sha256(), 0
    with written_whole(out) as folder:
        with pq.ParquetWriter(folder / DOCUMENTS, _table([]).select(names).schema, compression="zstd") as writer:
            for block in blocks:
                table = pq.read_table(block.table)
                for row in _rows(table):
                    digest.update(json.dumps(row).encode())
                writer.write_table(table.select(names))
                written += table.num_rows
        if written != passages:
            raise UserError(
                f"The blocks in {blocks[0].folder} have {written:,} passages, and their notes say {passages:,}. Remove "
                "that folder, and run the same command again."
            )
        _check_ids(pq.read_table(folder / DOCUMENTS, columns=["id"])["id"])
        digest.update(repr(()).encode())  # no rules
        write_banks(folder, (), ())
        write_meta(folder, digest.hexdigest()[:16])
    return Built(documents, passages, unread)


def _check_ids(ids: Any) -> None:
    """Raise if two passages have one id: a document may be named like a part of another."""
    import pyarrow.compute as pc

    if pc.count_distinct(ids).as_py() < len(ids):
        counts = pc.value_counts(ids)
        id = counts.field("values")[pc.index(pc.greater(counts.field("counts"), 1), True).as_py()]
        raise UserError(f"Two documents have the id {id.as_py()!r}. Give each document its own id.")


def _distinct(notes: Sequence[Note]) -> int:
    """The number of documents.

    Raises:
        UserError: Two have one id.
    """
    first: dict[str, int] = {}
    for number, note in enumerate(notes):
        for id, where in note.documents:
            if id in first:
                other = next(place for name, place in notes[first[id]].documents if name == id)
                raise UserError(f"{where}: {other} has the id {id!r} too. Give each document its own id.")
            first[id] = number
    return len(first)


def _rows(table: Any) -> Iterator[tuple[Any, ...]]:
    return zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True)
