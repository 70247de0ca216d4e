"""Artists, songs, awards and the chart: pages and questions."""

from __future__ import annotations

from lm_eval_rag.tasks.crag_demo.site import INVALID, Question, SitePage, Table, day, either, listed, page
from lm_eval_rag.tasks.crag_demo.world import CHART_DAYS, Artist, World

COUNTRIES = {"GB": "the United Kingdom", "US": "the United States", "ES": "Spain", "IE": "Ireland", "CA": "Canada"}


def pages(world: World) -> dict[str, SitePage]:
    """One page for each artist (``artist:NAME``) and chart (``chart:DAY``), and one of the awards (``grammys``)."""
    site = {f"artist:{artist.name}": _artist(artist, world) for artist in world.artists}
    for iso, songs in world.chart.items():
        rows = tuple((rank, song.title, song.author) for rank, song in enumerate(songs, 1))
        table = Table(f"Hot 100 of {day(iso)}", ("Rank", "Song", "Artist"), rows)
        about = f"The Billboard Hot 100 of {day(iso)}. At number one stands {songs[0].title} by {songs[0].author}."
        site[f"chart:{iso}"] = page(f"chart/{iso}", f"Billboard Hot 100, {day(iso)}", [about], [table])
    rows = tuple((grammy.year, grammy.category, grammy.nominee) for grammy in world.grammys)
    table = Table("Winners of the general field", ("Year", "Category", "Winner"), rows)
    about = (
        "Winners of the Grammys for Best New Artist, Song Of The Year and Album Of The Year, as far as we list them."
    )
    return site | {"grammys": page("music/grammys", "Grammy winners", [about], [table])}


def _artist(artist: Artist, world: World) -> SitePage:
    songs = [song for song in world.songs if song.author == artist.name]
    kind, began = ("a band", "formed in") if artist.members else ("a singer", "born on")
    when = day(artist.born) if len(artist.born) > 4 else artist.born
    text = [f"{artist.name} is {kind} from {COUNTRIES[artist.country]}, {began} {when}."]
    if artist.members:
        text.append(f"The members of {artist.name} are {listed(artist.members)}.")
    if artist.ended:
        text.append(f"{artist.name} broke up in {artist.ended}.")
    table = Table(
        f"Songs by {artist.name}", ("Title", "Released"), tuple((song.title, day(song.date)) for song in songs)
    )
    return page(f"artist/{artist.name.lower().replace(' ', '-')}", artist.name, text, [table] if songs else [])


def questions(world: World) -> tuple[Question, ...]:
    """One of each type, and one about the chart, which changes fast."""
    artists = {artist.name: artist for artist in world.artists}
    songs = {song.title: song for song in world.songs}
    of_2023 = next(s.title for s in world.songs if s.author == "The Hollow Pines" and s.date.startswith("2023"))
    older = min(artists["Thessaly Crane"], artists["Marisol Dax"], key=lambda artist: artist.born)
    released = sum(song.author == "Thessaly Crane" for song in world.songs)
    country = artists[songs["Northbound Snow"].author].country
    choir = artists["Old Ferry Choir"]
    years = int(choir.ended or 0) - int(choir.born)
    first = world.chart[CHART_DAYS[-1]][0]
    return (
        Question("simple", "static", "who sings luna de papel?", (songs["Luna de Papel"].author,),
                 ("artist:Marisol Dax",), "torso"),
        Question("simple_w_condition", "static", "which song by the hollow pines came out in 2023?", (of_2023,),
                 ("artist:The Hollow Pines",), "head"),
        Question("set", "slow-changing", "who are the members of the hollow pines?",
                 either(artists["The Hollow Pines"].members), ("artist:The Hollow Pines",), "head"),
        Question("comparison", "static", "who is older, thessaly crane or marisol dax?", (older.name,),
                 ("artist:Thessaly Crane", "artist:Marisol Dax"), "torso"),
        Question("aggregation", "slow-changing", "how many songs has thessaly crane released?", (str(released),),
                 ("artist:Thessaly Crane",), "head"),
        Question("multi-hop", "static", "from which country does the singer of northbound snow come?",
                 (COUNTRIES[country], country), ("artist:Juniper Vale",), "tail"),
        Question("post-processing", "static", "for how many years did old ferry choir exist?",
                 (f"{years} years", str(years)), ("artist:Old Ferry Choir",), "tail"),
        Question("false_premise", "static", "in which year did kerosene sunday win the grammy for song of the year?",
                 INVALID, ("grammys", "artist:The Hollow Pines"), "tail"),
        Question("simple_w_condition", "fast-changing",
                 f"which song is at number one of the billboard hot 100 of {day(CHART_DAYS[-1])}?", (first.title,),
                 tuple(f"chart:{iso}" for iso in CHART_DAYS), "head"),
    )  # fmt: skip
