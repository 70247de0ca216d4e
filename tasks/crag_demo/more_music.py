"""More questions about artists, songs, awards and the chart: four of each type."""

from __future__ import annotations

from datetime import date

from lm_eval_rag.tasks.crag_demo.music import COUNTRIES
from lm_eval_rag.tasks.crag_demo.site import INVALID, Question, day, either
from lm_eval_rag.tasks.crag_demo.world import CHART_DAYS, World


def more_music(world: World) -> tuple[Question, ...]:
    """The questions in the order of CRAG's types."""
    parts = (_facts, _sets, _compared, _totals, _linked, _worked, _false)
    return tuple(question for part in parts for question in part(world))


def _facts(world: World) -> list[Question]:
    songs = {song.title: song for song in world.songs}
    titles = ("Kerosene Sunday", "Northbound Snow", "The Ferryman's Daughter", "Harbour Lights at Four")
    ranked = [(2, CHART_DAYS[0]), (3, CHART_DAYS[1])]
    newcomer = next(g.nominee for g in world.grammys if (g.year, g.category) == (2003, "Best New Artist"))
    of_2014 = next(s.title for s in world.songs if s.author == "Thessaly Crane" and s.date.startswith("2014"))
    return [
        *(Question("simple", "static", f"who sings {title}?", (songs[title].author,),
                   (f"artist:{songs[title].author}",), "torso") for title in titles),
        *(Question("simple_w_condition", "static",
                   f"which song is at number {rank} of the billboard hot 100 of {day(iso)}?",
                   (world.chart[iso][rank - 1].title,), (f"chart:{iso}",), "head") for rank, iso in ranked),
        Question("simple_w_condition", "static", "who won the grammy for best new artist in 2003?", (newcomer,),
                 ("grammys",), "head"),
        Question("simple_w_condition", "static", "which song by thessaly crane came out in 2014?", (of_2014,),
                 ("artist:Thessaly Crane",), "torso"),
    ]  # fmt: skip


def _sets(world: World) -> list[Question]:
    by = {artist.name: artist for artist in world.artists}
    works = {name: [song.title for song in world.songs if song.author == name] for name in by}
    early = [song for song in world.songs if song.date < "2010"]
    rows = (
        ("who were the members of old ferry choir?", by["Old Ferry Choir"].members, ["Old Ferry Choir"]),
        ("which songs has thessaly crane released?", works["Thessaly Crane"], ["Thessaly Crane"]),
        ("which songs have the hollow pines released?", works["The Hollow Pines"], ["The Hollow Pines"]),
        ("which songs by veldmark's artists came out before 2010?", [song.title for song in early],
         [song.author for song in early]),
    )  # fmt: skip
    return [
        Question("set", "slow-changing", text, either(names), tuple(f"artist:{name}" for name in pages), "tail")
        for text, names, pages in rows
    ]


def _compared(world: World) -> list[Question]:
    by = {artist.name: artist for artist in world.artists}
    songs = {song.title: song for song in world.songs}
    older = min(by["Juniper Vale"], by["Marisol Dax"], key=lambda artist: artist.born)
    first = min(by["The Hollow Pines"], by["Old Ferry Choir"], key=lambda artist: artist.born)
    earlier = min(songs["Sixteen Winters"], songs["Harbour Lights at Four"], key=lambda song: song.date)
    chart = [song.title for song in world.chart[CHART_DAYS[0]]]
    higher = min("Luna de Papel", "Northbound Snow", key=chart.index)
    rows = (
        ("who is older, juniper vale or marisol dax?", older.name, ("artist:Juniper Vale", "artist:Marisol Dax")),
        ("which band was formed first, the hollow pines or old ferry choir?", first.name,
         ("artist:The Hollow Pines", "artist:Old Ferry Choir")),
        ("which song came out first, sixteen winters or harbour lights at four?", earlier.title,
         ("artist:Thessaly Crane",)),
        (f"which song ranked higher in the hot 100 of {day(CHART_DAYS[0])}, luna de papel or northbound snow?",
         higher, (f"chart:{CHART_DAYS[0]}",)),
    )  # fmt: skip
    return [Question("comparison", "static", text, (answer,), pages, "torso") for text, answer, pages in rows]


