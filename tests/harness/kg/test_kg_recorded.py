"""The recorded responses of the real server: their functions and shapes, and the same replies from the same content.

25 of the API's 38 functions have recorded responses (26 calls); nothing here says whether the other 13 reply as the
real server does. Each recorded response is written into a file of the official layout; the embedded backend then has to
answer the recorded call with it. Company names are searched in the real file. The songs and entities of the recorded
searches lie among thousands of made-up names, in files that count as official, so that they are searched as on the
server.

All replies have to be equal, with one exception: those of ``open_search_entity_by_name`` are compared in groups of
equal score, in any order within a group. The server orders equal scores by an unstable sort over its whole file, and
that file is not at hand.
"""

import ast
import bz2
import hashlib
import json
import pickle
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.kg.embedded import EmbeddedGraph
from lm_eval_rag.harness.kg.functions import FUNCTIONS, bind_arguments
from lm_eval_rag.harness.kg.official import OFFICIAL

Recorded = list[tuple[str, list[Any], Any]]


def texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def table(value: Any) -> bool:
    rows = [tuple(column) for column in value.values()]
    return len(value) > 5 and len(set(rows)) == 1


# In the full song file "i" and "it" are in many titles, "can" and "feel" in fewer than one in a hundred.
OTHERS = [f"{word} {number}" for word in ("i name", "it name", "a name", "the name") for number in range(500)]
SHAPES: dict[str, Callable[[Any], bool]] = {  # restated here: what each kind of result looks like in JSON
    "text": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float),
    "texts": texts,
    "integers": lambda value: isinstance(value, list) and all(type(part) is int for part in value),
    "record": lambda value: isinstance(value, dict),
    "records": lambda value: isinstance(value, list) and all(isinstance(part, dict) for part in value),
    "columns": table,
    "dated": lambda value: all(stamp[4] == "-" and stamp.endswith("EST") for stamp in value),
    "pair": lambda value: isinstance(value, list) and len(value) == 2,
    "lists": lambda value: len(value) == 2 and texts(value[0]) and texts(value[1]) and len(value[0]) == len(value[1]),
}


@pytest.fixture(scope="module")
def recorded(mirror: Path | None) -> Recorded:
    if mirror is None or not (mirror / "crag" / "mock_api_examples.jsonl").is_file():
        pytest.skip("needs the recorded responses, which are in the mirror alone")
    found = []
    for line in (mirror / "crag" / "mock_api_examples.jsonl").read_text().splitlines():
        row = json.loads(line)
        call = ast.parse(row["call"], mode="eval").body
        assert isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        found.append((call.func.attr, [ast.literal_eval(arg) for arg in call.args], row["response"]["result"]))
    return found


@pytest.fixture(scope="module")
def replayed(
    recorded: Recorded, mirror: Path, cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedGraph]:
    """A graph that holds what was recorded."""
    folder = tmp_path_factory.mktemp("recorded")
    replies = {(name, str(arguments)): result for name, arguments, result in recorded}
    one = {name: result for name, _, result in recorded}
    for domain in ("finance", "movie", "music", "open", "sports"):
        (folder / domain).mkdir()
    shutil.copy(mirror / "crag" / "kg_finance_company_name.dict.csv", folder / "finance" / "company_name.dict")
    for file, function in {
        "finance_detailed_price": "finance_get_detailed_price_history",
        "finance_dividend": "finance_get_dividends_history",
        "finance_marketcap": "finance_get_market_capitalization",
        "finance_info": "finance_get_info",
    }.items():
        with closing(sqlite3.connect(folder / "finance" / f"{file}.sqlite")) as base, base:
            base.execute('CREATE TABLE "unnamed" (key TEXT PRIMARY KEY, value BLOB)')
            base.execute('INSERT INTO "unnamed" VALUES (?, ?)', ("META", pickle.dumps(one[function], protocol=5)))
    film = one["movie_get_movie_info_by_id"]
    born, died = one["music_get_lifespan"]
    song, artist = (names[0] for names in one["music_get_billboard_rank_date"])
    weeks = one["music_get_billboard_attributes"]
    hit = {"author": one["music_get_song_author"], "country": one["music_get_song_release_country"], "date": None}
    files = {
        "movie/movie_db.json": {film["title"].lower(): film},
        "music/artist_dict_simplified.json": {
            "Adele": {"birth_date": born, "end_date": died, "country": one["music_get_artist_birth_place"]}
        },
        "music/rank_dict_hot100.json": {"1": [{"Date": "2024-02-28", "Song": song, "Artist": artist}]},
        "music/song_dict_hot100.json": {song: {"2024-02-28": ["2024-02-28", song, artist, "1", "1", "1", weeks]}},
        "music/grammy_df.json": grammys(one),
        "sports/soccer_team_match_stats.json": soccer_rows(one["sports_soccer_get_games_on_date"]),
    }
    for path, content in files.items():
        (folder / path).write_text(json.dumps(content))
    songs = dict.fromkeys([*one["music_search_song_entity_by_name"], "I Can Feel It", *OTHERS], hit)
    lines = "\n".join(json.dumps([name, {}]) for name in [*one["open_search_entity_by_name"], *OTHERS])
    official = {
        "music/song_dict_simplified.pickle": pickle.dumps(songs),
        "open/kg.0.jsonl.bz2": bz2.compress(lines.encode()),
        "open/kg.1.jsonl.bz2": bz2.compress(b""),
    }
    with closing(sqlite3.connect(folder / "sports" / "nba.sqlite")) as base, base:
        into(base, "game", replies["sports_nba_get_games_on_date", "['2022-10-11']"])
        into(base, "play_by_play", one["sports_nba_get_play_by_play_data_by_game_ids"])
    with pytest.MonkeyPatch.context() as patch:
        for path, data in official.items():
            (folder / path).write_bytes(data)
            patch.setitem(OFFICIAL, Path(path).name, hashlib.sha256(data).hexdigest())
        yield EmbeddedGraph(folder)


