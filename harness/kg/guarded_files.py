"""Files and values of the knowledge graphs, read in a guarded process with limits of time and memory.

- Files are converted once (:mod:`lm_eval_rag.harness.kg.convert`). The official music and soccer files are pickles, and
  must have the sha256 of :data:`~lm_eval_rag.harness.kg.official.OFFICIAL`; a graph of your own holds JSON instead.
- The values in the finance databases are small pickles or JSON texts, which a graph of your own may hold too. They have
  no sha256 of their own.

Pickles are read by :mod:`lm_eval_rag.harness.kg.pickles`, which runs nothing that a pickle names. The limits are for
what is small and still never ends: a pickle of 60 doubled tuples is 200 bytes long, and its hash takes 2**60 steps.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.guarded import Guarded, GuardError
from lm_eval_rag.harness.kg.file_rows import rows_of, strict_json
from lm_eval_rag.harness.kg.official import COMMIT, OFFICIAL
from lm_eval_rag.harness.kg.pickles import read_value
from lm_eval_rag.harness.kg.records import write_records

VALUE_SECONDS = 2.0  # of CPU; five days of minute prices, the longest known value, take 0.05 s
FILE_SECONDS = 1_200.0  # of CPU; 200 MB take one minute
FILE_MEMORY = 8 << 30  # bytes of address space; 200 MB take 1.7 GB
WALL = 6  # times the CPU seconds, by the clock
PICKLES = (".pickle", ".pkl")
TEXT, PICKLE = b"t", b"p"  # the kinds of stored values


class StoredValues:
    """Reads the values of finance databases; safe to share between threads."""

    def __init__(self, seconds: float = VALUE_SECONDS) -> None:
        self._guarded = Guarded(f"{__name__}:value_function", seconds=seconds, wall=WALL * seconds)

    def read(self, content: bytes | str, what: str) -> Any:
        """The JSON-able value of a pickle (bytes) or of a JSON text.

        Args:
            what: Names the value in the error.

        Raises:
            UserError: It is refused, or exceeds a limit.
        """
        kind, data = (PICKLE, content) if isinstance(content, bytes) else (TEXT, content.encode(errors="replace"))
        return _called(self._guarded, what.encode(errors="replace") + b"\0" + kind + data, what)


def convert_file(path: Path, digest: str, target: Path) -> None:
    """Write the records of a graph's file into a Parquet file.

    Args:
        digest: The file's sha256.

    Raises:
        UserError: It is damaged, is a pickle that is not the official one, or exceeds a limit.
    """
    if path.suffix in PICKLES and digest != OFFICIAL.get(path.name):
        needed = OFFICIAL.get(path.name, "another")
        raise UserError(
            f"{path} is not the official pickle: its sha256 is {digest}, needed is {needed} "
            f"(facebookresearch/CRAG, commit {COMMIT}). Fetch it again, or put {path.stem}.json in its place."
        )
    _called(_files(FILE_SECONDS, FILE_MEMORY), json.dumps([str(path), str(target)]).encode(), str(path))


@cache
def _files(seconds: float, memory: int) -> Guarded:
    """One process for all files: its start takes half a second."""
    return Guarded(f"{__name__}:file_function", seconds=seconds, wall=WALL * seconds, memory=memory)


def _called(guarded: Guarded, request: bytes, what: str) -> Any:
    try:
        reply = json.loads(guarded.call(request))
    except GuardError as error:
        limits = f"{guarded.seconds:g} s of CPU time, {guarded.memory >> 20} MiB"
        raise UserError(
            f"{what} is refused: reading it {STOPPED[error.reason]} (limits: {limits}). Fetch the official file."
        ) from None
    if "refused" in reply:
        raise UserError(reply["refused"])
    return reply["value"]


STOPPED = {"timed out": "took too long", "crashed": "took too much memory or crashed", "lost": "was interrupted"}


def value_function() -> Callable[[bytes], bytes]:
    """What the guarded process calls for a value: its name, kind and content in, JSON out."""

    def read(request: bytes) -> bytes:
        name, _, rest = request.partition(b"\0")
        what, kind, content = name.decode(), rest[:1], rest[1:]
        return _reply(lambda: read_value(content, what) if kind == PICKLE else _text(content, what))

    return read


def file_function() -> Callable[[bytes], bytes]:
    """What the guarded process calls for a file: the paths of the file and of the Parquet file in, JSON out."""
    import pyarrow.parquet

    pyarrow.array([""])  # imports all that writing needs, before the process forks, so that no file waits for it

    def convert(request: bytes) -> bytes:
        path, target = map(Path, json.loads(request))
        return _reply(lambda: write_records(rows_of(path), target))

    return convert


def _text(content: bytes, what: str) -> Any:
    try:
        return strict_json(content)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{what} is not JSON: {error}. Fetch the official file.") from None


def _reply(work: Callable[[], Any]) -> bytes:
    try:
        return json.dumps({"value": work()}).encode()
    except UserError as error:
        return json.dumps({"refused": str(error)}).encode()
