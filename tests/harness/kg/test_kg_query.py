"""The query language: what its queries mean on the demo graph, and texts that are none."""

import ast
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.kg import query as parser
from lm_eval_rag.harness.kg.embedded import EmbeddedGraph
from lm_eval_rag.harness.kg.evaluate import holds, number, run_query
from lm_eval_rag.harness.kg.query import MAX_CALLS, MAX_DEPTH, MAX_LENGTH, parse_query
from lm_eval_rag.harness.kg.tree import QueryError
from lm_eval_rag.tasks.crag_demo.world import World

Drive = Callable[..., tuple[Any, Any]]
NBA = 'sports_nba_get_games_on_date("2024")'


def test_counts_sorts_and_comparisons(graph: EmbeddedGraph, world: World, drive: Drive) -> None:
    games = world.basketball
    highest = max(games, key=lambda game: game.home_score)
    wins = [game for game in games if game.home == "Ostrand Comets" and game.home_score > game.away_score]
    by_eps = sorted(world.companies, key=lambda company: -company.eps)
    close = {day: figures[3] for day, figures in world.companies[0].prices.items()}
    top = max(close, key=lambda day: close[day])
    expected: dict[str, Any] = {
        f"{NBA} | count": len(games),
        f'{NBA} | where team_name_home = "ostrand comets" and wl_home = "W" | count': len(wins),
        f"{NBA} | sort pts_home desc | first | get game_id": highest.id,
        f"{NBA} | max pts_home": float(highest.home_score),
        f"{NBA} | get pts_home | mean": sum(game.home_score for game in games) / len(games),
        f"{NBA} | sum pts_away": float(sum(game.away_score for game in games)),
        f'{NBA} | where pts_home >= 100 and not (pts_away < 100 or team_name_away contains "foundry") | count': sum(
            game.home_score >= 100 and game.away_score >= 100 and "Foundry" not in game.away for game in games
        ),
        f'finance_get_eps("{by_eps[0].symbol}") > finance_get_eps("{by_eps[1].symbol}")': True,
        f'finance_get_eps("{by_eps[-1].symbol}") >= finance_get_eps("{by_eps[0].symbol}")': False,
        'finance_get_eps("NONE") > 0': False,
        'finance_get_price_history("VLMR") | sort Close desc | first | get key': f"{top} 00:00:00 EST",
        'finance_get_price_history("VLMR") | where key < "2024-02" | count': sum(day < "2024-02" for day in close),
        'finance_get_price_history("VLMR") | last 2 | get Close': list(close.values())[-2:],
        'finance_get_ticker_by_name(finance_get_company_name("solar") | first)': "BRSL",
        'finance_get_info("VLMR") | get companyOfficers.0.name': "Ines Tarvold",
        'music_get_members(band_name: "Old Ferry Choir") | count': 4,
        "music_get_billboard_rank_date(1) | get song | unique | count": len(
            {songs[0].title for songs in world.chart.values()}
        ),
        '(movie_get_movie_info("lanternwright") | first) | get cast | where order < 1 | get name': ["Casper Wynmoor"],
        'movie_get_person_info("Mina Solvay") | first | get oscar_awards | where winner = true | get film': [
            "The Glass Orchardist"
        ],
        "movie_get_movie_info_by_id(101) | get release_date": "1999-11-05",
        'open_get_entity("Dunmere") | get "summary_structured".population': "133,050",
        '(open_get_entity("Dunmere") | get summary_structured.population) > 130000': True,
        'open_get_entity("Atlantis") | get summary_text': None,
        'open_get_entity("Atlantis") | count': 0,
        'sports_nba_get_play_by_play_data_by_game_ids(["0022400000"]) | first | get period': 1,
        '"10" > "9"': True,
        r"'it\'s' = 'IT\'S'": True,
        "-007.50 = -7.5": True,
        "null = null": True,
        "[1, [2]] | count": 2,
    }
    for text, value in expected.items():
        assert drive(run_query(text), graph)[0] == value, text


def test_calls_are_asked_one_by_one_with_bound_arguments(graph: EmbeddedGraph, drive: Drive) -> None:
    text = 'finance_get_eps(finance_get_ticker_by_name(company_name: finance_get_company_name("solar") | first))'
    _, calls = drive(run_query(text), graph)
    assert [call.function for call in calls] == [
        "finance_get_company_name", "finance_get_ticker_by_name", "finance_get_eps",
    ]  # fmt: skip
    assert calls[-1].arguments == (("ticker_name", "BRSL"),)


@pytest.mark.parametrize("text", ['finance_get_eps(1)', 'finance_get_eps()', 'finance_get_eps("A", "B")',
                                  'finance_get_eps(x: "A")', 'movie_get_movie_info_by_id("x")'])  # fmt: skip
def test_arguments_that_do_not_fit_are_query_errors(text: str, graph: EmbeddedGraph, drive: Drive) -> None:
    with pytest.raises(QueryError, match=r"argument|missing|not allowed"):
        drive(run_query(text), graph)


