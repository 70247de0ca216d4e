"""Vectors on disk: in shards, whole, resumable after a kill, and computed again when damaged."""

from __future__ import annotations

import errno
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_eval_rag.harness.common.errors import MachineError, UserError
from lm_eval_rag.harness.retrieval import shard_file, shards
from lm_eval_rag.harness.retrieval.embeddings import fill, stored_vectors
from lm_eval_rag.harness.retrieval.manifest import open_shards, verify

ROWS, WIDTH, CHUNK, SHARD = 1000, 8, 64, 384  # shards of 384, 384 and 232 rows
SHARDS = ["00000", "00001", "00002"]


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SHARD", SHARD)


def vectors() -> Any:
    return np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float32)


def as_int8(whole: Any) -> Any:
    """Restated: each vector's largest number becomes 127."""
    scale = (np.abs(whole).max(axis=1) / 127).astype(np.float32)[:, None]
    return np.rint(whole / scale).astype(np.float32) * scale


STORED: dict[str, Callable[[Any], Any]] = {
    "float16": lambda whole: whole.astype(np.float16),
    "float32": lambda whole: whole,
    "int8": as_int8,
}


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

    @property
    def rows(self) -> list[int]:
        return [row for start, stop in self.asked for row in range(start, stop)]


def stored(folder: Path, encode: Any, store: Any = "float32", note: Any = None) -> Any:
    return stored_vectors(folder, ROWS, store, encode, note or {"tower": "m"}, CHUNK)


@pytest.mark.parametrize("store", list(STORED))
def test_they_are_computed_once_and_mapped(tmp_path: Path, store: Any) -> None:
    first, second = Counting(), Counting()
    made, opened = stored(tmp_path / "v", first, store), stored(tmp_path / "v", second, store)
    assert first.rows == list(range(ROWS)) and not second.asked
    expected = STORED[store](vectors())
    assert opened.shape == (ROWS, WIDTH) and opened.dtype == expected.dtype and len(opened) == ROWS
    for read in (made, opened):
        assert np.array_equal(np.asarray(read), expected)
    for rows in (slice(380, 390), slice(0, 5), slice(990, 2000), slice(7, 900, 100), slice(5, 5), [999, 0, 384, 0], -1):
        assert np.array_equal(opened[rows], expected[rows])
    with pytest.raises(IndexError):
        opened[[ROWS]]
    assert not opened._mapped(0).flags.writeable
    names = {path.name for path in (tmp_path / "v").iterdir()}
    ends = ("npy", "json", "lock")
    assert names == {"manifest.json", "lock", *(f"{name}.{end}" for name in SHARDS for end in ends)}


def test_the_manifest_says_all_of_the_shards(tmp_path: Path) -> None:
    verify(stored(tmp_path, Counting(), "float16", {"tower": "m", "corpus": "c"}))
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["made_from"] == {"tower": "m", "corpus": "c"}
    assert (manifest["rows"], manifest["dimensions"], manifest["store"]) == (ROWS, WIDTH, "float16")
    assert [(one["file"], one["start"], one["stop"]) for one in manifest["shards"]] == [
        ("00000.npy", 0, 384), ("00001.npy", 384, 768), ("00002.npy", 768, 1000),
    ]  # fmt: skip
    for one in manifest["shards"]:
        assert one["sha256"] == hashlib.sha256((tmp_path / one["file"]).read_bytes()).hexdigest()
        assert np.array_equal(np.load(tmp_path / one["file"]), vectors()[one["start"] : one["stop"]].astype("float16"))


@pytest.mark.parametrize("breaks_at", [1, 64, 384, 500, ROWS - 1])
@pytest.mark.parametrize("store", ["float32", "int8"])
def test_a_broken_run_is_resumed(tmp_path: Path, breaks_at: int, store: Any) -> None:
    broken, rest = Counting(breaks_at), Counting()
    with pytest.raises(KeyboardInterrupt):
        stored(tmp_path, broken, store)
    assert not (tmp_path / "manifest.json").exists()
    assert np.array_equal(np.asarray(stored(tmp_path, rest, store)), STORED[store](vectors()))
    assert broken.rows + rest.rows == list(range(ROWS))  # nothing twice, nothing missing


def test_a_killed_process_leaves_what_it_had(tmp_path: Path) -> None:
    program = (
        "import os, pathlib, sys; import numpy as np\n"
        "from lm_eval_rag.harness.retrieval import embeddings, shards\n"
        f"shards.SHARD = {SHARD}\n"
        f"rows = np.random.default_rng(0).normal(size=({ROWS}, {WIDTH})).astype(np.float32)\n"
        "def encode(start, stop):\n"
        "    if start >= 500: os.kill(os.getpid(), 9)\n"
        "    return rows[start:stop]\n"
        f"embeddings.stored_vectors(pathlib.Path(sys.argv[1]), {ROWS}, 'float32', encode, {{'tower': 'm'}}, {CHUNK})"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, check=False)
    assert ended.returncode == -9
    rest = Counting()
    assert np.array_equal(np.asarray(stored(tmp_path, rest)), vectors())
    assert rest.asked[0][0] == 384 + 2 * 64


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize(
    "harm",
    [cut, Path.unlink, lambda path: path.write_bytes(b""), lambda path: np.save(path, vectors()[:9]),
     lambda path: np.save(path, vectors().astype(np.float64)), lambda path: path.write_bytes(b"no array at all")],
)  # fmt: skip
def test_a_damaged_shard_alone_is_computed_again(
    tmp_path: Path, harm: Callable[[Path], Any], caplog: pytest.LogCaptureFixture
) -> None:
    stored(tmp_path, Counting())
    harm(tmp_path / "00001.npy")
    again = Counting()
    assert np.array_equal(np.asarray(stored(tmp_path, again)), vectors())
    assert again.rows == list(range(384, 768)) and "damaged" in caplog.text and "00001.npy" in caplog.text


