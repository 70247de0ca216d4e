"""CRAG-demo as an lm_eval task; pages, graph and corpus folder are written when the task is first loaded."""

from __future__ import annotations

from typing import Any

from lm_eval_rag.harness.scoring.truncate import Cut, words_cut
from lm_eval_rag.tasks.crag.task import CragTask
from lm_eval_rag.tasks.crag_demo.build import build


class CragDemoTask(CragTask):
    """``crag_demo``; ``--metadata '{"split": 1}'`` takes half of it. Needs no network."""

    def cut(self) -> Cut:
        """The first 75 words and punctuation marks, because we may not ship the benchmark's tokenizer."""
        return words_cut()

    def corpus(self, **options: Any) -> str:
        """The id of the corpus folder; ``seed`` makes another world."""
        return build(**options)
