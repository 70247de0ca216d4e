"""Calls built by rules from the entities that a model finds in a question.

The model names the domain and a few fields (:data:`FIELDS`); rules turn these into calls. The baseline of
facebookresearch/CRAG only has rules for films and the encyclopedia, and takes the first hit of a search
(:mod:`.published_rules`). Here the other three domains have rules too, written from its list of fields, films have the
aspect ``oscar_awards``, and the hit whose name is closest is taken
(:func:`~lm_eval_rag.harness.kg.matching.closest`), or the first one if no name is close.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lm_eval_rag.harness.core.types import Plan
from lm_eval_rag.harness.kg.facts import Collector, GraphFacts, json_values, table_rows
from lm_eval_rag.harness.kg.matching import closest, day_of, names_of
from lm_eval_rag.harness.kg.names import normal

MOST_FILMS = 20  # looked up by id for one person or year
DAYS = 5  # trading days up to the date in question
MOST_GAMES = 30
BULKY = ("raw_mediawiki",)

FIELDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {  # domain -> field -> its values, () for any text
    "encyclopedia": {"main_entity": ()},
    "finance": {
        "market_identifier": (),
        "metric": ("price", "dividend", "P/E ratio", "EPS", "marketCap", "other"),
        "datetime": (),
    },
    "movie": {
        "movie_name": (),
        "movie_aspect": ("budget", "genres", "original_language", "original_title", "release_date", "revenue", "title",
                         "cast", "crew", "rating", "length", "oscar_awards"),
        "person": (),
        "person_aspect": ("acted_movies", "directed_movies", "oscar_awards", "birthday"),
        "year": (),
    },
    "music": {
        "artist_name": (),
        "artist_aspect": ("member", "birth place", "birth date", "lifespan", "artist work", "grammy award count",
                          "grammy award date"),
        "song_name": (),
        "song_aspect": ("author", "grammy award count", "release country", "release date"),
    },
    "sports": {"sport_type": ("basketball", "soccer", "other"), "tournament": (), "team": (), "datetime": ()},
}  # fmt: skip
METRICS = {
    "p/e ratio": "finance_get_pe_ratio",
    "eps": "finance_get_eps",
    "marketcap": "finance_get_market_capitalization",
}
HISTORIES = {"price": "finance_get_price_history", "dividend": "finance_get_dividends_history"}
ARTIST = {
    "member": "music_get_members",
    "birth place": "music_get_artist_birth_place",
    "birth date": "music_get_artist_birth_date",
    "lifespan": "music_get_lifespan",
    "artist work": "music_get_artist_all_works",
    "grammy award count": "music_grammy_get_award_count_by_artist",
    "grammy award date": "music_grammy_get_award_date_by_artist",
}
SONG = {
    "author": "music_get_song_author",
    "grammy award count": "music_grammy_get_award_count_by_song",
    "release country": "music_get_song_release_country",
    "release date": "music_get_song_release_date",
}
GAMES = {"basketball": "sports_nba_get_games_on_date", "soccer": "sports_soccer_get_games_on_date"}
Fields = Mapping[str, Any]


def read_fields(text: str) -> dict[str, Any]:
    """The first JSON object with a domain in a model's reply; {} if there is none."""
    for value in json_values(text):
        if isinstance(value, dict) and isinstance(value.get("domain"), str):
            return value
    return {}


def facts_by_rules(fields: Fields, time: str | None = None) -> Plan[GraphFacts]:
    """Look up what the fields of a question name.

    Args:
        fields: ``domain`` and the fields of :data:`FIELDS`; unknown ones are ignored, and every value is checked.
        time: When the question was asked, for a question that names no date. No price or dividend is later.
    """
    collector = Collector()
    build = BUILDERS.get(str(fields.get("domain", "")).strip().casefold())
    if build is not None:
        yield from build(collector, fields, time)
    return collector.result()


def _open(into: Collector, fields: Fields, time: str | None) -> Plan[None]:
    for name in names_of(fields.get("main_entity")):
        hits = yield from into.call("open_search_entity_by_name", query=name)
        if not hits:
            continue
        entity = closest(name, hits) or hits[0]
        record = yield from into.call("open_get_entity", entity=entity)
        into.add(entity, {key: value for key, value in (record or {}).items() if key not in BULKY})


def _movie(into: Collector, fields: Fields, time: str | None) -> Plan[None]:
    for name in names_of(fields.get("movie_name")):
        hits = yield from into.call("movie_get_movie_info", movie_name=name)
        _add_aspect(into, _best(name, hits, "title"), "title", fields.get("movie_aspect"))
    for name in names_of(fields.get("person")):
        hits = yield from into.call("movie_get_person_info", person_name=name)
        person, aspect = _best(name, hits, "name"), str(fields.get("person_aspect"))
        if aspect.endswith("_movies"):
            ids = person.get(aspect) or []
            titles = yield from _titles(into, ids)
            into.add(f"{person.get('name')} {aspect} ({len(ids)})", titles)
        else:
            _add_aspect(into, person, "name", aspect)
    for year in names_of(fields.get("year")):
        record = (yield from into.call("movie_get_year_info", year=year)) or {}
        into.add(f"{year} oscar_awards", record.get("oscar_awards"))
        titles = yield from _titles(into, record.get("movie_list") or [])
        into.add(f"{year} films ({len(record.get('movie_list') or [])})", titles)


