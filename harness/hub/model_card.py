"""Model cards: description, usage, measured results and training data of a trained model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.checkpoints.note import Note
from lm_eval_rag.harness.common.card_table import card_table
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.generators.spec import EMBEDDED
from lm_eval_rag.harness.hub import model_use, terms
from lm_eval_rag.harness.hub.cards import DataSet, assembled
from lm_eval_rag.harness.hub.measured import Measured
from lm_eval_rag.harness.hub.own_card import own_card
from lm_eval_rag.harness.hub.published_note import need_hub_id

OURS = "lm-eval-rag"
LIBRARIES = {  # a file of the folder -> the Hub's name of the library; the first match is used
    "adapter_config.json": "peft",
    "modules.json": "sentence-transformers",
    "config.json": "transformers",
}
COUNTS = (  # what a note has besides scores
    "rows_trained", "rows", "dev_rows", "rows_left_out", "prompts_with_dropped_documents", "dropped_documents",
    "rows_without_the_answer", "epoch", "step", "seconds", "device",
)  # fmt: skip
TASKS = {"generator": "text-generation", "retriever": "sentence-similarity"}


@dataclass(frozen=True, slots=True)
class About:
    """The input of a model card.

    Args:
        folder: The model's folder.
        repo: ``ORG/NAME``.
        tag: Tag of this version, or None.
        note: Its ``rulerag.json`` as it is published, or None.
        measured: Measured results.
        licence: The Hub's identifier; None reads it from the folder's README.md.
        base_model: Hub id; None reads it from the folder's README.md, then takes ``noted_base``.
        datasets: Hub ids of the training data.
        trained_on: The datasets in the note, as far as they are known.
        noted_base: Hub id of the base model by the note, or None.
    """

    folder: Path
    repo: str
    tag: str | None
    note: Note | None
    measured: Sequence[Measured]
    licence: str | None
    base_model: str | None
    datasets: Sequence[str]
    trained_on: Sequence[DataSet]
    noted_base: str | None = None


def model_card(about: About) -> str:
    """The card. It includes the text of the folder's README.md, unless that is a template.

    Raises:
        UserError: The licence is unknown or allows more than the terms of the training data, or the README.md's front
            matter cannot be read.
    """
    from huggingface_hub import EvalResult, ModelCardData

    front, text = own_card(about.folder)
    restricted = _licensed(front, about)
    results = [
        EvalResult(
            task_type="question-answering", dataset_type=row.task, dataset_name=row.on, metric_type=row.metric,
            metric_value=row.value, dataset_split=row.part or None,
        )
        for row in about.measured
    ]  # fmt: skip
    base = about.base_model or front.get("base_model") or about.noted_base
    front["base_model"] = base.partition("@")[0] if isinstance(base, str) else base
    front["datasets"] = [name.partition("@")[0] for name in about.datasets] or front.get("datasets")
    front["tags"] = list(dict.fromkeys([*(front.get("tags") or ()), OURS]))
    front.setdefault("library_name", library(about.folder))
    if about.note and front["library_name"] != OURS:  # the Hub's widgets cannot run our own formats
        front.setdefault("pipeline_tag", TASKS[about.note.kind])
    name = about.repo.split("/")[-1]
    data = ModelCardData(**front, model_name=name, eval_results=results or None)
    return assembled(data.to_yaml(), [text or f"# {name}", restricted, *_parts(about)])


def _licensed(front: dict[str, Any], about: About) -> str:
    """Put the licence into the front matter, and return the warning about restricted training data ("" without)."""
    licence = about.licence or front.get("license")
    if not licence:
        raise UserError(
            f"The licence of {about.folder} is unknown. Give --licence with the Hub's identifier (apache-2.0, mit, "
            "cc-by-4.0, other, ...), or write it into the folder's README.md."
        )
    files = {data.name: tuple(data.sources.values()) for data in about.trained_on}
    terms.check_licence(licence, "--licence" if about.licence else f"{about.folder / 'README.md'}: license", files)
    front["license"] = licence
    warning = model_use.warning(files)
    if warning:
        for key, value in terms.licence(file for group in files.values() for file in group).items():
            front.setdefault(key, value)
    return warning


def library(folder: Path) -> str:
    """The library that loads the folder."""
    return next((name for file, name in LIBRARIES.items() if (folder / file).is_file()), OURS)


def base_model(folder: Path) -> str | None:
    """The Hub id of the base model in an adapter's configuration; None without an adapter, and for an embedded base.

    Raises:
        UserError: The base model is a local folder, which other users do not have.
    """
    config = folder / "adapter_config.json"
    if not config.is_file():
        return None
    name = str(json.loads(config.read_text(encoding="utf-8")).get("base_model_name_or_path"))
    if name in EMBEDDED:
        return None
    return need_hub_id(name, folder, config)


def _parts(about: About) -> list[str]:
    note, parts = about.note, list[str]()
    if note:
        prompt = f", prompts of version `{note.prompt}`" if note.prompt else ""
        at = about.repo + (f"@{about.tag}" if about.tag else "")
        parts += [f"A {note.kind} trained by lm-eval-rag ({note.mode}, seed {note.seed}{prompt}).",
                  model_use.base_line(note, about.base_model or about.noted_base),
                  model_use.command(note, at, adapter=library(about.folder) == "peft")]  # fmt: skip
    if about.measured:
        shown = [
            (row.on, row.metric, f"{row.value:.4g}" + (f" ± {row.stderr:.2g}" if row.stderr else ""), row.conditions,
             row.source)
            for row in about.measured
        ]  # fmt: skip
        columns = ("on", "metric", "value", "conditions", "from")
        parts += ["## Measured\n\n± is one standard error.", card_table(columns, shown)]
    if note:
        parts += [model_use.limits(note), *_training(about, note)]
    return parts


def _training(about: About, note: Note) -> list[str]:
    corpora = ", ".join(f"`{corpus}`" for corpus in note.corpora)
    licences = [(data.name, text) for data in about.trained_on for text in terms.statements(data.sources.values())]
    settings = {**note.settings, **note.versions}
    counts = {**note.results, "rows_trained": model_use.rows_trained(note)}
    other = {name: counts[name] for name in COUNTS if counts.get(name) is not None}
    return [
        f"## Training\n\nTasks: {', '.join(note.tasks) or 'none'}; corpora: {corpora or 'none'}.",
        f"Its base model was trained on {', '.join(note.base_tasks)} before." if note.base_tasks else "",
        model_use.rows_line(note),
        card_table(("set", "sources' licence: terms"), licences) if licences else "",
        card_table(("run", "value"), list(other.items())) if other else "",
        card_table(("setting", "value"), list(settings.items())) if settings else "",
    ]