def _totals(world: World) -> list[Question]:
    by = {artist.name: artist for artist in world.artists}
    bands = ("The Hollow Pines", "Old Ferry Choir")
    members = [len(by[name].members) for name in bands]
    works = sum(song.author == "The Hollow Pines" for song in world.songs)
    prizes = sum(grammy.year == 2015 for grammy in world.grammys)
    rows = (
        ("how many songs have the hollow pines released?", works, ("artist:The Hollow Pines",)),
        ("how many members did old ferry choir have?", members[1], ("artist:Old Ferry Choir",)),
        ("how many members do the hollow pines and old ferry choir have in all?", sum(members),
         tuple(f"artist:{name}" for name in bands)),
        ("how many grammys of 2015 are listed among the grammy winners?", prizes, ("grammys",)),
    )  # fmt: skip
    return [Question("aggregation", "slow-changing", text, (str(n),), pages, "head") for text, n, pages in rows]


def _linked(world: World) -> list[Question]:
    by = {artist.name: artist for artist in world.artists}
    authors = {song.title: by[song.author] for song in world.songs}
    titles = ("Luna de Papel", "Sixteen Winters", "The Ferryman's Daughter")
    snow = authors["Northbound Snow"]
    return [
        *(Question("multi-hop", "static", f"from which country does the singer or band of {title} come?",
                   (COUNTRIES[authors[title].country],), (f"artist:{authors[title].name}",), "tail")
          for title in titles),
        Question("multi-hop", "static", "on which day was the singer of northbound snow born?", (day(snow.born),),
                 (f"artist:{snow.name}",), "tail"),
    ]  # fmt: skip


def _worked(world: World) -> list[Question]:
    born = {artist.name: artist.born for artist in world.artists}
    out = {song.title: song.date for song in world.songs}
    age = _years(born["Thessaly Crane"], out["Sixteen Winters"])
    apart = int(out["Kerosene Monday"][:4]) - int(out["Kerosene Sunday"][:4])
    between = int(born["Juniper Vale"][:4]) - int(born["Thessaly Crane"][:4])
    days = (date.fromisoformat(out["Luna de Papel"]) - date.fromisoformat(out["Northbound Snow"])).days
    rows = (
        ("how old was thessaly crane when sixteen winters came out?", age, "years", ("Thessaly Crane",)),
        ("how many years after kerosene sunday did kerosene monday come out?", apart, "years", ("The Hollow Pines",)),
        ("how many years lie between the birth years of thessaly crane and juniper vale?", between, "years",
         ("Thessaly Crane", "Juniper Vale")),
        ("how many days after northbound snow did luna de papel come out?", days, "days",
         ("Juniper Vale", "Marisol Dax")),
    )  # fmt: skip
    return [
        Question("post-processing", "static", text, (f"{n} {unit}", str(n)), tuple(f"artist:{name}" for name in names),
                 "tail")
        for text, n, unit, names in rows
    ]  # fmt: skip


def _years(born: str, then: str) -> int:
    """Age on a day; both are ISO dates."""
    return int(then[:4]) - int(born[:4]) - (then[5:] < born[5:])


def _false(world: World) -> list[Question]:
    rows = (
        ("which grammy did juniper vale win in 2019?", "artist:Juniper Vale"),
        ("who replaced marisol dax as the singer of the hollow pines?", "artist:Marisol Dax"),
        ("which rank did sixteen winters have in the hot 100 of february 28, 2024?", f"chart:{CHART_DAYS[2]}"),
        ("when did thessaly crane break up with her twin sister's band old ferry choir?", "artist:Thessaly Crane"),
    )  # fmt: skip
    return [Question("false_premise", "static", text, INVALID, (page, "grammys"), "tail") for text, page in rows]
