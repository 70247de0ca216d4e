"""The web pages of questions, in a memory-mapped store that is opened by id, without importing its task.

A page set is a corpus folder ``$LM_EVAL_RAG_CACHE/<task>/<hash>``. Its ``meta.json`` names the page store
(``pages: crag_pages/<hash>``; several tasks may share one) and the maximum number of pages per question (``shown``).
The pages of one question are the corpus ``<task>/<hash>#<question id>``.

A store is a folder of three files: ``questions.parquet`` (question id, first row and number of its pages),
``pages.arrow`` (one row per page, in search order: name, url, snippet, modified, sha, offset, packed, size, note) and
``pages.zst`` (every distinct HTML once, each compressed separately). Only the requested pages are read.
"""

from __future__ import annotations

import json
import mmap
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.data.tables import damaged, read_parquet

SEPARATOR = "#"  # between the id of a page set and the id of a question
COLUMNS = ("name", "url", "snippet", "modified", "sha", "offset", "packed", "size", "note")
CODEC = "zstd"
MAX_SIZE = 64 << 20  # bytes of one page; a larger recorded size means damage, and the page is not decompressed


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A stored page.

    Args:
        number: Position in the search results, from 0.
        sha: First half of the sha256 of the HTML, in hexadecimal; "" for an empty page.
        html: The page; "" if the search returned none.
        note: What changed when it was stored (``page cut``: truncated), or "".
    """

    number: int
    name: str
    url: str
    snippet: str
    modified: str
    sha: str
    html: str
    note: str


class PageStore:
    """The pages of many questions.

    Args:
        folder: The store's folder.

    Raises:
        UserError: A file of the store is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        import pyarrow as pa

        self.folder = folder
        table = read_parquet(folder / "questions.parquet", ("id", "first", "pages"))
        ids, *places = (table.column(name).to_pylist() for name in ("id", "first", "pages"))
        self._places: dict[str, tuple[int, int]] = dict(zip(ids, zip(*places, strict=True), strict=True))
        rows = folder / "pages.arrow"
        try:
            with pa.memory_map(str(rows)) as source:
                self._rows = pa.ipc.open_file(source).read_all().select(list(COLUMNS))
        except (OSError, pa.ArrowException, KeyError) as error:
            raise damaged(rows, error) from None

    def __len__(self) -> int:
        return len(self._places)

    def pages(self, question: str, shown: int) -> list[StoredPage]:
        """At most the first ``shown`` pages of a question, in search order, duplicates included.

        Raises:
            UserError: The store lacks this question, or its pages are damaged.
        """
        if question not in self._places:
            raise UserError(f"The page store {self.folder} holds no question {question!r}.")
        first, count = self._places[question]
        rows = self._rows.slice(first, min(count, shown)).to_pylist()
        return [
            StoredPage(
                number, row["name"], row["url"], row["snippet"], row["modified"], row["sha"], self._html(row),
                row["note"],
            )
            for number, row in enumerate(rows)
        ]  # fmt: skip

    def _html(self, row: dict[str, Any]) -> str:
        import pyarrow as pa

        if not row["size"]:
            return ""
        packed = self._packed[row["offset"] : row["offset"] + row["packed"]]
        try:
            if not 0 < row["size"] <= MAX_SIZE:
                raise ValueError(f"a page of {row['size']} bytes")
            return unpack(packed, row["size"])
        except (OSError, ValueError, pa.ArrowException) as error:
            raise damaged(self.folder / "pages.zst", error) from None

    @cached_property
    def _packed(self) -> mmap.mmap:
        path = self.folder / "pages.zst"
        try:
            with path.open("rb") as file:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # an empty file cannot be mapped
            raise damaged(path, error) from None


def pack(html: str) -> tuple[bytes, int]:
    """The compressed page and its original size in bytes. Lone surrogates, which JSON allows, are preserved."""
    import pyarrow as pa

    data = html.encode("utf-8", "surrogatepass")
    return pa.compress(data, codec=CODEC, asbytes=True), len(data)


def unpack(packed: bytes, size: int) -> str:
    """The inverse of :func:`pack`."""
    import pyarrow as pa

    data: bytes = pa.decompress(packed, decompressed_size=size, codec=CODEC, asbytes=True)
    return data.decode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class PageSet:
    """The questions of a task with their pages.

    Args:
        id: ``<task>/<hash>``.
        store: The page store.
        shown: Maximum number of pages per question.
    """

    id: str
    store: PageStore
    shown: int

    def pages(self, question: str) -> list[StoredPage]:
        """The question's pages; see :meth:`PageStore.pages`."""
        return self.store.pages(question, self.shown)


def split_id(corpus: str) -> tuple[str, str | None]:
    """``crag_task1/<hash>#<question>`` as (folder id, question id); the question id is None if there is none."""
    folder, separator, question = corpus.partition(SEPARATOR)
    return folder, question if separator else None


def open_page_set(id: str) -> PageSet:
    """Open the page set ``$LM_EVAL_RAG_CACHE/<id>``.

    Raises:
        UserError: It was not built here, is not a page set, or is damaged.
    """
    meta = read_meta(id)
    try:
        store, shown = str(meta["pages"]), int(meta["shown"])
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(cache_dir() / id / "meta.json", error) from None
    return PageSet(id, PageStore(cache_dir() / store), shown)


def read_meta(id: str) -> dict[str, Any]:
    """The content of ``meta.json`` of a corpus folder.

    Raises:
        UserError: It is missing or damaged.
    """
    path = cache_dir() / id / "meta.json"
    if not path.parent.is_dir():
        raise UserError(
            f"There is no corpus {id!r} in {cache_dir()}. Load its task or run `lm-eval-rag build {id.split('/')[0]}` "
            f"to build it, or set LM_EVAL_RAG_CACHE to the folder in which it was built."
        )
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise damaged(path, error) from None
    return meta if isinstance(meta, dict) else {}


def labelled_questions(page_set: str, label: str, split: int) -> list[tuple[str, str]]:
    """(question, label) of the labelled questions of one part of a page set's store, in its order; no pages are read.

    Args:
        page_set: ``<task>/<hash>``.
        label: A column of ``questions.parquet``, such as ``domain``.
        split: 0 for the validation part, 1 for the public test.

    Raises:
        UserError: There is no such page set, or its table of questions lacks the column or is damaged.
    """
    store = read_meta(page_set).get("pages")
    if not store:
        raise UserError(f"{page_set} holds no questions with pages.")
    table = read_parquet(cache_dir() / str(store) / "questions.parquet", ("query", label, "split"))
    columns = (table.column(name).to_pylist() for name in ("query", label, "split"))
    return [(query, given) for query, given, part in zip(*columns, strict=True) if given and part == split]
