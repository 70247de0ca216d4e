"""Films and their people: pages and questions."""

from __future__ import annotations

from lm_eval_rag.tasks.crag_demo.site import INVALID, Question, SitePage, Table, day, either, listed, page
from lm_eval_rag.tasks.crag_demo.world import Film, World


def pages(world: World) -> dict[str, SitePage]:
    """One page for each film (``film:TITLE``) and person (``person:NAME``), and one of the awards (``oscars``)."""
    site = {f"film:{film.title}": _film(film) for film in world.films}
    site |= {f"person:{name}": _person(name, world) for name in world.people}
    rows = tuple((a.year, a.category, a.name, a.film, "won" if a.winner else "nominated") for a in world.awards)
    table = Table("Oscars by ceremony", ("Year", "Category", "Name", "Film", "Result"), rows)
    about = "The film people of Veldmark at the Oscars: every nomination, and who took the statue home."
    return site | {"oscars": page("film/oscars", "Veldmark at the Oscars", [about], [table])}


def _film(film: Film) -> SitePage:
    lead, role = film.cast[0]
    text = [
        f"{film.title} is a film of the genre {film.genre.lower()}, directed by {film.director}. It came out on "
        f"{day(film.date)} and runs for {film.length} minutes.",
        f"{lead} leads the cast as {role}. Viewers rate it {film.rating:.1f} out of 10. It was made for "
        f"${film.budget:,} and took ${film.revenue:,} at the box office.",
    ]
    cast = Table(f"Cast of {film.title}", ("Actor", "Character"), film.cast)
    return page(f"film/{film.id}", f"{film.title} ({film.date[:4]})", text, [cast])


def _person(name: str, world: World) -> SitePage:
    number, born = world.people[name]
    acted = [film for film in world.films if name in dict(film.cast)]
    directed = [film for film in world.films if film.director == name]
    work = tuple((film.date[:4], film.title, "director" if film in directed else "actor") for film in world.films
                 if film in acted or film in directed)  # fmt: skip
    text = [f"{name} was born on {day(born)} and works in film."]
    if directed:
        text.append(f"{name} directed {listed([film.title for film in directed])}.")
    return page(f"person/{number}", f"{name} - filmography", text, [Table("Films", ("Year", "Title", "Work"), work)])


def questions(world: World) -> tuple[Question, ...]:
    """One of each type."""
    by = {film.title: film for film in world.films}
    directed = [film.title for film in world.films if film.director == "Priya Lindqvist"]
    of_2017 = next(f.title for f in world.films if f.director == "Bram Kestrel" and f.date.startswith("2017"))
    richer = max(by["Ashgrove Station"], by["Copperhead Meridian"], key=lambda film: film.revenue)
    acted = sum("Mina Solvay" in dict(film.cast) for film in world.films)
    director = by["Salt on the Ninth Wave"].director
    born = world.people[director][1]
    between = int(by["Ashgrove Station: The Return"].date[:4]) - int(by["Ashgrove Station"].date[:4])
    return (
        Question("simple", "static", "who directed the lanternwright?", (by["The Lanternwright"].director,),
                 ("film:The Lanternwright",), "head"),
        Question("simple_w_condition", "static", "which film by bram kestrel came out in 2017?", (of_2017,),
                 ("person:Bram Kestrel", f"film:{of_2017}"), "torso"),
        Question("set", "slow-changing", "which films did priya lindqvist direct?", either(directed),
                 ("person:Priya Lindqvist",), "torso"),
        Question("comparison", "static", "which took more at the box office, ashgrove station or copperhead meridian?",
                 (richer.title,), ("film:Ashgrove Station", "film:Copperhead Meridian"), "tail"),
        Question("aggregation", "slow-changing", "in how many films did mina solvay act?", (str(acted), _WORDS[acted]),
                 ("person:Mina Solvay",), "head"),
        Question("multi-hop", "static", "when was the director of salt on the ninth wave born?", (day(born), born),
                 ("film:Salt on the Ninth Wave", f"person:{director}"), "torso"),
        Question("post-processing", "static",
                 "how many years after ashgrove station did ashgrove station: the return come out?",
                 (f"{between} years", str(between)), ("film:Ashgrove Station", "film:Ashgrove Station: The Return"),
                 "tail"),
        Question("false_premise", "static", "which oscar did juno adair win in 2014?", INVALID,
                 ("oscars", "person:Juno Adair"), "tail"),
    )  # fmt: skip


_WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight")
