"""Running the rows of a table through lm_eval, one after the other; a finished run is not repeated.

A run lies in ``runs/<row>/<hash>`` of the output folder: lm_eval's own results and samples, ``samples.json`` where
questions were sampled, and ``done.json``, written last, which marks it as finished. A run that was killed, or left
questions unscored, starts again, and its journal serves every call that had finished.
"""

from __future__ import annotations

import json
import logging
import random
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.paths import output_folder
from lm_eval_rag.harness.core.journal import digest
from lm_eval_rag.harness.generators.memory import release_all
from lm_eval_rag.harness.plugin.saved_run import save_run
from lm_eval_rag.harness.reproduce.sharing import CALLS, shared_calls
from lm_eval_rag.harness.reproduce.table_spec import Row, TrainingStep
from lm_eval_rag.harness.reproduce.training import Trainer, arguments, by_hand_folder, plain, steps_within

log = logging.getLogger(__name__)
DONE, SAMPLES = "done.json", "samples.json"


@dataclass(frozen=True)
class Job:
    """The tasks of a row that run with the same arguments over the same corpus, and so in one evaluation."""

    row: Row
    tasks: tuple[str, ...]
    arguments: Mapping[str, Any]
    corpus: str = ""

    @property
    def run_name(self) -> str:
        """The row and its tasks; no other evaluation of a table has it."""
        return f"{self.row.name} on {', '.join(self.tasks)}"

    @property
    def steps(self) -> list[TrainingStep]:
        """The training steps whose checkpoints it takes."""
        return [value for value in self.arguments.values() if isinstance(value, TrainingStep)]

    @property
    def sample(self) -> dict[str, int]:
        """Task -> number of questions sampled."""
        return {task: self.row.sample[task] for task in self.tasks if task in self.row.sample}

    @property
    def metadata(self) -> dict[str, Any]:
        """What ``--metadata`` says."""
        return {**({"corpus": self.corpus} if self.corpus else {}), **self.row.metadata}

    def first(self, limit: int | None) -> int | None:
        """How many of the first questions of each task are run; None for all."""
        return self.row.first if limit is None else limit

    def name(self, limit: int | None) -> str:
        """Hash of everything that determines the result."""
        row = self.row
        parts = [row.model, plain(dict(self.arguments)), self.tasks, self.sample, self.first(limit)]
        others = {"metadata": self.metadata, "gen_kwargs": dict(row.gen_kwargs), "system": row.system}
        others["include_path"] = row.include_path
        given = {key: value for key, value in others.items() if value}
        return digest([*parts, *(["chat"] if row.chat else []), *([given] if given else [])])[:12]

    def samples_file(self, out: Path) -> Path:
        """The file with the indices of the sampled questions, for the printed command; jobs of one sample share it."""
        return out / f"samples-{digest([self.tasks, self.sample, self.metadata])[:12]}.json"

    def commands(self, out: Path) -> list[str]:
        """The commands that do the same by hand: what must come before, training, then evaluation.

        Args:
            out: Output folder of the table; the file of :meth:`samples_file` in it must have been written.
        """
        training = [line for step in self.steps for line in _training(step)]
        options = dict(self.arguments)
        batch = options.pop("batch_size", None)  # lm_eval has its own option for it, and refuses it in --model_args
        model_args = _pairs(options)
        words = ["lm_eval", "run", "--model", self.row.model, "--tasks", ",".join(self.tasks), "--log_samples"]
        words += ["--output_path", str(out / "runs" / self.row.name)] + (
            ["--model_args", model_args] if model_args else []
        )
        words += ["--batch_size", str(batch)] if batch else []
        words += ["--apply_chat_template"] if self.row.chat else []
        words += ["--system_instruction", self.row.system] if self.row.system else []
        words += ["--gen_kwargs", _pairs(self.row.gen_kwargs)] if self.row.gen_kwargs else []
        words += ["--metadata", json.dumps(self.metadata)] if self.metadata else []
        words += ["--limit", str(self.row.first)] if self.row.first else []
        words += ["--include_path", self.row.include_path] if self.row.include_path else []
        words += ["--samples", str(self.samples_file(out))] if self.sample else []
        return [*self.row.before, *dict.fromkeys(training), shlex.join(words)]


def jobs(row: Row) -> list[Job]:
    """The evaluations of a row; none for a row that shows only published numbers."""
    groups: dict[str, tuple[list[str], dict[str, Any], str]] = {}
    for task in row.tasks if row.model else ():
        options, corpus = row.arguments_for(task), row.corpora.get(task, "")
        groups.setdefault(json.dumps([plain(options), corpus]), ([], options, corpus))[0].append(task)
    return [Job(row, tuple(tasks), options, corpus) for tasks, options, corpus in groups.values()]


