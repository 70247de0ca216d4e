"""Builds CRAG's tasks on first use: the store of questions and pages, and a folder that says how a task uses it.

``$LM_EVAL_RAG_CACHE/crag_pages/<hash>`` is the store; tasks 1 and 2, which have the same pages, share it. The corpus
folder ``<task>/<hash>`` names it, how many pages a question has in this task, and the knowledge graph.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.data.folders import CARD, META, content_folder
from lm_eval_rag.harness.data.sources import Source, fetch, read_manifest
from lm_eval_rag.tasks.crag import card
from lm_eval_rag.tasks.crag.files import find_files, read_lines
from lm_eval_rag.tasks.crag.graph import graph_id
from lm_eval_rag.tasks.crag.schema import Record, parse
from lm_eval_rag.tasks.crag.store import write_store

log = logging.getLogger(__name__)

VERSION = 1  # raise it with every change of what is built: it names the folders
STORE = "crag_pages"
HASHED_WHOLE = 64 << 20  # bytes; a larger file of one's own is known by size and time, since hashing 8 GB takes long
RELEASES = ("v4", "v5")
LOGGED = 200  # records between two lines of the log


@dataclass(frozen=True, slots=True)
class Spec:
    """A task of the benchmark.

    Args:
        files: Its upstream files, with ``{}`` for the release.
        parts: Numbers of the parts by release; () for a file in one piece.
        shown: Pages of a question.
        graph: Whether the knowledge-graph API belongs to it.
    """

    files: str
    parts: Mapping[str, Sequence[int]]
    shown: int
    graph: bool

    def sources(self, release: str) -> list[str]:
        """Names of its files in the manifest, in order."""
        path = self.files.format(release)
        return [f"{path}.part{number}" for number in self.parts[release]] or [path]


_WHOLE: dict[str, Sequence[int]] = dict.fromkeys(RELEASES, ())
SPECS = {
    "crag_task1": Spec("crag/data/crag_task_1_and_2_dev_{}.jsonl.bz2", _WHOLE, 5, False),
    "crag_task2": Spec("crag/data/crag_task_1_and_2_dev_{}.jsonl.bz2", _WHOLE, 5, True),
    "crag_task3": Spec("crag/data/crag_task_3_dev_{}.tar.bz2", {"v4": range(1, 5), "v5": range(4)}, 50, True),
}


def manifest() -> dict[str, Source]:
    """Every upstream file by its name in the mirror."""
    return read_manifest(files(__package__) / "sources.toml")


def build(task: str, *, release: str = "v4", data_files: str | Sequence[str] | None = None) -> str:
    """The id ``<task>/<hash>`` of the task's corpus folder, which is built if it is not there.

    Args:
        task: ``crag_task1``, ``crag_task2`` or ``crag_task3``.
        release: ``v4`` (KDD Cup 2024) or ``v5``.
        data_files: Files of one's own in CRAG's format, in place of the official ones: paths or patterns.

    Raises:
        UserError: Unknown task or release; a file that cannot be had, is damaged, or is not CRAG's; a damaged folder.
    """
    if task not in SPECS:
        raise unknown("CRAG task", task, SPECS)
    if release not in RELEASES:
        raise unknown("release", str(release), RELEASES)
    spec = SPECS[task]
    store = _official(spec.sources(release)) if data_files is None else _own(data_files)
    return corpus_folder(task, store, spec.shown, graph_id(manifest()) if spec.graph else None)


def corpus_folder(task: str, store: str, shown: int, kg: str | None) -> str:
    """The id of a corpus folder over a store, which is written if it is not there.

    Args:
        shown: The most pages that a question has.
        kg: Folder of the knowledge graph in the cache; None where none belongs to the task.
    """
    made_from = {"task": task, "version": VERSION, "pages": store, "shown": shown, "kg": kg}

    def write(folder: Path) -> Mapping[str, Any]:
        said = json.loads((cache_dir() / store / META).read_text(encoding="utf-8"))
        about = {key: said[key] for key in ("sources", "counts", "slices", "notes")}
        (folder / CARD).write_text(card.text({**made_from, **about}), encoding="utf-8")
        return {**made_from, **about}

    return content_folder(task, made_from, write)


def store_of(records: Iterable[Record], made_from: Mapping[str, Any], sources: Mapping[str, Any]) -> str:
    """The id of the store of these records, which is written if it is not there.

    Args:
        made_from: What the records depend on.
        sources: Where they come from, for the card: name -> sha256, licence and so on.
    """

    def write(folder: Path) -> Mapping[str, Any]:
        said = write_store(folder, records)
        for note, count in said["notes"].items():
            log.warning("%s: %d times.", note, count)
        return {"version": VERSION, **made_from, **said, "sources": dict(sources)}

    return content_folder(STORE, {"version": VERSION, **made_from}, write)


def _official(names: Sequence[str]) -> str:
    known = manifest()
    sources = [known[name] for name in names]

    def records() -> Iterator[Record]:
        yield from _records([[fetch(source) for source in sources]])

    told = {s.path: {"url": s.url, "sha256": s.sha256, "licence": s.licence, "terms": s.terms} for s in sources}
    return store_of(records(), {"sources": {source.path: source.sha256 for source in sources}}, told)


def _own(data_files: str | Sequence[str]) -> str:
    groups = find_files(data_files)
    known = {str(path): _known(path) for group in groups for path in group}
    told = {Path(path).name: {"sha256": value} for path, value in known.items()}
    return store_of(_records(groups), {"data_files": [[known[str(path)] for path in group] for group in groups]}, told)


def _known(path: Path) -> str:
    """What tells a file from others: its sha256, or of a large one size and time."""
    about = path.stat()
    if about.st_size > HASHED_WHOLE:
        return f"{about.st_size} bytes of {about.st_mtime_ns}"
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
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
