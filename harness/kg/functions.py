"""The 38 functions of CRAG's mock API (arXiv:2406.04744; facebookresearch/CRAG, mock_api), in one table.

The client, the embedded backend, our server and function calling read names, parameters, paths and kinds of result from
here. Names and parameters are those of the published client; on the wire most single parameters
are called ``query``. ``recorded`` marks functions that were compared with a recorded response of the real server; the
others follow the published sources, and are tested on our own demo graph only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lm_eval_rag.harness.common.errors import UserError, unknown

Type = Literal["text", "integer", "texts"]
Result = Literal["text", "number", "texts", "integers", "record", "records", "columns", "dated", "pair", "lists"]
MAX_TEXT = 2_000  # characters of one argument: no name in the data is a tenth as long
MAX_TEXTS = 100  # texts in a list


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

    Args:
        name: As in the published client.
        type: ``text``, ``integer``, or ``texts`` (a list).
        wire: Its key in the JSON body.
        required: Whether it must be given; an optional one is None by default.
        choices: The allowed values; () for any.
    """

    name: str
    type: Type = "text"
    wire: str = "query"
    required: bool = True
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """One function.

    Args:
        group: ``finance``, ``movie``, ``music``, ``open``, ``sports/nba`` or ``sports/soccer``.
        operation: Its name within the group.
        parameters: In the order of the published client.
        result: Kind of a non-empty result: ``columns`` is a table by column, ``dated`` an object by time stamp,
            ``pair`` a birth and an end date, ``lists`` two lists of equal length. An empty result is None or [].
        about: What it is for, for a model that chooses among functions.
        recorded: Whether it was compared with a recorded response of the real server.
    """

    group: str
    operation: str
    parameters: tuple[Parameter, ...]
    result: Result
    about: str
    recorded: bool = False

    @property
    def name(self) -> str:
        """``finance_get_eps``."""
        return f"{self.group.replace('/', '_')}_{self.operation}"

    @property
    def path(self) -> str:
        """``/finance/get_eps``, its path on a server."""
        return f"/{self.group}/{self.operation}"

    @property
    def domain(self) -> str:
        """``finance``, ``movie``, ``music``, ``open`` or ``sports``."""
        return self.group.partition("/")[0]


ARTIST, BAND, SONG = Parameter("artist_name"), Parameter("band_name"), Parameter("song_name")
TICKER, YEAR = Parameter("ticker_name"), Parameter("year", "integer")
DAY, TEAM = Parameter("date", wire="date"), Parameter("team_name", wire="team_name", required=False)
ATTRIBUTES = ("rank_last_week", "weeks_in_chart", "top_position", "rank")
BILLBOARD = (
    DAY,
    Parameter("attribute", wire="attribute", choices=ATTRIBUTES),
    Parameter("song_name", wire="song_name"),
)
RANKED = (Parameter("rank", "integer", "rank"), Parameter("date", wire="date", required=False))
GAMES = (Parameter("game_ids", "texts", "game_ids"),)

_TABLE = (
    Function("open", "search_entity_by_name", (Parameter("query"),), "texts",
             "Up to 10 encyclopedia entities whose names are closest to a name.", True),
    Function("open", "get_entity", (Parameter("entity"),), "record",
             "Summary, infobox and article of an encyclopedia entity, by its exact name."),
    Function("movie", "get_person_info", (Parameter("person_name"),), "records",
             "Up to 10 people of the film world closest to a name: birthday, films acted in and directed, Oscars."),
    Function("movie", "get_movie_info", (Parameter("movie_name"),), "records",
             "Up to 10 films closest to a title: release date, budget, revenue, rating, genres, cast, crew, Oscars."),
    Function("movie", "get_year_info", (Parameter("year"),), "record",
             "The ids of a year's films and the Oscars given in it; years 1990 to 2021."),
    Function("movie", "get_movie_info_by_id", (Parameter("movie_id", "integer"),), "record",
             "The film with an id.", True),
    Function("movie", "get_person_info_by_id", (Parameter("person_id", "integer"),), "record",
             "The person with an id."),
    Function("finance", "get_company_name", (Parameter("query"),), "texts",
             "Up to 10 listed companies whose names are closest to a name.", True),
    Function("finance", "get_ticker_by_name", (Parameter("company_name"),), "text",
             "The ticker symbol of a company, by its exact name.", True),
    Function("finance", "get_price_history", (TICKER,), "dated",
             "A year of daily Open, High, Low, Close and Volume of a ticker symbol."),
    Function("finance", "get_detailed_price_history", (TICKER,), "dated",
             "Five days of Open, High, Low, Close and Volume of a ticker symbol, minute by minute.", True),
    Function("finance", "get_dividends_history", (TICKER,), "dated",
             "Every dividend of a ticker symbol, in dollars by date.", True),
    Function("finance", "get_market_capitalization", (TICKER,), "number",
             "The market capitalisation of a ticker symbol, in dollars.", True),
    Function("finance", "get_eps", (TICKER,), "number", "The earnings per share of a ticker symbol.", True),
    Function("finance", "get_pe_ratio", (TICKER,), "number", "The price-to-earnings ratio of a ticker symbol.", True),
    Function("finance", "get_info", (TICKER,), "record",
             "All else known of a ticker symbol: sector, staff, officers, address, balance figures.", True),
    Function("music", "search_artist_entity_by_name", (ARTIST,), "texts",
             "Up to 10 artists or bands whose names are closest to a name."),
    Function("music", "search_song_entity_by_name", (SONG,), "texts",
             "Up to 10 songs whose titles are closest to a title.", True),
    Function("music", "get_billboard_rank_date", RANKED, "lists",
             "Songs and their artists at a rank (1 to 100) of the Billboard Hot 100, on a date or ever.", True),
    Function("music", "get_billboard_attributes", BILLBOARD, "text",
             "One attribute of a song in the Billboard Hot 100 of a date.", True),
    Function("music", "grammy_get_best_artist_by_year", (YEAR,), "texts",
             "Winners of the Grammy for Best New Artist of a year (1958 to 2019)."),
    Function("music", "grammy_get_award_count_by_artist", (ARTIST,), "number",
             "How many Grammys an artist won (1958 to 2019).", True),
    Function("music", "grammy_get_award_count_by_song", (SONG,), "number",
             "How many Grammys a song won (1958 to 2019).", True),
    Function("music", "grammy_get_best_song_by_year", (YEAR,), "texts",
             "Winners of the Grammy for Song Of The Year of a year (1958 to 2019)."),
    Function("music", "grammy_get_award_date_by_artist", (ARTIST,), "integers",
             "The years in which an artist won Grammys.", True),
    Function("music", "grammy_get_best_album_by_year", (YEAR,), "texts",
             "Winners of the Grammy for Album Of The Year of a year (1958 to 2019)."),
    Function("music", "grammy_get_all_awarded_artists", (), "texts",
             "All who ever won the Grammy for Best New Artist.", True),
    Function("music", "get_artist_birth_place", (ARTIST,), "text",
             "The country that an artist comes from, as a two-letter code.", True),
    Function("music", "get_artist_birth_date", (ARTIST,), "text",
             "When an artist was born or a band was founded.", True),
    Function("music", "get_members", (BAND,), "texts", "The members of a band."),
    Function("music", "get_lifespan", (ARTIST,), "pair", "When an artist was born and died.", True),
    Function("music", "get_song_author", (SONG,), "text", "Who wrote or performed a song.", True),
    Function("music", "get_song_release_country", (SONG,), "text",
             "The country in which a song came out, as a two-letter code.", True),
    Function("music", "get_song_release_date", (SONG,), "text", "When a song came out."),
    Function("music", "get_artist_all_works", (ARTIST,), "texts", "All works of an artist."),
    Function("sports/soccer", "get_games_on_date", (DAY, TEAM), "columns",
             "Soccer games of a day, month or year (2024-03-09, 2024-03, 2024), of one team or all.", True),
    Function("sports/nba", "get_games_on_date", (DAY, TEAM), "columns",
             "NBA games of a day, month or year (2022-10-11, 2022-10, 2022), of one team (full name) or all.", True),
    Function("sports/nba", "get_play_by_play_data_by_game_ids", GAMES, "columns",
             "Every event of NBA games, by their ids.", True),
)  # fmt: skip

