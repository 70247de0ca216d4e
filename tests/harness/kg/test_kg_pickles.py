"""The reader of pickles: what pandas and numpy of several versions wrote, programs that must not run, and limits.

The files under ``pickles/`` hold our own little tables, written by the versions in their names.
"""

import hashlib
import io
import json
import pickle
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.data.sources import read_manifest
from lm_eval_rag.harness.kg import convert, guarded_files, pickles
from lm_eval_rag.harness.kg.convert import open_records
from lm_eval_rag.harness.kg.embedded import EmbeddedGraph
from lm_eval_rag.harness.kg.frames import read_frame
from lm_eval_rag.harness.kg.guarded_files import StoredValues
from lm_eval_rag.harness.kg.official import COMMIT, OFFICIAL
from lm_eval_rag.harness.kg.pickles import read_value

FOLDER = Path(__file__).parent / "pickles"
LEVELS = ("league", "season", "team", "game")
ROWS = [
    {"date": "2024-03-09T00:00:00.000", "GF": "0", "xG": 1.6, "Poss": 49, "n": 1, "flag": True, "Notes": None},
    {"date": "2024-03-10T00:00:00.000", "GF": "2", "xG": None, "Poss": 51, "n": 2, "flag": False, "Notes": "x"},
    {"date": None, "GF": "1", "xG": 2.0, "Poss": None, "n": 3, "flag": True, "Notes": "y"},
]
INDEX = [
    ("ENG-Premier League", "2324", "Everton", "g1"),
    ("ENG-Premier League", "2324", "Fulham", "g2"),
    (None, "2324", "Fulham", "g3"),
]


@pytest.mark.parametrize(
    "name",
    [
        "nullable-pandas-2.1.4-protocol-4",  # nullable integers, floats, booleans and texts
        "nullable-pandas-2.2.3-protocol-2",
        "plain-pandas-1.5.3-protocol-5",
    ],
)
def test_frames_with_an_index_of_four_levels(name: str) -> None:
    with (FOLDER / f"{name}.pkl").open("rb") as file:
        rows = read_frame(file, name)
    assert rows == [{**dict(zip(LEVELS, i, strict=True)), **row} for i, row in zip(INDEX, ROWS, strict=True)]
    json.dumps(rows, allow_nan=False)


def test_a_frame_of_categories_and_texts() -> None:
    with (FOLDER / "categories-pandas-2.2.3-protocol-4.pkl").open("rb") as file:
        assert read_frame(file, "") == [{"c": "a", "s": "x"}, {"c": "b", "s": None}, {"c": None, "s": "z"}]


@pytest.mark.parametrize("name", ["scalars-numpy-1.26-protocol-4", "scalars-numpy-2-protocol-4"])
def test_numbers_of_numpy_inside_dictionaries(name: str) -> None:
    expected = {"a": {"x": 1.5, "y": 3, "z": [None, None], "t": [1, 2], "s": "hi"}}
    assert read_value((FOLDER / f"{name}.pkl").read_bytes(), name) == expected


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "value",
    [
        {"2024-02-21 00:00:00 EST": 0.5},
        {"deep": [{"list": (1, None, True, -(2**70), 1e300)}]},
        np.arange(6).reshape(2, 3),
        np.arange(6.0).reshape(2, 3, order="F"),
        np.array(["2024-02-29", "NaT"], dtype="M8[D]"),
        {"x": np.float32(0.5), "set": {3}},
        "text",
    ],
)
def test_what_is_written_is_read(value: Any, protocol: int) -> None:
    expected = value.tolist() if isinstance(value, np.ndarray) and value.dtype.kind != "M" else value
    expected = ["2024-02-29T00:00:00.000", None] if isinstance(value, np.ndarray) and value.ndim == 1 else expected
    read = read_value(pickle.dumps(value, protocol=protocol), "value")
    assert read == json.loads(json.dumps(expected, default=lambda part: list(part) if part == {3} else float(part)))


