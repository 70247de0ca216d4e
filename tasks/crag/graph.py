"""The official knowledge graph as a folder: the files of the manifest under the names that the API expects."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.data.sources import Source, fetch

NAME, UPSTREAM = "crag_kg", "crag/mock_api/cragkg/"


def graph_id(manifest: Mapping[str, Source]) -> str:
    """The id ``crag_kg/<hash>`` of the folder, whether or not it exists."""
    made_from = {path: source.sha256 for path, source in manifest.items() if path.startswith(UPSTREAM)}
    return f"{NAME}/{hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:12]}"


def build_graph(manifest: Mapping[str, Source]) -> str:
    """Fetch every file of the graph (4.6 GB) and link it into the folder; returns the folder's id.

    Raises:
        UserError: A file is not available. Files fetched so far stay in the cache.
    """
    id = graph_id(manifest)
    folder = cache_dir() / id
    fetched = {path: fetch(source) for path, source in manifest.items() if path.startswith(UPSTREAM)}
    for path, file in fetched.items():
        _link(file, folder / path.removeprefix(UPSTREAM))
    return id


def _link(file: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        return
    try:
        place.symlink_to(file.resolve())
    except OSError:  # a system without links
        shutil.copyfile(file, place)
