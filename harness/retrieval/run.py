"""A saved retrieval run in place of an index: ``retriever=run,retriever_path=FILE_OR_HUB_ID``.

The passages and scores are those of the retriever that the run was made with. A query that the run lacks, such as one
that a method of several steps has written, goes to the fallback (``retriever_fallback=bm25``), whose index is built
when the first such query comes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from textwrap import shorten
from typing import Any

from lm_eval_rag.harness.checkpoints.download import fetch_folder
from lm_eval_rag.harness.common.errors import UserError, at_least
from lm_eval_rag.harness.common.paths import hash_of
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval.document_ids import DocumentIds
from lm_eval_rag.harness.retrieval.run_file import SUFFIX, RunNote, read_note, read_rows

RUN = "run"  # what a record calls the source of passages that come from the run
SHOWN, LONGEST = 3, 120  # missing queries that an error shows, and characters of each
Ranking = list[tuple[int, float]]


class Run:
    """Serves the queries of a run over one corpus.

    Args:
        path: The file, a folder of such files, or the Hub id of a dataset (``ORG/NAME`` or ``ORG/NAME@REVISION``).
        fallback: Makes the retriever for queries that the run lacks; None makes such a query an error.
        fallback_name: Its name, its options and all else that its results depend on.

    Raises:
        UserError: There is no such run, or it was made over another corpus.
    """

    def __init__(
        self,
        corpus: Corpus,
        path: str,
        fallback: Callable[[Corpus], Any] | None = None,
        fallback_name: str = "",
    ) -> None:
        self._corpus, self._path = corpus, path
        self._file, self._note = _of_corpus(path, corpus)
        self._make_fallback, self._fallback_name = fallback, fallback_name
        content = hash_of(self._file)
        made = self._note.corpora[corpus.fingerprint].retriever
        otherwise = f", else {fallback_name} over {corpus.fingerprint}" if fallback else ""
        self.fingerprint = f"run(sha256={content}) of [{made}]{otherwise}"

    def search(self, texts: Sequence[str], k: int) -> list[Ranking]:
        """For each text at most ``k`` (row, score) pairs, in the order of the run.

        Raises:
            UserError: k is below 1 or above the run's depth, or a text is missing and there is no fallback.
        """
        at_least("k", k)
        missing = list(dict.fromkeys(text for text in texts if text not in self._rankings))
        if missing and self._make_fallback is None:
            raise self._lacks(missing)
        known = {text: self._known(text, k) for text in texts if text in self._rankings}
        others = dict(zip(missing, self._fallback.search(missing, k), strict=True)) if missing else {}
        return [known[text] if text in known else others[text] for text in texts]

    def source_of(self, text: str) -> str:
        """Who serves a text: ``run``, or the name of the fallback."""
        return RUN if text in self._rankings else self._fallback_name.partition("(")[0]

    def _known(self, text: str, k: int) -> Ranking:
        ids, scores = self._rankings[text]
        if k > self._note.k <= len(ids) < len(self._corpus):  # a shorter list is all that the retriever found
            raise UserError(
                f"k={k} is more than the depth of the run {self._path}, which holds {self._note.k} passages a query. "
                f"Give k={self._note.k} or less (of a hybrid retriever_depth=, of a reranker retriever_rerank_depth=), "
                f"or make a deeper run: `lm-eval-rag retrieve --k {k} ...`."
            )
        rows = self._ids.rows(ids[:k])
        if None in rows:
            raise UserError(
                f"The run {self._path} names the document {ids[rows.index(None)]!r}, which the corpus "
                f"{self._corpus.id} lacks. The file or the corpus is damaged: make one of them again."
            )
        return [(row, score) for row, score in zip(rows, scores, strict=False) if row is not None]

    def _lacks(self, missing: Sequence[str]) -> UserError:
        shown = ", ".join(repr(shorten(text, LONGEST, placeholder=" ...")) for text in missing[:SHOWN])
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        return UserError(
            f"The run {self._path} has no passages for the query {shown}{more}. It holds {len(self._rankings)} queries "
            f"over this corpus. Methods that write queries of their own need a retriever for them: "
            "give retriever_fallback=bm25 (or another), or a run made with these queries."
        )

    @cached_property
    def _rankings(self) -> dict[str, tuple[list[str], list[float]]]:
        return read_rows(self._file, self._corpus.fingerprint)

    @cached_property
    def _ids(self) -> DocumentIds:
        return DocumentIds(self._corpus)

    @cached_property
    def _fallback(self) -> Any:
        assert self._make_fallback is not None
        return self._make_fallback(self._corpus)


def run_files(path: str) -> list[Path]:
    """The Parquet files of a run: the file itself, those of a folder, or those of a dataset on the Hub.

    Raises:
        UserError: There is none.
    """
    local = Path(path).expanduser()
    if local.is_file():
        return [local]
    if local.suffix == SUFFIX and not local.exists():
        raise UserError(
            f"There is no run {path}. Give a file written by `lm-eval-rag retrieve`, a folder of such files, or the "
            "Hub id of a dataset, ORG/NAME."
        )
    folder = fetch_folder(path, kind="dataset", only=[f"*{SUFFIX}"])
    files = sorted(folder.rglob(f"*{SUFFIX}"))
    if not files:
        raise UserError(f"{path} holds no Parquet file, so no run. Give a file written by `lm-eval-rag retrieve`.")
    return files


def _of_corpus(path: str, corpus: Corpus) -> tuple[Path, RunNote]:
    """The file with a run over this corpus, and its note."""
    notes = {file: read_note(file) for file in run_files(path)}
    fitting = [file for file, note in notes.items() if corpus.fingerprint in note.corpora]
    if len(fitting) == 1:
        return fitting[0], notes[fitting[0]]
    if fitting:
        raise UserError(f"Several runs are over the corpus {corpus.id}: {', '.join(map(str, fitting))}. Give one file.")
    held = [f"{one.id} (hash {key})" for note in notes.values() for key, one in note.corpora.items()]
    raise UserError(
        f"The run {path} is refused: it was made over {', '.join(held)}, not over {corpus.id} (hash "
        f"{corpus.fingerprint}). Passages of another corpus are not comparable. Make a run over this corpus with "
        "`lm-eval-rag retrieve`, or choose the task's corpus that the run was made over."
    )
