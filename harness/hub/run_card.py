"""The card of a published retrieval run."""

from __future__ import annotations

from collections.abc import Mapping

from lm_eval_rag.harness.retrieval.run_file import RunNote

SHOWN = 20  # corpora that the card lists


def run_card(runs: Mapping[str, RunNote], repo: str, licence: str, tag: str | None = None) -> str:
    """The card of a dataset repository with retrieval runs.

    Args:
        runs: Name of the file -> its note.
        repo: ``ORG/NAME``.
        licence: The Hub's identifier; that of the questions, which the runs contain.
        tag: Tag of this version, or None.
    """
    from huggingface_hub import DatasetCardData

    configs = [
        {"config_name": file.removesuffix(".parquet"), "data_files": [{"split": "run", "path": file}]} for file in runs
    ]
    data = DatasetCardData(
        license=licence,
        pretty_name=f"Retrieval runs: {', '.join(runs)}",
        task_categories=["text-retrieval"],
        tags=["retrieval-augmented generation", "retrieval run", "lm-eval-rag"],
        configs=configs,
    )
    at = f"{repo}@{tag}" if tag else repo
    parts = [
        "# Retrieval runs",
        "The best passages of each question: ids and scores, without texts. With them, evaluations need neither an "
        "index nor an encoder. The corpus is built by `lm-eval-rag`; a run of another corpus is refused.",
        f"```\nlm_eval --tasks TASK --model standard_rag --model_args retriever=run,retriever_path={at}\n```",
        *(_section(file, note) for file, note in runs.items()),
        "The licence is that of the questions.",
    ]
    return f"---\n{data.to_yaml()}\n---\n\n" + "\n\n".join(parts) + "\n"


def _section(file: str, note: RunNote) -> str:
    rows = [
        f"| `{one.id}` | `{hash}` | {one.documents:,} | {one.queries:,} | `{one.retriever}` |"
        for hash, one in list(note.corpora.items())[:SHOWN]
    ]
    more = f"\n\nand {len(note.corpora) - SHOWN} more corpora" if len(note.corpora) > SHOWN else ""
    head = "| corpus | hash | passages | questions | retriever |\n|---|---|---:|---:|---|"
    made = f"Made by lm-eval-rag {note.version} with `{note.retriever}`, for {', '.join(note.tasks)}."
    return f"## {file}\n\n{made} Passages per question: {note.k}.\n\n" + "\n".join([head, *rows]) + more
