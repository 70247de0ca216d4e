"""Checking every name in a table before any row runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.core.parameters import bind, defaults, preset_of
from lm_eval_rag.harness.generators.spec import EMBEDDED
from lm_eval_rag.harness.plugin.arguments import LM_EVALS, OURS
from lm_eval_rag.harness.report.published import PublishedRow
from lm_eval_rag.harness.reproduce.published_numbers import numbers_of
from lm_eval_rag.harness.reproduce.running import jobs
from lm_eval_rag.harness.reproduce.table_spec import Row, Table, TrainingStep
from lm_eval_rag.harness.reproduce.training import check_step
from lm_eval_rag.harness.retrieval import PARTS, RERANKING, RETRIEVERS
from lm_eval_rag.harness.scoring import METRICS


def check_table(table: Table, published: Sequence[PublishedRow]) -> None:
    """Check the names of tasks, methods, retrievers, generators, their arguments, training options and metrics.

    Also checks that the paper has the numbers that a row names. Loads, builds and downloads nothing.

    Raises:
        UserError: A name is unknown, or a published number is missing; the message names the row.
    """
    from lm_eval.tasks import TaskManager

    managers = {path: TaskManager(**_folder(path)) for path in {row.include_path for row in table.rows} or {""}}
    for path, task in dict.fromkeys((row.include_path, task) for row in table.rows for task in row.tasks):
        manager = managers[path]
        if not manager.match_tasks([task]):
            family = task.split("_")[0]
            alike = [name for name in manager.all_tasks if name.split("_")[0] == family]
            hint = f"These begin with {family!r}; `lm_eval ls tasks` lists all." if alike else "See `lm_eval ls tasks`."
            raise unknown(f"task in {table.name}:", task, alike, hint)
    for name in (*table.metrics, *(metric for claim in table.claims for metric in claim.metrics)):
        if name not in METRICS:
            raise unknown(f"metric in {table.name}:", name, METRICS)
    steps: set[TrainingStep] = set()
    for row in table.rows:
        try:
            for job in jobs(row):
                check_arguments(row.model, job.arguments)
                steps.update(job.steps)
            _check_published(row, table.source, published)
        except UserError as error:
            raise UserError(f"{table.name}, row {row.name!r}: {error}") from None
    for step in steps:
        check_step(step)


def _folder(include_path: str) -> dict[str, str]:
    """The argument for a folder of tasks.

    Raises:
        UserError: It is no folder.
    """
    if include_path and not Path(include_path).is_dir():
        raise UserError(f"include_path = {include_path!r} is no folder. It is relative to the table's file.")
    return {"include_path": include_path} if include_path else {}


def check_arguments(model: str, arguments: Mapping[str, Any]) -> None:
    """Raise a UserError for an unknown method, retriever, generator or argument; builds nothing."""
    import lm_eval.models  # noqa: F401  (ours register after lm_eval's own)
    from lm_eval.api.registry import get_model, model_registry

    if model not in model_registry:
        raise unknown("method", model, model_registry.keys())
    method_of = getattr(get_model(model), "_method_of", None)
    if method_of is None:
        raise UserError(f"{model!r} is a model of lm_eval, not a RAG method. Use it as generator={model}.")
    texts = {key: str(value) if isinstance(value, TrainingStep) else value for key, value in arguments.items()}
    _, method = method_of(texts)  # takes ``method`` of the model rag out of the arguments
    groups: dict[str, dict[str, Any]] = {"gen_": {}, "retriever_": {}, "": {}}
    for key, value in {**preset_of(method, texts), **texts}.items():
        prefix = next(prefix for prefix in groups if key.startswith(prefix))
        groups[prefix][key.removeprefix(prefix)] = value
    own = {key: value for key, value in groups[""].items() if key not in (*OURS, *LM_EVALS) or key in defaults(method)}
    bind(method, own, OURS)
    check_retriever(groups[""].get("retriever", "bm25"), groups["retriever_"])
    generator = groups[""].get("generator", "tiny")
    if generator not in (*EMBEDDED, *model_registry.keys()):
        raise unknown("generator", generator, [*EMBEDDED, *model_registry.keys()])


def check_retriever(name: str, options: Mapping[str, Any]) -> None:
    """Raise a UserError for an unknown retriever or an unknown option of it."""
    if name not in RETRIEVERS:
        raise unknown("retriever", name, RETRIEVERS)
    parts = tuple(f"{part}_" for part in PARTS.get(name, ()))
    own = {k: v for k, v in options.items() if k not in RERANKING and not (parts and k.startswith(parts))}
    bind(RETRIEVERS[name], own, RERANKING)
    for part in parts:
        if part[:-1] in options:
            inner = {k.removeprefix(part): v for k, v in options.items() if k.startswith(part)}
            check_retriever(options[part[:-1]], inner)


def _check_published(row: Row, source: str, published: Sequence[PublishedRow]) -> None:
    if row.published and not any(numbers_of(row, task, source, published) for task in row.tasks):
        raise UserError(
            f"the paper has no number of {dict(row.published)} for {', '.join(row.tasks)}. Copy the "
            "texts from the CSV of published numbers."
        )
