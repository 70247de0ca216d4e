"""The training steps of a table: their commands, the folders of their checkpoints, and running them.

A checkpoint lies in ``$LM_EVAL_RAG_CACHE/checkpoints/<hash of the step>/<hash of the corpora>``: tables share it, and
other data or options give another checkpoint. The printed lines of ``--dry-run`` write into ``checkpoints/<hash of the
step>`` of the folder where they are run. What they have trained there, to its end, with the settings of the step and on
the same data, is not trained again.
"""

from __future__ import annotations

import json
import logging
import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from lm_eval_rag.harness.checkpoints.locate import content_hash
from lm_eval_rag.harness.checkpoints.note import Note, read_note
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir, storing
from lm_eval_rag.harness.core.journal import digest
from lm_eval_rag.harness.reproduce.banks import corpus_with_part
from lm_eval_rag.harness.reproduce.table_spec import TrainingStep
from lm_eval_rag.harness.train import generator_cli, train_cli
from lm_eval_rag.harness.train.generator import recorded

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

    def resolved(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a method with the folders of its checkpoints, which are trained now where they are missing.

        Where the printed lines have trained all of them, they are named as there: the printed evaluation and this one
        then have one fingerprint, and so one journal.

        Raises:
            UserError: As ``lm-eval-rag train``.
        """
        steps = [value for value in options.values() if isinstance(value, TrainingStep)]
        by_hand = all(map(self.made_by_hand, steps))

        def place(step: TrainingStep) -> str:
            return by_hand_folder(step) if by_hand else str(self.checkpoint(step))

        return {key: place(value) if isinstance(value, TrainingStep) else value for key, value in options.items()}

    def checkpoint(self, step: TrainingStep) -> Path:
        """The finished checkpoint of a step in the cache, after those of the steps it depends on.

        If it is missing, that of the printed line is copied, and else it is trained.

        Raises:
            UserError: As ``lm-eval-rag train``.
        """
        folder, by_hand = self.folder(step), Path(by_hand_folder(step))
        inner = [(self.checkpoint(one), Path(by_hand_folder(one))) for one in steps_within(step)]
        if is_finished(read_note(folder)):
            return folder
        if self.made_by_hand(step) and all(content_hash(ours) == content_hash(theirs) for ours, theirs in inner):
            log.info("%s is copied from %s.", folder, by_hand)
            _copy(by_hand, folder)
            return folder
        argv = arguments(step, lambda one: str(self.folder(one)))
        if by_hand.exists():
            log.warning("%s is not used: it is unfinished, or of other settings, data or retriever.", by_hand)
        log.info("training: lm-eval-rag train %s", " ".join(argv))
        folder.parent.mkdir(parents=True, exist_ok=True)
        train_cli.train_main([*argv, "--out", str(folder)], build=lambda task: self.corpus(task, step.bank))
        return folder

    def made_by_hand(self, step: TrainingStep) -> bool:
        """Whether the printed lines of a step and of those within it have run here to their end, on the same data."""
        note = read_note(Path(by_hand_folder(step)))
        if note is None or not is_finished(note) or not all(map(self.made_by_hand, steps_within(step))):
            return False
        corpora = {task: self.corpus(task, step.bank) for task in tasks_of(step)}
        given = _given(step, by_hand_folder)
        if step.what == "generator":
            settings = recorded(generator_cli.read_settings(given), generator_cli.read_setup(given), corpora)
        else:
            settings = train_cli.read_settings(given).recorded()
        return note.settings == json.loads(json.dumps(settings)) and note.corpora == tuple(corpora.values())


def is_finished(note: Note | None) -> bool:
    """Whether a folder with this note has a finished checkpoint."""
    return note is not None and note.finished


def by_hand_folder(step: TrainingStep) -> str:
    """Where the printed line of a step writes its checkpoint, relative to the folder where it is run."""
    return f"checkpoints/{key_of(step)}"


def _copy(source: Path, target: Path) -> None:
    with storing(target, "Free space, or give another LM_EVAL_RAG_CACHE."):
        beside = target.with_name(f".{target.name}.new")
        shutil.rmtree(beside, ignore_errors=True)
        shutil.copytree(source, beside)
        shutil.rmtree(target, ignore_errors=True)  # an interrupted training
        beside.rename(target)


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
    given = _given(step, key_of)
    OPTIONS[step.what].read_settings(given).check()
    if step.what == "generator":
        generator_cli.read_setup(given)
    for inner in steps_within(step):
        check_step(inner)


def _given(step: TrainingStep, place: Callable[[TrainingStep], str]) -> Namespace:
    """The options of a step as ``lm-eval-rag train`` reads them."""
    parser = _Parser(prog="lm-eval-rag train")
    OPTIONS[step.what].add_arguments(parser)
    return parser.parse_args(arguments(step, place)[1:])


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
