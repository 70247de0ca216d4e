"""Entity matching, and queries built by rules from a model's fields."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lm_eval_rag.harness.kg.building import BUILDERS, FIELDS, facts_by_rules, read_fields
from lm_eval_rag.harness.kg.embedded import EmbeddedGraph
from lm_eval_rag.harness.kg.matching import closest, day_of, names_of
from lm_eval_rag.harness.kg.published_rules import PUBLISHED_FIELDS, facts_as_published
from lm_eval_rag.tasks.crag_demo.world import World

Drive = Callable[..., Any]
TIME = "02/28/2024, 10:04:54 PT"


def test_the_closest_name() -> None:
    names = ["Florida City, Florida", "Florida", "FLORIDA", "Tallahassee, Florida"]
    assert closest("Florida", names) == "Florida"
    assert closest("florida", names) == "Florida"
    assert closest("City Florida", names) == "Florida City, Florida"
    assert closest("Tallahasse Florida", names) == "Tallahassee, Florida"
    assert closest("Beyoncé", names) is None and closest("", names) is None and closest("x", []) is None
    assert closest("a" * 100_000, ["b" * 100_000]) is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (TIME, "2024-02-28"), ("2024-02-28", "2024-02-28"), ("2024-02", "2024-02"), (2024, "2024"),
        ("March 5, 2024", "2024-03-05"), ("5 Mar 2024", "2024-03-05"), ("March 2024", "2024-03"), ("13/45/2024", None),
        ("2024-02-31", None), ("2024-13", None), ("yesterday", None), (None, None), ("", None), ([], None),
        ("2024-03-13T10:19:56-07:00", "2024-03-13"), ("2024-03-13 10:19:56", "2024-03-13"), ("2020s", None),
        ("Sunday, March 17, 2024", "2024-03-17"), ("Sun, 17 Mar 2024", "2024-03-17"), ("Monday", None),
        ("March 17, 2024, 10:19 PT", "2024-03-17"), ("March 17, 2024 at 10 AM", "2024-03-17"),
        ("in 2023?", "2023"), ("9" * 9000, None),
    ],
)  # fmt: skip
def test_dates(given: Any, expected: str | None) -> None:
    assert day_of(given) == expected
    assert day_of(given, TIME) == (expected or "2024-02-28")


def test_names() -> None:
    assert names_of("A, B ,A,,none") == ["A", "B"]
    assert names_of(["A", 7, None, {"x": 1}]) == ["A", "7"]
    assert names_of(None) == names_of({}.get("x")) == []
    assert len(names_of([str(i) for i in range(100)])) == 5


def test_reading_fields() -> None:
    assert read_fields('Here: [1] {"x": 1} {"domain": "movie", "year": 1994}') == {"domain": "movie", "year": 1994}
    assert read_fields("no idea") == read_fields('{"domain": 3}') == read_fields("{" * 9999) == {}


def about(graph: EmbeddedGraph, drive: Drive, **fields: Any) -> dict[str, Any]:
    found, _ = drive(facts_by_rules(fields, TIME), graph)
    assert not found.failures
    return {fact.about: fact.value for fact in found.facts}


def test_every_domain_has_rules() -> None:
    assert set(FIELDS) <= set(BUILDERS)


def test_encyclopedia(graph: EmbeddedGraph, world: World, drive: Drive) -> None:
    found = about(graph, drive, domain="Encyclopedia", main_entity="dunmere lighthouse")
    text, box = world.entities["Dunmere Lighthouse"]
    assert found == {"Dunmere Lighthouse": {"summary_text": text, "summary_structured": box}}
    assert about(graph, drive, domain="other", main_entity="zzz") == {}


def test_movie(graph: EmbeddedGraph, world: World, drive: Drive) -> None:
    film = world.films[6]
    found = about(graph, drive, domain="movie", movie_name="ashgrove station the return", movie_aspect="revenue")
    assert found == {"Ashgrove Station: The Return revenue": film.revenue}
    found = about(graph, drive, domain="movie", person="mina solvay", person_aspect="acted_movies")
    titles = [
        "The Lanternwright (1994-05-20)",
        "Salt on the Ninth Wave (1999-11-05)",
        "The Glass Orchardist (2013-02-01)",
    ]
    assert found == {"Mina Solvay acted_movies (3)": titles}
    found = about(graph, drive, domain="movie", person="Casper Wynmoor", person_aspect="birthday")
    assert found == {"Casper Wynmoor birthday": "1958-06-11"}
    found = about(graph, drive, domain="movie", year=2014)
    assert [award["name"] for award in found["2014 oscar_awards"]] == ["Mina Solvay", "Priya Lindqvist"]


def test_finance(graph: EmbeddedGraph, world: World, drive: Drive) -> None:
    first, second = world.companies[:2]
    found = about(graph, drive, domain="finance", market_identifier="vlmr, Quillhaven Foods", metric="EPS")
    assert found == {"vlmr (VLMR) eps": first.eps, "Quillhaven Foods (QHVF) eps": second.eps}
    found = about(graph, drive, domain="finance", market_identifier="VLMR", metric="price", datetime="2024-01-31")
    (prices,) = found.values()
    assert [stamp[:10] for stamp in prices] == ["2024-01-25", "2024-01-26", "2024-01-29", "2024-01-30", "2024-01-31"]
    found = about(graph, drive, domain="finance", market_identifier="VLMR", metric="price")
    assert list(found["VLMR (VLMR) price"])[-1][:10] == "2024-02-28"
    for copied in ("2024-02-15T10:19:56-08:00", "Thursday, February 15, 2024"):  # as a model copies the question's time
        found = about(graph, drive, domain="finance", market_identifier="VLMR", metric="price", datetime=copied)
        assert list(found["VLMR (VLMR) price"])[-1][:10] == "2024-02-15"
    for later in ("2024", "2024-12-31"):  # nothing after the question's day
        found, _ = drive(facts_by_rules({"domain": "finance", "market_identifier": "VLMR", "metric": "price",
                                         "datetime": later}, "2024-02-15"), graph)  # fmt: skip
        assert list(found.facts[0].value)[-1][:10] == "2024-02-15"
    found = about(graph, drive, domain="finance", market_identifier="Osterlyn", metric="who is the boss")
    assert next(iter(found.values()))["sector"] == "Healthcare"


def test_music(graph: EmbeddedGraph, drive: Drive) -> None:
    found = about(graph, drive, domain="music", artist_name="hollow pines", artist_aspect="member")
    assert found == {"The Hollow Pines member": ["Rory Maddock", "Sable Quist", "Ennis Farrow"]}
    found = about(graph, drive, domain="music", song_name="Sixteen Winters", song_aspect="release date")
    assert found == {"Sixteen Winters release date": "2014-09-05"}
    assert about(graph, drive, domain="music", song_name="Sixteen Winters", song_aspect="colour") == {}


def test_sports(graph: EmbeddedGraph, world: World, drive: Drive) -> None:
    game = world.basketball[0]
    for team in (game.home, game.home.split()[-1]):  # the full name, and the short one that the API does not know
        found = about(graph, drive, domain="sports", tournament="NBA", team=team, datetime=game.date)
        (rows,) = found.values()
        assert [(row["pts_home"], row["pts_away"]) for row in rows] == [(game.home_score, game.away_score)]
    match = world.soccer[0]
    found = about(graph, drive, domain="sports", sport_type="soccer", team=match.home.split()[0], datetime=match.date)
    assert any(row["GF"] == str(match.home_score) for row in next(iter(found.values())))
    assert about(graph, drive, domain="sports", sport_type="chess", team="x") == {}


def published(graph: Any, drive: Drive, **fields: Any) -> dict[str, Any]:
    found, _ = drive(facts_as_published(fields), graph)
    assert not found.failures
    return {fact.about: fact.value for fact in found.facts}


def test_the_official_baselines_rules(graph: EmbeddedGraph, world: World, drive: Drive) -> None:
    assert PUBLISHED_FIELDS["movie"]["movie_aspect"] == FIELDS["movie"]["movie_aspect"][:-1]
    assert PUBLISHED_FIELDS["movie"]["person_aspect"] == FIELDS["movie"]["person_aspect"]
    text, box = world.entities["Dunmere Lighthouse"]
    known = {"summary_text": text, "summary_structured": box}
    for domain in ("encyclopedia", "other"):
        found = published(graph, drive, domain=domain, main_entity="dunmere lighthouse")
        assert found["Dunmere Lighthouse"].items() >= known.items()
    film = world.films[6]
    found = published(graph, drive, domain="movie", movie_name="ashgrove station the return", movie_aspect="revenue")
    assert found == {"ashgrove station the return_revenue": film.revenue}
    found = published(graph, drive, domain="movie", person="casper wynmoor", person_aspect="birthday")
    assert found == {"casper wynmoor_birthday": "1958-06-11"}
    (films,) = published(graph, drive, domain="movie", person="mina solvay", person_aspect="acted_movies").values()
    assert [film["title"] for film in films] == ["The Lanternwright", "Salt on the Ninth Wave", "The Glass Orchardist"]


@pytest.mark.parametrize(
    "fields",
    [
        {"domain": "finance", "market_identifier": "VLMR", "metric": "EPS"}, {"domain": "movie", "year": 2014},
        {"domain": "music", "artist_name": "hollow pines", "artist_aspect": "member"},
        {"domain": "sports", "sport_type": "basketball", "team": "Ravens"},
        {"domain": "open", "main_entity": "Dunmere Lighthouse"},
        {"domain": "movie", "movie_name": "Ashgrove Station: The Return"}, {"domain": "movie", "movie_name": "zzz"},
        {"domain": "movie", "person": "Mina Solvay", "person_aspect": "name"}, {"domain": []},
        {"domain": "movie", "movie_name": [[]], "person": {"a": 1}}, {"domain": "other", "main_entity": ["x"]},
    ],
)  # fmt: skip
def test_what_the_official_baseline_does_not_look_up(
    fields: dict[str, Any], graph: EmbeddedGraph, drive: Drive
) -> None:
    assert published(graph, drive, **fields) == {}


class Hits:
    """A graph whose search finds a better name second."""

    def call(self, calls: Any) -> list[Any]:
        return [[{"title": "Salt Lake", "budget": 1}, {"title": "Salt", "budget": 2}] for _ in calls]


def test_the_official_baseline_takes_the_first_hit(drive: Drive) -> None:
    fields = {"movie_name": "salt", "movie_aspect": "budget"}
    assert published(Hits(), drive, domain="movie", **fields) == {"salt_budget": 1}
    assert about(Hits(), drive, domain="movie", **fields) == {"Salt budget": 2}  # type: ignore[arg-type]


class Companies:
    """A graph in which names of companies are symbols of others too."""

    NAMES: Mapping[str, list[str]] = {"ford": ["Ford Motor Company"], "best": ["Best Buy Co., Inc."]}
    SYMBOLS: Mapping[str, str] = {"Ford Motor Company": "F", "Best Buy Co., Inc.": "BBY"}

    def call(self, calls: Any) -> list[Any]:
        return [self.reply(one.function, dict(one.arguments)) for one in calls]

    def reply(self, function: str, arguments: dict[str, str]) -> Any:
        if function == "finance_get_company_name":
            return self.NAMES.get(arguments["query"].lower(), [])
        if function == "finance_get_ticker_by_name":
            return self.SYMBOLS.get(arguments["company_name"])
        return {"F": 7, "FORD": 8, "BEST": 9, "BBY": 10, "VLMR": 11}.get(arguments["ticker_name"])


@pytest.mark.parametrize(
    ("name", "symbol", "value"),
    [("ford", "F", 7), ("Best", "BBY", 10), ("FORD", "FORD", 8), ("vlmr", "VLMR", 11), ("VLMR", "VLMR", 11)],
)
def test_a_word_is_a_symbol_if_no_company_has_that_name(name: str, symbol: str, value: int, drive: Drive) -> None:
    found = about(Companies(), drive, domain="finance", market_identifier=name, metric="EPS")  # type: ignore[arg-type]
    assert found == {f"{name} ({symbol}) eps": value}


@pytest.mark.parametrize(
    "fields",
    [
        {}, {"domain": 5}, {"domain": []}, {"domain": "weather"}, {"domain": "movie"},
        {"domain": "finance", "metric": 3},
        {"domain": "movie", "movie_name": {"a": 1}, "person": [[]], "year": True},
        {"domain": "movie", "year": "1994' OR 1=1"},
        {"domain": "open", "main_entity": "x" * 100_000},
        {"domain": "music", "artist_name": "'; DROP TABLE x", "artist_aspect": "member"},
        {"domain": "sports", "sport_type": "basketball", "team": "x' OR 'a'='a", "datetime": "2024"},
        {"domain": "finance", "market_identifier": ["../../etc/passwd"], "metric": "price"},
        {"domain": "movie", "movie_name": "The Lanternwright", "movie_aspect": ["cast"]},
    ],
)  # fmt: skip
def test_fields_that_a_model_got_wrong_do_no_harm(fields: dict[str, Any], graph: EmbeddedGraph, drive: Drive) -> None:
    found, _ = drive(facts_by_rules(fields, TIME), graph)
    assert len(found.facts) <= 2 and len(found.failures) <= 2


def test_failed_calls_are_kept_and_the_rest_goes_on(tmp_path: Any, drive: Drive) -> None:
    found, calls = drive(facts_by_rules({"domain": "movie", "movie_name": "A,B"}), EmbeddedGraph(tmp_path))
    assert len(calls) == 2 and not found.facts and len(found.failures) == 1
