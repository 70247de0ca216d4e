"""reasoning_demo as an lm_eval task; its folder is built when the task is first loaded."""

from __future__ import annotations

from typing import Any

from lm_eval_rag.harness.core.record import FORM
from lm_eval_rag.harness.core.types import SHORT
from lm_eval_rag.harness.plugin.task import RagTask
from lm_eval_rag.tasks.reasoning_demo.build import FILES, build
from lm_eval_rag.tasks.wikipedia.task import COLUMNS

EVIDENCE = ["facts", "triples", "evidence_sets"]


class ReasoningDemoTask(RagTask):
    """``reasoning_demo``; a YAML that includes ours may set ``dataset_kwargs: {seed: 1}`` for another world."""

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Fill ``self.dataset`` with the questions (test) and those of the part for training (train)."""
        import polars as pl
        from datasets import Dataset, DatasetDict

        from lm_eval_rag.harness.common.paths import cache_dir

        folder = cache_dir() / build(**(dataset_kwargs or {}))
        tables = {split: pl.read_parquet(folder / f"{name}.parquet") for split, name in FILES.items()}
        rows = {
            split: table.select(*COLUMNS, *EVIDENCE).with_columns(pl.lit(SHORT).alias(FORM))
            for split, table in tables.items()
        }
        self.dataset = DatasetDict({split: Dataset(table.to_arrow()) for split, table in rows.items()})
