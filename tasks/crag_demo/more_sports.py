"""More questions about soccer and basketball: four of each type."""

from __future__ import annotations

from lm_eval_rag.tasks.crag_demo.site import INVALID, Question, day, either
from lm_eval_rag.tasks.crag_demo.sports import played, scored, winner
from lm_eval_rag.tasks.crag_demo.world import CLUBS, TEAMS, World


def more_sports(world: World) -> tuple[Question, ...]:
    """The questions in the order of CRAG's types."""
    return (*_single_games(world), *_of_teams(world), *_false())


def _single_games(world: World) -> list[Question]:
    soccer, basketball = played(world.soccer), played(world.basketball)
    return [
        *(Question("simple", "static", f"how many points did the {game.home} score at home against the {game.away}?",
                   (str(game.home_score), f"{game.home_score} points"), (f"team:{game.home}",), "torso")
          for game in basketball[1:5]),
        *(Question("simple_w_condition", "static",
                   f"what was the score when {game.away} visited {game.home} on {day(game.date)}?",
                   (f"{game.home_score}-{game.away_score}",), ("soccer", f"team:{game.home}"), "tail")
          for game in soccer[1:5]),
        *(Question("comparison", "static", f"who scored more on {day(game.date)}, the {game.home} or the {game.away}?",
                   (winner(game),), ("basketball", f"team:{game.home}"), "head")
          for game in basketball[5:9]),
        *(Question("post-processing", "static",
                   f"by how many points did the {winner(game)} win on {day(game.date)}?",
                   (f"{abs(game.home_score - game.away_score)} points", str(abs(game.home_score - game.away_score))),
                   ("basketball", f"team:{winner(game)}"), "torso")
          for game in basketball[8:10]),
    ]  # fmt: skip


def _of_teams(world: World) -> list[Question]:
    soccer, basketball = played(world.soccer), played(world.basketball)
    questions = [
        Question("set", "fast-changing", f"which clubs has {club} received at home so far?",
                 either([game.away for game in soccer if game.home == club]), (f"team:{club}", "soccer"), "torso")
        for club in CLUBS
    ]  # fmt: skip
    totals = [(club, sum(scored(club, soccer)), "goals") for club in CLUBS if club != "Pellworth Town"]
    totals.append(("Ostrand Comets", sum(scored("Ostrand Comets", basketball)), "points"))
    questions += [
        Question("aggregation", "fast-changing", f"how many {unit} has {team} scored so far this season?",
                 (str(total), f"{total} {unit}"), (f"team:{team}",), "tail")
        for team, total, unit in totals
    ]  # fmt: skip
    last = {team: [game for game in basketball if team in (game.home, game.away)][-1] for team in TEAMS}
    questions += [
        Question("multi-hop", "real-time", f"who won the last game that the {team} played?", (winner(last[team]),),
                 (f"team:{team}",), "head")
        for team in TEAMS if team != "Ostrand Comets"
    ]  # fmt: skip
    rovers = [game for game in soccer if "Kelbridge Rovers" in (game.home, game.away)][-1]
    questions.append(
        Question("multi-hop", "real-time", "which club was the host of the last game that kelbridge rovers played?",
                 (rovers.home,), ("team:Kelbridge Rovers",), "tail")
    )  # fmt: skip
    for team in ("Pellworth Herons", "Marlow Bay Gales"):
        points = scored(team, basketball)
        mean = sum(points) / len(points)
        questions.append(
            Question("post-processing", "fast-changing", f"how many points have the {team} scored per game on average?",
                     (f"{mean:.1f}", f"{mean:.2f}"), (f"team:{team}",), "torso")
        )  # fmt: skip
    return questions


def _false() -> list[Question]:
    rows = (
        ("by how many goals did dunmere athletic beat the marlow bay gales?", "Dunmere Athletic", "Marlow Bay Gales"),
        ("on which day did the pellworth herons lose to pellworth town?", "Pellworth Herons", "Pellworth Town"),
        ("who won the ice hockey final between the ostrand comets and the dunmere foundry?", "Ostrand Comets",
         "Dunmere Foundry"),
        ("how many goals did marlow bay united score against veldmark's second division team of ostrand?",
         "Marlow Bay United", "Ostrand Comets"),
    )  # fmt: skip
    return [
        Question("false_premise", "static", text, INVALID, (f"team:{one}", f"team:{other}"), "tail")
        for text, one, other in rows
    ]