FUNCTIONS: Mapping[str, Function] = {function.name: function for function in _TABLE}
DOMAINS = ("finance", "movie", "music", "open", "sports")


def function_named(name: str) -> Function:
    """The function of that name.

    Raises:
        UserError: There is none.
    """
    if name not in FUNCTIONS:
        raise unknown("function", name[:MAX_TEXT], FUNCTIONS)
    return FUNCTIONS[name]


def bind_arguments(function: Function, arguments: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """The arguments of a call by parameter name, checked, without omitted ones.

    Args:
        arguments: By name (the client's or the wire's) or, as a list, by position. As on the real server, a whole
            number may be a text, and None means that an argument is omitted.

    Raises:
        UserError: An unknown or missing argument, or one of a wrong type or length.
    """
    if not isinstance(arguments, Mapping):
        if len(arguments) > len(function.parameters):
            raise _wrong(function, f"{len(arguments)} arguments were given")
        arguments = dict(zip((parameter.name for parameter in function.parameters), arguments, strict=False))
    names = {alias: p for p in function.parameters for alias in (p.wire, p.name)}
    bound: dict[str, Any] = {}
    for name, value in arguments.items():
        if name not in names:
            raise _wrong(function, f"there is no argument {str(name)[:80]!r}")
        if value is not None:
            bound[names[name].name] = _checked(function, names[name], value)
    for parameter in function.parameters:
        if parameter.required and parameter.name not in bound:
            raise _wrong(function, f"{parameter.name!r} is missing")
    return bound


def body(function: Function, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON body of a call, from bound arguments."""
    return {p.wire: arguments.get(p.name) for p in function.parameters}


def _checked(function: Function, parameter: Parameter, value: Any) -> Any:
    checked = _CHECKS[parameter.type](value)
    if checked is None or (parameter.choices and checked not in parameter.choices):
        shown = f"{value!r:.80}" if isinstance(value, str | int | float) else type(value).__name__
        raise _wrong(function, f"{parameter.name}={shown} is not allowed")
    return checked


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and len(value) <= MAX_TEXT else None


def _integer(value: Any) -> int | None:
    if isinstance(value, str):
        digits = value.strip().removeprefix("-")
        value = int(value) if len(digits) <= 18 and digits.isascii() and digits.isdigit() else None
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    return value if whole else None


def _texts(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list | tuple) or len(value) > MAX_TEXTS:
        return None
    return tuple(value) if all(_text(part) is not None for part in value) else None


_CHECKS = {"text": _text, "integer": _integer, "texts": _texts}


def usage(function: Function) -> str:
    """``music_get_billboard_rank_date(rank: integer, date: text = none)``."""
    shown = []
    for p in function.parameters:
        kind = " | ".join(map(repr, p.choices)) if p.choices else {"texts": "list of texts"}.get(p.type, p.type)
        shown.append(f"{p.name}: {kind}{'' if p.required else ' = none'}")
    return f"{function.name}({', '.join(shown)})"


def _wrong(function: Function, what: str) -> UserError:
    return UserError(
        f"{function.name}: {what}. Call {usage(function)}; a text has at most {MAX_TEXT} characters, a list at most "
        f"{MAX_TEXTS} texts."
    )
