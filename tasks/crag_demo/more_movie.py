"""More questions about films and their people: four of each type."""

from __future__ import annotations

from lm_eval_rag.tasks.crag_demo.site import INVALID, Question, day, either, money
from lm_eval_rag.tasks.crag_demo.world import Film, World

Films = dict[str, Film]


def more_movie(world: World) -> tuple[Question, ...]:
    """The questions in the order of CRAG's types."""
    by = {film.title: film for film in world.films}
    parts = (_facts, _sets, _compared, _totals, _linked, _worked, _false)
    return tuple(question for part in parts for question in part(world, by))


def _facts(world: World, by: Films) -> list[Question]:
    titles = ("Ashgrove Station", "The Glass Orchardist", "Letters to a Paper Moon", "Copperhead Meridian")
    role = dict(by["Nine Clocks for Marguerite"].cast)["Juno Adair"]
    camera = next(a.name for a in world.awards if (a.year, a.category) == (2009, "CINEMATOGRAPHY"))
    rows = [
        (f"which film by {name} came out in {year}?",
         next(f.title for f in world.films if f.director.lower() == name and f.date.startswith(str(year))), page)
        for name, year, page in (("odile ferrant", 1999, "Odile Ferrant"), ("priya lindqvist", 2008, "Priya Lindqvist"))
    ]  # fmt: skip
    conditions = [(text, answer, (f"person:{page}",)) for text, answer, page in rows]
    conditions += [
        ("which character did juno adair play in nine clocks for marguerite?", role,
         ("film:Nine Clocks for Marguerite",)),
        ("who won the oscar for cinematography at the ceremony of 2009?", camera, ("oscars",)),
    ]  # fmt: skip
    return [
        *(Question("simple", "static", f"who directed {title}?", (by[title].director,), (f"film:{title}",), "head")
          for title in titles),
        *(Question("simple_w_condition", "static", text, (answer,), pages, "torso")
          for text, answer, pages in conditions),
    ]  # fmt: skip


def _sets(world: World, by: Films) -> list[Question]:
    directed = {name: [f.title for f in world.films if f.director == name] for name in world.people}
    acted = {name: [f.title for f in world.films if name in dict(f.cast)] for name in world.people}
    rows = (
        ("which films did odile ferrant direct?", directed["Odile Ferrant"], "Odile Ferrant"),
        ("which films did bram kestrel direct?", directed["Bram Kestrel"], "Bram Kestrel"),
        ("in which films did casper wynmoor act?", acted["Casper Wynmoor"], "Casper Wynmoor"),
        ("in which films did juno adair act?", acted["Juno Adair"], "Juno Adair"),
    )
    return [Question("set", "slow-changing", text, either(n), (f"person:{page}",), "torso") for text, n, page in rows]


def _compared(world: World, by: Films) -> list[Question]:
    rows = (
        ("which took more at the box office", "The Lanternwright", "The Glass Orchardist", "revenue"),
        ("which cost more to make", "Salt on the Ninth Wave", "Letters to a Paper Moon", "budget"),
        ("which do viewers rate higher", "Nine Clocks for Marguerite", "Copperhead Meridian", "rating"),
        ("which came out later", "Ashgrove Station", "The Glass Orchardist", "date"),
    )
    return [
        Question("comparison", "static", f"{text}, {one} or {other}?",
                 (max(by[one], by[other], key=lambda film, field=field: getattr(film, field)).title,),  # type: ignore[misc]
                 (f"film:{one}", f"film:{other}"), "tail")
        for text, one, other, field in rows
    ]  # fmt: skip


def _totals(world: World, by: Films) -> list[Question]:
    acted = {name: sum(name in dict(film.cast) for film in world.films) for name in world.people}
    directed = sum(film.director == "Bram Kestrel" for film in world.films)
    rows = [(f"in how many films did {name.lower()} act?", acted[name], name)
            for name in ("Casper Wynmoor", "Juno Adair", "Teodor Vance")]  # fmt: skip
    rows.append(("how many films did bram kestrel direct?", directed, "Bram Kestrel"))
    return [
        Question("aggregation", "slow-changing", text, (str(n),), (f"person:{page}",), "head") for text, n, page in rows
    ]


def _linked(world: World, by: Films) -> list[Question]:
    born = {name: birthday for name, (_, birthday) in world.people.items()}
    rows = [
        (f"when was the {role} of {title.lower()} born?", title, name)
        for role, title, name in (
            ("director", "The Glass Orchardist", by["The Glass Orchardist"].director),
            ("director", "Copperhead Meridian", by["Copperhead Meridian"].director),
            ("lead actor", "Letters to a Paper Moon", by["Letters to a Paper Moon"].cast[0][0]),
        )
    ]
    quill = next(film for film in world.films if "Major Quill" in dict(film.cast).values())
    return [
        *(Question("multi-hop", "static", text, (day(born[name]), born[name]), (f"film:{title}", f"person:{name}"),
                   "torso") for text, title, name in rows),
        Question("multi-hop", "static", "who directed the film in which teodor vance played major quill?",
                 (quill.director,), ("person:Teodor Vance", f"film:{quill.title}"), "tail"),
    ]  # fmt: skip


def _worked(world: World, by: Films) -> list[Question]:
    one, other = by["The Lanternwright"], by["Letters to a Paper Moon"]
    apart = int(other.date[:4]) - int(one.date[:4])
    born = world.people[one.director][1]
    age = int(one.date[:4]) - int(born[:4]) - (one.date[5:] < born[5:])
    minutes = abs(one.length - other.length)
    gap = abs(by["Ashgrove Station"].revenue - by["Ashgrove Station"].budget)
    pages = ("film:The Lanternwright", "film:Letters to a Paper Moon", f"person:{one.director}")
    rows = (
        ("how many years after the lanternwright did letters to a paper moon come out?", (f"{apart} years", str(apart)),
         pages[:2]),
        ("how old was odile ferrant when the lanternwright came out?", (f"{age} years", str(age)), pages[::2]),
        ("by how many minutes do the lengths of the lanternwright and letters to a paper moon differ?",
         (f"{minutes} minutes", str(minutes)), pages[:2]),
        ("by how many dollars do the budget and the box office of ashgrove station differ?", money(gap, digits=0),
         ("film:Ashgrove Station",)),
    )  # fmt: skip
    return [Question("post-processing", "static", text, answers, pages, "tail") for text, answers, pages in rows]


def _false(world: World, by: Films) -> list[Question]:
    rows = (
        ("which oscar did teodor vance win in 2018?", "person:Teodor Vance"),
        ("who played the lighthouse keeper in bram kestrel's film of 2001?", "person:Bram Kestrel"),
        ("when did the third part of ashgrove station come out?", "film:Ashgrove Station: The Return"),
        ("for which musical did priya lindqvist win the oscar for best actress?", "person:Priya Lindqvist"),
    )
    return [Question("false_premise", "static", text, INVALID, (page, "oscars"), "tail") for text, page in rows]
