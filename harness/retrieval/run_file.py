"""Retrieval runs: the best k documents of each query, as a Parquet file.

One row per query: ``corpus`` (fingerprint), ``query``, ``ids`` and ``scores`` (float64, best first). The note in the
file's metadata names the depth, the tasks, and the retriever and the size of each corpus. A run has ids, not texts: the
reader needs the corpus, but neither an index nor an encoder.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import storing

FORMAT = 1
NOTE = b"lm_eval_rag_run"  # key of the note in the metadata of a Parquet file
COLUMNS = ("corpus", "query", "ids", "scores")
SUFFIX = ".parquet"
Row = tuple[str, str, list[str], list[float]]  # as COLUMNS


@dataclass(frozen=True, slots=True)
class RunCorpus:
    """A corpus of a run.

    Args:
        id: Its name, ``<task>/<hash>``.
        documents: How many it has.
        retriever: Fingerprint of the retriever over it.
        queries: How many queries the run has over it.
    """

    id: str
    documents: int
    retriever: str
    queries: int


@dataclass(frozen=True, slots=True)
class RunNote:
    """What a run says of itself.

    Args:
        k: Its depth: how many documents were asked for.
        tasks: Whose questions it holds.
        retriever: Name and options, as on the command line.
        corpora: By fingerprint.
        version: Of this package.
    """

    k: int
    tasks: tuple[str, ...]
    retriever: str
    corpora: Mapping[str, RunCorpus]
    version: str


def write_run(path: Path, note: RunNote, rows: Iterable[Row]) -> None:
    """Write a run, whole or not at all.

    Raises:
        MachineError: It cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, number = pa.string(), pa.float64()
    schema = pa.schema(zip(COLUMNS, (text, text, pa.list_(text), pa.list_(number)), strict=True))
    columns = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
    table = pa.table(dict(zip(COLUMNS, map(list, columns), strict=True)), schema=schema)
    said = json.dumps({"format": FORMAT, **asdict(note)}, sort_keys=True)
    beside = path.with_name(f".{path.name}.new")
    with storing(path, "Free space, or give another --out."):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            pq.write_table(table.replace_schema_metadata({NOTE: said.encode()}), beside, compression="zstd")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


def read_note(path: Path) -> RunNote:
    """The note of a run.

    Raises:
        UserError: The file is missing, damaged, no run, or of another format.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_schema(path).metadata or {}
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"The run {path} is missing or damaged ({str(error).splitlines()[0]}).") from None
    if NOTE not in metadata:
        raise UserError(
            f"{path} is a Parquet file, but not a retrieval run. Give a file written by `lm-eval-rag retrieve`."
        )
    try:
        note: dict[str, Any] = json.loads(metadata[NOTE])
        if note.pop("format", None) != FORMAT:
            raise UserError(f"The run {path} is of another format; this version reads format {FORMAT}. Make it again.")
        corpora = {fingerprint: RunCorpus(**corpus) for fingerprint, corpus in note["corpora"].items()}
        return RunNote(note["k"], tuple(note["tasks"]), note["retriever"], corpora, note["version"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"The run {path} is damaged: its note cannot be read ({error!r}). Make it again.") from None


def read_rows(path: Path, corpus: str) -> dict[str, tuple[list[str], list[float]]]:
    """Query -> (ids, scores) over one corpus.

    Args:
        corpus: Its fingerprint.

    Raises:
        UserError: The file is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=list(COLUMNS), filters=[("corpus", "=", corpus)])
        _, queries, ids, scores = (table.column(name).to_pylist() for name in COLUMNS)
    except (OSError, pa.ArrowException, KeyError) as error:
        raise UserError(
            f"The run {path} is damaged ({str(error).splitlines()[0]}). Make or download it again."
        ) from None
    return dict(zip(queries, zip(ids, scores, strict=True), strict=True))
