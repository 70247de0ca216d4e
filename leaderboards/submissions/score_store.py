"""Scores of questions as Parquet, beside the folders of submissions: append-only, by data and scorer.

    STORE/TASK/DATA-SCORER/ENTRY-DIGEST.parquet

One row per question, one column per metric, null where a question has no score. When the data or the scorer move,
scores are appended under the new hashes: old ones stay readable, and two versions never stand in one column. Nothing is
changed or deleted: withdrawing an entry takes it off the board and leaves its files here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.leaderboards.submissions.form import slug_of
from lm_eval_rag.leaderboards.submissions.verifying import Verified

FILE = re.compile(r"(?P<entry>.+)-(?P<digest>[0-9a-f]{16})\.parquet")
ID = "question"


@dataclass(frozen=True, slots=True)
class Stored:
    """The scores of one entry on one task.

    Args:
        digest: Hash of the entry's files.
        data: Hash of the task's data; ``scorer`` is that of the scorer.
    """

    entry: str
    digest: str
    task: str
    data: str
    scorer: str
    path: Path

    def scores(self) -> dict[str, dict[str, float]]:
        """Metric -> question id -> score."""
        import pyarrow.parquet as pq

        columns: Mapping[str, list[float | None]] = pq.read_table(self.path).to_pydict()
        ids = [str(id) for id in columns[ID]]
        return {
            name: {id: value for id, value in zip(ids, values, strict=True) if value is not None}
            for name, values in columns.items()
            if name != ID
        }


def append(store: Path, verified: Verified, digest: str) -> list[Path]:
    """Write the scores of an entry, one file a task; what is there already stays as it is."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from lm_eval_rag.leaderboards.submissions.answer_key import scorer_hash

    paths = []
    for task, result in verified.tasks.items():
        folder = store / task / f"{result.data}-{scorer_hash()}"
        path = folder / f"{slug_of(verified.submission.card.name)}-{digest}.parquet"
        paths.append(path)
        if path.is_file():
            continue
        ids = list(verified.submission.predictions[task])
        columns = {name: [values.get(id) for id in ids] for name, values in sorted(result.scores.items())}
        folder.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".part")
        arrays = {name: pa.array(values, pa.float64()) for name, values in columns.items()}
        pq.write_table(pa.table({ID: ids, **arrays}), temporary)
        temporary.replace(path)
    return paths


def stored(store: Path, task: str) -> list[Stored]:
    """All that the store has of a task, of every version, in the order of the paths.

    Raises:
        UserError: There is no such store.
    """
    if not store.is_dir():
        raise UserError(f"{store} is no folder. `lm-eval-rag verify ENTRY --store {store}` makes it.")
    entries = []
    for path in sorted((store / task).glob("*/*.parquet")):
        data, _, scorer = path.parent.name.partition("-")
        if match := FILE.fullmatch(path.name):
            entries.append(Stored(match["entry"], match["digest"], task, data, scorer, path))
    return entries
