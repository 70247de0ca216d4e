"""The base of our benchmarks as lm_eval tasks.

A subclass overrides :meth:`RagTask.download` and sets ``self.dataset = {"test": Dataset, "fewshot": Dataset}``, whose
rows hold ``id``, ``query``, ``time``, ``answers`` and ``corpus`` (and what else slices need); a YAML names it with
``class: !function package.module.Class`` and needs no ``metric_list``. What is here is shared by all: the method's
answer comes with a record (``aux``) that is kept in the document as ``_rag``, and all scores come from the table in
:mod:`lm_eval_rag.harness.scoring`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lm_eval.api.task import ConfigurableTask

from lm_eval_rag.harness.scoring import METRICS, score

RECORD = "_rag"  # the key of a document under which the method's record lies


def process_results(doc: Mapping[str, Any], results: list[str]) -> dict[str, float]:
    """Every score that this document can be given; one that cannot be given is absent, never 0."""
    return score(doc, results[0], doc.get(RECORD))


class RagTask(ConfigurableTask):  # type: ignore[misc]
    """A generate_until task whose scores come from our table, each with its mean."""

    def __init__(self, config: dict[str, Any] | None = None, **kwargs: Any) -> None:
        config = {**(config or {}), "process_results": process_results}
        config.pop("class", None)
        config["metric_list"] = [
            {"metric": name, "aggregation": "mean", "higher_is_better": metric.higher_is_better}
            for name, metric in METRICS.items()
        ]
        super().__init__(config=config, **kwargs)

    def construct_requests(self, doc: dict[str, Any], ctx: str, **kwargs: Any) -> Any:
        """As lm_eval's; the number of shots asked for travels in the document, since our models build their own."""
        if self.config.num_fewshot:
            doc["num_fewshot"] = self.config.num_fewshot
        return super().construct_requests(doc, ctx, **kwargs)

    def process_results(self, doc: dict[str, Any], results: list[Any]) -> dict[str, float]:
        """Keep the method's record in the document, then score (or, under ``--predict_only``, do not)."""
        record = getattr(results[0], "aux", None)
        if record is not None:
            doc[RECORD] = record
        scores: dict[str, float] = super().process_results(doc, results)
        return scores
