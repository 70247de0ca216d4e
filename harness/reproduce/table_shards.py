"""The rows of a table divided over machines: ``reproduce TABLE --shard I/N``, and then ``--merge``.

What is divided are evaluations: a row on all tasks that have the same arguments, so on each task apart where it takes a
checkpoint of that task. Those that take a checkpoint of the same training step stay together, so that it is trained
once. Each shard leaves a note in its output folder, when its last evaluation has ended. Merging checks the notes,
brings the finished runs together, and writes the page that one machine would have written from the same runs.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from filecmp import cmpfiles
from pathlib import Path

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import storing
from lm_eval_rag.harness.core.journal import digest
from lm_eval_rag.harness.reproduce.running import DONE, Job, Runner
from lm_eval_rag.harness.reproduce.table_spec import Table, TrainingStep
from lm_eval_rag.harness.reproduce.training import key_of, steps_within

NOTES = "shard-*-of-*.json"


@dataclass(frozen=True, slots=True)
class Note:
    """What a shard says of itself when it has ended.

    Args:
        table: Hash of the table.
        shard: I of ``I/N``.
        shards: N.
        runs: Names of all evaluations that the shards make together.
        own: Names of those that this one has made.
        limit: As ``--limit``.
        failed: Row -> why it failed.
    """

    table: str
    shard: int
    shards: int
    runs: tuple[str, ...]
    own: tuple[str, ...]
    limit: int | None
    failed: Mapping[str, str]


def jobs_of_share(jobs: Sequence[Job], share: tuple[int, int]) -> list[Job]:
    """The evaluations of one of N machines, in order; () if there are more machines than evaluations."""
    groups: list[tuple[set[str], list[str]]] = []
    for job in jobs:
        steps = {key_of(step) for step in _all_steps(job.steps)}
        together = [group for group in groups if group[0] & steps]
        names = [name for group in together for name in group[1]] + [job.run_name]
        place = groups.index(together[0]) if together else len(groups)
        groups = [group for group in groups if group not in together]
        groups.insert(place, (steps.union(*(group[0] for group in together)), names))
    chosen = {name for _, names in groups[share[0] - 1 :: share[1]] for name in names}
    return [job for job in jobs if job.run_name in chosen]


def check_shared_calls(table: Table) -> None:
    """Raise a UserError for a table whose rows reuse each other's calls: on several machines they cannot."""
    if table.share_calls:
        raise UserError(
            f"--shard is not possible with the table {table.name}: share_calls = true, so its rows reuse each other's "
            "calls. Run it on one machine, with several servers if need be (gen_base_url=[URL,URL])."
        )


def write_note(
    table: Table,
    every: Sequence[Job],
    own: Sequence[Job],
    share: tuple[int, int],
    runner: Runner,
    failed: Mapping[str, str],
) -> Path:
    """Write the note of a shard that has ended, into the runner's output folder."""
    names, mine = (tuple(job.run_name for job in jobs) for jobs in (every, own))
    note = Note(hash_of(table), *share, names, mine, runner.limit, dict(failed))
    path = runner.out / f"shard-{share[0]}-of-{share[1]}.json"
    with storing(path, "Free space, or give another --out."):
        path.write_text(json.dumps(asdict(note), indent=1), encoding="utf-8")
    return path


def merge(folders: Sequence[Path], table: Table, jobs: Sequence[Job], runner: Runner) -> dict[str, str]:
    """Bring the runs of all shards together in the runner's output folder; returns row -> why it failed.

    Args:
        folders: Output folders of the shards; one if the machines share it.
        jobs: The evaluations of the rows that the command chooses; those of the shards must be the same.

    Raises:
        UserError: A shard is missing, is there twice, is of another table, or two hold different runs of a row.
    """
    notes = [(path, _read(path)) for folder in folders for path in sorted(folder.glob(NOTES))]
    _check(notes, folders, table, jobs, runner.limit)
    by_name = {job.run_name: job for job in jobs}
    for path, note in notes:
        for job in map(by_name.__getitem__, note.own):
            folder, row = runner.folder(job), job.row.name
            _bring(path.parent / folder.relative_to(runner.out), folder, row, failed=row in note.failed)
    return {row: why for _, note in notes for row, why in note.failed.items()}


def hash_of(table: Table) -> str:
    """Of all that a table's file says; not of the file's place."""
    return digest([repr(replace(table, file=""))])[:16]


def _all_steps(steps: Sequence[TrainingStep]) -> Iterator[TrainingStep]:
    for step in steps:
        yield step
        yield from _all_steps(steps_within(step))


def _read(path: Path) -> Note:
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
        return Note(**{**note, "runs": tuple(note["runs"]), "own": tuple(note["own"])})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path} is no note of a shard ({error}). Run the shard again; finished rows are kept."
        ) from None


def _check(
    notes: Sequence[tuple[Path, Note]], folders: Sequence[Path], table: Table, jobs: Sequence[Job], limit: int | None
) -> None:
    """Raise a UserError unless the notes are those of all shards of these evaluations, each once."""
    if not notes:
        raise UserError(
            f"No shard has ended in {', '.join(map(str, folders))}: there is no {NOTES}. Give their folders."
        )
    first, names = notes[0][1], tuple(job.run_name for job in jobs)
    seen: dict[int, Path] = {}
    for path, note in notes:
        if note.table != hash_of(table):
            raise UserError(f"{path} is of another table, or of another version of its file.")
        if note.shards != first.shards:
            raise UserError(f"{path} overlaps {notes[0][0]}: one of {note.shards} shards, the other of {first.shards}.")
        if note.runs != names or note.limit != limit:
            raise UserError(
                f"{path} was run with other rows or another --limit. Give --merge the same --only, --limit and "
                "--without-training as the shards."
            )
        if note.shard in seen:
            raise UserError(f"The shard {note.shard}/{note.shards} is there twice: {seen[note.shard]} and {path}.")
        seen[note.shard] = path
    missing = [f"{i}/{first.shards}" for i in range(1, first.shards + 1) if i not in seen]
    if missing:
        raise UserError(f"Shards are missing: {', '.join(missing)}. Run --shard {missing[0]}, or give its folder too.")
    own = [name for _, note in notes for name in note.own]
    if sorted(own) != sorted(names):
        raise UserError("The shards do not hold every row once; they are of another version. Run them again.")


def _bring(source: Path, target: Path, row: str, *, failed: bool) -> None:
    """Copy a finished run, unless it is there."""
    if not (source / DONE).is_file():
        if failed:
            return
        raise UserError(f"The run of the row {row} is missing in {source}. Run its shard again.")
    if source.resolve() == target.resolve():
        return
    if (target / DONE).is_file():
        files = [str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()]
        if cmpfiles(source, target, files, shallow=False)[0] != files:
            raise UserError(f"Two different runs of the row {row} overlap: {source} and {target}. Remove one of them.")
        return
    with storing(target, "Free space, or give another --out."):
        shutil.rmtree(target, ignore_errors=True)
        beside = target.with_name(f".{target.name}.new")
        shutil.rmtree(beside, ignore_errors=True)
        shutil.copytree(source, beside)
        beside.rename(target)
