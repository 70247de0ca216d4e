"""The tasks: every name in our YAML files, with what its folder says of it."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path

from lm_eval_rag._register import TASKS, tasks_folder
from lm_eval_rag.describe.description import Argument, Description
from lm_eval_rag.harness.common.errors import unknown
from lm_eval_rag.harness.data.task_about import TaskAbout
from lm_eval_rag.harness.hub.terms import statements
from lm_eval_rag.harness.plugin.shared_metadata import METADATA

NAME = re.compile(r"^(?:task|group): (\S+)$", re.MULTILINE)
GROUP = re.compile(r"^group: (\S+)$", re.MULTILINE)
HEADLINE = re.compile(r"^ +headline: \[(.+)\]$", re.MULTILINE)
INCLUDE = re.compile(r"^include: (\S+)$", re.MULTILINE)
DEEPEST = 5  # files that include each other


def first_scores(name: str) -> tuple[str, ...]:
    """The scores that the YAML of a task declares as its headline, itself or by ``include``; () if it declares none."""
    folder = tasks_folder() / names_in_files()[name]
    text, read = (folder / f"{name}.yaml").read_text(encoding="utf-8"), 0
    while not (declared := HEADLINE.search(text)) and (included := INCLUDE.search(text)) and read < DEEPEST:
        text, read = (folder / included[1]).read_text(encoding="utf-8"), read + 1
    return tuple(part.strip(" \"'") for part in declared[1].split(",")) if declared else ()


def is_group(name: str) -> bool:
    """Whether a name is that of a group of tasks."""
    file = tasks_folder() / names_in_files()[name] / f"{name}.yaml"
    return bool(GROUP.search(file.read_text(encoding="utf-8")))


def names_in_files() -> dict[str, str]:
    """Name of every task and group -> the folder of its YAML file."""
    return _names_in(tasks_folder())


@cache
def _names_in(folder: Path) -> dict[str, str]:
    return {
        name: path.parent.name
        for path in sorted(folder.rglob("*.yaml"))
        for name in NAME.findall(path.read_text(encoding="utf-8"))
    }


@cache
def about_tasks() -> dict[str, TaskAbout]:
    """What the folders say of their tasks."""
    found: dict[str, TaskAbout] = {}
    for folder in sorted(set(names_in_files().values())):
        found |= import_module(f"{TASKS}.{folder}.about").about()
    return found


def task_names() -> tuple[str, ...]:
    """The names of all tasks and groups."""
    return tuple(names_in_files())


def task(name: str) -> Description:
    """A task by name.

    Raises:
        UserError: There is none.
    """
    if name not in names_in_files():
        raise unknown("task", name, names_in_files())
    about = about_tasks()[name]
    scores = first_scores(name)
    own = tuple(Argument(key, one.type, one.default, one.meaning) for key, one in about.options.items())
    terms = statements(about.files)
    data = f"The data are subject to the terms of their sources: {'; '.join(terms)}." if terms else "No terms apply."
    if not terms and is_group(name):
        data = "those of its tasks, which `lm-eval-rag describe TASK` says."
    return Description(
        kind="task",
        name=name,
        summary=about.summary,
        usage=f"lm_eval --tasks {name} --model standard_rag" + (f" --model_args {about.model}" if about.model else ""),
        sources=(about.source,),
        departures=about.departures,
        arguments=own,
        shared=tuple(Argument(key, one.type, one.default, one.meaning) for key, one in METADATA.items()),
        notes=(
            *about.facts.items(),
            *((("scores to look at first", ", ".join(scores)),) if scores else ()),
            ("terms", data),
        ),
    )