class Program:
    """Pickles to a call of any function."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.call


HOSTILE = {
    "system": pickle.dumps(Program(__import__("os").system, "touch PWNED")),
    "eval": pickle.dumps(Program(eval, "open('PWNED', 'w')")),
    "open": pickle.dumps(Program(open, "PWNED", "w")),
    "getattr": pickle.dumps(Program(getattr, "", "upper")),
    "import": pickle.dumps(Program(__import__, "os")),
    "lookalike": b"cnumpy.core.multiarray\nexec\n(S'1'\ntR.",
    "numpy prefix": b"cnumpyx.core\nndarray\n.",
    "pandas method": b"cpandas.core.frame\nDataFrame.to_csv\n(S'PWNED'\ntR.",
    "dotted": b"\x80\x04\x8c\x06pandas\x8c\x16io.common.os.system.run\x93.",
    "persistent": b"PPWNED\n.",
    "extension": b"\x80\x02\x82\x01.",
    "cut": pickle.dumps({"a": "text" * 50})[:40],
    "empty": b"",
    "no pickle": b"SQLite format 3\x00",
    "a count that is not there": b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7fabc.",
    "state of a type": b"cbuiltins\nset\n(dS'name'\nS'x'\nsb.",
    "a frame alone": b"cpandas.core.frame\nDataFrame\n)R.",
    "an array without state": b"cnumpy.core.multiarray\n_reconstruct\n)R.",
    "a scalar without a type": b"cnumpy.core.multiarray\nscalar\n(I1\nI2\ntR.",
    "a list in itself": b"]q\x00h\x00a.",
    "a dictionary in itself": b"}q\x00X\x01\x00\x00\x00ah\x00s.",
    "an integer of 5,000 digits": pickle.dumps({"forwardEps": 10**5000}, protocol=2),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_programs_are_refused_and_nothing_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="that file is refused"):
        read_value(HOSTILE[name], "that file")
    with pytest.raises(UserError, match="that file is refused"):
        read_frame(io.BytesIO(HOSTILE[name]), "that file")
    assert not list(tmp_path.iterdir())


def test_a_file_that_unfolds_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickles, "MAX_NODES", 10_000)
    value: list[Any] = []
    for _ in range(40):
        value = [value, value]  # 2 ** 40 leaves in a few hundred bytes
    with pytest.raises(UserError, match="too large"):
        read_value(pickle.dumps(value), "bomb")


DOUBLED = b"K\x01\x85" + b"2\x86" * 60  # the tuple t = (1,), then 60 times t = (t, t)
BOMBS = {
    "a key": b"\x80\x02}" + DOUBLED + b"K\x01s.",
    "in a set": b"\x80\x04\x8f(" + DOUBLED + b"\x90.",
    "in a frozen set": b"\x80\x04(" + DOUBLED + b"\x91.",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_hash_without_end_is_ended_with_one_clear_error(name: str) -> None:
    values = StoredValues(seconds=0.5)
    assert values.read(pickle.dumps({"EPS": [1.5, None]}), "good") == {"EPS": [1.5, None]}
    began = time.perf_counter()
    with pytest.raises(UserError, match=r"^bomb is refused: reading it took too long \(limits: 0.5 s of CPU time"):
        values.read(BOMBS[name], "bomb")
    assert time.perf_counter() - began < 10
    assert values.read(pickle.dumps(7), "the next") == 7


def test_a_bomb_in_a_database_fails_one_call(tmp_path: Path, ask: Callable[..., Any]) -> None:
    (tmp_path / "finance").mkdir()
    with closing(sqlite3.connect(tmp_path / "finance" / "finance_info.sqlite")) as base, base:
        base.execute('CREATE TABLE "unnamed" (key TEXT PRIMARY KEY, value BLOB)')
        values = [("BOMB", BOMBS["a key"]), ("GOOD", pickle.dumps({"forwardEps": 1.5}))]
        base.executemany('INSERT INTO "unnamed" VALUES (?, ?)', values)
    graph = EmbeddedGraph(tmp_path)
    graph._domains["finance"]._stored = StoredValues(seconds=0.5)
    bomb = ask(graph, "finance_get_eps", ticker_name="BOMB")
    assert isinstance(bomb, CallError) and "value of 'BOMB' is refused" in str(bomb) and "too long" in str(bomb)
    assert ask(graph, "finance_get_eps", ticker_name="GOOD") == 1.5


@pytest.mark.parametrize(
    ("content", "limits", "said"),
    [
        (BOMBS["a key"], {"FILE_SECONDS": 0.5}, "took too long"),
        (pickle.dumps({"A": "x" * (1 << 25)}), {"FILE_MEMORY": 1 << 20}, "MemoryError|took too much memory"),
        (pickle.dumps([1, 2]), {}, "does not hold a dictionary"),
        (HOSTILE["system"], {}, "it names .*system"),
    ],
    ids=["time", "memory", "content", "program"],
)
def test_an_official_file_is_read_within_limits(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, limits: dict[str, Any], said: str
) -> None:
    for limit, value in limits.items():
        monkeypatch.setattr(guarded_files, limit, value)
    file = tmp_path / "artist_work_dict.pickle"
    file.write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    monkeypatch.setitem(OFFICIAL, file.name, digest)
    began = time.perf_counter()
    with pytest.raises(UserError, match=rf"{file} (is refused: .*({said})|does not hold a dictionary)"):
        open_records(tmp_path, file.name)
    assert time.perf_counter() - began < 20
    assert not list(cache.glob(f"kg/*{digest[:16]}*")) and not list(cache.rglob(".partial*"))


def test_the_hashes_are_those_of_the_manifest() -> None:
    manifest = read_manifest(files("lm_eval_rag.tasks.crag") / "sources.toml")
    graph = {Path(path).name: s.sha256 for path, s in manifest.items() if "/cragkg/" in path}
    assert {name: digest for name, digest in graph.items() if not name.endswith(".sqlite")} == OFFICIAL
    assert {source.commit for source in manifest.values()} == {COMMIT}


def test_official_names_need_official_content(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "music").mkdir()
    (tmp_path / "music" / "artist_dict_simplified.pickle").write_bytes(pickle.dumps({"A": {"country": "GB"}}))
    with pytest.raises(UserError, match="not the official pickle"):
        open_records(tmp_path, "music/artist_dict_simplified.pickle")


def test_a_pickle_with_the_right_sum_is_converted_once(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, ask: Callable[..., Any]
) -> None:
    content = pickle.dumps({"A": {"country": "GB", "birth_date": "1988", "members": []}, 7: {"country": float("nan")}})
    frame = (FOLDER / "nullable-pandas-2.1.4-protocol-4.pkl").read_bytes()
    monkeypatch.setitem(OFFICIAL, "artist_dict_simplified.pickle", hashlib.sha256(content).hexdigest())
    monkeypatch.setitem(OFFICIAL, "soccer_team_match_stats.pkl", hashlib.sha256(frame).hexdigest())
    for name, data in {
        "music/artist_dict_simplified.pickle": content,
        "sports/soccer_team_match_stats.pkl": frame,
    }.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(data)
    graph = EmbeddedGraph(tmp_path)
    assert ask(graph, "music_get_artist_birth_place", artist_name="A") == "GB"
    assert ask(graph, "music_get_artist_birth_place", artist_name="7") is None
    games = ask(graph, "sports_soccer_get_games_on_date", date="2024-03", team_name="Everton")
    assert games["Poss"] == {"('ENG-Premier League', '2324', 'Everton', 'g1')": 49}
    assert len(ask(graph, "sports_soccer_get_games_on_date", date="2024")["GF"]) == 2  # no league, no row
    monkeypatch.setattr(convert, "convert_file", None)  # a second opening reads the conversion alone
    assert open_records(tmp_path, "music/artist_dict_simplified.pickle").keys == ["A", "7"]
