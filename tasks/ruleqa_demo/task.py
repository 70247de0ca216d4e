"""RuleQA-demo as an lm_eval task; the corpus folder is built when the task is first loaded."""

from __future__ import annotations

from typing import Any

from lm_eval_rag.harness.plugin.task import RagTask

COLUMNS = ["id", "query", "subject", "relation", "time", "answers", "slice", "popularity", "corpus"]


class RuleQADemoTask(RagTask):
    """``ruleqa_demo``; a YAML that includes ours may set ``dataset_kwargs: {seed: 1}`` for another world."""

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Fill ``self.dataset`` with the questions (test) and F_G (fewshot)."""
        import polars as pl
        from datasets import Dataset, DatasetDict

        from lm_eval_rag.harness.common.paths import cache_dir
        from lm_eval_rag.tasks.ruleqa_demo.build import build

        corpus = build(**(dataset_kwargs or {}))
        questions = pl.read_parquet(cache_dir() / corpus / "queries.parquet")
        examples = pl.read_parquet(cache_dir() / corpus / "generator_train.parquet")
        examples = examples.with_columns(slice=pl.lit(None, pl.String), popularity=pl.lit(None, pl.String))
        rows = {
            split: table.rename({"text": "query"}).with_columns(corpus=pl.lit(corpus)).select(COLUMNS)
            for split, table in (("test", questions), ("fewshot", examples))
        }
        self.dataset = DatasetDict({split: Dataset(table.to_arrow()) for split, table in rows.items()})
