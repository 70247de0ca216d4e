"""Workflows, issue forms, pre-commit, citation and changes: each can be read, and agrees with what it names."""

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from lm_eval_rag import __version__

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import check_tag  # noqa: E402
import workflows  # noqa: E402

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BOARD = ("submission", "submission_verdict")  # of the leaderboard: nothing of the pull request may run, not even make
WORKFLOWS = [path for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")) if path.stem not in BOARD]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
PINNED = re.compile(r"[\w.-]+/[\w./-]+@\S+")


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(workflow: Any) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def recipe(target: str) -> list[str]:
    """The commands of a target."""
    block = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert block is not None
    return [line.strip().replace("$(BIN)", ".venv/bin") for line in block[1].splitlines()]


def test_there_are_four_workflows() -> None:
    assert [path.stem for path in WORKFLOWS] == ["docs", "nightly", "release", "tests"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_a_thin_call_of_make(path: Path) -> None:
    workflow = read(path)
    commands = [step["run"] for step in steps(workflow) if "run" in step]
    assert commands
    for command in commands:
        called = re.fullmatch(r'make ([a-z]+)( [A-Z]+="\$[A-Z_]+")?', command)
        assert called and called[1] in TARGETS, command
    assert all(PINNED.fullmatch(step["uses"]) for step in steps(workflow) if "uses" in step)
    assert workflow["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] for job in workflow["jobs"].values())


def test_the_workflows_of_the_board_run_nothing_of_a_pull_request() -> None:
    first, second = (read(ROOT / f".github/workflows/{name}.yml") for name in BOARD)
    assert first["permissions"] == {"contents": "read"} and first[True].keys() == {"pull_request"}
    checkouts = [step["with"] for step in steps(first) if "checkout" in step.get("uses", "")]
    assert [one["ref"] for one in checkouts] == ["${{ github.event.pull_request.base.sha }}"]
    assert checkouts[0]["persist-credentials"] is False
    commands = [step["run"] for step in steps(first) if "run" in step]
    assert not any("${{" in command or "checkout" in command or "make" in command for command in commands), commands
    assert second["permissions"] == {"actions": "read", "pull-requests": "write"}
    assert not any("run" in step or "checkout" in step["uses"] for step in steps(second))
    assert not any("${{" in step["with"].get("script", "") for step in steps(second))


def test_the_first_checker_that_can_be_had_checks_every_workflow(tmp_path: Path) -> None:
    for name in ("a.yml", "b.yml", "d.yml", "c.txt"):
        (tmp_path / name).write_text("on: push\n", encoding="utf-8")
    counting = [sys.executable, "-c", "import sys; sys.exit(len(sys.argv) - 1)"]
    assert workflows.main([lambda: None, lambda: counting, lambda: ["never"]], tmp_path) == 3
    assert workflows.main([lambda: None], tmp_path) == workflows.NONE
    (tmp_path / "a.yml").unlink()
    assert workflows.main([lambda: counting], tmp_path) == 2


def test_tests_run_on_every_python_that_is_declared() -> None:
    declared = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    matrix = read(ROOT / ".github/workflows/tests.yml")["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == declared == ["3.11", "3.12", "3.13"]


def test_only_the_publishing_jobs_may_write() -> None:
    jobs = {(path.stem, name): job for path in WORKFLOWS for name, job in read(path)["jobs"].items()}
    with_rights = {key: job["permissions"] for key, job in jobs.items() if "permissions" in job}
    assert with_rights == {
        ("docs", "publish"): {"pages": "write", "id-token": "write"},
        ("release", "publish"): {"id-token": "write"},
    }
    assert jobs["release", "publish"]["environment"] == "pypi"
    assert jobs["docs", "publish"]["if"] == "github.ref == 'refs/heads/main'"
    assert "password" not in (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")


def test_pre_commit_has_the_checks_of_make_check() -> None:
    hooks = [hook for repo in read(ROOT / ".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    assert [hook["entry"] for hook in hooks] == recipe("check")
    assert all(hook["language"] == "system" and hook["pass_filenames"] is False for hook in hooks)


def test_every_phony_target_exists() -> None:
    phony = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)
    assert phony and set(phony[1].split()) == TARGETS


@pytest.mark.parametrize("path", [form for form in FORMS if form.stem != "config"], ids=lambda path: path.stem)
def test_issue_forms(path: Path) -> None:
    form = read(path)
    assert form["name"] and form["description"] and form["labels"]
    asked = [part for part in form["body"] if part["type"] != "markdown"]
    assert {part["type"] for part in asked} <= {"textarea", "input", "dropdown", "checkboxes"}
    ids = [part["id"] for part in asked]
    assert len(ids) == len(set(ids)) and all(part["attributes"]["label"] for part in asked)
    assert any(part.get("validations", {}).get("required") for part in asked)


def test_citation() -> None:
    citation = read(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(citation)  # what version 1.2.0 needs
    assert citation["cff-version"] == "1.2.0" and citation["type"] == "software"
    assert str(citation["version"]) == __version__ and citation["license"] == PROJECT["license"]
    assert all(author.get("name") or author.get("family-names") for author in citation["authors"])


def test_the_version_is_the_same_everywhere() -> None:
    assert check_tag.wrong("") == []


@pytest.mark.parametrize(
    ("tag", "changes", "said"),
    [
        ("v1.2.3", "## 1.2.3 (2030-01-01)", []),
        ("v1.2.4", "## 1.2.3 (2030-01-01)", ["the tag v1.2.4 is not v1.2.3"]),
        ("v1.2.3", "## 1.2.3 (not released)", ["CHANGELOG.md calls 1.2.3 not released"]),
        ("", "## 1.2.3 (not released)", []),
        ("", "## 1.2.2", ["CHANGELOG.md has no section 1.2.3"]),
    ],
)
def test_a_tag_that_does_not_fit_is_named(tag: str, changes: str, said: list[str], tmp_path: Path) -> None:
    (tmp_path / "CITATION.cff").write_text("version: 1.2.3\n", encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(f"# Changes\n\n{changes}\n", encoding="utf-8")
    assert check_tag.wrong(tag, "1.2.3", tmp_path) == said
