"""The large files of the knowledge graphs, converted once into Parquet, of which only what is looked up is read.

Each becomes ``$LM_EVAL_RAG_CACHE/kg/<name>-<sha256>-1000.parquet`` with two columns: a key and a JSON text. So a graph
of hundreds of megabytes takes neither minutes to load nor gigabytes of memory, and a changed file is a new conversion.
Pickles must be the official ones, byte by byte (:data:`PICKLES`); :mod:`lm_eval_rag.harness.kg.pickles` reads them and
runs nothing. A folder of one's own holds JSON in their stead (``grammy_df.json``): an object for a dictionary, a list
of row objects for a frame.
"""

from __future__ import annotations

import bz2
import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.kg.frames import read_frame
from lm_eval_rag.harness.kg.pickles import plain, read_inert

logger = logging.getLogger(__name__)

GROUP = 1_000  # rows of a Parquet row group, which is what one look-up reads
KEPT = 16  # row groups that are kept in memory
MAX_LINE = 64 << 20  # characters of one line of the open graph: a zip bomb ends here
COMMIT = "ad1518887dd4d9ebcd7de95388c7a62751e7705c"  # of facebookresearch/CRAG, which the sums are of
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
Row = tuple[str, Any]


class Records:
    """Key and JSON-able value of every record of a converted file, in the file's order."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self._file = pq.ParquetFile(path, memory_map=True)
        self._keys = self._file.read(["key"]).column("key")
        self._group = lru_cache(KEPT)(self._read)

    def __len__(self) -> int:
        return len(self._keys)

    def _read(self, group: int) -> Any:
        return self._file.read_row_group(group, ["value"]).column("value")

    @cached_property
    def keys(self) -> list[str]:
        """Every key, by row."""
        keys: list[str] = self._keys.to_pylist()
        return keys

    def at(self, row: int) -> Any:
        """The value of a row."""
        group, place = divmod(row, GROUP)
        return json.loads(self._group(group)[place].as_py())

    def get(self, key: str) -> Any:
        """The value of a key, None if there is no such key."""
        import pyarrow as pa
        import pyarrow.compute as pc

        row: int = pc.index(self._keys, pa.scalar(_storable(key), self._keys.type)).as_py()
        return None if row < 0 else self.at(row)

    def values(self) -> Iterator[Any]:
        """Every value, by row."""
        for group in range(self._file.num_row_groups):
            for text in self._read(group):
                yield json.loads(text.as_py())


def open_records(folder: Path, *names: str) -> Records:
    """The records of the first of ``names`` that is in the folder, converted if that was not done before.

    Raises:
        CallError: None of them is there.
        UserError: The file is damaged, or a pickle that is not the official one.
    """
    path = find(folder, *names)
    digest = sha256(path)
    target = cache_dir() / "kg" / f"{path.name.partition('.')[0]}-{digest[:16]}-{GROUP}.parquet"
    if not target.is_file():
        logger.info("converting %s, once", path)
        _write(_READERS[path.suffix](path, digest), target)
    return Records(target)


def find(folder: Path, *names: str) -> Path:
    """The first of the files that is there.

    Raises:
        CallError: None is.
    """
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise CallError(f"the knowledge graph {folder} holds no {' or '.join(names)}: this function has no data here")


def sha256(path: Path) -> str:
    """Of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(rows: Iterable[Row], target: Path) -> None:
    """Write rows into a file that is whole or not there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".partial-")
    os.close(handle)
    schema = pa.schema([("key", pa.large_string()), ("value", pa.large_string())])
    source = iter(rows)
    try:
        with pq.ParquetWriter(name, schema) as writer:
            while part := list(islice(source, GROUP)):
                texts = [json.dumps(value) for _, value in part]
                keys = [_storable(key) for key, _ in part]
                writer.write_table(pa.table([keys, texts], schema=schema))
        Path(name).replace(target)
    finally:
        Path(name).unlink(missing_ok=True)


def _storable(key: str) -> str:
    """A key as Parquet can hold it: a lone surrogate has no UTF-8."""
    return key.encode(errors="replace").decode()


def _from_json(path: Path, digest: str) -> Iterator[Row]:
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is no JSON: {error}. Fetch the file anew.") from None
    if isinstance(content, list):
        content = {str(row): value for row, value in enumerate(content)}
    if not isinstance(content, dict):
        raise UserError(f"{path} holds a {type(content).__name__}: needed is an object or a list. Fetch it anew.")
    yield from content.items()


def _from_lines(path: Path, digest: str) -> Iterator[Row]:
    """Lines ``["name", {...}]``, packed by bzip2."""
    with bz2.open(path, "rt", encoding="utf-8") as file:
        number = 0
        while True:
            number += 1
            try:
                line = file.readline(MAX_LINE)
                if not line:
                    return
                key, value = json.loads(line)
            except (EOFError, OSError, ValueError, TypeError, RecursionError) as error:
                raise UserError(f"{path}, line {number}, is damaged: {error}. Fetch the file anew.") from None
            yield str(key), value


def _from_pickle(path: Path, digest: str) -> Iterator[Row]:
    if digest != PICKLES.get(path.name):
        raise UserError(
            f"{path} is not the official pickle: its sha256 is {digest}, needed is {PICKLES.get(path.name, 'another')} "
            f"(facebookresearch/CRAG, commit {COMMIT}). Fetch it anew, or put {path.stem}.json in its place."
        )
    with path.open("rb") as file:
        if path.name in FRAMES:
            yield from ((str(row), value) for row, value in enumerate(read_frame(file, str(path))))
            return
        content = read_inert(file, str(path))
    if not isinstance(content, dict):
        raise UserError(f"{path} holds no dictionary.")
    yield from ((str(plain(key, str(path))), plain(value, str(path))) for key, value in content.items())


_READERS: dict[str, Callable[[Path, str], Iterator[Row]]] = {
    ".json": _from_json,
    ".bz2": _from_lines,
    ".pickle": _from_pickle,
    ".pkl": _from_pickle,
}
