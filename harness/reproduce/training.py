"""The training steps of a table: their commands, the folders of their checkpoints, and running them.

A checkpoint lies in ``$LM_EVAL_RAG_CACHE/checkpoints/<hash of the step>/<hash of the corpora>``: tables share it, and
other data or options give another checkpoint.
"""

from __future__ import annotations

import logging
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from lm_eval_rag.harness.checkpoints.note import read_note
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.core.journal import digest
from lm_eval_rag.harness.reproduce.banks import corpus_with_part
from lm_eval_rag.harness.reproduce.table_spec import TrainingStep
from lm_eval_rag.harness.train import generator_cli, train_cli

log = logging.getLogger(__name__)
OPTIONS = {"retriever": train_cli, "generator": generator_cli}  # modules with add_arguments and read_settings


@dataclass(frozen=True)
class Trainer:
    """Trains checkpoints, each once.

    Args:
        build: Builds a task's corpus and returns its id.
    """

    build: Callable[[str], str]
    _corpora: dict[tuple[str, str], str] = field(default_factory=dict)

    def folder(self, step: TrainingStep) -> Path:
        """Where the step's checkpoint lies."""
        corpora = [self.corpus(task, step.bank) for task in tasks_of(step)]
        return cache_dir() / "checkpoints" / key_of(step) / digest(corpora)[:12]

    def corpus(self, task: str, bank: str = "") -> str:
        """The id of a task's corpus, with the rules of only a part of its bank where ``bank`` names one."""
        key = (task, bank)
        if key not in self._corpora:
            whole = self.build(task)
            self._corpora[key] = corpus_with_part(whole, bank) if bank else whole
        return self._corpora[key]

    def checkpoint(self, step: TrainingStep) -> Path:
        """The finished checkpoint of a step; if it is missing, it is trained now, after the steps it depends on.

        Raises:
            UserError: As ``lm-eval-rag train``.
        """
        folder = self.folder(step)
        for inner in steps_within(step):
            self.checkpoint(inner)
        note = read_note(folder)
        if note is None or not note.finished:
            argv = arguments(step, lambda one: str(self.folder(one)))
            log.info("training: lm-eval-rag train %s", " ".join(argv))
            folder.parent.mkdir(parents=True, exist_ok=True)
            train_cli.train_main([*argv, "--out", str(folder)], build=lambda task: self.corpus(task, step.bank))
        return folder


def steps_within(step: TrainingStep) -> list[TrainingStep]:
    """The steps whose checkpoints are options of this one."""
    return [value for _, value in step.options if isinstance(value, TrainingStep)]


def arguments(step: TrainingStep, place: Callable[[TrainingStep], str]) -> list[str]:
    """The arguments of ``lm-eval-rag train``, without ``--out``.

    Args:
        place: Returns the folder of another step's checkpoint.
    """
    argv = [step.what]
    for key, option in step.options:
        for value in option if isinstance(option, tuple) else (option,):
            argv.append(f"--{key.replace('_', '-')}")
            if value is not True:
                argv.append(place(value) if isinstance(value, TrainingStep) else str(value))
    return argv


def tasks_of(step: TrainingStep) -> list[str]:
    """The tasks that a step learns from."""
    task = dict(step.options).get("task", ())
    return [task] if isinstance(task, str) else list(task)


def key_of(step: TrainingStep) -> str:
    """Name of the step's checkpoint: a hash of everything that it is made from, except the data."""
    return f"{step.what}-{digest(plain(step))[:12]}"


def check_step(step: TrainingStep) -> None:
    """Raise a UserError unless ``lm-eval-rag train`` accepts the options of a step and of the steps within it."""
    parser, options = _Parser(prog="lm-eval-rag train"), OPTIONS[step.what]
    options.add_arguments(parser)
    given = parser.parse_args(arguments(step, key_of)[1:])
    options.read_settings(given).check()
    if step.what == "generator":
        generator_cli.read_setup(given)
    for inner in steps_within(step):
        check_step(inner)


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"A training step of the table is wrong: {message}.")


def plain(value: Any) -> Any:
    """The value as JSON can hold it."""
    if isinstance(value, TrainingStep):
        return [value.what, [[key, plain(one)] for key, one in value.options], value.bank]
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value
