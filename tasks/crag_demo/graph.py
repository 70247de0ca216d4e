"""The demo world as files of CRAG's mock API, in the layouts of the official ones, for all five domains.

JSON, JSON lines in bzip2, CSV and SQLite are as there, with finance values pickled as the package sqlitedict does it.
The official pickled dictionaries and frames are JSON files here (:mod:`lm_eval_rag.harness.kg.convert`).
"""

from __future__ import annotations

import bz2
import csv
import json
import pickle
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import at_least
from lm_eval_rag.harness.common.paths import cache_dir, written_whole
from lm_eval_rag.harness.data.folders import content_hash
from lm_eval_rag.tasks.crag_demo.world import Artist, Award, Company, Film, Game, Song, World, make_world

VERSION = 1  # part of the folder's name; raise it when what is written changes
MINUTES = 5  # of each day in the detailed prices, enough for tests


def build_graph(seed: int = 0) -> Path:
    """The folder ``$LM_EVAL_RAG_CACHE/crag_demo_kg/<hash>`` of the demo graph, which is written if it does not exist.

    Raises:
        UserError: ``seed`` is not a whole number of 0 or more.
    """
    world = make_world(at_least("seed", seed, 0))
    folder = cache_dir() / "crag_demo_kg" / content_hash([VERSION, asdict(world)])
    if not folder.is_dir():
        with written_whole(folder) as beside:
            write_graph(beside, world)
    return folder


def write_graph(folder: Path, world: World) -> None:
    """Write every file of the graph into a folder."""
    for domain, write in WRITERS.items():
        (folder / domain).mkdir(parents=True, exist_ok=True)
        write(folder / domain, world)


def _finance(folder: Path, world: World) -> None:
    with (folder / "company_name.dict").open("w", encoding="utf-8", newline="") as file:
        rows = ((i, company.name, company.symbol) for i, company in enumerate(world.companies))
        csv.writer(file).writerows([("", "Name", "Symbol"), *rows])
    files: dict[str, Callable[[Company], Any]] = {
        "finance_price": _daily,
        "finance_detailed_price": _by_minute,
        "finance_dividend": lambda company: {f"{day} 00:00:00 EST": paid for day, paid in company.dividends.items()},
        "finance_marketcap": lambda company: company.market_cap,
        "finance_info": _info,
    }
    for name, value in files.items():
        _values(folder / f"{name}.sqlite", {company.symbol: value(company) for company in world.companies})


def _values(path: Path, values: Mapping[str, Any]) -> None:
    """A SQLite file of pickled values by key."""
    with _database(path) as base:
        base.execute('CREATE TABLE "unnamed" (key TEXT PRIMARY KEY, value BLOB)')
        rows = ((key, pickle.dumps(value, protocol=4)) for key, value in values.items())
        base.executemany('INSERT INTO "unnamed" VALUES (?, ?)', rows)


def _daily(company: Company) -> dict[str, Any]:
    return {f"{day} 00:00:00 EST": _price(figures) for day, figures in company.prices.items()}


def _price(figures: Sequence[float]) -> dict[str, float]:
    return dict(zip(("Open", "High", "Low", "Close", "Volume"), figures, strict=True))


