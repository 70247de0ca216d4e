"""CRAG as lm_eval tasks; the corpus folder is built when the task is first loaded."""

from __future__ import annotations

from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.plugin.task import RagTask
from lm_eval_rag.harness.scoring.truncate import Cut, tokenizer_cut

TOKENIZER = "crag/tokenizer/tokenizer.json"
COLUMNS = ("id", "query", "time", "answers", "domain", "question_type", "static_or_dynamic", "popularity", "split")
CHOICES = ("release", "split", "data_files")


class CragTask(RagTask):
    """``crag_task1``, ``crag_task2`` and ``crag_task3``.

    Your own YAML that includes one of ours may set ``dataset_kwargs``, and the command line ``--metadata``, to
    ``release`` (``v4`` or ``v5``), ``split`` (0 for validation, 1 for the public test; without it both), and
    ``data_files`` (paths or patterns of files in CRAG's format, instead of the official ones):
    ``--metadata '{"split": 1}'``.
    """

    judge = "rules"
    crag = True

    def cut(self) -> Cut:
        """The first 75 tokens by the benchmark's Llama-2 tokenizer."""
        from lm_eval_rag.harness.data.sources import fetch
        from lm_eval_rag.tasks.crag.build import manifest

        return tokenizer_cut(fetch(manifest()[TOKENIZER]))

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Fill ``self.dataset`` with the questions."""
        metadata = self.config.metadata or {}
        options = {**(dataset_kwargs or {}), **{name: metadata[name] for name in CHOICES if name in metadata}}
        split = options.pop("split", None)
        self.dataset = questions(self.corpus(**options), split)

    def corpus(self, **options: Any) -> str:
        """The id of the corpus folder."""
        from lm_eval_rag.tasks.crag.build import build

        return build(str(self.config.task), **options)


def questions(corpus: str, split: Any = None) -> Any:
    """The questions of a built corpus as a dataset with one part, ``test``.

    Args:
        split: 0 or 1; None takes all.

    Raises:
        UserError: An unknown split, or one without questions.
    """
    import polars as pl
    from datasets import Dataset, DatasetDict

    from lm_eval_rag.harness.common.paths import cache_dir
    from lm_eval_rag.harness.data.page_store import SEPARATOR, read_meta

    if split is not None and str(split) not in ("0", "1"):
        raise UserError(f"split={split!r} is not allowed: give 0 (validation), 1 (public test), or leave it out.")
    table = pl.read_parquet(cache_dir() / str(read_meta(corpus)["pages"]) / "questions.parquet")
    rows = table if split is None else table.filter(pl.col("split") == int(split))
    if rows.is_empty():
        raise UserError(f"{corpus} has no question of split {split}. Leave split out for all {table.height}.")
    rows = rows.select(*COLUMNS, corpus=pl.lit(f"{corpus}{SEPARATOR}") + pl.col("id"))
    return DatasetDict({"test": Dataset(rows.to_arrow())})
