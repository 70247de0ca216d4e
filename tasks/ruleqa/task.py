"""RuleQA as lm_eval tasks; the corpus folder is built when a task is first loaded."""

from __future__ import annotations

from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.plugin.task import RagTask

HARD = "_hard"
COLUMNS = ["id", "query", "subject", "relation", "time", "answers", "slice", "popularity", "corpus"]


class RuleQATask(RagTask):
    """``ruleqa_i`` and so on; ``_hard`` has all rule_required questions of the test part, ``_fresh`` invented names.

    The task's name selects the set. A user's YAML that includes one of ours may set ``dataset_kwargs`` to the arguments
    of :func:`lm_eval_rag.tasks.ruleqa.build.build` (``corpus: train_valid`` or ``seed: 1``), or to a published set
    (``dataset: ORG/NAME@revision``). On the command line, use ``--metadata '{"dataset": "ORG/NAME@revision"}'``. The
    results file then has the commit.
    """

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Fill ``self.dataset`` with the questions (test) and F_G (fewshot)."""
        import polars as pl
        from datasets import Dataset, DatasetDict

        from lm_eval_rag.harness.common.paths import cache_dir

        task = str(self.config.task)
        corpus = self._corpus(task.removesuffix(HARD), dict(dataset_kwargs or {}))
        folder = cache_dir() / corpus
        column = "in_hard" if task.endswith(HARD) else "in_main"
        questions = pl.read_parquet(folder / "queries.parquet").filter(column)
        examples = pl.read_parquet(folder / "generator_train.parquet")
        examples = examples.with_columns(slice=pl.lit(None, pl.String), popularity=pl.lit(None, pl.String))
        rows = {
            split: table.rename({"text": "query"}).with_columns(corpus=pl.lit(corpus)).select(COLUMNS)
            for split, table in (("test", questions), ("fewshot", examples))
        }
        self.dataset = DatasetDict({split: Dataset(table.to_arrow()) for split, table in rows.items()})

    def _corpus(self, task: str, options: dict[str, Any]) -> str:
        """The id of the corpus folder: built from the sources, or installed from a published set."""
        metadata = self.config.metadata or {}
        dataset = options.pop("dataset", None) or metadata.get("dataset")
        if dataset is None:
            from lm_eval_rag.tasks.ruleqa.build import build

            return build(task, **options)
        if options:
            raise UserError(
                f"dataset={dataset!r} is already built, so {', '.join(options)} cannot be set. Leave one of them out."
            )
        from lm_eval_rag.tasks.ruleqa.published import install

        corpus, metadata["dataset"] = install(task, str(dataset))
        return corpus
