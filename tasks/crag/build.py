"""Builds CRAG's tasks on first use: the store of questions and pages, and a folder for each task that uses it.

``$LM_EVAL_RAG_CACHE/crag_pages/<hash>`` is the store; tasks 1 and 2, which have the same pages, share it. The corpus
folder ``<task>/<hash>`` names the store, the number of pages of a question in this task, and the knowledge graph.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.common.paths import cache_dir, hash_of
from lm_eval_rag.harness.data.folders import CARD, META, content_folder
from lm_eval_rag.harness.data.sources import Source, fetch, read_manifest
from lm_eval_rag.tasks.crag import card
from lm_eval_rag.tasks.crag.files import find_files, read_lines
from lm_eval_rag.tasks.crag.graph import graph_id
from lm_eval_rag.tasks.crag.schema import Record, parse
from lm_eval_rag.tasks.crag.store import write_store

log = logging.getLogger(__name__)

VERSION = 1  # part of the folders' names; raise it when what is built changes
STORE = "crag_pages"
HASHED_WHOLE = 64 << 20  # bytes; larger files of a user are identified by size and time, because hashing 8 GB is slow
RELEASES = ("v4", "v5")
LOGGED = 200  # records between two log messages


@dataclass(frozen=True, slots=True)
class Spec:
    """A task of the benchmark.

    Args:
        files: Name of its upstream file, with ``{}`` for the release.
        parts: Numbers of the file's parts by release; () for a whole file.
        shown: Number of pages of a question.
        graph: Whether the task has the knowledge-graph API.
    """

    files: str
    parts: Mapping[str, Sequence[int]]
    shown: int
    graph: bool

    def sources(self, release: str) -> list[str]:
        """Names of the files in the manifest, in order."""
        path = self.files.format(release)
        return [f"{path}.part{number}" for number in self.parts[release]] or [path]


_WHOLE: dict[str, Sequence[int]] = dict.fromkeys(RELEASES, ())
SPECS = {
    "crag_task1": Spec("crag/data/crag_task_1_and_2_dev_{}.jsonl.bz2", _WHOLE, 5, False),
    "crag_task2": Spec("crag/data/crag_task_1_and_2_dev_{}.jsonl.bz2", _WHOLE, 5, True),
    "crag_task3": Spec("crag/data/crag_task_3_dev_{}.tar.bz2", {"v4": range(1, 5), "v5": range(4)}, 50, True),
}


def manifest() -> dict[str, Source]:
    """All upstream files by their name in the mirror."""
    return read_manifest(files(__package__) / "sources.toml")


def build(task: str, *, release: str = "v4", data_files: str | Sequence[str] | None = None) -> str:
    """The id ``<task>/<hash>`` of the task's corpus folder, which is built if it does not exist.

    Args:
        task: ``crag_task1``, ``crag_task2`` or ``crag_task3``.
        release: ``v4`` (KDD Cup 2024) or ``v5``.
        data_files: Paths or patterns of your own files in CRAG's format, instead of the official ones.

    Raises:
        UserError: Unknown task or release; a file that is not available, damaged, or not CRAG's; a damaged folder.
    """
    if task not in SPECS:
        raise unknown("CRAG task", task, SPECS)
    if release not in RELEASES:
        raise unknown("release", str(release), RELEASES)
    spec = SPECS[task]
    store = _official(spec.sources(release)) if data_files is None else _own(data_files)
    return corpus_folder(task, store, spec.shown, graph_id(manifest()) if spec.graph else None)


def corpus_folder(task: str, store: str, shown: int, kg: str | None) -> str:
    """The id of a corpus folder over a store; it is written if it does not exist.

    Args:
        shown: Largest number of pages of a question.
        kg: Folder of the knowledge graph in the cache; None if the task has none.
    """
    made_from = {"task": task, "version": VERSION, "pages": store, "shown": shown, "kg": kg}

    def write(folder: Path) -> Mapping[str, Any]:
        meta = json.loads((cache_dir() / store / META).read_text(encoding="utf-8"))
        about = {key: meta[key] for key in ("sources", "counts", "slices", "notes")}
        (folder / CARD).write_text(card.text({**made_from, **about}), encoding="utf-8")
        return {**made_from, **about}

    return content_folder(task, made_from, write)


def store_of(records: Iterable[Record], made_from: Mapping[str, Any], sources: Mapping[str, Any]) -> str:
    """The id of the store of these records; it is written if it does not exist.

    Args:
        made_from: What the records depend on.
        sources: Where they are from, for the card: name -> sha256, licence and so on.
    """

    def write(folder: Path) -> Mapping[str, Any]:
        about = write_store(folder, records)
        for note, count in about["notes"].items():
            log.warning("%s: %d times.", note, count)
        return {"version": VERSION, **made_from, **about, "sources": dict(sources)}

    return content_folder(STORE, {"version": VERSION, **made_from}, write)


def _official(names: Sequence[str]) -> str:
    upstream = manifest()
    sources = [upstream[name] for name in names]

    def records() -> Iterator[Record]:
        yield from _records([[fetch(source) for source in sources]])

    about = {s.path: {"url": s.url, "sha256": s.sha256, "licence": s.licence, "terms": s.terms} for s in sources}
    return store_of(records(), {"sources": {source.path: source.sha256 for source in sources}}, about)


def _own(data_files: str | Sequence[str]) -> str:
    groups = find_files(data_files)
    identities = {str(path): _identity(path) for group in groups for path in group}
    about = {Path(path).name: {"sha256": identity} for path, identity in identities.items()}
    made_from = {"data_files": [[identities[str(path)] for path in group] for group in groups]}
    return store_of(_records(groups), made_from, about)


def _identity(path: Path) -> str:
    """The sha256 of a file; size and time of a large one."""
    about = path.stat()
    if about.st_size > HASHED_WHOLE:
        return f"{about.st_size} bytes of {about.st_mtime_ns}"
    try:
        return hash_of(path)
    except OSError as error:
        raise UserError(f"data_files: {path} cannot be read: {error.strerror}.") from None


def _records(groups: Iterable[Sequence[Path]]) -> Iterator[Record]:
    count = 0
    for group in groups:
        for where, line in read_lines(group):
            yield parse(line, where)
            count += 1
            if count % LOGGED == 0:
                log.info("%d records read", count)
