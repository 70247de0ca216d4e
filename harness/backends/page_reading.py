"""Questions' own pages, read once: what was read is kept beside the pages, and serves every later run."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.common.extras import versions
from lm_eval_rag.harness.core.journal import Call, Journal, digest
from lm_eval_rag.harness.core.types import Passage, WebPage
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.data.page_store import PageSet, StoredPage, open_page_set, split_id
from lm_eval_rag.harness.web.chunking import chunks
from lm_eval_rag.harness.web.extract import PageText
from lm_eval_rag.harness.web.reader import DEFAULT, PageReader
from lm_eval_rag.harness.web.sentences import sentences

log = logging.getLogger(__name__)
BATCH = 8  # pages that are read before they are kept
# What a busy machine may be to blame for: such a page is read anew in the next run.
PASSING = frozenset({"timed out", "parser crashed", "reader lost"})


@dataclass(slots=True)
class Reading:
    """Reads the pages of questions.

    Args:
        extractor: ``fast`` or ``faithful`` (:mod:`lm_eval_rag.harness.web.extract`).
        notes: How often each fallback was taken and each cut made, over all pages read so far.
    """

    extractor: str = DEFAULT
    notes: Counter[str] = field(default_factory=Counter)
    _reader: PageReader | None = None
    _sets: dict[str, PageSet] = field(default_factory=dict)
    _kept: dict[str, Journal] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """Names everything that the text of a page depends on, beside the page."""
        told = versions("trafilatura", "beautifulsoup4", "lxml", "resiliparse")
        return f"{self.extractor} {versions('lm-eval-rag')} {told}"

    def pages(self, corpus: str) -> tuple[WebPage, ...]:
        """The pages of ``<task>/<hash>#<question>``: each once, where it first stands, in the search's order.

        Raises:
            UserError: There is no such question, the store is damaged, or a package of the extra ``web`` is missing.
        """
        folder, question = split_id(corpus)
        if question is None:
            raise UserError(f"The corpus {corpus!r} holds documents, not pages of a question.")
        if folder not in self._sets:
            self._sets[folder] = open_page_set(folder)
        found = self._sets[folder].pages(question)
        first: dict[str | int, StoredPage] = {}
        for page in found:
            first.setdefault(page.sha or page.number, page)
        distinct = list(first.values())
        read = self._read(self._sets[folder], distinct)
        pages = tuple(_web_page(page, text) for page, text in zip(distinct, read, strict=True))
        self.notes.update(note for page in pages for note in page.notes)
        self.notes["page repeated"] += len(found) - len(distinct)
        return pages

    def corpus(self, corpus: str) -> Corpus:
        """The chunks of a question's pages (section 4.1), each once, as a corpus; empty when no page has text."""
        passages: dict[str, Passage] = {}
        for page in self.pages(corpus):
            for place, text in enumerate(chunks(sentences(page.text))):
                passages.setdefault(text, Passage(f"{page.number}.{place}", text, source=page.url))
        return Corpus.of(passages.values(), id=corpus, empty=True)

    def close(self) -> None:
        """End the process that reads, and close what is kept; the next page starts anew."""
        if self._reader is not None:
            self._reader.close()
        for journal in self._kept.values():
            journal.close()
        self._reader, self._kept = None, {}

    def _read(self, pages: PageSet, wanted: Sequence[StoredPage]) -> list[PageText]:
        """What each page says: kept from an earlier reading, or read now and kept."""
        calls = [Call(self.fingerprint, [page.sha, page.name]) for page in wanted]
        passing: dict[int, PageText] = {}

        def compute(positions: list[int]) -> list[Any]:
            read = {i: self._reads().read(wanted[i].html, wanted[i].name) for i in positions}
            passing.update({i: text for i, text in read.items() if PASSING & set(text.notes)})
            return [CallError("not kept") if i in passing else asdict(text) for i, text in read.items()]

        replies = self._keeper(pages).serve(calls, compute, BATCH)
        return [
            passing[i] if isinstance(reply, CallError) else _page_text(reply.value) for i, reply in enumerate(replies)
        ]

    def _reads(self) -> PageReader:
        if self._reader is None:
            self._reader = PageReader(self.extractor)
        return self._reader

    def _keeper(self, pages: PageSet) -> Journal:
        """A file beside the pages, one for each way of reading."""
        folder, key = pages.store.folder, digest(self.fingerprint)[:12]
        if str(folder) not in self._kept:
            self._kept[str(folder)] = Journal(folder / f"read-{self.extractor}-{key}.sqlite", self.fingerprint)
        return self._kept[str(folder)]


def _page_text(value: dict[str, Any]) -> PageText:
    return PageText(value["text"], tuple(value["tables"]), value["extractor"], tuple(value["notes"]))


def _web_page(page: StoredPage, read: PageText) -> WebPage:
    notes = tuple(dict.fromkeys(note for note in (page.note, *read.notes) if note))
    return WebPage(page.number, page.name, page.url, page.snippet, page.modified, read.text, read.tables, notes)
