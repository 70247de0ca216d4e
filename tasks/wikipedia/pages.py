"""Corpora that come as files of passages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from lm_eval_rag.tasks.wikipedia.records import Page
from lm_eval_rag.tasks.wikipedia.rows import read_rows, reading

HEADERS = (("Title: ", " Text: "), ("", "   "))  # how retrieved passages were printed: before and after the title

LONGEST = 200  # characters of a title


def titled(paths: Sequence[Path]) -> Iterator[Page]:
    """Lists of title and text, as HippoRAG's (arXiv:2405.14831), or of (title, sentences) pairs."""
    for path in paths:
        for where, row in read_rows(path):
            with reading(where):
                if isinstance(row, dict):
                    yield Page(row["title"], (row["text"],), whole=True)
                else:
                    title, sentences = row
                    yield Page(title, tuple(sentences))


def beir(paths: Sequence[Path]) -> Iterator[Page]:
    """BEIR's form (arXiv:2104.08663): ``_id``, title, text. A page is named by its title, as gold evidence is."""
    for path in paths:
        for where, row in read_rows(path):
            with reading(where):
                yield Page(row["title"], (row["text"],), whole=True)


def beir_by_id(paths: Sequence[Path]) -> Iterator[Page]:
    """BEIR's form of FEVER's pages, whose ``_id`` is FEVER's name of the page."""
    for path in paths:
        for where, row in read_rows(path):
            with reading(where):
                yield Page(row["title"], (row["text"],), id=row["_id"], whole=True)


def dpr(paths: Sequence[Path]) -> Iterator[Page]:
    """DPR's passages of 100 words (arXiv:2004.04906): a table of id, text and title, with a header."""
    for path in paths:
        for where, row in read_rows(path):
            with reading(where):
                id, text, title = row
                if id != "id":
                    yield Page(title, (text,), id=id, whole=True)


def retrieved(paths: Sequence[Path]) -> Iterator[Page]:
    """Passages that another system retrieved for each question; pieces without a title are left out by the caller.

    The files hold printed passages ("Title: X Text: ..." or "X   ..."), some of them quoted as in CSV files, and
    some cut at a comma or full stop. A piece without a title is yielded without a title.
    """
    for path in paths:
        for where, row in read_rows(path):
            with reading(where):
                yield from (_printed(text) for text in row["passages"])


def _printed(text: str) -> Page:
    if text.startswith('"'):
        text = text.removeprefix('"').removesuffix('"').replace('""', '"')
    for before, after in HEADERS:
        title, found, body = text.removeprefix(before).partition(after)
        if text.startswith(before) and found and 0 < len(title.strip()) <= LONGEST:
            return Page(title.strip(), (body.strip(),), whole=True)
    return Page("", ())
