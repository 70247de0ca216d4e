"""The card of a trained model: what it is, how to use it, what was measured with it, what it was trained on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.checkpoints.download import HUB_ID
from lm_eval_rag.harness.checkpoints.note import Note
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.hub import terms
from lm_eval_rag.harness.hub.cards import DataSet, assembled, table
from lm_eval_rag.harness.hub.measured import Measured

OURS = "lm-eval-rag"
TEMPLATE = "More Information Needed"  # stands in the cards that libraries write unasked
LIBRARIES = {  # a file of the folder -> the Hub's name of the library, the first that is there
    "adapter_config.json": "peft",
    "modules.json": "sentence-transformers",
    "config.json": "transformers",
}
ARGUMENT = {("retriever", False): "retriever_adapter", ("retriever", True): "retriever_adapter",
            ("generator", False): "gen_pretrained", ("generator", True): "gen_peft"}  # fmt: skip
TASKS = {"generator": "text-generation", "retriever": "sentence-similarity"}


@dataclass(frozen=True, slots=True)
class About:
    """What a model's card is made from.

    Args:
        folder: The model's folder.
        repo: ``ORG/NAME``.
        tag: Of this version, or None.
        note: Its ``rulerag.json``, or None.
        measured: Its results.
        licence: The Hub's identifier; None takes what the folder's README.md says.
        base_model: Hub id; None takes what the folder's README.md says.
        datasets: Hub ids of the training data.
        trained_on: The sets that the note names, as far as they are known.
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


def model_card(about: About) -> str:
    """The card; the text of the folder's own README.md, if somebody wrote one, stands in it.

    Raises:
        UserError: No licence is known, or the README.md's front matter cannot be read.
    """
    from huggingface_hub import EvalResult, ModelCardData

    front, text = _own(about.folder)
    licence = about.licence or front.get("license")
    if not licence:
        raise UserError(
            f"The licence of {about.folder} is not known: give --licence with the Hub's identifier (apache-2.0, mit, "
            "cc-by-4.0, other, ...), or write it into its README.md."
        )
    results = [
        EvalResult(
            task_type="question-answering", dataset_type=row.task, dataset_name=row.on, metric_type=row.metric,
            metric_value=row.value,
        )
        for row in about.measured
    ]  # fmt: skip
    front |= {"license": licence, "base_model": about.base_model or front.get("base_model")}
    front["datasets"] = [name.partition("@")[0] for name in about.datasets] or front.get("datasets")
    front["tags"] = list(dict.fromkeys([*(front.get("tags") or ()), OURS]))
    front.setdefault("library_name", library(about.folder))
    if about.note and front["library_name"] != OURS:  # the Hub's own widgets run no model of ours
        front.setdefault("pipeline_tag", TASKS[about.note.kind])
    name = about.repo.split("/")[-1]
    data = ModelCardData(**front, model_name=name, eval_results=results or None)
    return assembled(data.to_yaml(), [text or f"# {name}", *_parts(about)])


def library(folder: Path) -> str:
    """The library that loads the folder."""
    return next((name for file, name in LIBRARIES.items() if (folder / file).is_file()), OURS)


def base_model(folder: Path) -> str | None:
    """The Hub id of the base model that an adapter's configuration names; None for no adapter.

    Raises:
        UserError: It names a folder of this machine, which nobody else has.
    """
    config = folder / "adapter_config.json"
    if not config.is_file():
        return None
    name = str(json.loads(config.read_text(encoding="utf-8")).get("base_model_name_or_path"))
    if Path(name).expanduser().exists() or not HUB_ID.fullmatch(name):
        raise UserError(
            f"{config} names its base model by a path of this machine, {name!r}, which nobody else has. Give its Hub "
            "id with --base-model ORG/NAME: it is then written into the published copy."
        )
    return name


def _own(folder: Path) -> tuple[dict[str, Any], str]:
    """Front matter and text of the folder's README.md; both empty where it is missing or a library's template."""
    from huggingface_hub import ModelCard

    path = folder / "README.md"
    if not path.is_file() or TEMPLATE in (content := path.read_text(encoding="utf-8")):
        return {}, ""
    try:
        card = ModelCard(content)
    except ValueError as error:
        raise UserError(f"The front matter of {path} cannot be read: {error}.") from None
    front: dict[str, Any] = card.data.to_dict()  # type: ignore[no-untyped-call]
    front.pop("model-index", None)  # results are those given now
    return front, card.text.strip()


def _parts(about: About) -> list[str]:
    note, parts = about.note, list[str]()
    if note:
        prompt = f", prompts of version `{note.prompt}`" if note.prompt else ""
        parts += [f"A {note.kind} trained by lm-eval-rag ({note.mode}, seed {note.seed}{prompt}).", _use(about, note)]
    if about.measured:
        shown = [
            (row.on, row.metric, f"{row.value:.4g}" + (f" ± {row.stderr:.2g}" if row.stderr else ""), row.source)
            for row in about.measured
        ]
        parts += ["## Measured\n\n± is one standard error.", table(("on", "metric", "value", "from"), shown)]
    if note:
        parts += _training(about, note)
    return parts


def _use(about: About, note: Note) -> str:
    if not note.tasks:
        return ""
    argument = ARGUMENT[note.kind, library(about.folder) == "peft"]
    at = about.repo + (f"@{about.tag}" if about.tag else "")
    return f"    lm_eval --tasks {note.tasks[0]} --model rulerag_ft --model_args {argument}={at}"


def _training(about: About, note: Note) -> list[str]:
    corpora = ", ".join(f"`{corpus}`" for corpus in note.corpora)
    said = [(made.name, said) for made in about.trained_on for said in terms.statements(made.sources.values())]
    told = {**note.settings, **note.versions}
    other = {name: value for name, value in note.results.items() if name not in {row.metric for row in about.measured}}
    return [
        f"## Training\n\nOn {', '.join(note.tasks) or 'no task'}; corpora {corpora or 'none'}.",
        table(("set", "sources' licence: terms"), said) if said else "",
        table(("outcome", "value"), list(other.items())) if other else "",
        table(("setting", "value"), list(told.items())) if told else "",
    ]
