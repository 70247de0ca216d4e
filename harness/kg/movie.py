"""The movie domain: ``movie/movie_db.json`` and ``person_db.json`` by normal name, and ``year_db.json`` by year."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.kg.convert import open_records
from lm_eval_rag.harness.kg.names import NameIndex, ranking_of
from lm_eval_rag.harness.kg.records import Records


class _Named:
    """Records of one file, by name and by the id they hold."""

    def __init__(self, folder: Path, file: str) -> None:
        self._folder, self._file = folder, file

    @cached_property
    def _records(self) -> Records:
        return open_records(self._folder, self._file)

    @cached_property
    def _index(self) -> NameIndex:
        return NameIndex(self._records.keys, ranking_of("movie", self._records))

    @cached_property
    def _rows(self) -> dict[int, int]:
        rows = enumerate(self._records.values())
        return {value["id"]: row for row, value in rows if isinstance(value, dict) and isinstance(value.get("id"), int)}

    def search(self, name: str) -> list[Any]:
        return [self._records.at(row) for row in self._index.search(name)]

    def by_id(self, number: int) -> Any:
        return self._records.at(self._rows[number]) if number in self._rows else None


class Movie:
    """The five functions of the movie domain.

    Args:
        folder: The graph's folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._movies, self._people = _Named(folder, "movie/movie_db.json"), _Named(folder, "movie/person_db.json")

    @cached_property
    def _years(self) -> Records:
        return open_records(self.folder, "movie/year_db.json")

    def get_person_info(self, person_name: str) -> list[Any]:
        """At most 10 people, best match first."""
        return self._people.search(person_name)

    def get_movie_info(self, movie_name: str) -> list[Any]:
        """At most 10 films, best match first."""
        return self._movies.search(movie_name)

    def get_year_info(self, year: str) -> Any:
        """Films and Oscars of a year; None for an unknown year (outside 1990 to 2021 the server replies with 500)."""
        return self._years.get(year.strip())

    def get_movie_info_by_id(self, movie_id: int) -> Any:
        """The film with that id, or None."""
        return self._movies.by_id(movie_id)

    def get_person_info_by_id(self, person_id: int) -> Any:
        """The person with that id, or None."""
        return self._people.by_id(person_id)
