"""The sports domain: ``sports/nba.sqlite`` and the soccer frame ``sports/soccer_team_match_stats.pkl``.

Tables are returned by column, in the form of pandas' JSON: ``{"pts_home": {"0": 127.0, ...}, ...}``. Rows are numbered;
those of soccer are named by the tuple of their index. A date is a day, a month or a year; any other text has no games.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.kg.convert import find, open_records
from lm_eval_rag.harness.kg.sqlite import query

DATE = re.compile(r"[0-9]{4}(-[0-9]{2}){0,2}")
DIGITS = 10  # decimals that pandas writes in JSON
INDEX = ("league", "season", "team", "game")
GAMES = "SELECT * FROM game WHERE substr(game_date, 1, ?) = ?"
TEAM = " AND (team_name_home = ? OR team_name_away = ?)"
EVENTS = "SELECT * FROM play_by_play WHERE game_id IN ({})"


class Sports:
    """The three functions of the sports domain.

    Args:
        folder: The graph's folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def _soccer(self) -> list[dict[str, Any]]:
        names = ("sports/soccer_team_match_stats.json", "sports/soccer_team_match_stats.pkl")
        rows = open_records(self.folder, *names).values()
        return [row for row in rows if row.get("league") is not None]

    def soccer_get_games_on_date(self, date: str, team_name: str | None = None) -> Any:
        """Games by team: a game of two known teams is there twice."""
        if not DATE.fullmatch(date):
            return None
        rows = [
            row for row in self._soccer if team_name in (None, row["team"]) and (row["date"] or "").startswith(date)
        ]
        columns = [name for name in rows[0] if name not in INDEX] if rows else []
        names = [str(tuple(row[level] for level in INDEX)) for row in rows]
        return _by_column(columns, names, ([row[name] for name in columns] for row in rows))

    def nba_get_games_on_date(self, date: str, team_name: str | None = None) -> Any:
        """Games of a day, month or year, of one team (full name) or of all."""
        if not DATE.fullmatch(date):
            return None
        parameters: list[Any] = [len(date), date]
        if team_name is None:
            return self._nba(GAMES, parameters)
        return self._nba(GAMES + TEAM, [*parameters, team_name, team_name])

    def nba_get_play_by_play_data_by_game_ids(self, game_ids: Sequence[str]) -> Any:
        """Every event of the games."""
        marks = ", ".join("?" * len(game_ids))  # one placeholder for each value; no value is in the SQL
        return self._nba(EVENTS.format(marks), game_ids)

    def _nba(self, sql: str, parameters: Sequence[Any]) -> Any:
        table = query(find(self.folder, "sports/nba.sqlite"), sql, parameters)
        return _by_column(table.columns, [str(row) for row in range(len(table.rows))], table.rows)


def _by_column(columns: Sequence[str], names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Any:
    """A table by column, then by row; None for a table without rows."""
    if not names:
        return None
    table: dict[str, dict[str, Any]] = {column: {} for column in columns}
    for name, row in zip(names, rows, strict=True):
        for column, value in zip(columns, row, strict=True):
            table[column][name] = round(value, DIGITS) if isinstance(value, float) else value
    return table
