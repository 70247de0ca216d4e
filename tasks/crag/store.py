"""Writes the store that :mod:`lm_eval_rag.harness.data.page_store` opens, record by record, equal pages once."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.data.page_store import pack
from lm_eval_rag.tasks.crag.schema import LABELS, Page, Record

ROWS = pa.schema(
    [
        *((name, pa.string()) for name in ("name", "url", "snippet", "modified", "sha")),
        *((name, pa.int64()) for name in ("offset", "packed", "size")),
        ("note", pa.string()),
    ]
)
QUESTIONS = pa.schema(
    [
        *((name, pa.string()) for name in ("id", "query", "time")),
        ("answers", pa.list_(pa.string())),
        *((name, pa.string()) for name in LABELS),
        ("split", pa.int64()),
        ("first", pa.int64()),
        ("pages", pa.int64()),
    ]
)
BATCH = 1_000  # rows of one write


class Writer:
    """Compresses pages into a file and records the position of each distinct one.

    Args:
        packed: The file.
        rows: Writer of the table of pages.
    """

    def __init__(self, packed: BinaryIO, rows: pa.RecordBatchFileWriter) -> None:
        self._packed, self._sink = packed, rows
        self._places: dict[str, tuple[int, int, int]] = {"": (0, 0, 0)}
        self._rows: list[dict[str, Any]] = []
        self.count = 0

    def add(self, page: Page) -> None:
        """Write one page; of a page that was written before, only its position."""
        sha = hashlib.sha256(page.html.encode("utf-8", "surrogatepass")).hexdigest()[:32] if page.html else ""
        if sha not in self._places:
            packed, size = pack(page.html)
            self._places[sha] = (self._packed.tell(), len(packed), size)
            self._packed.write(packed)
        place = dict(zip(("offset", "packed", "size"), self._places[sha], strict=True))
        texts = {"name": page.name, "url": page.url, "snippet": page.snippet, "modified": page.modified}
        self._rows.append(
            {key: _writable(text) for key, text in texts.items()} | {"sha": sha, "note": page.note} | place
        )
        self.count += 1
        if len(self._rows) == BATCH:
            self.flush()

    def flush(self) -> None:
        """Write the buffered rows."""
        if self._rows:
            self._sink.write_batch(pa.RecordBatch.from_pylist(self._rows, schema=ROWS))
        self._rows = []

    @property
    def distinct(self) -> int:
        """Number of distinct pages that are not empty."""
        return len(self._places) - 1


def write_store(folder: Path, records: Iterable[Record]) -> dict[str, Any]:
    """Write questions and pages into an empty folder.

    Returns:
        Counts of questions, pages and distinct pages, of every slice, and of every note.

    Raises:
        UserError: There is no record.
    """
    questions: list[dict[str, Any]] = []
    notes, ids = Counter[str](), Counter[str]()
    with (
        (folder / "pages.zst").open("wb") as packed,
        pa.OSFile(str(folder / "pages.arrow"), "wb") as sink,
        pa.ipc.new_file(sink, ROWS) as rows,
    ):
        packed.write(b"\0")  # an empty file cannot be mapped
        writer = Writer(packed, rows)
        for number, record in enumerate(records):
            first = writer.count
            for page in record.pages:
                writer.add(page)
            questions.append(_question(record, number, first, ids))
            notes.update([*record.notes, *_page_notes(record)])
        writer.flush()
    if not questions:
        raise UserError(
            "There is no record in the data files: each line must be one, in the format of CRAG's docs/dataset.md."
        )
    notes["interaction_id repeated"] = sum(count - 1 for count in ids.values())
    pq.write_table(pa.Table.from_pylist(questions, schema=QUESTIONS), folder / "questions.parquet")
    slices = {name: dict(sorted(Counter(str(q[name]) for q in questions).items())) for name in (*LABELS, "split")}
    counts = {"questions": len(questions), "pages": writer.count, "distinct_pages": writer.distinct}
    return {
        "counts": counts,
        "slices": slices,
        "notes": {note: count for note, count in sorted(notes.items()) if count},
    }


def _question(record: Record, number: int, first: int, ids: Counter[str]) -> dict[str, Any]:
    """The row of a question; a missing id becomes the number, a repeated one gets a suffix."""
    id = _writable(record.id).replace("#", "-") or f"q{number:05d}"
    ids[id] += 1
    return {
        "id": id if ids[id] == 1 else f"{id}~{ids[id]}",
        "query": _writable(record.query),
        "time": record.time,
        "answers": [_writable(answer) for answer in record.answers],
        **{name: _writable(record.labels.get(name) or "") or None for name in LABELS},
        "split": record.split,
        "first": first,
        "pages": len(record.pages),
    }


def _page_notes(record: Record) -> list[str]:
    urls = [page.url for page in record.pages if page.url]
    notes = [page.note for page in record.pages if page.note] + ["empty page"] * sum(not p.html for p in record.pages)
    return notes + ["url repeated in a record"] * (len(urls) - len(set(urls)))


def _writable(text: str) -> str:
    """A text for Arrow, whose strings are UTF-8: a lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace").decode()
