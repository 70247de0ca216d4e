"""Model cards: description, usage, measured results and training data of a trained model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.checkpoints.download import HUB_ID
from lm_eval_rag.harness.checkpoints.note import Note
from lm_eval_rag.harness.common.card_table import card_table
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.generators.spec import EMBEDDED
from lm_eval_rag.harness.hub import model_use, terms
from lm_eval_rag.harness.hub.cards import DataSet, assembled
from lm_eval_rag.harness.hub.measured import Measured

OURS = "lm-eval-rag"
TEMPLATE = "More Information Needed"  # appears in the template cards that libraries write
LIBRARIES = {  # a file of the folder -> the Hub's name of the library; the first match is used
    "adapter_config.json": "peft",
    "modules.json": "sentence-transformers",
    "config.json": "transformers",
}
COUNTS = (  # what a note has besides scores
    "rows", "dev_rows", "rows_left_out", "prompts_with_dropped_documents", "dropped_documents",
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
        UserError: The licence is unknown, or the README.md's front matter cannot be read.
    """
    from huggingface_hub import EvalResult, ModelCardData

    front, text = _own(about.folder)
    licence = about.licence or front.get("license")
    if not licence:
        raise UserError(
            f"The licence of {about.folder} is unknown. Give --licence with the Hub's identifier (apache-2.0, mit, "
            "cc-by-4.0, other, ...), or write it into the folder's README.md."
        )
    results = [
        EvalResult(
            task_type="question-answering", dataset_type=row.task, dataset_name=row.on, metric_type=row.metric,
            metric_value=row.value, dataset_split=row.part or None,
        )
        for row in about.measured
    ]  # fmt: skip
    front |= {"license": licence, "base_model": about.base_model or front.get("base_model") or about.noted_base}
    front["datasets"] = [name.partition("@")[0] for name in about.datasets] or front.get("datasets")
    front["tags"] = list(dict.fromkeys([*(front.get("tags") or ()), OURS]))
    front.setdefault("library_name", library(about.folder))
    if about.note and front["library_name"] != OURS:  # the Hub's widgets cannot run our own formats
        front.setdefault("pipeline_tag", TASKS[about.note.kind])
    name = about.repo.split("/")[-1]
    data = ModelCardData(**front, model_name=name, eval_results=results or None)
    restricted = model_use.warning({data.name: tuple(data.sources.values()) for data in about.trained_on})
    return assembled(data.to_yaml(), [text or f"# {name}", restricted, *_parts(about)])


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
    if Path(name).expanduser().exists() or not HUB_ID.fullmatch(name):
        raise UserError(
            f"The base model in {config} is the local path {name!r}, which other users do not have. Give its Hub id "
            "with --base-model ORG/NAME; it is written into the published copy."
        )
    return name


def _own(folder: Path) -> tuple[dict[str, Any], str]:
    """Front matter and text of the folder's README.md; both empty if it is missing or a library's template."""
    from huggingface_hub import ModelCard

    path = folder / "README.md"
    if not path.is_file() or TEMPLATE in (content := path.read_text(encoding="utf-8")):
        return {}, ""
    try:
        card = ModelCard(content)
    except ValueError as error:
        raise UserError(f"The front matter of {path} cannot be read: {error}.") from None
    front: dict[str, Any] = card.data.to_dict()  # type: ignore[no-untyped-call]
    front.pop("model-index", None)  # replaced by the results of this call
    return front, card.text.strip()


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
    other = {name: value for name, value in note.results.items() if name in COUNTS}
    return [
        f"## Training\n\nTasks: {', '.join(note.tasks) or 'none'}; corpora: {corpora or 'none'}.",
        card_table(("set", "sources' licence: terms"), licences) if licences else "",
        card_table(("run", "value"), list(other.items())) if other else "",
        card_table(("setting", "value"), list(settings.items())) if settings else "",
    ]
