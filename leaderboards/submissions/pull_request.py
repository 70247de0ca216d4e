"""Reads the submission that a pull request adds, from Git's objects: nothing of it is checked out or executed.

A checkout would follow links, attributes and filters of the pull request. Here its files are listed by Git, must be
plain ones in one new folder under ``entries/``, and their bytes are copied into an empty folder.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.leaderboards.submissions.form import ALL_BYTES, CARD, CLAIM, FILE_BYTES, PREDICTIONS, TASKS
from lm_eval_rag.leaderboards.submissions.reading import RefusedError, shown

ENTRIES = "leaderboards/entries"
COMMIT = re.compile(r"[0-9a-f]{7,64}")
PLACE = re.compile(rf"{ENTRIES}/([a-z0-9][a-z0-9._-]{{0,79}})/({CARD}|{CLAIM}|{PREDICTIONS}/[a-z0-9_]{{1,64}}\.jsonl)")
PLAIN = "100644"


def added_entry(repository: Path, base: str, head: str, out: Path) -> Path:
    """Copy the files of the one entry that ``head`` adds or changes since it left ``base``; the entry's folder.

    Raises:
        RefusedError: The pull request touches anything else, or holds what is no plain file.
        UserError: The commits are not in the repository.
    """
    for commit in (base, head):
        if not COMMIT.fullmatch(commit):
            raise UserError(f"{commit!r} is no commit. Give the two commits as hexadecimal hashes.")
    changes = _git(repository, "diff", "--raw", "--no-renames", "--abbrev=64", "-z", f"{base}...{head}").split("\0")
    files = dict[str, str]()
    for about, name in zip(changes[::2], changes[1::2], strict=False):
        _, mode, _, blob, kind = about.split(" ")
        place = PLACE.fullmatch(name)
        if place is None:
            raise RefusedError(
                f"The pull request touches {shown(name)}. A submission adds {ENTRIES}/NAME/{CARD} and "
                f"{ENTRIES}/NAME/{PREDICTIONS}/TASK.jsonl, and nothing else."
            )
        if kind == "D":
            raise RefusedError(f"The pull request deletes {shown(name)}. Ask a maintainer to withdraw an entry.")
        if mode != PLAIN:
            raise RefusedError(f"{shown(name)} has mode {mode}. Links, submodules and programs are not read.")
        files[name] = blob
    entries = {name.split("/")[2] for name in files}
    if len(entries) != 1 or len(files) > TASKS + 1:
        raise RefusedError(f"The pull request holds {len(entries)} entries. Send one entry in each pull request.")
    (entry,) = entries
    if _git(repository, "ls-tree", "--name-only", f"{_merge_base(repository, base, head)}", f"{ENTRIES}/{entry}"):
        raise RefusedError(f"{ENTRIES}/{entry} is there already. Entries are not changed: choose another folder name.")
    return _copied(repository, files, out / entry)


def _copied(repository: Path, files: dict[str, str], folder: Path) -> Path:
    """The blobs as files below a folder; their sizes are looked at before any is read."""
    sizes = {name: int(_git(repository, "cat-file", "-s", blob)) for name, blob in files.items()}
    if max(sizes.values()) > FILE_BYTES or sum(sizes.values()) > ALL_BYTES:
        raise RefusedError(f"A file may have {FILE_BYTES >> 20} MB, and all together {ALL_BYTES >> 20} MB.")
    for name, blob in files.items():
        path = folder / name.split("/", 3)[3]
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            subprocess.run([*_command(repository), "cat-file", "blob", blob], stdout=file, check=True)
    return folder


def _merge_base(repository: Path, base: str, head: str) -> str:
    return _git(repository, "merge-base", base, head).strip()


def _git(repository: Path, *arguments: str) -> str:
    done = subprocess.run([*_command(repository), *arguments], capture_output=True, check=False)
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines()
        raise UserError(
            f"git {arguments[0]} failed in {repository}: {shown(reason[-1], 200) if reason else 'no reason'}."
        )
    return done.stdout.decode("utf-8", "backslashreplace")


def _command(repository: Path) -> list[str]:
    """Git without hooks and without programs that a configuration might name."""
    return ["git", "-C", str(repository), "-c", "core.hooksPath=/dev/null", "-c", "diff.external="]
