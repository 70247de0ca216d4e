"""What the Hub makes leaderboards of: ``eval.yaml`` of a dataset repository, ``.eval_results/*.yaml`` of a model's.

The Hub shows one value a task: the task's first metric, in percent. The source links to the entry of a board, which has
the rest. Formats: https://huggingface.co/docs/hub/eval-results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.hub.cards import DataSet
from lm_eval_rag.harness.hub.contents import Item
from lm_eval_rag.harness.hub.measured import Measured

BENCHMARK = "eval.yaml"
FOLDER = ".eval_results"
FRAMEWORK = "lm-eval-rag"


def benchmark(sets: Iterable[DataSet]) -> Item:
    """``eval.yaml``: each set as a task, by the configuration of its questions."""
    names = {dataset.name: dataset.title for dataset in sets}
    content = {
        "name": f"RuleQA rebuilt: {', '.join(names)}",
        "description": f"Rule-aware questions over knowledge graphs ({', '.join(names.values())}), with the documents "
        "to retrieve from and rules mined from them. The value is exact match in percent.",
        "evaluation_framework": FRAMEWORK,
        "tasks": [{"id": name, "config": name, "split": "test"} for name in names],
    }
    return Item.of(BENCHMARK, _yaml(content))


def results(measured: Sequence[Measured], dataset: str | None, entry: str | None) -> list[Item]:
    """``.eval_results/TASK.yaml``: the first metric of each task that was measured on all of its questions.

    Args:
        dataset: ``ORG/NAME`` or ``ORG/NAME@REVISION`` of the dataset repository; None writes nothing.
        entry: Address of the entry that has all scores.

    Raises:
        UserError: There is an entry without a dataset, or no task was measured as a whole.
    """
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    if dataset is None:
        if entry is not None:
            raise UserError("--entry needs --benchmark ORG/NAME, the dataset repository of the tasks.")
        return []
    id, _, revision = dataset.partition("@")
    rows = {row.task: row for row in measured if row.is_first and row.asked == row.of}
    if not rows:
        raise UserError(
            "--benchmark needs --results of a whole task: one value a task is written, of all of its questions."
        )
    return [
        Item.of(
            f"{FOLDER}/{task}.yaml",
            _yaml(
                eval_result_entries_to_yaml(
                    [
                        EvalResultEntry(
                            dataset_id=id,
                            task_id=task,
                            value=round(100 * row.value, 2),
                            dataset_revision=revision or None,
                            source_url=entry,
                            source_name=f"{FRAMEWORK}: all scores" if entry else None,
                            notes=f"{row.metric}, percent",
                        )
                    ]
                )
            ),
        )
        for task, row in sorted(rows.items())
    ]


def _yaml(content: Mapping[str, Any] | Sequence[Any]) -> bytes:
    import yaml  # type: ignore[import-untyped]

    return bytes(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120).encode())
