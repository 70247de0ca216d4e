"""Pickles of the knowledge graphs, read in a guarded process: which ones are read, and within which limits.

- The official music and soccer files must have the sha256 of :data:`PICKLES`; any other file is refused. A graph of
  your own holds JSON files in their place.
- The values in the finance databases are small pickles, which a graph of your own may hold too. They have no sha256 of
  their own.

Both are read by :mod:`lm_eval_rag.harness.kg.pickles`, which runs nothing that a pickle names, in a process with
limits: a pickle of 60 doubled tuples is 200 bytes long, and its hash takes 2**60 steps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.guarded import Guarded, GuardError
from lm_eval_rag.harness.kg.frames import read_frame
from lm_eval_rag.harness.kg.pickles import plain, read_inert, read_value
from lm_eval_rag.harness.kg.records import Row, write_records

VALUE_SECONDS = 2.0  # of CPU; five days of minute prices, the longest known value, take 0.05 s
FILE_SECONDS = 1_200.0  # of CPU; 200 MB take one minute
FILE_MEMORY = 8 << 30  # bytes of address space; 200 MB take 1.7 GB
WALL = 6  # times the CPU seconds, by the clock
COMMIT = "ad1518887dd4d9ebcd7de95388c7a62751e7705c"  # of facebookresearch/CRAG, for the hashes below
PICKLES = {  # name -> sha256 at that commit, under mock_api/cragkg
    "artist_dict_simplified.pickle": "7f935fc9b76b26b52843d2f52c46aaff00f1193b6e5bc9b1529d1ae9456b6a2a",
    "artist_work_dict.pickle": "bc6db55ab0e32e13769a2473e14050f0828eea82aef5f6e279ef6f9543a54ffc",
    "grammy_df.pickle": "4c6ee52e6b083a980063ee290eb0b2d6926e1478c0d696380218ca19da34f166",
    "rank_dict_hot100.pickle": "965cf61f1daae796d274ed90a20e724c00568eb2586339e148d97606cb608e1e",
    "song_dict_hot100.pickle": "a5d5943fdd69a5c7730dbc3419730559abd4ba31704cf7bc3ea48ab2e98ded4c",
    "song_dict_simplified.pickle": "bb8e988448b76518eb0e16ae894afa982187f972956dd12bd8e787b1a9f732f4",
    "soccer_team_match_stats.pkl": "86c78cb0e43f294f94d329083b4cfd31f05efed23d3ba51ed9e40dbcad656724",
}
FRAMES = ("grammy_df.pickle", "soccer_team_match_stats.pkl")


class PickledValues:
    """Reads the values of finance databases; safe to share between threads."""

    def __init__(self, seconds: float = VALUE_SECONDS) -> None:
        self._guarded = Guarded(f"{__name__}:value_function", seconds=seconds, wall=WALL * seconds)

    def read(self, content: bytes, what: str) -> Any:
        """The JSON-able value of a pickle.

        Args:
            what: Names the value in the error.

        Raises:
            UserError: It is refused, or exceeds a limit.
        """
        return _called(self._guarded, what.encode(errors="replace") + b"\0" + content, what)


def convert_pickle(path: Path, digest: str, target: Path) -> None:
    """Write the records of an official pickle into a Parquet file.

    Args:
        digest: The file's sha256.

    Raises:
        UserError: It is not the official file, is refused, or exceeds a limit.
    """
    if digest != PICKLES.get(path.name):
        raise UserError(
            f"{path} is not the official pickle: its sha256 is {digest}, needed is {PICKLES.get(path.name, 'another')} "
            f"(facebookresearch/CRAG, commit {COMMIT}). Fetch it again, or put {path.stem}.json in its place."
        )
    limits = {"seconds": FILE_SECONDS, "wall": WALL * FILE_SECONDS}
    guarded = Guarded(f"{__name__}:file_function", **limits, memory=FILE_MEMORY)
    try:
        _called(guarded, json.dumps([str(path), str(target)]).encode(), str(path))
    finally:
        guarded.close()


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
    """What the guarded process calls for a value: its name and content in, JSON out."""

    def read(request: bytes) -> bytes:
        what, _, content = request.partition(b"\0")
        return _reply(lambda: read_value(content, what.decode()))

    return read


def file_function() -> Callable[[bytes], bytes]:
    """What the guarded process calls for a file: the paths of the pickle and of the Parquet file in, JSON out."""

    def convert(request: bytes) -> bytes:
        path, target = map(Path, json.loads(request))
        return _reply(lambda: write_records(_rows(path), target))

    return convert


def _reply(work: Callable[[], Any]) -> bytes:
    try:
        return json.dumps({"value": work()}).encode()
    except UserError as error:
        return json.dumps({"refused": str(error)}).encode()


def _rows(path: Path) -> Iterator[Row]:
    """Key and JSON-able value of every record of a pickle; the rows of a frame are numbered."""
    with path.open("rb") as file:
        if path.name in FRAMES:
            yield from ((str(row), value) for row, value in enumerate(read_frame(file, str(path))))
            return
        content = read_inert(file, str(path))
    if not isinstance(content, dict):
        raise UserError(f"{path} does not hold a dictionary. Fetch the official file.")
    yield from ((str(plain(key, str(path))), plain(value, str(path))) for key, value in content.items())
