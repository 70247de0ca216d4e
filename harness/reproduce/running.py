"""Running a table's rows through lm_eval, one after the other; what is finished is not run again.

A run lies in ``runs/<row>/<hash>`` of the output folder: lm_eval's own results and samples, ``samples.json`` where
questions were drawn, and ``done.json``, written last, by which it is known to be finished. A killed run is begun anew,
and its journal spares every call that was finished.
"""

from __future__ import annotations

import json
import logging
import random
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.core.journal import digest
from lm_eval_rag.harness.reproduce.matrix import Row, Train
from lm_eval_rag.harness.reproduce.sharing import CALLS, shared_calls
from lm_eval_rag.harness.reproduce.training import Trainer, arguments, key_of, plain

log = logging.getLogger(__name__)
DONE, SAMPLES = "done.json", "samples.json"


@dataclass(frozen=True)
class Job:
    """The tasks of a row that run with the same arguments, so in one evaluation."""

    row: Row
    tasks: tuple[str, ...]
    arguments: Mapping[str, Any]

    @property
    def steps(self) -> list[Train]:
        """The training steps whose checkpoints it takes."""
        return [value for value in self.arguments.values() if isinstance(value, Train)]

    @property
    def sample(self) -> dict[str, int]:
        """Task -> number of questions drawn."""
        return {task: self.row.sample[task] for task in self.tasks if task in self.row.sample}

    def name(self, limit: int | None) -> str:
        """Hash of what is asked for."""
        asked = [self.row.model, plain(dict(self.arguments)), self.tasks, self.sample, limit]
        return digest([*asked, *(["chat"] if self.row.chat else [])])[:12]

    def commands(self, place: str = "runs") -> list[str]:
        """What to type for the same by hand: training, then evaluation."""
        lines = [line for step in self.steps for line in _training(step)]
        given = dict(self.arguments)
        batch = given.pop("batch_size", None)  # lm_eval has an option of its own for it, and refuses it elsewhere
        model_args = ",".join(f"{key}={_shown(value)}" for key, value in given.items())
        words = ["lm_eval", "run", "--model", self.row.model, "--tasks", ",".join(self.tasks), "--log_samples"]
        words += ["--output_path", f"{place}/{self.row.name}"] + (["--model_args", model_args] if model_args else [])
        words += ["--batch_size", str(batch)] if batch else []
        words += ["--apply_chat_template"] if self.row.chat else []
        words += ["--samples", SAMPLES] if self.sample else []
        return [*dict.fromkeys(lines), shlex.join(words)]


def jobs(row: Row) -> list[Job]:
    """The evaluations that a row is made of; none for one with published numbers alone."""
    groups: dict[str, tuple[list[str], dict[str, Any]]] = {}
    for task in row.tasks if row.model else ():
        given = row.of(task)
        groups.setdefault(json.dumps(plain(given)), ([], given))[0].append(task)
    return [Job(row, tuple(tasks), given) for tasks, given in groups.values()]


@dataclass(frozen=True)
class Runner:
    """Runs jobs in this process.

    Args:
        out: The output folder.
        trainer: Makes checkpoints.
        limit: The first questions of each task alone, in place of any draw; None for what the table says.
        share_calls: Whether rows take over each other's finished calls.
    """

    out: Path
    trainer: Trainer
    limit: int | None = None
    share_calls: bool = False
    _asked: dict[str, tuple[int, list[str]]] = field(default_factory=dict)

    def folder(self, job: Job) -> Path:
        """Where a job's results lie."""
        return self.out / "runs" / job.row.name / job.name(self.limit)

    def finished(self, job: Job) -> bool:
        """Whether it has been run to its end."""
        return (self.folder(job) / DONE).is_file()

    def run(self, job: Job) -> bool:
        """Run a job, unless it is finished and would give the same again; whether it had to be run.

        Raises:
            UserError: Bad arguments, or a training step that fails.
        """
        import lm_eval.models  # noqa: F401  (ours register after lm_eval's own)
        from lm_eval.api.registry import get_model

        given = {k: str(self.trainer.checkpoint(v)) if isinstance(v, Train) else v for k, v in job.arguments.items()}
        model = get_model(job.row.model).create_from_arg_obj(dict(given))
        model.chat_template(job.row.chat)  # before the fingerprint, which tells chats apart
        folder = self.folder(job)
        asked = {task: self._questions(task) for task in job.tasks}
        same = {"fingerprint": model.setup.fingerprint, "corpora": {task: ids for task, (_, ids) in asked.items()}}
        if self.finished(job):
            done = json.loads((folder / DONE).read_text(encoding="utf-8"))
            if {key: done.get(key) for key in same} == same:
                return False
            log.warning("%s was run on other data or with other weights, and is run again.", job.row.name)
        shutil.rmtree(folder, ignore_errors=True)
        began = time.perf_counter()
        with shared_calls(model.setup, self.out / CALLS) if self.share_calls else nullcontext():
            self._evaluate(job, model, given, folder)
        told = {**same, "seconds": round(time.perf_counter() - began, 1), "counts": dict(model.counts)}
        aside = folder / f".{DONE}"
        aside.write_text(json.dumps(told, indent=1), encoding="utf-8")
        aside.rename(folder / DONE)
        return True

    def _evaluate(self, job: Job, model: Any, given: Mapping[str, Any], folder: Path) -> None:
        """As ``lm_eval run`` does it."""
        from lm_eval import simple_evaluate
        from lm_eval.loggers import EvaluationTracker

        drawn = None if self.limit is not None else self._drawn(job)
        if drawn:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / SAMPLES).write_text(json.dumps(drawn), encoding="utf-8")
        tracker = EvaluationTracker(output_path=str(folder))
        results = simple_evaluate(
            model=model,
            model_args=dict(given),
            tasks=list(job.tasks),
            task_manager=self._manager,
            limit=self.limit,
            samples=drawn,
            evaluation_tracker=tracker,
            batch_size=1,
            apply_chat_template=job.row.chat,
        )
        assert results is not None  # None on other ranks than the first; there is one here
        samples = results.pop("samples")
        tracker.general_config_tracker.model_name_sanitized = job.row.model
        tracker.save_results_aggregated(results=results, samples=samples)
        for task in results["configs"]:
            tracker.save_results_samples(task_name=task, samples=samples[task])

    def _drawn(self, job: Job) -> dict[str, list[int]] | None:
        """Task -> the numbers of its questions, drawn by seed 0; every question of a task that is not drawn from."""
        if not job.sample:
            return None
        sizes = {task: self._questions(task)[0] for task in job.tasks}
        return {
            task: sorted(random.Random(0).sample(range(size), min(job.sample.get(task, size), size)))
            for task, size in sizes.items()
        }

    def _questions(self, task: str) -> tuple[int, list[str]]:
        """Number of a task's questions, and the ids of their corpora."""
        if task not in self._asked:
            docs = self._manager.load([task])["tasks"][task].eval_docs
            self._asked[task] = len(docs), sorted({str(doc.get("corpus")) for doc in docs})
        return self._asked[task]

    @cached_property
    def _manager(self) -> Any:
        from lm_eval.tasks import TaskManager

        return TaskManager()


def _training(step: Train) -> Iterator[str]:
    for _, value in step.options:
        if isinstance(value, Train):
            yield from _training(value)
    words = ["lm-eval-rag", "train", *arguments(step, _shown), "--out", _shown(step)]
    yield shlex.join(words) + (f"  # on the part {step.bank} of the rule bank" if step.bank else "")


def _shown(value: Any) -> str:
    return f"checkpoints/{key_of(value)}" if isinstance(value, Train) else str(value)