def _by_minute(company: Company) -> dict[str, Any]:
    """The first minutes of the last five days, in equal steps from the day's open to its close."""
    prices = {}
    for day, (opened, _, _, closed, volume) in list(company.prices.items())[-5:]:
        marks = [round(opened + (closed - opened) * i / MINUTES, 4) for i in range(MINUTES + 1)]
        for minute, (first, last) in enumerate(pairwise(marks)):
            stamp = f"{day} 09:{30 + minute}:00 EST"
            prices[stamp] = _price((first, max(first, last), min(first, last), last, volume // MINUTES))
    return prices


def _info(company: Company) -> dict[str, Any]:
    return {
        "longName": company.name,
        "symbol": company.symbol,
        "sector": company.sector,
        "city": company.city,
        "country": "Veldmark",
        "fullTimeEmployees": company.staff,
        "companyOfficers": [{"name": company.chief, "title": "Chief Executive Officer"}],
        "forwardEps": company.eps,
        "forwardPE": company.pe,
        "marketCap": company.market_cap,
        "previousClose": list(company.prices.values())[-1][3],
    }


def _movie(folder: Path, world: World) -> None:
    films = {_normal(film.title): _film(film, world) for film in world.films}
    people = {_normal(name): _person(name, world) for name in world.people}
    years: dict[str, dict[str, Any]] = {str(year): {"movie_list": [], "oscar_awards": []} for year in range(1990, 2022)}
    for film in world.films:
        years[film.date[:4]]["movie_list"].append(film.id)
    for award in world.awards:
        years[str(award.year)]["oscar_awards"].append(_award(award))
    _json(folder / "movie_db.json", films)
    _json(folder / "person_db.json", people)
    _json(folder / "year_db.json", years)


def _film(film: Film, world: World) -> dict[str, Any]:
    cast = [
        {"name": name, "id": world.people[name][0], "character": character, "gender": 0, "order": order}
        for order, (name, character) in enumerate(film.cast)
    ]
    return {
        "budget": film.budget,
        "genres": [{"id": sum(map(ord, film.genre)), "name": film.genre}],
        "id": film.id,
        "original_language": "en",
        "original_title": film.title,
        "release_date": film.date,
        "revenue": film.revenue,
        "title": film.title,
        "cast": cast,
        "crew": [{"name": film.director, "job": "Director", "id": world.people[film.director][0]}],
        "rating": film.rating,
        "length": film.length,
        "oscar_awards": [_award(award) for award in world.awards if award.film == film.title],
    }


def _person(name: str, world: World) -> dict[str, Any]:
    number, birthday = world.people[name]
    return {
        "name": name,
        "id": number,
        "birthday": birthday,
        "acted_movies": [film.id for film in world.films if name in dict(film.cast)],
        "directed_movies": [film.id for film in world.films if film.director == name],
        "oscar_awards": [_award(award) for award in world.awards if award.name == name],
    }


def _award(award: Award) -> dict[str, Any]:
    entry = asdict(award)
    return {"year_ceremony": entry.pop("year"), "ceremony": award.year - 1928, **entry}


def _music(folder: Path, world: World) -> None:
    _json(folder / "artist_dict_simplified.json", {artist.name: _artist(artist) for artist in world.artists})
    songs = {song.title: {"author": song.author, "country": song.country, "date": song.date} for song in world.songs}
    _json(folder / "song_dict_simplified.json", songs)
    works = {
        artist.name: [song.title for song in world.songs if song.author == artist.name] for artist in world.artists
    }
    _json(folder / "artist_work_dict.json", works)
    _json(folder / "grammy_df.json", [{**asdict(grammy), "workers": None, "winner": True} for grammy in world.grammys])
    ranks: dict[str, list[dict[str, str]]] = {}
    charts: dict[str, dict[str, list[str]]] = {}
    peaks: dict[str, list[int]] = {}
    for day, songs_of_day in world.chart.items():
        for rank, song in enumerate(songs_of_day, 1):
            ranks.setdefault(str(rank), []).append({"Date": day, "Song": song.title, "Artist": song.author})
            charts.setdefault(song.title, {})[day] = _chart_row(day, song, rank, peaks.setdefault(song.title, []))
    _json(folder / "rank_dict_hot100.json", ranks)
    _json(folder / "song_dict_hot100.json", charts)


def _artist(artist: Artist) -> dict[str, Any]:
    return {
        "birth_date": artist.born,
        "end_date": artist.ended,
        "country": artist.country,
        "members": list(artist.members),
    }


def _chart_row(day: str, song: Song, rank: int, before: list[int]) -> list[str]:
    """A row of the chart; last week's rank is omitted for a new song."""
    last = [str(before[-1])] if before else []
    before.append(rank)
    row = [day, song.title, song.author, str(rank), *last, str(min(before)), str(len(before))]
    return row if last else [*row, "-"]


def _open(folder: Path, world: World) -> None:
    lines = [
        json.dumps([name, {"summary_text": text, "summary_structured": dict(box), "raw_mediawiki": f"'''{name}'''"}])
        for name, (text, box) in world.entities.items()
    ]
    for i in range(2):
        (folder / f"kg.{i}.jsonl.bz2").write_bytes(bz2.compress(("\n".join(lines[i::2]) + "\n").encode()))


def _sports(folder: Path, world: World) -> None:
    _json(folder / "soccer_team_match_stats.json", [row for game in world.soccer for row in _soccer_rows(game)])
    with _database(folder / "nba.sqlite") as base:
        _table(base, "game", [_nba_row(game) for game in world.basketball])
        _table(base, "play_by_play", [event for game in world.basketball for event in _events(game)])


def _soccer_rows(game: Game) -> Iterable[dict[str, Any]]:
    """The game from the view of each team."""
    sides = ((game.home, game.away, "Home", 1), (game.away, game.home, "Away", -1))
    for team, opponent, venue, sign in sides:
        ours, theirs = (game.home_score, game.away_score)[::sign]
        yield {
            "league": "VLD-First Division",
            "season": "2324",
            "team": team,
            "game": f"{game.date} {game.home}-{game.away}",
            "date": f"{game.date}T00:00:00.000",
            "time": "15:00:00",
            "venue": venue,
            "result": "W" if ours > theirs else "L" if ours < theirs else "D",
            "GF": str(ours),
            "GA": str(theirs),
            "opponent": opponent,
            "Notes": None,
        }


def _nba_row(game: Game) -> dict[str, Any]:
    won = game.home_score > game.away_score
    short = {team: "".join(word[0] for word in team.split()) for team in (game.home, game.away)}
    return {
        "season_id": "22023",
        "game_id": game.id,
        "game_date": f"{game.date} 00:00:00",
        "team_name_home": game.home,
        "team_name_away": game.away,
        "matchup_home": f"{short[game.home]} vs. {short[game.away]}",
        "wl_home": "W" if won else "L",
        "wl_away": "L" if won else "W",
        "pts_home": float(game.home_score),
        "pts_away": float(game.away_score),
        "season_type": "Regular Season",
    }


def _events(game: Game) -> list[dict[str, Any]]:
    texts = {1: "Start of 1st Period", 4: f"Final: {game.home_score} - {game.away_score}"}
    row = {"game_id": game.id, "homedescription": None}
    return [{**row, "period": period, "neutraldescription": text} for period, text in texts.items()]


@contextmanager
def _database(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("PRAGMA synchronous=OFF")  # the folder gets its name only when it is whole
        yield base


def _table(base: sqlite3.Connection, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    columns = list(rows[0])
    base.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
    base.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", [tuple(r.values()) for r in rows])


def _json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def _normal(name: str) -> str:
    """Lower case, letters, digits and spaces only: the key of films and people."""
    return " ".join("".join(c for c in name.lower() if c.isalnum() or c == " ").split())


WRITERS: dict[str, Callable[[Path, World], None]] = {
    "finance": _finance,
    "movie": _movie,
    "music": _music,
    "open": _open,
    "sports": _sports,
}
