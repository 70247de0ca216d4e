"""Files of a graph that are damaged, hostile, or hold what JSON cannot hold: one clear line for each."""

import bz2
import json
import pickle
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.kg.embedded import EmbeddedGraph
from lm_eval_rag.harness.kg.sqlite import query


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (pickle.dumps({"forwardEps": float("nan")}), None),
        (pickle.dumps({"forwardEps": float("inf")}), None),
        (pickle.dumps({"forwardEps": 9**4000}), 9**4000),
        ('{"forwardEps": 1.5}', 1.5),
        ('{"forwardEps": NaN}', "value of 'A' is not JSON: NaN is not allowed"),
        (f'{{"forwardEps": {"7" * 4301}}}', "value of 'A' is not JSON: an integer of 4,301 digits"),
        (pickle.dumps({"forwardEps": 10**5000}), "value of 'A' is refused: it holds an integer of more than 4,300"),
    ],
)
def test_a_stored_value_is_what_json_can_hold(
    tmp_path: Path, ask: Callable[..., Any], stored: bytes | str, expected: Any
) -> None:
    (tmp_path / "finance").mkdir()
    with closing(sqlite3.connect(tmp_path / "finance" / "finance_info.sqlite")) as base, base:
        base.execute('CREATE TABLE "unnamed" (key TEXT PRIMARY KEY, value BLOB)')
        base.execute('INSERT INTO "unnamed" VALUES (?, ?)', ("A", stored))
    reply = ask(EmbeddedGraph(tmp_path), "finance_get_eps", ticker_name="A")
    if isinstance(expected, str):
        assert isinstance(reply, CallError) and expected in str(reply) and "\n" not in str(reply)
    else:
        assert reply == expected
        json.dumps(reply, allow_nan=False)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n", "timed out"),
        ("SELECT '1' AS game_id, zeroblob(300000000) AS text", "string or blob too big"),
    ],
)
def test_a_table_without_end_is_ended_with_one_clear_error(tmp_path: Path, table: str, said: str) -> None:
    file = tmp_path / "nba.sqlite"
    with closing(sqlite3.connect(file)) as base, base:
        base.execute(f"CREATE VIEW game AS {table}")
    with pytest.raises(CallError, match=f"nba.sqlite cannot answer: .*{said}"):
        query(file, "SELECT * FROM game", (), seconds=0.5)


@pytest.mark.parametrize(
    ("file", "content", "function", "said"),
    [
        ("movie/movie_db.json", b"{", "movie_get_movie_info", "not JSON"),
        ("movie/movie_db.json", b"7", "movie_get_movie_info", "holds a int"),
        ("movie/movie_db.json", b"[" * 100_000, "movie_get_movie_info", "not JSON"),
        ("movie/movie_db.json", b'{"x": {"id": NaN}}', "movie_get_movie_info", "NaN is not allowed (write null"),
        ("movie/movie_db.json", b'{"x": {"id": -Infinity}}', "movie_get_movie_info", "-Infinity is not allowed"),
        ("movie/movie_db.json", b'{"x": {"id": 1e999}}', "movie_get_movie_info", "1e999 is not allowed"),
        ("movie/movie_db.json", b'{"x": %s}' % (b"9" * 4301), "movie_get_movie_info", "an integer of 4,301 digits"),
        (
            "open/kg.0.jsonl.bz2",
            bz2.compress(b'["x", NaN]'),
            "open_get_entity",
            "line 1, is damaged: NaN is not allowed",
        ),
        ("open/kg.0.jsonl.bz2", b"BZh9 broken", "open_get_entity", "damaged"),
        ("finance/finance_info.sqlite", b"no database" * 100, "finance_get_eps", "cannot answer"),
        ("finance/company_name.dict", b"a,b\n1,2\n", "finance_get_company_name", "not CSV"),
        ("sports/nba.sqlite", b"", "sports_nba_get_games_on_date", "no such table"),
        ("music/rank_dict_hot100.json", b'{"1": [7]}', "music_get_billboard_rank_date", "another layout"),
    ],
)
def test_damaged_and_missing_files_fail_the_call_alone(
    tmp_path: Path, cache: Path, ask: Callable[..., Any], file: str, content: bytes, function: str, said: str
) -> None:
    arguments = {
        "music_get_billboard_rank_date": {"rank": 1, "date": "x"},
        "sports_nba_get_games_on_date": {"date": "2024"},
    }
    parameter = {"movie_get_movie_info": "movie_name", "open_get_entity": "entity", "finance_get_eps": "ticker_name"}
    given = arguments.get(function, {parameter.get(function, "query"): "x"})
    graph = EmbeddedGraph(tmp_path)
    missing = ask(graph, function, **given)
    assert isinstance(missing, CallError) and file in str(missing)
    (tmp_path / file).parent.mkdir()
    (tmp_path / file).write_bytes(content)
    for _ in range(2):
        damaged = ask(graph, function, **given)
        assert isinstance(damaged, CallError) and said in str(damaged) and "\n" not in str(damaged)
    assert not list(tmp_path.rglob(".partial*"))
