"""The passages that come with single questions: parts of a built corpus, named in its ``own.parquet``.

``own.parquet`` has the columns ``question`` (id) and ``rows`` (rows of the corpus, in the benchmark's order). The
passages of one question are the corpus ``<task>/<hash>#<question id>``, as a question's own pages are
(:mod:`lm_eval_rag.harness.data.page_store`).
"""

from __future__ import annotations

from pathlib import Path

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.data.corpus import Corpus, open_corpus
from lm_eval_rag.harness.data.page_store import SEPARATOR
from lm_eval_rag.harness.data.tables import read_parquet

FILE = "own.parquet"


def has_own_passages(folder: str) -> bool:
    """Whether the corpus ``<task>/<hash>`` says which of its passages belong to which question."""
    return (cache_dir() / folder / FILE).is_file()


class OwnPassages:
    """The passages of each question of a corpus.

    Args:
        folder: Id of the corpus, ``<task>/<hash>``.

    Raises:
        UserError: The corpus or its ``own.parquet`` is missing or damaged.
    """

    def __init__(self, folder: str) -> None:
        path: Path = cache_dir() / folder / FILE
        table = read_parquet(path, ("question", "rows"))
        self._corpus = open_corpus(folder)
        self._rows: dict[str, list[int]] = dict(
            zip(table.column("question").to_pylist(), table.column("rows").to_pylist(), strict=True)
        )

    def corpus(self, question: str) -> Corpus:
        """The passages of one question, in the benchmark's order.

        Raises:
            UserError: There is no such question.
        """
        if question not in self._rows:
            raise UserError(f"The corpus {self._corpus.id!r} has no passages of a question {question!r}.")
        return self._corpus.part(self._rows[question], f"{self._corpus.id}{SEPARATOR}{question}")
