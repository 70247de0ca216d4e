"""Vectors on disk: whole, resumable after a kill, and mended when damaged."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_eval_rag.harness.retrieval.embeddings import stored_vectors

ROWS, WIDTH, CHUNK = 1000, 8, 64


def vectors() -> Any:
    return np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float32)


class Counting:
    """Gives the vectors, counts the rows it was asked for, and may break down at one."""

    def __init__(self, breaks_at: int = ROWS + 1) -> None:
        self.asked: list[tuple[int, int]] = []
        self.breaks_at = breaks_at

    def __call__(self, start: int, stop: int) -> Any:
        if stop > self.breaks_at:
            raise KeyboardInterrupt
        self.asked.append((start, stop))
        return vectors()[start:stop]


@pytest.mark.parametrize("store", ["float16", "float32"])
def test_they_are_computed_once_and_mapped(tmp_path: Path, store: Any) -> None:
    first, second = Counting(), Counting()
    found = stored_vectors(tmp_path / "v", ROWS, store, first, {"model": "m"}, CHUNK)
    again = stored_vectors(tmp_path / "v", ROWS, store, second, {"model": "m"}, CHUNK)
    assert isinstance(again, np.memmap) and again.dtype == store and not again.flags.writeable
    assert np.array_equal(found, vectors().astype(store)) and np.array_equal(found, again)
    assert [stop - start for start, stop in first.asked] == [64] * 15 + [40] and not second.asked
    assert json.loads((tmp_path / "v" / "note.json").read_text()) == {"model": "m"}
    assert {path.name for path in (tmp_path / "v").iterdir()} == {"vectors.npy", "note.json", "lock"}


@pytest.mark.parametrize("breaks_at", [1, 64, 500, ROWS - 1])
def test_a_broken_run_is_taken_up_where_it_was(tmp_path: Path, breaks_at: int) -> None:
    broken, rest = Counting(breaks_at), Counting()
    with pytest.raises(KeyboardInterrupt):
        stored_vectors(tmp_path, ROWS, "float32", broken, {}, CHUNK)
    assert not (tmp_path / "vectors.npy").exists()
    assert np.array_equal(stored_vectors(tmp_path, ROWS, "float32", rest, {}, CHUNK), vectors())
    done = broken.asked[-1][1] if broken.asked else 0
    assert rest.asked[0][0] == done and rest.asked[-1][1] == ROWS


def test_a_killed_process_leaves_what_it_had(tmp_path: Path) -> None:
    program = (
        "import os, pathlib, sys; import numpy as np\n"
        "from lm_eval_rag.harness.retrieval.embeddings import stored_vectors\n"
        f"rows = np.random.default_rng(0).normal(size=({ROWS}, {WIDTH})).astype(np.float32)\n"
        "def encode(start, stop):\n"
        "    if start >= 300: os.kill(os.getpid(), 9)\n"
        "    return rows[start:stop]\n"
        f"stored_vectors(pathlib.Path(sys.argv[1]), {ROWS}, 'float32', encode, {{}}, {CHUNK})"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, check=False)
    assert ended.returncode == -9
    rest = Counting()
    assert np.array_equal(stored_vectors(tmp_path, ROWS, "float32", rest, {}, CHUNK), vectors())
    assert rest.asked[0][0] == 320


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize(
    "harm",
    [cut, lambda path: path.write_bytes(b""), lambda path: np.save(path, vectors()[:9]),
     lambda path: np.save(path, vectors().astype(np.float64)), lambda path: path.write_bytes(b"no array at all")],
)  # fmt: skip
def test_damaged_vectors_are_computed_anew(
    tmp_path: Path, harm: Callable[[Path], Any], caplog: pytest.LogCaptureFixture
) -> None:
    stored_vectors(tmp_path, ROWS, "float32", Counting(), {}, CHUNK)
    harm(tmp_path / "vectors.npy")
    anew = Counting()
    assert np.array_equal(stored_vectors(tmp_path, ROWS, "float32", anew, {}, CHUNK), vectors())
    assert anew.asked[0][0] == 0 and "damaged" in caplog.text


@pytest.mark.parametrize("name", ["partial.npy", "done.json"])
def test_a_damaged_part_is_not_built_upon(tmp_path: Path, name: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        stored_vectors(tmp_path, ROWS, "float32", Counting(500), {}, CHUNK)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-8])
    rest = Counting()
    assert np.array_equal(stored_vectors(tmp_path, ROWS, "float32", rest, {}, CHUNK), vectors())
    assert rest.asked[0][0] == 0


def test_many_at_once_compute_once(tmp_path: Path) -> None:
    encoders = [Counting() for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda encode: stored_vectors(tmp_path, ROWS, "float16", encode, {}, CHUNK), encoders))
    assert all(np.array_equal(one, vectors().astype(np.float16)) for one in found)
    assert sum(bool(encode.asked) for encode in encoders) == 1


def test_a_place_that_cannot_be_written_costs_a_warning_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    found = stored_vectors(tmp_path / "file" / "v", ROWS, "float16", Counting(), {}, CHUNK)
    assert np.array_equal(found, vectors().astype(np.float16)) and "cannot be stored" in caplog.text
