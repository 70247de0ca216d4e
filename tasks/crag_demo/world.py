"""The invented world behind CRAG-demo's knowledge graph: names are ours, figures are drawn with a seed.

Nothing in it is real; any similarity of names is accidental. Dates are around CRAG's own query times (early 2024), so
that questions about them are asked and answered in the same way.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

FIRST_DAY, LAST_DAY = date(2024, 1, 2), date(2024, 2, 28)
CHART_DAYS = ("2024-02-14", "2024-02-21", "2024-02-28")


@dataclass(frozen=True, slots=True)
class Company:
    """A listed company; money in dollars; ``prices`` by day are (open, high, low, close, volume)."""

    name: str
    symbol: str
    sector: str
    city: str
    staff: int
    chief: str
    eps: float
    pe: float
    market_cap: float
    dividends: Mapping[str, float]
    prices: Mapping[str, tuple[float, float, float, float, int]]


@dataclass(frozen=True, slots=True)
class Film:
    """A film; ``cast`` is (actor, character), the first the lead."""

    id: int
    title: str
    date: str
    genre: str
    budget: int
    revenue: int
    rating: float
    length: int
    director: str
    cast: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Award:
    """A film award of a ceremony's year."""

    year: int
    category: str
    name: str
    film: str
    winner: bool


@dataclass(frozen=True, slots=True)
class Artist:
    """A singer or a band (with members)."""

    name: str
    country: str
    born: str
    ended: str | None = None
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Song:
    """A song by one artist."""

    title: str
    author: str
    country: str
    date: str


@dataclass(frozen=True, slots=True)
class Grammy:
    """A music award."""

    year: int
    category: str
    nominee: str
    artist: str | None


@dataclass(frozen=True, slots=True)
class Game:
    """A game; goals or points of home and away team."""

    id: str
    date: str
    home: str
    away: str
    home_score: int
    away_score: int


@dataclass(frozen=True, slots=True)
class World:
    """The whole world; ``people`` maps a film person to id and birthday, ``chart`` a day to the songs by rank."""

    companies: tuple[Company, ...]
    films: tuple[Film, ...]
    awards: tuple[Award, ...]
    people: Mapping[str, tuple[int, str]]
    artists: tuple[Artist, ...]
    songs: tuple[Song, ...]
    grammys: tuple[Grammy, ...]
    chart: Mapping[str, tuple[Song, ...]]
    soccer: tuple[Game, ...]
    basketball: tuple[Game, ...]
    entities: Mapping[str, tuple[str, Mapping[str, str]]]