CALL = 'finance_get_eps("A")'
BROKEN = [
    "", " ", "|", "(", ")", "()", "[]", '"', "'", "\\", "finance_get_eps", "finance_get_eps(", "finance_get_eps(,)",
    'finance_get_eps("A" "B")', f"{CALL} |", f"{CALL} | get", f"{CALL} | get .", f"{CALL} | get a.", f"{CALL} | where",
    f"{CALL} | where a", f"{CALL} | where a =", f"{CALL} | where a = b", f"{CALL} | where (a = 1", f"{CALL} | sort",
    f"{CALL} | first 1.5", f"{CALL} | first -1", f"{CALL} | drop table", f"{CALL} | count 3 4", f"{CALL} {CALL}",
    f"{CALL} = ", f"= {CALL}", f"{CALL} = 1 = 1", f"{CALL} == 1", f"{CALL}; DROP TABLE game", f"{CALL} -- x", "1 + 1",
    "9**9**9", "__import__('os').system('ls')", "().__class__.__bases__[0]", "lambda: 0", "eval('1')", "open('x')",
    "os.system", "f'{1}'", "{1: 2}", "print('x')", "[x for x in y]", "a if b else c", "exec(chr(1))", "1 if 1 else 2",
    "finance_get_eps(__builtins__)", "finance_get_eps(open('x'))", "finance_get_eps(*a)", "\x00", "１ = ①", "é",
    "nan", "1e999", "0x10", "1_000", "None", "True",
    '"' + "x" * MAX_LENGTH + '"', "(" * 200, "[" * 200, "(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1),
    f"{CALL} | where " + "not " * 100 + "a = 1", f"{CALL} | where " + "(" * 100 + "a = 1" + ")" * 100,
    "finance_get_eps(" * 9 + '"A"' + ")" * 9, " = ".join([CALL] * 3),
    f"[{', '.join(['1'] * 5)}, {CALL}]",
]  # fmt: skip


@pytest.mark.parametrize("text", BROKEN)
def test_texts_that_are_no_query_say_where(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(QueryError, match=r"at character \d+: |the query (is|has)") as refused:
        parse_query(text)
    assert len(str(refused.value)) < 400
    assert not list(tmp_path.iterdir())


def test_the_number_of_calls_is_bounded() -> None:
    parse_query(f"sports_nba_get_games_on_date({', '.join([CALL] * (MAX_CALLS - 1))})")
    with pytest.raises(QueryError, match=f"more than {MAX_CALLS} calls"):
        parse_query(f"sports_nba_get_games_on_date({', '.join([CALL] * MAX_CALLS)})")


def test_garbage_made_of_the_grammars_own_words_never_does_anything_else() -> None:
    words = ["finance_get_eps", "(", ")", "[", "]", ",", ".", ":", "|", "=", "<=", '"a"', "3", "get", "where", "sort",
             "and", "or", "not", "contains", "first", "count", "true", "desc"]  # fmt: skip
    draw, parsed = random.Random(0), 0
    for _ in range(5_000):
        text = " ".join(draw.choices(words, k=draw.randrange(1, 14)))
        try:
            parse_query(text)
            parsed += 1
        except QueryError:
            pass
    assert 0 < parsed < 1_000


def test_the_parser_hands_nothing_to_python() -> None:
    for module in (parser, __import__("lm_eval_rag.harness.kg.evaluate", fromlist=["_"])):
        tree = ast.parse(Path(str(module.__file__)).read_text())
        called = {
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not called & {"eval", "exec", "compile", "getattr", "__import__", "open", "globals"}


@pytest.mark.parametrize(
    ("sign", "left", "right", "expected"),
    [
        ("=", "7", 7, True), ("=", "7.0", "7", True), ("=", "1,234", 1234, True), ("=", "1,23", 123, False),
        ("<", "2024-02-01", "2024-10-01", True), ("<", "abc", 3, False), (">", "abc", 3, False), ("!=", "abc", 3, True),
        ("=", True, 1, False), ("=", True, True, True), ("=", None, 0, False), ("!=", None, 0, True),
        ("<", None, 1, False),
        ("contains", ["A", "B"], "a", True), ("contains", "Abc", "BC", True), ("contains", 5, 5, False),
        ("contains", {"a": 1}, "a", False), (">", 10**400, 1, False), ("=", "nan", "nan", True), ("<", "inf", 1, False),
    ],
)  # fmt: skip
def test_comparisons(sign: str, left: Any, right: Any, expected: bool) -> None:
    assert holds(sign, left, right) is expected


def test_numbers() -> None:
    written = [
        "12",
        " -3.5 ",
        "1e3",
        "12,345,678.9",
        "",
        "1_0",
        "0x1",
        "٣",
        "1,2",
        None,
        True,
        [1],
        "9" * 200,
        float("inf"),
    ]
    expected = [12.0, -3.5, 1000.0, 12345678.9, None, None, None, None, None, None, None, None, None, None]
    assert [number(value) for value in written] == expected
