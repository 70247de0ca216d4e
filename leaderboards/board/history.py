"""Results of a board that stay: one row per entry, task and metric in Parquet, by version of the data and the scorer.

Rows are only added. So numbers of other data or of another scorer stay readable beside those of today and never stand
in one column with them, and an entry that is withdrawn leaves what it had.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.report.stats import Interval
from lm_eval_rag.leaderboards.board.content import Board

COLUMNS = {
    **dict.fromkeys(("entry", "digest", "name", "team", "method", "generator", "retriever", "tier", "kind"), "string"),
    **dict.fromkeys(("version", "metric"), "string"),
    **dict.fromkeys(("mean", "low", "high"), "float64"),
    **dict.fromkeys(("questions", "rank"), "int64"),
}
KEY = ("entry", "digest", "metric")  # a row is known by these


@dataclass(frozen=True, slots=True)
class Version:
    """One task under data or a scorer that are no longer those of the board.

    Args:
        rows: Name, team, method, and metric -> interval; best first by the first metric.
    """

    task: str
    version: str
    data: str
    scorer: str
    metrics: tuple[str, ...]
    rows: tuple[tuple[dict[str, Any], dict[str, Interval]], ...]


def keep(board: Board, folder: Path) -> tuple[Version, ...]:
    """Add the board's results to a folder of Parquet files; returns those of other versions.

    Raises:
        UserError: A file in the folder is none of ours.
    """
    folder.mkdir(parents=True, exist_ok=True)
    current = set()
    for task in board.tasks:
        if not task.members:
            path = folder / f"{task.task}.{task.data}.{board.scorer}.parquet"
            current.add(path.name)
            rows = [row for row in _rows(board) if row.pop("task") == task.task]
            _add(path, rows)
    return tuple(_version(path) for path in sorted(folder.glob("*.parquet")) if path.name not in current)


def _rows(board: Board) -> Iterator[dict[str, Any]]:
    for task in board.tasks:
        for row in task.rows if not task.members else ():
            if row.slug:
                entry = board.entries[row.slug]
                for metric, one in row.scores.items():
                    yield {
                        "task": task.task, "entry": row.slug, "digest": entry.digest, "name": row.name,
                        "team": entry.card.team, "method": entry.card.method, "generator": entry.card.generator,
                        "retriever": entry.card.retriever, "tier": entry.tier, "kind": row.kind,
                        "version": task.version, "metric": metric, "mean": one.mean, "low": one.low, "high": one.high,
                        "questions": one.n, "rank": row.standing.rank if row.standing else None,
                    }  # fmt: skip


def _add(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write the rows that a file does not have yet after those that it has."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    before = _read(path) if path.is_file() else []
    known = {tuple(row[name] for name in KEY) for row in before}
    added = [row for row in rows if tuple(row[name] for name in KEY) not in known]
    if added:
        schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in COLUMNS.items()])
        pq.write_table(pa.Table.from_pylist([*before, *added], schema), path, compression="zstd")


def _read(path: Path) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{path} cannot be read ({error}). Leave only files of --history there.") from None
    if table.column_names != list(COLUMNS) or path.name.count(".") != 3:
        raise UserError(f"{path} is no file of `board build --history`. Leave it out of that folder.")
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _version(path: Path) -> Version:
    rows = _read(path)
    task, data, scorer, _ = path.name.split(".")
    metrics = tuple(dict.fromkeys(row["metric"] for row in rows))
    entries: dict[tuple[str, str], tuple[dict[str, Any], dict[str, Interval]]] = {}
    for row in rows:
        _, scores = entries.setdefault((row["entry"], row["digest"]), (row, {}))
        scores[row["metric"]] = Interval(row["mean"], row["low"], row["high"], row["questions"])
    ordered = sorted(entries.values(), key=lambda one: (one[0]["rank"] is None, one[0]["rank"] or 0, one[0]["name"]))
    return Version(task, rows[0]["version"] if rows else "", data, scorer, metrics, tuple(ordered))
