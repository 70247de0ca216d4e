"""``rulerag.json`` as it is published: local paths are replaced by the Hub ids under which others find the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.checkpoints.download import HUB_ID
from lm_eval_rag.harness.checkpoints.note import Note
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.generators.spec import EMBEDDED
from lm_eval_rag.harness.retrieval.encoders import PRESETS

STATIC = "static"
DEFAULT_FOLDER = "checkpoints"  # where `lm-eval-rag train` puts what has no --out
NO_REPOSITORY = ("", STATIC, *EMBEDDED)  # bases that are part of this package, or unknown
BASES = {"retriever": "encoder", "generator": "base"}  # kind -> the setting that names its base model


def is_local(value: str, beside: Path) -> bool:
    """Whether a text is a path of this machine.

    Args:
        beside: The checkpoint's folder; a name of a folder beside it is a path, too.
    """
    path = Path(value).expanduser()
    if path.is_absolute() or value.startswith("."):
        return True
    return "/" in value and (path.parts[0] == DEFAULT_FOLDER or path.exists() or (beside.parent / path.name).exists())


def is_hub_id(value: str, beside: Path) -> bool:
    """Whether others find a repository under this text: it is ``ORG/NAME[@REVISION]``, and no path of this machine."""
    match = HUB_ID.fullmatch(value)
    return match is not None and "/" in match["repo"] and not is_local(value, beside)


def need_hub_id(value: str, beside: Path, where: object) -> str:
    """The name of a base model, which must be a Hub id.

    Args:
        where: The file or folder that names it, for the error.

    Raises:
        UserError: It is none.
    """
    if not is_hub_id(value, beside):
        raise UserError(
            f"The base model of {where} is {value!r}: a local path, or a name without ORG/, where other users do not "
            "find it. Give its Hub id with --base-model ORG/NAME; it is written into the published copy."
        )
    return value


def base_of(note: Note, folder: Path, given: str | None) -> str | None:
    """The Hub id of the base model; None for an embedded one, and where the note names none.

    Args:
        given: What the user or the adapter says; it comes first.

    Raises:
        UserError: The base model is a local path.
    """
    base = str(note.settings.get(BASES[note.kind]) or "")
    if given or base in NO_REPOSITORY:
        return given
    return PRESETS[base].model if base in PRESETS else need_hub_id(base, folder, folder)


def published_note(note: Note, folder: Path, *, base: str | None, retriever: str | None) -> Note:
    """The note without local paths.

    Args:
        base: Hub id of the base model, or None.
        retriever: Hub id of the retriever that a generator was trained with, or None.

    Raises:
        UserError: A generator was trained with a retriever's checkpoint of this machine, and ``retriever`` is None.
    """
    settings = dict(note.settings)
    key = BASES[note.kind]
    named = str(settings.get(key) or "")
    if base and named not in (*NO_REPOSITORY, *PRESETS) and not is_hub_id(named, folder):
        settings[key] = base
    options: Mapping[str, Any] = {}
    name, options = settings.get("retriever") or ("", options)
    adapter = str(options.get("adapter", ""))
    if name and (retriever or is_local(adapter, folder)):
        if retriever is None:
            raise UserError(
                f"The generator in {folder} was trained with the retriever's checkpoint {adapter!r}, a local path that "
                "other users do not have. Publish that checkpoint first, and give its Hub id with --retriever "
                "ORG/NAME@TAG."
            )
        settings["retriever"] = [name, {**options, "adapter": retriever}]
    return replace(note, settings={k: v if k == "corpora" else _without_paths(v, folder) for k, v in settings.items()})


def _without_paths(value: Any, folder: Path) -> Any:
    """The value with the last name of each local path in it."""
    if isinstance(value, Mapping):
        return {key: _without_paths(one, folder) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_paths(one, folder) for one in value]
    return Path(value).name if isinstance(value, str) and is_local(value, folder) else value
