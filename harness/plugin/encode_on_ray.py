"""``lm-eval-rag encode --engine ray``: the shards of a corpus, each by one job of :mod:`.common.ray_engine`.

A job runs what ``encode --shard I/N`` runs, with N the number of shards, so that the files are those of one process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.ray_engine import RayEngine
from lm_eval_rag.harness.data.corpus import Corpus, open_corpus
from lm_eval_rag.harness.documents.intake import as_corpus
from lm_eval_rag.harness.retrieval import make_retriever, shards

SHARED = (
    "All machines need the same disk at this path, the same documents, and the same version of this package; set "
    "LM_EVAL_RAG_CACHE to a folder on that disk."
)


@dataclass(frozen=True, slots=True)
class ShardJob:
    """One shard to be encoded.

    Args:
        documents: A folder or file; None for a corpus of the cache.
        corpus: Id of the corpus.
        options: The options of ``dense``, as JSON.
        folder: Where this command expects the shard; its name depends on documents, encoder and numbers.
        number: Of the shard, from 0.
        count: Shards in all.
        size: Rows of a shard.
    """

    documents: str | None
    corpus: str
    options: str
    folder: str
    number: int
    count: int
    size: int


def encode_on_ray(engine: RayEngine, corpus: Corpus, options: Mapping[str, Any], documents: str | None) -> None:
    """Encode the shards of a corpus that are missing.

    Args:
        options: Those of ``dense``.
        documents: Where the corpus was read from; None for one of the cache.

    Raises:
        UserError: As :meth:`RayEngine.run`, or a worker has other documents, or writes into another folder.
    """
    retriever: Any = make_retriever("dense", corpus, **options)
    wanted, place = retriever.unfinished, None if documents is None else str(Path(documents).absolute())
    text, folder = json.dumps({**options, **retriever.settings}, sort_keys=True), str(retriever.folder.absolute())
    missing = {number: one.rows for number, one in enumerate(wanted) if one is not None}
    jobs = [ShardJob(place, corpus.id, text, folder, number, len(wanted), shards.SHARD) for number in missing]
    if not jobs:
        return
    engine.run("encoding of documents", encode_shard, jobs, list(missing.values()), "documents")
    unseen = [one.name for one in retriever.unfinished if one is not None]
    if unseen:
        raise UserError(f"Workers have written the shards {', '.join(unseen)}, and {folder} lacks them here. {SHARED}")


def encode_shard(job: ShardJob) -> int:
    """Encode one shard in a worker; returns how many vectors are on the disk.

    Raises:
        UserError: This worker has other documents, or another version of the encoder.
    """
    retriever = _retriever(job.documents, job.corpus, job.options)
    if str(retriever.folder.absolute()) != job.folder:
        raise UserError(f"A worker would write to {retriever.folder}, not to {job.folder}. {SHARED}")
    retriever.encode_share((job.number + 1, job.count), job.size)
    name = f"{job.number:05}.json"
    shard = shards.read_note(retriever.folder / name)
    return 0 if shard is None else shard.stop - shard.start


@lru_cache(maxsize=1)
def _retriever(documents: str | None, corpus: str, options: str) -> Any:
    """It stays in the worker, with its model, for the shards that follow."""
    opened = open_corpus(corpus) if documents is None else as_corpus(documents)
    assert opened is not None
    return make_retriever("dense", opened, **json.loads(options))
