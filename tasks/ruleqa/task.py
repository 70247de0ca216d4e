"""RuleQA as lm_eval tasks; the set's corpus folder is built when the task is first loaded."""

from __future__ import annotations

from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.plugin.task import RagTask

HARD = "_hard"
COLUMNS = ["id", "query", "subject", "relation", "time", "answers", "slice", "popularity", "corpus"]


class RuleQATask(RagTask):
    """``ruleqa_i`` and so on; ``_hard`` has every rule_required question of the test part, ``_fresh`` made-up names.

    The name of the task says which set. A YAML of one's own that includes one of ours may set ``dataset_kwargs`` to
    what :func:`lm_eval_rag.tasks.ruleqa.build.build` takes: ``corpus: train_valid`` or ``seed: 1``; or to a published
    set, ``dataset: ORG/NAME@revision``. On the command line that is ``--metadata '{"dataset": "ORG/NAME@revision"}'``;
    the results file then names the commit.
    """

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Fill ``self.dataset`` with the questions (test) and the rows of F_G (fewshot)."""
        import polars as pl
        from datasets import Dataset, DatasetDict

        from lm_eval_rag.harness.common.paths import cache_dir

        task = str(self.config.task)
        corpus = self._corpus(task.removesuffix(HARD), dict(dataset_kwargs or {}))
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

    def _corpus(self, task: str, given: dict[str, Any]) -> str:
        """The id of the corpus folder: built from the sources, or made from a published set."""
        metadata = self.config.metadata or {}
        dataset = given.pop("dataset", None) or metadata.get("dataset")
        if dataset is None:
            from lm_eval_rag.tasks.ruleqa.build import build

            return build(task, **given)
        if given:
            raise UserError(
                f"dataset={dataset!r} is a set as it was built, so {', '.join(given)} cannot be chosen. Leave one out."
            )
        from lm_eval_rag.tasks.ruleqa.published import install

        corpus, metadata["dataset"] = install(task, str(dataset))
        return corpus
