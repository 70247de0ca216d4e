"""The music domain: six files, which are pickles in the official graph and JSON in a graph of your own.

Departures from the server: a band's members are in the file's order, where the server has the random order of a set of
texts; a missing artist in the Grammy table does not match "nan" or "None".
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.kg.convert import open_records
from lm_eval_rag.harness.kg.functions import ATTRIBUTES
from lm_eval_rag.harness.kg.names import NameIndex, ranking_of
from lm_eval_rag.harness.kg.records import Records

# The column of each attribute in a chart row. The row of a song that is new in the chart has another order, and "-"
# as its last column.
PLACES = dict(zip(ATTRIBUTES, (4, 6, 5, 3), strict=True))
PLACES_NEW = dict(zip(ATTRIBUTES, (6, 5, 4, 3), strict=True))
LAST = 6
GRAMMY_YEARS = range(1957, 2020)
CREDITS = ("nominee", "artist", "workers")


class Music:
    """The nineteen functions of the music domain.

    Args:
        folder: The graph's folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _open(self, name: str) -> Records:
        return open_records(self.folder, f"music/{name}.json", f"music/{name}.pickle")

    @cached_property
    def _artists(self) -> Records:
        return self._open("artist_dict_simplified")

    @cached_property
    def _songs(self) -> Records:
        return self._open("song_dict_simplified")

    @cached_property
    def _works(self) -> Records:
        return self._open("artist_work_dict")

    @cached_property
    def _ranks(self) -> Records:
        return self._open("rank_dict_hot100")

    @cached_property
    def _charts(self) -> Records:
        return self._open("song_dict_hot100")

    @cached_property
    def _grammys(self) -> list[dict[str, Any]]:
        return list(self._open("grammy_df").values())

    @cached_property
    def _artist_index(self) -> NameIndex:
        return NameIndex(self._artists.keys, ranking_of("music", self._artists))

    @cached_property
    def _song_index(self) -> NameIndex:
        return NameIndex(self._songs.keys, ranking_of("music", self._songs))

    def search_artist_entity_by_name(self, artist_name: str) -> list[str]:
        """At most 10 names, best match first."""
        return [self._artists.keys[row] for row in self._artist_index.search(artist_name)]

    def search_song_entity_by_name(self, song_name: str) -> list[str]:
        """At most 10 titles, best match first."""
        return [self._songs.keys[row] for row in self._song_index.search(song_name)]

    def get_billboard_rank_date(self, rank: int, date: str | None = None) -> list[Any]:
        """A list of songs and one of their artists; two Nones for a rank that the chart does not have."""
        entries = self._ranks.get(str(rank))
        if entries is None:
            return [None, None]
        chosen = [entry for entry in entries if entry["Date"] == date][:1] if date else entries
        return [[entry["Song"] for entry in chosen], [entry["Artist"] for entry in chosen]]

    def get_billboard_attributes(self, date: str, attribute: str, song_name: str) -> Any:
        """The attribute as the chart prints it, a text; "-" for last week's rank of a new song."""
        row = (self._charts.get(song_name) or {}).get(date)
        if row is None:
            return None
        return row[(PLACES_NEW if row[LAST] == "-" else PLACES)[attribute]]

    def grammy_get_best_artist_by_year(self, year: int) -> list[Any] | None:
        """Winners, None for a year outside 1957 to 2019."""
        return self._winners("Best New Artist", year)

    def grammy_get_best_song_by_year(self, year: int) -> list[Any] | None:
        """Winners, None for a year outside 1957 to 2019."""
        return self._winners("Song Of The Year", year)

    def grammy_get_best_album_by_year(self, year: int) -> list[Any] | None:
        """Winners, None for a year outside 1957 to 2019."""
        return self._winners("Album Of The Year", year)

    def _winners(self, category: str, year: int) -> list[Any] | None:
        if year not in GRAMMY_YEARS:
            return None
        return [row["nominee"] for row in self._grammys if (row["category"], row["year"]) == (category, year)]

    def grammy_get_award_count_by_artist(self, artist_name: str) -> int:
        """In how many nominee, artist and worker entries the name occurs, as on the server."""
        return sum(artist_name in str(row[credit]) for row in self._grammys for credit in CREDITS if row[credit])

    def grammy_get_award_count_by_song(self, song_name: str) -> int:
        """How many awards have exactly this nominee."""
        return sum(row["nominee"] == song_name for row in self._grammys)

    def grammy_get_award_date_by_artist(self, artist_name: str) -> list[int]:
        """Years, each once, in the server's order: that of Python's sets of row numbers and of years."""
        rows = [
            place
            for credit in CREDITS
            for place, row in enumerate(self._grammys)
            if row[credit] and artist_name in str(row[credit])
        ]
        return list({int(self._grammys[place]["year"]) for place in set(rows)})

    def grammy_get_all_awarded_artists(self) -> list[str]:
        """Every Best New Artist once, in the table's order."""
        names = (row["nominee"] for row in self._grammys if row["category"] == "Best New Artist")
        return list(dict.fromkeys(name for name in names if name))

    def get_artist_birth_place(self, artist_name: str) -> Any:
        """Two-letter code of the country."""
        return _field(self._artists, artist_name, "country")

    def get_artist_birth_date(self, artist_name: str) -> Any:
        """ISO date, or only the known part of one."""
        return _field(self._artists, artist_name, "birth_date")

    def get_members(self, band_name: str) -> Any:
        """Names, each once; None for an unknown band."""
        members = (self._artists.get(band_name) or {}).get("members")
        return None if members is None else list(dict.fromkeys(members))

    def get_lifespan(self, artist_name: str) -> list[Any]:
        """Birth and end date, None for an unknown one."""
        artist = self._artists.get(artist_name) or {}
        return [artist.get("birth_date"), artist.get("end_date")]

    def get_song_author(self, song_name: str) -> Any:
        """Name of the author."""
        return _field(self._songs, song_name, "author")

    def get_song_release_country(self, song_name: str) -> Any:
        """Two-letter code of the country."""
        return _field(self._songs, song_name, "country")

    def get_song_release_date(self, song_name: str) -> Any:
        """ISO date, or only the known part of one."""
        return _field(self._songs, song_name, "date")

    def get_artist_all_works(self, artist_name: str) -> Any:
        """Titles, in the file's order."""
        return self._works.get(artist_name)


def _field(records: Records, key: str, name: str) -> Any:
    """One field of a record; None for an unknown key and for a missing or empty field."""
    return (records.get(key) or {}).get(name) or None
