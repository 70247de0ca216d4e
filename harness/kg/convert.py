"""The files of a knowledge graph; large ones are converted once into Parquet, of which only look-ups are read.

Each becomes ``$LM_EVAL_RAG_CACHE/kg/<name>-<sha256>-1000.parquet``. So a graph of hundreds of megabytes takes neither
minutes to load nor gigabytes of memory, and a changed file is a new conversion. What is read, and within which limits,
says :mod:`lm_eval_rag.harness.kg.guarded_files`. A graph of your own holds JSON in their place (``grammy_df.json``): an
object for a dictionary, a list of row objects for a frame.
"""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.common.paths import cache_dir, hash_of, storing
from lm_eval_rag.harness.common.progress import Meter, written
from lm_eval_rag.harness.kg.guarded_files import convert_file
from lm_eval_rag.harness.kg.official import OFFICIAL
from lm_eval_rag.harness.kg.records import GROUP, Records

logger = logging.getLogger(__name__)


def open_records(folder: Path, *names: str) -> Records:
    """The records of the first of ``names`` that exists in the folder, converted if that was not done before.

    Raises:
        CallError: None of them exists.
        UserError: The file is damaged, or is a pickle that is not the official one.
        MachineError: The disk is full, or the cache cannot be written.
    """
    path = find(folder, *names)
    digest = hash_of(path)
    target = cache_dir() / "kg" / f"{path.name.partition('.')[0]}-{digest[:16]}-{GROUP}.parquet"
    if not target.is_file():
        logger.info("converting %s, once", path)
        with storing(target):
            _convert_into(target, path, digest)
    return Records(target, official=digest in OFFICIAL.values())


def _convert_into(target: Path, path: Path, digest: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".partial-")
    os.close(handle)
    partial_file = Path(name)
    try:
        with Meter(f"conversion of {path.name}", beside=written(partial_file)):
            convert_file(path, digest, partial_file)
        partial_file.replace(target)
    finally:
        partial_file.unlink(missing_ok=True)


def find(folder: Path, *names: str) -> Path:
    """The first of the files that exists.

    Raises:
        CallError: None does.
    """
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise CallError(f"the knowledge graph {folder} holds no {' or '.join(names)}: this function has no data here")