@pytest.mark.parametrize("name", ["manifest.json", "00001.json"])
def test_a_damaged_note_is_no_note(tmp_path: Path, name: str) -> None:
    stored(tmp_path, Counting())
    (tmp_path / "manifest.json").unlink() if name == "00001.json" else None
    (tmp_path / name).write_text("{")
    again = Counting()
    assert np.array_equal(np.asarray(stored(tmp_path, again)), vectors())
    assert len(again.rows) == (384 if name == "00001.json" else 0)


@pytest.mark.parametrize("name", ["00001.partial", "00001.done"])
def test_a_damaged_part_is_not_built_upon(tmp_path: Path, name: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        stored(tmp_path, Counting(500))
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-8])
    rest = Counting()
    assert np.array_equal(np.asarray(stored(tmp_path, rest)), vectors())
    assert rest.asked[0][0] == 384


def test_many_at_once_share_the_shards(tmp_path: Path) -> None:
    encoders = [Counting() for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda encode: stored(tmp_path, encode, "float16"), encoders))
    assert all(np.array_equal(np.asarray(one), vectors().astype(np.float16)) for one in made)
    assert sorted(row for encode in encoders for row in encode.rows) == list(range(ROWS))


def test_shares_make_the_same_bytes_as_one_process(tmp_path: Path) -> None:
    stored(tmp_path / "one", Counting())
    encoders = Counting(), Counting()
    note = {"tower": "m"}
    assert fill(tmp_path / "two", ROWS, "float32", encoders[0], note, CHUNK, (2, 2)) is None
    assert fill(tmp_path / "two", ROWS, "float32", encoders[1], note, CHUNK, (1, 2)) is not None
    assert encoders[0].rows == list(range(384, 768)) and len(encoders[1].rows) == ROWS - 384
    for name in ("manifest.json", *(f"{name}.{end}" for name in SHARDS for end in ("npy", "json"))):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def changed(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_shards_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    for case, message in {
        "encoder": r"00001.npy holds vectors of another tower: \"other\", not \"m\"",
        "dimension": "00001.npy has dimensions 4, 00000.npy has 8",
        "gap": "00001.npy begins at row 768, and the shard before it ends at 384",
        "rows": r"1,000 vectors, the corpus 1,001 documents",
        "flipped": "00001.npy is damaged: its sha256",
    }.items():
        folder = tmp_path / case
        stored(folder, Counting())
        manifest = json.loads((folder / "manifest.json").read_text())
        with pytest.raises(UserError, match=message):
            if case == "encoder":
                (folder / "manifest.json").unlink()
                changed(folder / "00001.json", made_from={"tower": "other"})
                stored(folder, Counting())
            if case == "dimension":
                (folder / "manifest.json").unlink()
                narrow = vectors()[384:768, :4]
                np.save(folder / "00001.npy", narrow)
                changed(folder / "00001.json", dimensions=4)
                stored(folder, Counting())
            if case == "gap":
                first, _, last = manifest["shards"]
                changed(folder / "manifest.json", shards=[first, {**last, "file": "00001.npy"}])
                open_shards(folder, ROWS)
            if case == "rows":
                open_shards(folder, ROWS + 1)
            if case == "flipped":
                content = bytearray((folder / "00001.npy").read_bytes())
                content[-1] ^= 1
                (folder / "00001.npy").write_bytes(bytes(content))
                verify(open_shards(folder, ROWS))


def test_what_an_encoder_may_not_give(tmp_path: Path) -> None:
    nan, wide = vectors(), vectors() * np.float32(1e5)
    nan[500, 3] = np.nan
    for name, encode, store, message in (
        ("nan", lambda a, b: nan[a:b], "float32", "NaN or infinity"),
        ("nan8", lambda a, b: nan[a:b], "int8", "NaN or infinity"),
        ("wide", lambda a, b: wide[a:b], "float16", "retriever_store=float32"),
        ("few", lambda a, b: vectors()[a : b - 1], "float32", r"given 64 documents \(from row 0\).*\(63, 8\)"),
        ("mixed", lambda a, b: vectors()[a:b, : 8 if a < 100 else 4], "float32", "of 8 and of 4 dimensions"),
    ):
        with pytest.raises(UserError, match=message):
            stored(tmp_path / name, encode, store)
        assert not (tmp_path / name / "manifest.json").exists()


def test_a_full_disk_is_named_and_the_run_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, value: Any) -> None:
        if path.name == "00001.done" and value["rows"] > 100:
            raise OSError(errno.ENOSPC, "No space left on device")
        shards.write_json(path, value)

    monkeypatch.setattr(shard_file, "write_json", full)
    broken, rest = Counting(), Counting()
    with pytest.raises(MachineError, match=r"the disk is full.*the next run resumes"):
        stored(tmp_path, broken)
    monkeypatch.setattr(shard_file, "write_json", shards.write_json)
    assert np.array_equal(np.asarray(stored(tmp_path, rest)), vectors())
    assert rest.asked[0][0] == 384 + 64


@pytest.mark.parametrize("few", [True, False])
def test_a_folder_that_cannot_be_written(
    few: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Few vectors stay in memory, with a warning; many may not fit there."""
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr(shards, "SHARD", ROWS if few else SHARD)
    if few:
        assert np.array_equal(stored(tmp_path / "file" / "v", Counting(), "int8"), as_int8(vectors()))
        assert "cannot be stored" in caplog.text
    else:
        with pytest.raises(MachineError, match="cannot be written"):
            stored(tmp_path / "file" / "v", Counting())
