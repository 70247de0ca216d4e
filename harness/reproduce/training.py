"""The training steps of a table: what a step's command is, where its checkpoint lies, and making it.

A checkpoint lies in ``$LM_EVAL_RAG_CACHE/checkpoints/<hash of the step>/<hash of the corpora>``, so that tables share
it, and a change of data or options makes another.
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
from lm_eval_rag.harness.reproduce.banks import restricted
from lm_eval_rag.harness.reproduce.matrix import Train
from lm_eval_rag.harness.train.train_cli import train_main

log = logging.getLogger(__name__)
Build = Callable[[str], str]


@dataclass(frozen=True)
class Trainer:
    """Makes checkpoints, each once.

    Args:
        build: Builds a task's corpus and returns its id.
    """

    build: Build
    _corpora: dict[tuple[str, str], str] = field(default_factory=dict)

    def folder(self, step: Train) -> Path:
        """Where the step's checkpoint lies."""
        corpora = [self.corpus(task, step.bank) for task in tasks_of(step)]
        return cache_dir() / "checkpoints" / key_of(step) / digest(corpora)[:12]

    def made(self, step: Train) -> bool:
        """Whether the checkpoint is finished."""
        return read_note(self.folder(step)) is not None

    def corpus(self, task: str, bank: str = "") -> str:
        """The id of a task's corpus, with the rules of a part of its bank."""
        key = (task, bank)
        if key not in self._corpora:
            whole = self.build(task)
            self._corpora[key] = restricted(whole, bank) if bank else whole
        return self._corpora[key]

    def checkpoint(self, step: Train) -> Path:
        """The finished checkpoint of a step; trained now when it is not there, after those that it takes.

        Raises:
            UserError: As ``lm-eval-rag train``.
        """
        folder = self.folder(step)
        for _, value in step.options:
            if isinstance(value, Train):
                self.checkpoint(value)
        if read_note(folder) is None:
            argv = arguments(step, lambda one: str(self.folder(one)))
            log.info("training: lm-eval-rag train %s", " ".join(argv))
            folder.parent.mkdir(parents=True, exist_ok=True)
            train_main([*argv, "--out", str(folder)], build=lambda task: self.corpus(task, step.bank))
        return folder


def arguments(step: Train, place: Callable[[Train], str]) -> list[str]:
    """The arguments of ``lm-eval-rag train``, but for ``--out``.

    Args:
        place: Says where another step's checkpoint lies.
    """
    argv = [step.what]
    for key, given in step.options:
        for value in given if isinstance(given, tuple) else (given,):
            argv.append(f"--{key.replace('_', '-')}")
            if value is not True:
                argv.append(place(value) if isinstance(value, Train) else str(value))
    return argv


def tasks_of(step: Train) -> list[str]:
    """The tasks that a step learns from."""
    given = dict(step.options).get("task", ())
    return [given] if isinstance(given, str) else list(given)


def key_of(step: Train) -> str:
    """Name of the step's checkpoint: a hash of all that it is made of, but for the data."""
    return f"{step.what}-{digest(_plain(step))[:12]}"


def check_step(step: Train) -> None:
    """Raise a UserError unless ``lm-eval-rag train`` knows the options of a step and of those it takes."""
    parser = _Parser(prog="lm-eval-rag train")
    if step.what == "retriever":
        from lm_eval_rag.harness.train.train_cli import add_arguments, read_settings

        add_arguments(parser)
        read_settings(parser.parse_args(arguments(step, key_of)[1:])).check()
    else:
        from lm_eval_rag.harness.train import generator_cli

        generator_cli.add_arguments(parser)
        generator_cli.read_settings(parser.parse_args(arguments(step, key_of)[1:])).check()
    for _, value in step.options:
        if isinstance(value, Train):
            check_step(value)


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"A training step of the table is wrong: {message}.")


def _plain(value: Any) -> Any:
    """JSON-able."""
    if isinstance(value, Train):
        return [value.what, [[key, _plain(one)] for key, one in value.options], value.bank]
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


plain = _plain
