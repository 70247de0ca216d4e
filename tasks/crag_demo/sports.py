"""Soccer and basketball of February and March 2024: pages and questions about games that were played by then."""

from __future__ import annotations

from lm_eval_rag.tasks.crag_demo.site import INVALID, Question, SitePage, Table, day, either, page
from lm_eval_rag.tasks.crag_demo.world import CLUBS, LAST_DAY, TEAMS, Game, World


def pages(world: World) -> dict[str, SitePage]:
    """One page of results for each sport (``soccer``, ``basketball``) and each team (``team:NAME``)."""
    site = {}
    for name, games in (("soccer", played(world.soccer)), ("basketball", played(world.basketball))):
        about = f"All {name} results of Veldmark's first division so far, home team first."
        site[name] = page(f"sports/{name}", f"Veldmark {name} results", [about], [_results(f"Results, {name}", games)])
    for team in (*CLUBS, *TEAMS):
        games = [game for game in played((*world.soccer, *world.basketball)) if team in (game.home, game.away)]
        last = games[-1]
        about = f"{team} last played on {day(last.date)}: {last.home} {last.home_score}, {last.away} {last.away_score}."
        path = f"sports/{team.lower().replace(' ', '-')}"
        site[f"team:{team}"] = page(path, f"{team} - games", [about], [_results(f"Games of {team}", games)])
    return site


def played(games: tuple[Game, ...]) -> list[Game]:
    """The games up to the last day of the world, by date."""
    return sorted((game for game in games if game.date <= LAST_DAY.isoformat()), key=lambda game: game.date)


def _results(caption: str, games: list[Game]) -> Table:
    rows = tuple((game.date, game.home, game.home_score, game.away_score, game.away) for game in games)
    return Table(caption, ("Date", "Home", "Home score", "Away score", "Away"), rows)


def winner(game: Game) -> str:
    """The team with the higher score."""
    return game.home if game.home_score > game.away_score else game.away


def scored(team: str, games: list[Game]) -> list[int]:
    """The points of a team in each of its games."""
    return [g.home_score if g.home == team else g.away_score for g in games if team in (g.home, g.away)]


def questions(world: World) -> tuple[Question, ...]:
    """One of each type."""
    soccer, basketball = played(world.soccer), played(world.basketball)
    cup, game, duel = soccer[0], basketball[0], basketball[-1]
    host = next(team for team in TEAMS if any(g.home == team == winner(g) for g in basketball))
    beaten = [g.away for g in basketball if g.home == host == winner(g)]
    last = [g for g in basketball if "Ostrand Comets" in (g.home, g.away)][-1]
    goals = sum(scored("Pellworth Town", soccer))
    points = scored("Dunmere Foundry", basketball)
    mean = sum(points) / len(points)
    score = f"{cup.home_score}-{cup.away_score}"
    return (
        Question("simple", "static", f"how many points did the {game.home} score at home against the {game.away}?",
                 (str(game.home_score), f"{game.home_score} points"), ("basketball", f"team:{game.home}"), "torso"),
        Question("simple_w_condition", "static",
                 f"what was the score when {cup.away} visited {cup.home} on {day(cup.date)}?", (score,),
                 ("soccer", f"team:{cup.home}"), "tail"),
        Question("set", "fast-changing", f"which teams have the {host} beaten at home so far?", either(beaten),
                 (f"team:{host}",), "torso"),
        Question("comparison", "static", f"who scored more on {day(duel.date)}, the {duel.home} or the {duel.away}?",
                 (winner(duel),), ("basketball",), "head"),
        Question("aggregation", "fast-changing", "how many goals has pellworth town scored so far this season?",
                 (str(goals), f"{goals} goals"), ("team:Pellworth Town", "soccer"), "tail"),
        Question("multi-hop", "real-time", "who won the last game that the ostrand comets played?", (winner(last),),
                 ("team:Ostrand Comets",), "head"),
        Question("post-processing", "fast-changing",
                 "how many points has the dunmere foundry scored per game on average so far?",
                 (f"{mean:.1f}", f"{mean:.2f}"), ("team:Dunmere Foundry",), "torso"),
        Question("false_premise", "static", "by how many goals did kelbridge rovers beat the ostrand comets?", INVALID,
                 ("team:Kelbridge Rovers", "team:Ostrand Comets"), "tail"),
    )  # fmt: skip
