"""The table of functions: names, paths, parameters, and which of them were compared with the real server."""

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.kg import open_graph
from lm_eval_rag.harness.kg.embedded import DOMAINS as CLASSES
from lm_eval_rag.harness.kg.functions import (
    DOMAINS,
    FUNCTIONS,
    MAX_TEXT,
    MAX_TEXTS,
    bind_arguments,
    body,
    function_named,
    usage,
)


def test_there_are_38_functions_of_five_domains() -> None:
    assert len(FUNCTIONS) == 38
    assert {f.domain for f in FUNCTIONS.values()} == set(DOMAINS) == set(CLASSES)
    count = {domain: sum(f.domain == domain for f in FUNCTIONS.values()) for domain in DOMAINS}
    assert count == {"open": 2, "movie": 5, "finance": 9, "music": 19, "sports": 3}


def test_every_function_has_its_method_with_these_parameters() -> None:
    for function in FUNCTIONS.values():
        method = getattr(CLASSES[function.domain], function.name.removeprefix(f"{function.domain}_"))
        names = method.__code__.co_varnames[1 : method.__code__.co_argcount]
        assert names == tuple(p.name for p in function.parameters), function.name


def test_paths_are_those_of_the_server() -> None:
    assert function_named("finance_get_eps").path == "/finance/get_eps"
    assert function_named("sports_soccer_get_games_on_date").path == "/sports/soccer/get_games_on_date"
    assert len({f.path for f in FUNCTIONS.values()}) == 38


def test_25_functions_are_marked_as_recorded() -> None:
    """The README says that 13 are not; test_kg_recorded.py holds the marks to the recordings."""
    recorded = {name for name, function in FUNCTIONS.items() if function.recorded}
    assert len(recorded) == 38 - 13
    assert "finance_get_eps" in recorded and "finance_get_price_history" not in recorded


def test_arguments_by_name_by_wire_name_and_by_position() -> None:
    eps = function_named("finance_get_eps")
    assert bind_arguments(eps, {"ticker_name": "META"}) == {"ticker_name": "META"}
    assert bind_arguments(eps, {"query": "META"}) == {"ticker_name": "META"}
    assert bind_arguments(eps, ["META"]) == {"ticker_name": "META"}
    assert body(eps, {"ticker_name": "META"}) == {"query": "META"}


def test_numbers_may_be_texts_and_none_means_left_out() -> None:
    ranked = function_named("music_get_billboard_rank_date")
    assert bind_arguments(ranked, ["1", None]) == {"rank": 1}
    assert body(ranked, {"rank": 1}) == {"rank": 1, "date": None}


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("finance_get_eps", []),
        ("finance_get_eps", ["A", "B"]),
        ("finance_get_eps", {"symbol": "A"}),
        ("finance_get_eps", {"ticker_name": 7}),
        ("finance_get_eps", {"ticker_name": "A" * (MAX_TEXT + 1)}),
        ("finance_get_eps", {"ticker_name": {"$ne": ""}}),
        ("movie_get_movie_info_by_id", {"movie_id": "1.5"}),
        ("movie_get_movie_info_by_id", {"movie_id": True}),
        ("movie_get_movie_info_by_id", {"movie_id": 10**30}),
        ("movie_get_movie_info_by_id", {"movie_id": "9" * 5000}),
        ("movie_get_movie_info_by_id", {"movie_id": "²"}),
        ("music_get_billboard_attributes", ["2024-02-28", "colour", "Song"]),
        ("sports_nba_get_play_by_play_data_by_game_ids", {"game_ids": "0012200049"}),
        ("sports_nba_get_play_by_play_data_by_game_ids", {"game_ids": ["1"] * (MAX_TEXTS + 1)}),
        ("sports_nba_get_play_by_play_data_by_game_ids", {"game_ids": [1]}),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_the_usage(name: str, given: object) -> None:
    with pytest.raises(UserError, match=f"Call {name}") as refused:
        bind_arguments(function_named(name), given)  # type: ignore[arg-type]
    assert len(str(refused.value)) < 500


def test_unknown_functions_are_named_with_the_nearest() -> None:
    with pytest.raises(UserError, match="Did you mean 'finance_get_eps'"):
        function_named("finance_get_epss")


def test_usage() -> None:
    shown = usage(function_named("music_get_billboard_rank_date"))
    assert shown == "music_get_billboard_rank_date(rank: integer, date: text = none)"


def test_a_graph_is_a_folder_an_address_or_the_environment(
    monkeypatch: pytest.MonkeyPatch, demo_folder: object
) -> None:
    monkeypatch.delenv("CRAG_MOCK_API_URL", raising=False)
    with pytest.raises(UserError, match="CRAG_MOCK_API_URL"):
        open_graph()
    for bad in ("ftp://host", "http://", "/no/such/folder"):
        with pytest.raises(UserError, match="kg="):
            open_graph(bad)
    assert type(open_graph(str(demo_folder))).__name__ == "EmbeddedGraph"
    monkeypatch.setenv("CRAG_MOCK_API_URL", "http://localhost:8000")
    assert open_graph().fingerprint == "kg http://localhost:8000"
