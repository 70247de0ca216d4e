"""The results of finished runs, by row and task, reduced to what a page needs."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.data.page_store import SEPARATOR
from lm_eval_rag.harness.generators.spec import NO_GENERATOR
from lm_eval_rag.harness.report.cluster_keys import Keys, cluster_labels
from lm_eval_rag.harness.report.clusters import Clusters
from lm_eval_rag.harness.report.mistakes import Corpora, Mistake, mistakes, reaches
from lm_eval_rag.harness.report.run_files import TaskRun, read_runs
from lm_eval_rag.harness.reproduce.banks import part_of_heads
from lm_eval_rag.harness.reproduce.running import DONE, Job, Runner, jobs
from lm_eval_rag.harness.reproduce.table_spec import Row, Table
from lm_eval_rag.harness.rules.bank import RuleBank
from lm_eval_rag.harness.scoring import RETRIEVAL_METRICS

Results = Mapping[tuple[str, str], "Result"]  # (name of a row, task) -> its result


@dataclass(frozen=True, slots=True)
class Result:
    """One row on one task.

    Args:
        scores: Metric -> question id -> value.
        slices: Question id -> its slice.
        banks: Question id -> the part of the rule bank that holds its relation; {} where no row has a ``bank``.
        mistakes: Question id of a wrong answer -> its class.
        questions: Number of questions that count.
        unscored: Number of them without a score.
        version: Version of the task.
        corpora: Ids of the corpora.
        seconds: Duration of the whole evaluation that it was part of.
        date: When it was run, or "".
        packages: ``name version`` of the packages that it was run with.
        keys: The keys by which questions are clustered; () if they are not.
        labels: Question id -> its cluster by each key.
    """

    scores: Mapping[str, Mapping[str, float]]
    slices: Mapping[str, str] = field(default_factory=dict)
    banks: Mapping[str, str] = field(default_factory=dict)
    mistakes: Mapping[str, Mistake] = field(default_factory=dict)
    questions: int = 0
    unscored: int = 0
    version: str = ""
    corpora: tuple[str, ...] = ()
    seconds: float = 0.0
    date: str = ""
    packages: tuple[str, ...] = ()
    keys: Keys = ()
    labels: Mapping[str, tuple[Hashable, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Reader:
    """Reads finished runs of one table; opens each corpus once.

    Args:
        clustered: Whether intervals and tests are clustered by the keys that a task declares.
    """

    table: Table
    clustered: bool = True
    corpora: Corpora = field(default_factory=Corpora)
    _parts: dict[str, dict[str, str]] = field(default_factory=dict)
    _banks: dict[str, RuleBank] = field(default_factory=dict)

    def read(self, runner: Runner, rows: Iterable[Row]) -> dict[tuple[str, str], Result]:
        """The results of all rows that have been run.

        Raises:
            UserError: The files of a run are damaged, or two rows were run on different data.
        """
        results: dict[tuple[str, str], Result] = {}
        for row in rows:
            for job in jobs(row):
                if runner.finished(job):
                    results |= self._job(job, runner.folder(job))
        _check_same_data(results)
        return results

    def _job(self, job: Job, folder: Path) -> Iterable[tuple[tuple[str, str], Result]]:
        done = json.loads((folder / DONE).read_text(encoding="utf-8"))
        for run in read_runs([folder]):
            result = self.result(run, float(done["seconds"]))
            answers = job.arguments.get("generator") != NO_GENERATOR
            yield (job.row.name, run.task), result if answers else _retrieval_only(result)

    def result(self, run: TaskRun, seconds: float = 0.0) -> Result:
        """What a page needs of one run."""
        samples = {id_: sample for id_, sample in run.questions.items() if self._counts(sample["doc"])}
        docs = {id_: sample["doc"] for id_, sample in samples.items()}
        keys = run.clusters if self.clustered else ()
        by_bank = any(row.bank for row in self.table.rows)
        return Result(
            scores={
                metric: {id_: value for id_, value in values.items() if id_ in samples}
                for metric, values in run.scores.items()
            },
            slices={id_: str(doc["slice"]) for id_, doc in docs.items() if doc.get("slice")},
            banks={id_: self._part(doc) for id_, doc in docs.items()} if by_bank else {},
            mistakes={id_: one for id_, one in mistakes(run, self.corpora).items() if id_ in samples},
            questions=len(samples),
            unscored=sum(not sample["metrics"] for sample in samples.values()),
            version=run.version,
            corpora=corpora_of(docs.values()),
            seconds=seconds,
            date=run.date,
            packages=tuple(f"{name} {version}" for name, version in run.versions.items()),
            keys=keys,
            labels=dict(zip(docs, zip(*cluster_labels(docs.values(), keys), strict=True), strict=True)) if keys else {},
        )

    def _counts(self, doc: Mapping[str, Any]) -> bool:
        if not self.table.subset:
            return True
        if self.table.subset != "degenerated":
            raise unknown("subset", self.table.subset, ("degenerated",))
        return self._degenerates(doc)

    def _degenerates(self, doc: Mapping[str, Any]) -> bool:
        """Whether the best rule's body leads to a gold answer: then the question about the body has the same answer."""
        corpus = self.corpora[doc["corpus"]]
        bank = self._banks.setdefault(corpus.id, RuleBank(corpus))
        bodies = [rule.body for rule in bank.match(doc["query"], 1)]
        return reaches(corpus, doc["subject"], bodies, doc["answers"])

    def _part(self, doc: Mapping[str, Any]) -> str:
        corpus = self.corpora[doc["corpus"]]
        if corpus.id not in self._parts:
            self._parts[corpus.id] = part_of_heads(corpus.rules())
        return self._parts[corpus.id].get(str(doc.get("relation")), "")


def corpora_of(docs: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The corpora of some questions; of pages that belong to a question (CRAG), the set of all questions' pages."""
    return tuple(sorted({str(doc.get("corpus")).partition(SEPARATOR)[0] for doc in docs}))


def clusters_of(results: Results, task: str, ids: Iterable[str]) -> Clusters:
    """The clusters of some questions of a task, by each key that its runs declare; () if they declare none."""
    declared = (result for (_, name), result in results.items() if name == task and result.keys)
    known = next(declared, None)
    if known is None:
        return ()
    alone = (None,) * len(known.keys)
    return list(zip(*(known.labels.get(id_, alone) for id_ in ids), strict=True))


def _retrieval_only(result: Result) -> Result:
    """Without what depends on the answers."""
    scores = {name: result.scores[name] for name in RETRIEVAL_METRICS if name in result.scores}
    return replace(result, scores=scores, mistakes={})


def _check_same_data(results: Results) -> None:
    first: dict[str, tuple[str, Result]] = {}
    for (row, task), result in results.items():
        other, before = first.setdefault(task, (row, result))
        if (before.version, before.corpora) != (result.version, result.corpora):
            raise UserError(
                f"{task}: the rows {other!r} and {row!r} were run on different data (version {before.version}, "
                f"{', '.join(before.corpora)}; version {result.version}, {', '.join(result.corpora)}). Run the command "
                "for both rows (`--only`): a row that was run on other data is run again."
            )