def _titles(into: Collector, ids: list[Any]) -> Plan[list[str]]:
    titles = []
    for number in ids[:MOST_FILMS]:
        film = yield from into.call("movie_get_movie_info_by_id", movie_id=number)
        titles += [f"{film.get('title')} ({film.get('release_date')})"] if film else []
    return titles


def _best(name: str, hits: list[dict[str, Any]] | None, key: str) -> dict[str, Any]:
    """The hit with the closest name, or the first one; {} without hits."""
    if not hits:
        return {}
    names = [str(hit.get(key, "")) for hit in hits]
    match = closest(name, names)
    return hits[names.index(match) if match is not None else 0]


def _add_aspect(into: Collector, record: dict[str, Any], key: str, aspect: Any) -> None:
    """The aspect of a record, or its short fields if it does not have that aspect."""
    if isinstance(aspect, str) and aspect in record:
        into.add(f"{record.get(key)} {aspect}", record[aspect])
    elif record:
        into.add(str(record.get(key)), {k: v for k, v in record.items() if not isinstance(v, list)})


def _finance(into: Collector, fields: Fields, time: str | None) -> Plan[None]:
    metric = str(fields.get("metric")).strip().casefold()
    function = METRICS.get(metric) or HISTORIES.get(metric, "finance_get_info")
    for name in names_of(fields.get("market_identifier")):
        symbol, value = yield from _company(into, name, function)
        if metric in HISTORIES and isinstance(value, dict):
            value = _until(value, day_of(fields.get("datetime")), day_of(time))
        elif isinstance(value, dict):
            value = {key: part for key, part in value.items() if not isinstance(part, list | dict)}
        into.add(f"{name} ({symbol}) {metric}", value)


def _company(into: Collector, name: str, function: str) -> Plan[tuple[str | None, Any]]:
    """The symbol of a company and what a function replies for it.

    The name is taken for a symbol before the search if it is in upper case, after it if no company has such a name.
    """
    symbol = name.upper() if len(name) <= 5 and name.isalpha() else None
    if symbol == name and (value := (yield from into.call(function, ticker_name=symbol))) is not None:
        return symbol, value
    hits = (yield from into.call("finance_get_company_name", query=name)) or []
    company = closest(name, hits)
    if (
        symbol not in (None, name)
        and company is None
        and (value := (yield from into.call(function, ticker_name=symbol))) is not None
    ):
        return symbol, value
    company = company or next(iter(hits), None)
    symbol = company and (yield from into.call("finance_get_ticker_by_name", company_name=company))
    return symbol, symbol and (yield from into.call(function, ticker_name=symbol))


def _until(dated: dict[str, Any], *ends: str | None) -> dict[str, Any]:
    """The last entries up to the end of each day, month or year that is not None."""
    stamps = sorted(stamp for stamp in dated if all(stamp[: len(end)] <= end for end in ends if end))
    return {stamp: dated[stamp] for stamp in stamps[-DAYS:]}


def _music(into: Collector, fields: Fields, time: str | None) -> Plan[None]:
    kinds = (("artist", ARTIST), ("song", SONG))
    for kind, functions in kinds:
        aspect = str(fields.get(f"{kind}_aspect")).strip().casefold()
        function = functions.get({"auther": "author", "members": "member"}.get(aspect, aspect))
        for name in names_of(fields.get(f"{kind}_name")) if function else []:
            hits = yield from into.call(f"music_search_{kind}_entity_by_name", **{f"{kind}_name": name})
            match = closest(name, hits or []) or next(iter(hits or []), name)
            key = "band_name" if function == "music_get_members" else f"{kind}_name"
            into.add(f"{match} {aspect}", (yield from into.call(function or "", **{key: match})))


def _sports(into: Collector, fields: Fields, time: str | None) -> Plan[None]:
    nba = "nba" in str(fields.get("tournament")).casefold()
    function = GAMES.get("basketball" if nba else str(fields.get("sport_type")).strip().casefold())
    day = day_of(fields.get("datetime"), time)
    if function is None or day is None:
        return
    for team in names_of(fields.get("team")):
        games = table_rows((yield from into.call(function, date=day, team_name=team)))
        if not games:  # the API has no search for teams: look through all games of the day
            everyone = table_rows((yield from into.call(function, date=day)))
            games = [game for game in everyone if _plays(team, game)]
        into.add(f"{team} games {day}", [_short(game) for game in games[:MOST_GAMES]])


def _plays(team: str, game: dict[str, Any]) -> bool:
    """Whether all words of a team's name are in the name of one of the game's teams."""
    words = set(normal(team).split())
    names = [game.get(key) or "" for key in ("team_name_home", "team_name_away", "opponent")]
    return any(words <= set(normal(str(name)).split()) for name in (*names, *_soccer_team(game)))


def _soccer_team(game: dict[str, Any]) -> list[str]:
    """The team: the third part of a soccer row's name."""
    return str(game["key"]).split("', '")[2:3]


def _short(game: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in game.items() if value is not None and not key.endswith(("_id", "_pct"))}


BUILDERS: Mapping[str, Callable[[Collector, Fields, str | None], Plan[None]]] = {
    "encyclopedia": _open,
    "open": _open,
    "other": _open,
    "movie": _movie,
    "finance": _finance,
    "music": _music,
    "sports": _sports,
}