COMPANIES = (
    ("Velmora Robotics Inc. Common Stock", "VLMR", "Industrials", "Ostrand", "Ines Tarvold"),
    ("Quillhaven Foods Corp. Common Stock", "QHVF", "Consumer Defensive", "Pellworth", "Marek Oduya"),
    ("Brannick Solar Holdings Ltd.", "BRSL", "Utilities", "Dunmere", "Talia Wrenshaw"),
    ("Osterlyn Biologics Inc. Common Stock", "OSTL", "Healthcare", "Kelbridge", "Joris Ambeck"),
    ("Osterlyn Biologics Inc. Warrant", "OSTLW", "Healthcare", "Kelbridge", "Joris Ambeck"),
    ("Tarrowmere Freight Lines Inc.", "TWFL", "Industrials", "Ostrand", "Selma Pruitt-Vane"),
    ("Cindral Semiconductor Corp. Class A Common Stock", "CNDR", "Technology", "Marlow Bay", "Devan Ishkoda"),
    ("Nethergrove Bancorp Common Stock", "NGBC", "Financial Services", "Pellworth", "Hollis Arkwright-Moe"),
)
FILMS = (
    ("The Lanternwright", "1994-05-20", "Drama", "Odile Ferrant", (("Casper Wynmoor", "Ned"), ("Mina Solvay", "Ina"))),
    ("Salt on the Ninth Wave", "1999-11-05", "Adventure", "Odile Ferrant", (("Mina Solvay", "Captain Rhee"),)),
    ("Ashgrove Station", "2004-03-12", "Thriller", "Bram Kestrel", (("Casper Wynmoor", "Ed"), ("Juno Adair", "Pip"))),
    ("Nine Clocks for Marguerite", "2008-09-19", "Romance", "Priya Lindqvist", (("Juno Adair", "Marguerite"),)),
    ("The Glass Orchardist", "2013-02-01", "Drama", "Priya Lindqvist",
     (("Mina Solvay", "Una"), ("Teodor Vance", "Ivo"))),
    ("Copperhead Meridian", "2017-07-28", "Action", "Bram Kestrel", (("Teodor Vance", "Major Quill"),)),
    ("Ashgrove Station: The Return", "2019-10-04", "Thriller", "Bram Kestrel", (("Juno Adair", "Pip"),)),
    ("Letters to a Paper Moon", "2021-04-16", "Comedy", "Odile Ferrant", (("Casper Wynmoor", "Lou"),)),
)  # fmt: skip
AWARDS = (
    Award(1995, "ACTOR IN A LEADING ROLE", "Casper Wynmoor", "The Lanternwright", True),
    Award(1995, "DIRECTING", "Odile Ferrant", "The Lanternwright", False),
    Award(2000, "ACTRESS IN A LEADING ROLE", "Mina Solvay", "Salt on the Ninth Wave", False),
    Award(2009, "CINEMATOGRAPHY", "Priya Lindqvist", "Nine Clocks for Marguerite", True),
    Award(2014, "ACTRESS IN A LEADING ROLE", "Mina Solvay", "The Glass Orchardist", True),
    Award(2014, "DIRECTING", "Priya Lindqvist", "The Glass Orchardist", True),
)
BIRTHDAYS = {
    "Odile Ferrant": "1951-08-30",
    "Bram Kestrel": "1963-01-17",
    "Priya Lindqvist": "1970-12-02",
    "Casper Wynmoor": "1958-06-11",
    "Mina Solvay": "1966-04-25",
    "Juno Adair": "1979-10-08",
    "Teodor Vance": "1974-02-19",
}
ARTISTS = (
    Artist("Thessaly Crane", "GB", "1988-03-14"),
    Artist("The Hollow Pines", "US", "1996", members=("Rory Maddock", "Sable Quist", "Ennis Farrow")),
    Artist("Marisol Dax", "ES", "1991-07-22"),
    Artist("Old Ferry Choir", "IE", "1971", "1989", ("Colm Devaney", "Brigid Tolan", "Padraig Hurley", "Aine Moss")),
    Artist("Juniper Vale", "CA", "1999-12-01"),
)
SONGS = (
    Song("Harbour Lights at Four", "Thessaly Crane", "GB", "2019-05-10"),
    Song("Kerosene Sunday", "The Hollow Pines", "US", "2002-08-19"),
    Song("Kerosene Monday", "The Hollow Pines", "US", "2023-11-03"),
    Song("Luna de Papel", "Marisol Dax", "ES", "2024-01-12"),
    Song("The Ferryman's Daughter", "Old Ferry Choir", "IE", "1978-02-27"),
    Song("Northbound Snow", "Juniper Vale", "CA", "2023-12-15"),
    Song("Sixteen Winters", "Thessaly Crane", "GB", "2014-09-05"),
)
GRAMMYS = (
    Grammy(2015, "Best New Artist", "Thessaly Crane", "Thessaly Crane"),
    Grammy(2015, "Song Of The Year", "Sixteen Winters", "Thessaly Crane"),
    Grammy(2003, "Best New Artist", "The Hollow Pines", "The Hollow Pines"),
    Grammy(2003, "Album Of The Year", "Pinebox Radio", "The Hollow Pines"),
    Grammy(1979, "Song Of The Year", "The Ferryman's Daughter", "Old Ferry Choir"),
    Grammy(2019, "Best New Artist", "Marisol Dax", None),
    Grammy(2019, "Album Of The Year", "Tides and Tolls", "Thessaly Crane"),
)
CLUBS = ("Kelbridge Rovers", "Dunmere Athletic", "Pellworth Town", "Marlow Bay United")
TEAMS = ("Ostrand Comets", "Pellworth Herons", "Dunmere Foundry", "Marlow Bay Gales")
ENTITIES = {
    "Ostrand": ("Ostrand is the capital of the invented country of Veldmark, on the river Isk. It was founded in 1283.",
                {"country": "Veldmark", "founded": "1283", "population": "412,300", "river": "Isk"}),
    "Pellworth": ("Pellworth is a market town in Veldmark, known for its annual kite regatta, first held in 1924.",
                  {"country": "Veldmark", "founded": "1411", "population": "58,700"}),
    "Dunmere": ("Dunmere is a port in Veldmark with the tallest lighthouse of the country, at 71 metres.",
                {"country": "Veldmark", "founded": "1190", "population": "133,050"}),
    "Veldmark": ("Veldmark is an invented country of three provinces. Its capital is Ostrand.",
                 {"capital": "Ostrand", "currency": "Veldmark crown", "area": "31,870 km2"}),
    "Dunmere Lighthouse": ("The Dunmere Lighthouse was built between 1861 and 1867 by the engineer Orla Bexley.",
                           {"height": "71 m", "built": "1867", "architect": "Orla Bexley"}),
    "Orla Bexley": ("Orla Bexley (4 May 1822 - 9 October 1901) was an engineer of lighthouses and bridges.",
                    {"birth_date": "1822-05-04", "death_date": "1901-10-09", "occupation": "engineer"}),
    "Kelbridge": ("Kelbridge is a university town in Veldmark on the river Isk, founded in 1156.",
                  {"country": "Veldmark", "founded": "1156", "population": "91,480", "river": "Isk"}),
    "Marlow Bay": ("Marlow Bay is a town on the coast of Veldmark, founded in 1655, which has built ships since 1702.",
                   {"country": "Veldmark", "founded": "1655", "population": "76,250"}),
    "Isk": ("The Isk is the longest river of Veldmark. It flows through Kelbridge and Ostrand.",
            {"length": "338 km", "basin": "12,940 km2"}),
    "Isk Bridge": ("The Isk Bridge in Ostrand was opened in 1889. Its engineer was Tavin Roake.",
                   {"length": "412 m", "built": "1889", "architect": "Tavin Roake"}),
    "Tavin Roake": ("Tavin Roake (2 March 1849 - 18 November 1923) was an engineer of bridges.",
                    {"birth_date": "1849-03-02", "death_date": "1923-11-18", "occupation": "engineer"}),
    "Ostrand Opera House": ("The Ostrand Opera House was designed by the architect Mirela Stroud and built in 1903.",
                            {"built": "1903", "seats": "1,450", "architect": "Mirela Stroud"}),
    "Mirela Stroud": ("Mirela Stroud (30 July 1861 - 5 January 1938) was an architect of theatres.",
                      {"birth_date": "1861-07-30", "death_date": "1938-01-05", "occupation": "architect"}),
    "Provinces of Veldmark": ("Veldmark has the three provinces Norrisk, Underley and Saltmarch.",
                              {"names": "Norrisk, Underley, Saltmarch"}),
    "Pellworth (disambiguation)": ("Pellworth may mean the town, Pellworth Town, or Pellworth Herons.", {}),
}  # fmt: skip


