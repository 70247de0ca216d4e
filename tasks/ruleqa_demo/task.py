"""RuleQA-demo as an lm_eval task; the corpus folder is built when the task is first loaded."""

from __future__ import annotations

from typing import Any

from lm_eval_rag.harness.plugin.task import RagTask
from lm_eval_rag.tasks.ruleqa.task import questions_of
from lm_eval_rag.tasks.ruleqa_demo.build import build


class RuleQADemoTask(RagTask):
    """``ruleqa_demo``; a YAML that includes ours may set ``dataset_kwargs: {seed: 1}`` for another world."""

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Fill ``self.dataset`` with the questions (test) and F_G (fewshot)."""
        self.dataset = questions_of(build(**(dataset_kwargs or {})))
