"""One evaluation through lm_eval in this process, saved as lm_eval's command saves it: results and samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def save_run(
    model: Any, arguments: Mapping[str, Any], tasks: Sequence[Any], folder: Path, *, name: str = "", **options: Any
) -> Path:
    """Evaluate a model on tasks.

    Args:
        model: An lm_eval model, ready to run.
        arguments: The model's, for the results file.
        tasks: Names of tasks, or tasks.
        folder: Where lm_eval's files go.
        name: What tables call the run; "" for the model, with the arguments in which runs differ.
        options: More of ``lm_eval.simple_evaluate``, such as ``limit`` and ``gen_kwargs``.

    Returns:
        The results file, beside which the samples lie.
    """
    from lm_eval import simple_evaluate
    from lm_eval.loggers import EvaluationTracker

    before = set(folder.rglob("results_*.json"))
    tracker = EvaluationTracker(output_path=str(folder))
    results = simple_evaluate(
        model=model,
        model_args=dict(arguments),
        tasks=list(tasks),
        evaluation_tracker=tracker,
        batch_size=1,
        **options,
    )
    assert results is not None  # it is None only on other ranks, and there is one rank here
    answers = results.pop("samples")
    if name:
        results["config"]["run_name"] = name
    tracker.general_config_tracker.model_name_sanitized = type(model).__name__
    tracker.save_results_aggregated(results=results, samples=answers)
    for task in results["configs"]:
        tracker.save_results_samples(task_name=task, samples=answers[task])
    (file,) = set(folder.rglob("results_*.json")) - before
    return file