def make_world(seed: int = 0) -> World:
    """The world of a seed; CRAG-demo's questions are about seed 0."""
    draw = random.Random(seed)
    names = list(BIRTHDAYS)
    return World(
        companies=tuple(_company(row, draw) for row in COMPANIES),
        films=tuple(_film(100 + i, row, draw) for i, row in enumerate(FILMS)),
        awards=AWARDS,
        people={name: (900 + i, BIRTHDAYS[name]) for i, name in enumerate(names)},
        artists=ARTISTS,
        songs=SONGS,
        grammys=GRAMMYS,
        chart={day: tuple(draw.sample(SONGS[:6], 6)) for day in CHART_DAYS},
        soccer=_season(CLUBS, date(2024, 2, 3), draw, most=4, prefix="S"),
        basketball=_season(TEAMS, date(2024, 2, 1), draw, most=40, least=85, prefix="00224"),
        entities=ENTITIES,
    )


def trading_days() -> list[str]:
    """Monday to Friday from the first day to the last."""
    days = ((FIRST_DAY + timedelta(i)) for i in range((LAST_DAY - FIRST_DAY).days + 1))
    return [day.isoformat() for day in days if day.weekday() < 5]


def _company(row: tuple[str, str, str, str, str], draw: random.Random) -> Company:
    name, symbol, sector, city, chief = row
    price, prices = draw.uniform(8, 240), {}
    for day in trading_days():
        opened, price = price, price * draw.uniform(0.97, 1.032)
        spread = draw.uniform(0.001, 0.01) * price
        figures = (opened, max(opened, price) + spread, min(opened, price) - spread, price)
        o, h, low, c = (round(figure, 2) for figure in figures)
        prices[day] = (o, h, low, c, draw.randrange(10_000, 5_000_000))
    ratio = round(draw.uniform(7, 45), 6)
    dividends = {day: round(draw.uniform(0.05, 0.9), 2) for day in ("2023-06-14", "2023-09-13", "2023-12-13")}
    staff = draw.randrange(120, 60_000)
    market_cap = round(price * draw.randrange(20_000_000, 900_000_000), 2)
    pays = dividends if draw.random() < 0.6 else {}
    return Company(name, symbol, sector, city, staff, chief, round(price / ratio, 2), ratio, market_cap, pays, prices)


def _film(number: int, row: tuple[str, str, str, str, tuple[tuple[str, str], ...]], draw: random.Random) -> Film:
    title, day, genre, director, cast = row
    budget = draw.randrange(2, 120) * 1_000_000
    revenue = int(budget * draw.uniform(0.4, 4.5))
    rating, length = round(draw.uniform(5.2, 8.9), 3), draw.randrange(84, 171)
    return Film(number, title, day, genre, budget, revenue, rating, length, director, cast)


def _season(
    teams: tuple[str, ...], start: date, draw: random.Random, *, most: int, prefix: str, least: int = 0
) -> tuple[Game, ...]:
    """Every team at home against every other, one game every other day; scores: ``least`` to ``least + most``."""
    pairs = [(home, away) for home in teams for away in teams if home != away]
    draw.shuffle(pairs)
    games = []
    for i, (home, away) in enumerate(pairs):
        scores = [least + draw.randrange(most + 1) for _ in range(2)]
        scores[1] += least > 0 and scores[0] == scores[1]  # no draws in basketball
        games.append(Game(f"{prefix}{i:05d}", (start + timedelta(2 * i)).isoformat(), home, away, *scores))
    return tuple(games)
