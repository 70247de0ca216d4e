"""A task of the user's own without Python: a YAML that names questions and documents.

    task: my_docs
    class: !function lm_eval_rag.OwnTask
    dataset_path: questions.csv
    corpus: documents
    rules: mine                       # optional
    metadata: {version: 1}

Paths are relative to the YAML's folder. Optional keys: ``rules``, ``passage_tokens``, ``overlap``, ``min_support``,
``rule_length``, and all of lm_eval's own.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.documents.hub import HUB
from lm_eval_rag.harness.documents.rule_files import MINE
from lm_eval_rag.harness.plugin.own_data import OwnData, own_data
from lm_eval_rag.harness.plugin.task import RagTask
from lm_eval_rag.harness.plugin.wording import first_answer, question
from lm_eval_rag.harness.scoring.judge import Item
from lm_eval_rag.harness.scoring.judge.choose import CONSISTENCY, rationale_judges
from lm_eval_rag.harness.scoring.judge.llm import ModelJudge

log = logging.getLogger(__name__)
DEFAULTS: dict[str, Any] = {  # of a YAML
    "output_type": "generate_until",
    "test_split": "test",
    "description": "Answer each question briefly.\n\n",
    "doc_to_text": question,
    "doc_to_target": first_answer,
    "target_delimiter": " ",
    "generation_kwargs": {"until": ["\n"], "max_gen_toks": 64, "do_sample": False},
}
OPTIONS = {
    "passage_tokens": "tokens",
    "overlap": "overlap",
    "min_support": "min_support",
    "rule_length": "rule_length",
}  # key -> parameter
SOURCE = "config_source"  # where lm_eval leaves the path of the YAML


class OwnTask(RagTask):
    """A task over the user's documents; see the module's description."""

    headline: ClassVar[tuple[str, ...]] = (
        *("em", "em_contains", "token_f1", "recall@10", "evidence_recall@10"),
        *("acc_lm", "factual_consistency"),
    )

    def __init__(self, config: dict[str, Any] | None = None, **kwargs: Any) -> None:
        config = {**DEFAULTS, **(config or {})}
        self.own: OwnData = config.pop("own_data", None) or _read(config)
        for name in ("corpus", "rules", *OPTIONS):
            config.pop(name, None)
        config["metadata"] = {"version": 1, **(config.get("metadata") or {})}
        config.setdefault("dataset_path", "questions")
        super().__init__(config, **kwargs)
        if not self._rationale_judges and any(not row["answers"] and row["gold"] for row in self.own.rows):
            models = tuple(judge for judge in self._judges if isinstance(judge, ModelJudge))
            self._rationale_judges = rationale_judges({CONSISTENCY: True}, models) if models else ()

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Fill ``self.dataset`` with the questions."""
        import polars as pl
        from datasets import Dataset, DatasetDict

        lists = {"answers": pl.List(pl.String), "gold": pl.List(pl.String)}
        table = pl.DataFrame(
            [dict(row) for row in self.own.rows],
            schema_overrides={**lists, "time": pl.String},
            infer_schema_length=None,
        )
        self.dataset = DatasetDict({"test": Dataset(table.to_arrow())})

    def _item(self, doc: Mapping[str, Any], record: Mapping[str, Any]) -> Item | None:
        """Of a question without answers: whether the answer lies in the gold passages; else as in every task."""
        if doc["answers"] or not doc["gold"]:
            return super()._item(doc, record)
        answer = (record.get("answer") or "").strip()
        if record.get("failure") or record.get("abstained") or not answer:
            return None
        return Item(doc["query"], self.own.gold_texts(doc["gold"]), answer)


def _read(config: Mapping[str, Any]) -> OwnData:
    """The data that a YAML names.

    Raises:
        UserError: A key is missing, or what it names cannot be read.
    """
    lacking = [name for name in ("dataset_path", "corpus") if not config.get(name)]
    if lacking:
        raise UserError(
            f"The task {config.get('task')!r} lacks {' and '.join(lacking)}. Give dataset_path the questions, and "
            "corpus the documents: paths relative to the YAML, or hub:ORG/NAME."
        )
    source = (config.get("metadata") or {}).get(SOURCE)
    folder = Path(source).parent if source not in (None, "inline") else Path()
    paths = {name: _within(folder, config.get(name)) for name in ("corpus", "dataset_path", "rules")}
    options = {parameter: config[name] for name, parameter in OPTIONS.items() if name in config}
    data = own_data(paths["corpus"], paths["dataset_path"], paths["rules"], **options)
    for level, lines in ((logging.INFO, data.read), (logging.WARNING, data.odd)):
        for line in lines:
            log.log(level, "%s: %s", config.get("task"), line)
    return data


def _within(folder: Path, given: Any) -> Any:
    """A path of a YAML within the YAML's folder; what is no path as it is."""
    return given if not isinstance(given, str) or given.startswith(HUB) or given == MINE else folder / given
