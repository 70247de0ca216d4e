"""Reads a submission from a folder that nobody vouches for. Nothing in it is followed, unpacked or executed."""

from __future__ import annotations

import gc
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.report.table import printable
from lm_eval_rag.leaderboards.submissions.form import (
    ALL_BYTES,
    CARD,
    CARD_BYTES,
    CLAIM,
    FILE_BYTES,
    LINE_BYTES,
    LINES,
    PREDICTIONS,
    TASKS,
    Card,
    Form,
    Prediction,
)

F = TypeVar("F", bound=Form)
MENDS = {  # kind of pydantic's error -> what to do
    "extra_forbidden": "There is no such key. Leave it out; a submission has no scores of its own.",
    "finite_number": "This is no finite number. Leave it out where it is not known.",
    "missing": "It is lacking, and needed.",
}


class RefusedError(UserError):
    """A submission that is not accepted; the message says what is wrong and how to mend it."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What was read.

    Args:
        predictions: Task -> question id -> prediction, in the order of the file.
    """

    card: Card
    predictions: Mapping[str, Mapping[str, Prediction]]


def is_claim(folder: Path) -> bool:
    """Whether a folder holds scores without predictions (:mod:`lm_eval_rag.leaderboards.submissions.claims`)."""
    return (folder / CLAIM).is_symlink() or (folder / CLAIM).exists()


def read_submission(folder: Path) -> Submission:
    """Read and check everything that needs no task data.

    Raises:
        RefusedError: With the file, the line, and what to do.
    """
    files = _files(folder)
    card = parsed(Card, read_bytes(folder / CARD, CARD_BYTES), CARD)
    expected = {CARD, *(f"{PREDICTIONS}/{task}.jsonl" for task in card.tasks)}
    for name in sorted(expected ^ files):
        what = "is named in submission.json and is not there" if name in expected else "belongs to no task of the card"
        raise RefusedError(f"{shown(name)} {what}. Pack the submission anew with `lm-eval-rag submit`.")
    with _without_collector():
        return Submission(card, {task: _predictions(folder / PREDICTIONS / f"{task}.jsonl") for task in card.tasks})


@contextmanager
def _without_collector() -> Iterator[None]:
    """Python's collector of cycles looks at all lines again and again, and finds none: half of the time of reading."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _files(folder: Path) -> set[str]:
    """The files of the folder, all plain; refuses anything else before a byte is read."""
    if folder.is_symlink() or not folder.is_dir():
        raise RefusedError(f"{shown(str(folder))} is no folder. Give the folder that `lm-eval-rag submit` wrote.")
    files, total = set[str](), 0
    for name, entry in _entries(folder):
        status = entry.stat(follow_symlinks=False)
        if name == PREDICTIONS and stat.S_ISDIR(status.st_mode):
            continue
        if not stat.S_ISREG(status.st_mode):
            raise RefusedError(
                f"{shown(name)} is no plain file. Links, folders and devices are not read; leave it out."
            )
        if name != CARD and not (name.startswith(f"{PREDICTIONS}/") and name.endswith(".jsonl")):
            raise RefusedError(
                f"{shown(name)} is no part of a submission. Leave it out: {CARD} and {PREDICTIONS}/TASK.jsonl."
            )
        total += status.st_size
        if status.st_size > FILE_BYTES or total > ALL_BYTES:
            raise RefusedError(
                f"{shown(name)}: a file may have {FILE_BYTES >> 20} MB and all together {ALL_BYTES >> 20} MB. Shorten "
                "answers and lists of passages."
            )
        files.add(name)
        if len(files) > TASKS + 1:
            raise RefusedError(f"There are more than {TASKS + 1} files. A submission has at most {TASKS} tasks.")
    return files


def _entries(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """The entries of the folder, then those of its folder of predictions, which is entered only if it is no link."""
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry.name, entry
    predictions = folder / PREDICTIONS
    if predictions.is_dir() and not predictions.is_symlink():
        with os.scandir(predictions) as entries:
            for entry in entries:
                yield f"{PREDICTIONS}/{entry.name}", entry


def read_bytes(path: Path, limit: int) -> bytes:
    """The content of a file of at most ``limit`` bytes."""
    if not path.is_file():
        raise RefusedError(f"{path.name} is not there. Pack the submission with `lm-eval-rag submit`.")
    with path.open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise RefusedError(f"{path.name} has more than {limit >> 10} KB. Shorten its texts.")
    return content


def _predictions(path: Path) -> dict[str, Prediction]:
    """The lines of one file, by question."""
    found: dict[str, Prediction] = {}
    place = f"{PREDICTIONS}/{path.name}"
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LINE_BYTES + 1):
            number += 1
            where = f"{place}, line {number}"
            if len(line) > LINE_BYTES:
                raise RefusedError(f"{where} has more than {LINE_BYTES >> 10} KB. Shorten its lists.")
            if number > LINES:
                raise RefusedError(f"{place} has more than {LINES:,} lines; no task has so many questions.")
            prediction = parsed(Prediction, line, where)
            if prediction.id in found:
                raise RefusedError(f"{where}: question {shown(prediction.id)} is repeated. Leave one of the lines out.")
            found[prediction.id] = prediction
    return found


def parsed(form: type[F], content: bytes, where: str) -> F:
    """The content as the form wants it."""
    try:
        return form.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        message = MENDS.get(first["type"]) or shown(first["msg"], 300)
        raise RefusedError(f"{where}{f', key {shown(key)}' if key else ''}: {message}") from None


def shown(text: str, longest: int = 80) -> str:
    """A text of a submission in a message: short, without characters that a terminal obeys."""
    plain = printable(text)
    return plain if len(plain) <= longest else plain[:longest] + "..."
