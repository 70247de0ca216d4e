"""RuleQA on the Hub: the sets that can be published, and corpus folders installed from published sets."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from lm_eval_rag.harness.checkpoints.download import fetch_folder
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.data.folders import CARD, content_folder
from lm_eval_rag.harness.data.sources import read_manifest
from lm_eval_rag.harness.hub.cards import DataSet
from lm_eval_rag.tasks.ruleqa.build import build
from lm_eval_rag.tasks.ruleqa.source_files import FILES
from lm_eval_rag.tasks.ruleqa.specs import SPECS, TASKS, spec_of
from lm_eval_rag.tasks.ruleqa.tables import checksum

logger = logging.getLogger(__name__)

TABLES = ("corpus", "rules", "queries", "retriever_train", "generator_train")


def offered() -> dict[str, tuple[DataSet, ...]]:
    """The names for ``publish dataset``: ``ruleqa`` for the five sets, and every set, also ``_fresh``."""
    manifest = read_manifest(files(__package__) / "sources.toml")
    single = {
        task: DataSet(
            name=task,
            title=(spec := spec_of(task)).title,
            sources={path: manifest[path] for path in FILES[spec.graph]},
            build=partial(build, task),
        )
        for task in TASKS
    }
    return {"ruleqa": tuple(single[task] for task in SPECS), **{task: (dataset,) for task, dataset in single.items()}}


def install(task: str, dataset: str) -> tuple[str, str]:
    """The corpus id of a published set, and its version: ``ORG/NAME@<commit>``, or the folder.

    The folder ``$LM_EVAL_RAG_CACHE/<task>/<hash>`` is named by the hash of its content, so it differs from the folder
    that is built here from the sources. Both have the same content if the same code built the published set.

    Args:
        task: Name of the set, such as ``ruleqa_i`` or ``ruleqa_n_fresh``.
        dataset: ``ORG/NAME``, ``ORG/NAME@revision``, or a folder that contains ``<task>/meta.json`` and so on.

    Raises:
        UserError: An error of :func:`fetch_folder`; the set or a file is missing, or a checksum is wrong.
    """
    root = fetch_folder(dataset, kind="dataset", only=(f"{task}/*", "*/meta.json"))
    source = root / task
    meta = _meta(source, dataset)

    def copy(folder: Path) -> dict[str, Any]:
        _verify(source, meta, dataset)
        logger.info("%s from %s in %s", task, dataset, folder)
        for name in (*(f"{table}.parquet" for table in TABLES), CARD):
            if (source / name).is_file():
                shutil.copyfile(source / name, folder / name)
        return {**meta, "built_as": meta["hash"]}

    id, local = content_folder(task, meta["checksums"], copy), Path(dataset).expanduser().is_dir()
    return id, str(root) if local else f"{dataset.partition('@')[0]}@{root.name}"


def _meta(source: Path, dataset: str) -> dict[str, Any]:
    path = source / "meta.json"
    if not path.is_file():
        sets = sorted(other.parent.name for other in source.parent.glob("*/meta.json"))
        raise UserError(
            f"The dataset {dataset} does not contain {source.name}. It contains: {', '.join(sets) or 'no RuleQA set'}."
        )
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
        complete = meta["task"] == source.name and set(meta["checksums"]) == set(TABLES) and meta["hash"]
        sizes = {f"{name}.parquet" for name in TABLES} == set(meta["files"])
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(dataset, f"{path.name} cannot be read ({type(error).__name__}: {error})") from None
    if not (complete and sizes):
        raise _damaged(dataset, f"{path.name} does not describe {source.name}")
    return dict(meta)


def _verify(source: Path, meta: Mapping[str, Any], dataset: str) -> None:
    """Compare the rows of every table with the checksum."""
    for name, expected in meta["checksums"].items():
        try:
            actual = checksum(pl.read_parquet(source / f"{name}.parquet"))
        except (OSError, pl.exceptions.PolarsError) as error:
            raise _damaged(dataset, f"{name}.parquet cannot be read ({error})") from None
        if actual != expected:
            raise _damaged(dataset, f"the rows of {name}.parquet do not match their checksum")


def _damaged(dataset: str, reason: str) -> UserError:
    return UserError(
        f"The dataset {dataset} is damaged: {reason}. Use another version of it, or leave dataset= out to build the "
        "set from its sources."
    )