def grammys(one: dict[str, Any]) -> list[dict[str, Any]]:
    """As many awards of Adele as were recorded, in the recorded years, the latest first; one is for a new artist."""
    new = one["music_grammy_get_all_awarded_artists"]
    years, count = (one[f"music_grammy_get_award_{what}_by_artist"] for what in ("date", "count"))
    others = sorted((years[i % len(years)] for i in range(count - sum("Adele" in name for name in new))), reverse=True)
    rows = [(year, "Song Of The Year", "Adele") for year in others]
    rows += [(min(years), "Best New Artist", name) for name in new]
    return [dict(zip(("year", "category", "nominee"), row, strict=True), artist=None, workers=None) for row in rows]


def soccer_rows(columns: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    (name,) = columns["date"]
    levels = dict(zip(("league", "season", "team", "game"), ast.literal_eval(name), strict=True))
    return [{**levels, **{column: cells[name] for column, cells in columns.items()}}]


def into(base: sqlite3.Connection, name: str, columns: dict[str, dict[str, Any]]) -> None:
    base.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
    rows = zip(*(cells.values() for cells in columns.values()), strict=True)
    base.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)


def test_the_table_marks_exactly_the_recorded_functions(recorded: Recorded) -> None:
    assert {name for name, _, _ in recorded} == {name for name, f in FUNCTIONS.items() if f.recorded}


def test_every_recorded_call_binds_and_has_the_result_that_the_table_says(recorded: Recorded) -> None:
    for name, arguments, result in recorded:
        bind_arguments(FUNCTIONS[name], arguments)
        assert SHAPES[FUNCTIONS[name].result](result), name


def test_the_same_content_gives_the_recorded_reply(
    recorded: Recorded, replayed: EmbeddedGraph, ask: Callable[..., Any]
) -> None:
    for name, arguments, result in recorded:
        reply = ask(replayed, name, **bind_arguments(FUNCTIONS[name], arguments))
        assert SHAPES[FUNCTIONS[name].result](reply), name
        if name == "open_search_entity_by_name":
            reply, result = by_score(reply), by_score(result)
        assert json.dumps(reply, sort_keys=True) == json.dumps(result, sort_keys=True), name
    assert (len(recorded), len({name for name, _, _ in recorded}), len(FUNCTIONS)) == (26, 25, 38)


def test_the_documentation_names_the_functions_without_a_recorded_reply(recorded: Recorded) -> None:
    text = (Path(__file__).parents[3] / "docs" / "crag.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"other 13 have no recorded reply:(.*?)They follow", text, flags=re.DOTALL)
    assert set(re.findall(r"`(\w+)`", listed)) == set(FUNCTIONS) - {name for name, _, _ in recorded}
    assert (
        "25 of the API's 38 functions have recorded replies" in text
        and "`open_search_entity_by_name` is compared" in text
    )


def by_score(names: list[str]) -> list[list[str]]:
    """Names that have "florida" equally often among equally many words, in any order, and these groups in theirs.

    The server orders equal scores by an unstable sort over its whole file, which is not at hand.
    """
    words = [re.findall("[a-z]+", name.lower()) for name in names]
    keys = [(found.count("florida"), len(found)) for found in words]
    return [sorted(name for name, key in zip(names, keys, strict=True) if key == one) for one in dict.fromkeys(keys)]


def test_the_music_search_has_the_recorded_order(replayed: EmbeddedGraph, ask: Callable[..., Any]) -> None:
    """The exact title comes third: without "i" and "it", which the server drops, the three titles are equally good."""
    found = ask(replayed, "music_search_song_entity_by_name", song_name="I can feel IT")
    spellings = [re.sub("[^a-z ]", "", name.lower()) for name in found]
    assert spellings == ["can u feel it"] * 4 + ["can you feel it"] * 4 + ["i can feel it"] * 2
