"""The ids of a built corpus, for who needs nothing else of it."""

from __future__ import annotations

from typing import Any

from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.data.corpus_files import DOCUMENTS, built_folder
from lm_eval_rag.harness.data.question_forms import read_forms
from lm_eval_rag.harness.data.tables import one_chunk, read_parquet


def open_ids(corpus_id: str) -> Any:
    """The ids of a built corpus's documents, in order, as an Arrow array; nothing else is read.

    Raises:
        UserError: As :func:`open_corpus`.
    """
    if (reworded := read_forms(cache_dir() / corpus_id)) is not None:
        return open_ids(reworded[0])
    return one_chunk(read_parquet(built_folder(corpus_id) / DOCUMENTS, ("id",)).column("id"))
