"""Questions over Wikipedia as lm_eval tasks; questions and corpus are built when a task is first loaded.

A large corpus that the questions name no passages of (``wiki18_100w``) is built when a method first retrieves from it.
"""

from __future__ import annotations

from typing import Any

from lm_eval_rag.harness.core.record import FORM, SYSTEM
from lm_eval_rag.harness.core.types import SHORT
from lm_eval_rag.harness.plugin.task import RagTask
from lm_eval_rag.tasks.wikipedia.build import build
from lm_eval_rag.tasks.wikipedia.fever import INSTRUCTION
from lm_eval_rag.tasks.wikipedia.specs import choice_of

COLUMNS = ["id", "query", "time", "answers", "type", "corpus", "scoring", "gold"]
EXTRA = {"hotpotqa": ["facts"], "2wiki": ["facts", "triples"], "fever": ["evidence_sets"]}  # by family of scores


class WikipediaTask(RagTask):
    """``hotpotqa``, ``fever`` and the other tasks of :data:`lm_eval_rag.tasks.wikipedia.specs.TASKS`.

    The task's name selects the questions. ``--metadata '{"corpus": "mirror"}'``, or ``dataset_kwargs`` in a user's
    YAML that includes one of ours, chooses the corpus; the results file has the choice. The instruction of FEVER (its
    three labels) travels as a system instruction; ``--system_instruction`` takes its place. It stands before every
    prompt of a method of several steps, so it says what an answer is and does not ask for one.
    """

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Fill ``self.dataset`` with the questions (test).

        Raises:
            UserError: The task is not asked over this corpus, or a source is not available.
        """
        import polars as pl
        from datasets import Dataset, DatasetDict

        from lm_eval_rag.harness.common.paths import cache_dir

        task, metadata = str(self.config.task), self.config.metadata or {}
        name, _ = choice_of(task, (dataset_kwargs or {}).get("corpus") or metadata.get("corpus"))
        table = pl.read_parquet(cache_dir() / build(task, corpus=name, wait=True) / "queries.parquet")
        self.config.metadata = {**metadata, "corpus": name}
        family = str(table["scoring"][0])
        rows = table.select(*COLUMNS, *EXTRA.get(family, ())).with_columns(pl.lit(SHORT).alias(FORM))
        if family == "fever":
            rows = rows.with_columns(pl.lit(INSTRUCTION).alias(SYSTEM))
        self.dataset = DatasetDict({"test": Dataset(rows.to_arrow())})
