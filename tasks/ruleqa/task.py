"""RuleQA as lm_eval tasks; the set's corpus folder is built when the task is first loaded."""

from __future__ import annotations

from typing import Any

from lm_eval_rag.harness.task import RagTask

HARD = "_hard"
COLUMNS = ["id", "query", "subject", "relation", "time", "answers", "slice", "popularity", "corpus"]


class RuleQATask(RagTask):
    """``ruleqa_i`` and so on; ``_hard`` has every rule_required question of the test part, ``_fresh`` made-up names.

    The name of the task says which set. A YAML of one's own that includes one of ours may set ``dataset_kwargs`` to
    what :func:`lm_eval_rag.tasks.ruleqa.build.build` takes: ``corpus: train_valid`` or ``seed: 1``.
    """

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Fill ``self.dataset`` with the questions (test) and the rows of F_G (fewshot)."""
        import polars as pl
        from datasets import Dataset, DatasetDict

        from lm_eval_rag.harness.paths import cache_dir
        from lm_eval_rag.tasks.ruleqa.build import build

        task = str(self.config.task)
        corpus = build(task.removesuffix(HARD), **(dataset_kwargs or {}))
        folder = cache_dir() / corpus
        wanted = "in_hard" if task.endswith(HARD) else "in_main"
        asked = pl.read_parquet(folder / "queries.parquet").filter(wanted)
        shown = pl.read_parquet(folder / "generator_train.parquet")
        shown = shown.with_columns(slice=pl.lit(None, pl.String), popularity=pl.lit(None, pl.String))
        rows = {
            split: table.rename({"text": "query"}).with_columns(corpus=pl.lit(corpus)).select(COLUMNS)
            for split, table in (("test", asked), ("fewshot", shown))
        }
        self.dataset = DatasetDict({split: Dataset(table.to_arrow()) for split, table in rows.items()})