@dataclass(frozen=True)
class Runner:
    """Runs jobs in this process.

    Args:
        out: The output folder.
        trainer: Trains checkpoints.
        limit: Only the first questions of each task, instead of any sample; None for what the table says.
        share_calls: Whether rows reuse each other's finished calls.
    """

    out: Path
    trainer: Trainer
    limit: int | None = None
    share_calls: bool = False
    _questions: dict[tuple[str, str, str], tuple[int, list[str]]] = field(default_factory=dict)
    _managers: dict[str, Any] = field(default_factory=dict)

    def folder(self, job: Job) -> Path:
        """Where a job's results lie."""
        return self.out / "runs" / job.row.name / job.name(self.limit)

    def finished(self, job: Job) -> bool:
        """Whether it has been run to its end."""
        return (self.folder(job) / DONE).is_file()

    def only_by_hand(self, job: Job) -> bool:
        """Whether the printed line of a job's row was run, and the job itself was not."""
        return not self.finished(job) and any((self.out / "runs" / job.row.name).glob("*/results_*.json"))

    def run(self, job: Job) -> bool:
        """Run a job, unless it is finished and would give the same again; returns whether it was run.

        Raises:
            UserError: Bad arguments, or a training step that fails.
        """
        import lm_eval.models  # noqa: F401  (ours register after lm_eval's own)
        from lm_eval.api.registry import get_model

        options = self.trainer.resolved(job.arguments)
        model = get_model(job.row.model).create_from_arg_obj(dict(options))
        model.chat_template(job.row.chat)  # before the fingerprint, which depends on it
        folder = self.folder(job)
        corpora = {task: self._size_and_corpora(job, task)[1] for task in job.tasks}
        made_from = {"fingerprint": model.setup.fingerprint, "corpora": corpora}
        if self.finished(job):
            done = json.loads((folder / DONE).read_text(encoding="utf-8"))
            unscored = done["counts"].get("unscored", 0)
            if {key: done.get(key) for key in made_from} != made_from:
                log.warning("%s was run on other data, or with other weights or code. It is run again.", job.row.name)
            elif unscored:
                log.info("%s left %s questions unscored. They are asked again.", job.row.name, f"{unscored:,}")
            else:
                return False
        shutil.rmtree(folder, ignore_errors=True)
        began = time.perf_counter()
        try:
            with shared_calls(model.setup, self.out / CALLS) if self.share_calls else nullcontext():
                self._evaluate(job, model, options, folder)
        finally:
            release_all()  # the next row's models need the same GPU
        done = {**made_from, "seconds": round(time.perf_counter() - began, 1), "counts": dict(model.counts)}
        beside = folder / f".{DONE}"
        beside.write_text(json.dumps(done, indent=1), encoding="utf-8")
        beside.rename(folder / DONE)
        return True

    def _evaluate(self, job: Job, model: Any, options: Mapping[str, Any], folder: Path) -> None:
        """As ``lm_eval run`` does it."""
        first = job.first(self.limit)
        samples = None if first is not None else self._samples(job)
        if samples:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / SAMPLES).write_text(json.dumps(samples), encoding="utf-8")
        save_run(
            model,
            options,
            job.tasks,
            folder,
            task_manager=self._manager(job.metadata, job.row.include_path),
            limit=first,
            samples=samples,
            apply_chat_template=job.row.chat,
            system_instruction=job.row.system or None,
            gen_kwargs=dict(job.row.gen_kwargs) or None,
        )

    def write_samples(self, wanted: Sequence[Job]) -> list[Path]:
        """Write the files of sampled questions that the printed commands of these evaluations read."""
        files = {job.samples_file(self.out): job for job in wanted if job.sample}
        for path, job in files.items():
            output_folder(self.out)
            path.write_text(json.dumps(self._samples(job)), encoding="utf-8")
        return list(files)

    def _samples(self, job: Job) -> dict[str, list[int]] | None:
        """Task -> indices of its questions, sampled with seed 0; all questions of a task without a sample size."""
        if not job.sample:
            return None
        sizes = {task: self._size_and_corpora(job, task)[0] for task in job.tasks}
        return {
            task: sorted(random.Random(0).sample(range(size), min(job.sample.get(task, size), size)))
            for task, size in sizes.items()
        }

    def _size_and_corpora(self, job: Job, task: str) -> tuple[int, list[str]]:
        """Number of a task's questions, and the ids of their corpora."""
        key = (task, json.dumps(job.metadata, sort_keys=True), job.row.include_path)
        if key not in self._questions:
            docs = self._manager(job.metadata, job.row.include_path).load([task])["tasks"][task].eval_docs
            self._questions[key] = len(docs), sorted({str(doc.get("corpus")) for doc in docs})
        return self._questions[key]

    def _manager(self, metadata: Mapping[str, Any], include_path: str = "") -> Any:
        from lm_eval.tasks import TaskManager

        key = json.dumps([metadata, include_path], sort_keys=True)
        if key not in self._managers:
            options: dict[str, Any] = {"metadata": dict(metadata)} if metadata else {}
            options |= {"include_path": include_path} if include_path else {}
            self._managers[key] = TaskManager(**options)
        return self._managers[key]


def sampling_command(table: str, out: Path, only: Sequence[str] | None = None) -> str:
    """The command that writes the files of sampled questions, which :meth:`Job.commands` name."""
    words = ["lm-eval-rag", "reproduce", table, "--write-samples", "--out", str(out)]
    return shlex.join([*words, *(["--only", *only] if only else [])])


def _training(step: TrainingStep) -> Iterator[str]:
    """The training commands of a step, those of the steps within it first."""
    for inner in steps_within(step):
        yield from _training(inner)
    words = ["lm-eval-rag", "train", *arguments(step, by_hand_folder), "--out", by_hand_folder(step)]
    yield shlex.join(words) + (f"  # on the part {step.bank} of the rule bank" if step.bank else "")


def _pairs(options: Mapping[str, Any]) -> str:
    return ",".join(f"{key}={_shown(value)}" for key, value in options.items())


def _shown(value: Any) -> str:
    return by_hand_folder(value) if isinstance(value, TrainingStep) else str(value)
