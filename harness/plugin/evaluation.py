"""Evaluation over documents and questions of the user's: run through lm_eval, saved as its results, read as tables."""

from __future__ import annotations

import html
import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_rag.harness.common.errors import at_least, unknown
from lm_eval_rag.harness.common.paths import output_folder
from lm_eval_rag.harness.documents.intake import OVERLAP, TOKENS
from lm_eval_rag.harness.documents.rule_files import MIN_SUPPORT
from lm_eval_rag.harness.plugin.chosen_methods import Find, Methods
from lm_eval_rag.harness.plugin.own_data import OwnData, own_data
from lm_eval_rag.harness.plugin.own_task import OwnTask
from lm_eval_rag.harness.plugin.planned_runs import PlannedRun, planned_runs
from lm_eval_rag.harness.plugin.saved_run import save_run
from lm_eval_rag.harness.plugin.trace_file import traced_into
from lm_eval_rag.harness.report.cells import cell
from lm_eval_rag.harness.report.content import build
from lm_eval_rag.harness.report.document import document
from lm_eval_rag.harness.report.formats import FORMATS
from lm_eval_rag.harness.report.report_parts import RunReport, TaskReport
from lm_eval_rag.harness.report.run_files import TaskRun, read_runs
from lm_eval_rag.harness.report.table import table

if TYPE_CHECKING:
    import polars as pl

log = logging.getLogger(__name__)
SHOWN = ("em", "em_contains", "token_f1", "acc_lm", "factual_consistency", "recall", "evidence_recall")
KEPT = frozenset({"id", "query", "time", "answers", "corpus", "scoring", "gold", "answer_form"})  # no slices


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The runs of an evaluation, as their files have them.

    Args:
        out: The folder of all runs; ``lm-eval-rag report OUT`` compares them.
        files: The results file of each run.
        data: What was evaluated on.
    """

    out: Path
    files: tuple[Path, ...]
    data: OwnData

    @cached_property
    def runs(self) -> list[TaskRun]:
        """The runs, read from their files."""
        return read_runs(self.files)

    @cached_property
    def _reports(self) -> list[TaskReport]:
        slices = [name for name in self.data.rows[0] if name not in KEPT]
        return build(self.runs, by="slice" if "slice" in slices or not slices else slices[0])

    def report(self, format: str = "text") -> str:
        """The report of ``lm-eval-rag report``: intervals, slices, paired differences, costs.

        Args:
            format: ``text``, ``markdown``, ``html``, ``latex``, ``csv`` or ``json``.

        Raises:
            UserError: An unknown format.
        """
        if format not in FORMATS:
            raise unknown("format", format, FORMATS)
        return FORMATS[format](document(self._reports))

    @cached_property
    def scores(self) -> pl.DataFrame:
        """A row a run: costs, and each score with the ends of its 95 % interval: ``em``, ``em_low``, ``em_high``."""
        import polars as pl

        return pl.DataFrame([_scores(run, report) for run, report in self._rows()], infer_schema_length=None)

    @cached_property
    def answers(self) -> pl.DataFrame:
        """A row a question and run: the answer, gold answers, ids of the passages, every score, tokens and seconds."""
        import polars as pl

        rows = [row for run in self.runs for row in _answers(run)]
        return pl.DataFrame(rows, infer_schema_length=None)

    @property
    def unscored(self) -> tuple[str, ...]:
        """The ids of the questions that a run could not answer."""
        return tuple(dict.fromkeys(id for _, report in self._rows() for id in report.unscored))

    def __repr__(self) -> str:
        return f"{self.table()}\n{self.out}"

    def table(self) -> str:
        """The main scores with intervals, as text."""
        head, *rows = self._cells()
        return table(head, rows)

    def _repr_html_(self) -> str:
        def line(tag: str, cells: Sequence[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in cells) + "</tr>"

        head, *rows = self._cells()
        return f"<table>{line('th', head)}{''.join(line('td', row) for row in rows)}</table>"

    def _rows(self) -> Iterator[tuple[TaskRun, RunReport]]:
        reports = {run.run: run for report in self._reports for run in report.runs}
        yield from ((run, reports[run.label]) for run in self.runs)

    def _cells(self) -> Iterator[list[str]]:
        rows = list(self._rows())
        metrics = [name for family in SHOWN for name in _deepest(family, rows)]
        yield ["", "questions", "unscored", *metrics]
        for run, report in rows:
            scores = (cell(report.scores.get(name), name, report.questions) for name in metrics)
            yield [run.label, f"{report.questions:,}", f"{len(report.unscored):,}", *scores]


def evaluate(
    documents: Any,
    questions: Any,
    *,
    find: Find,
    rules: Any = None,
    methods: Methods = ("standard_rag",),
    retrievers: Sequence[str] | str = (),
    model_args: Mapping[str, Any] | None = None,
    gen_kwargs: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    name: str | None = None,
    limit: int | None = None,
    passage_tokens: int = TOKENS,
    overlap: int = OVERLAP,
    min_support: int = MIN_SUPPORT,
    rule_length: int = 1,
) -> Evaluation:
    """Run methods on documents and questions of one's own; see :func:`lm_eval_rag.evaluate`.

    Args:
        find: Gives the lm_eval model of a method's name.
    """
    if limit is not None:
        at_least("limit", limit)
    mining = {"min_support": min_support, "rule_length": rule_length}
    data = own_data(documents, questions, rules, tokens=passage_tokens, overlap=overlap, **mining)
    runs = planned_runs(methods, _names(retrievers), model_args or {}, find, data)
    task = name or _task_name(questions)
    config = {"task": task, "own_data": data, "metadata": {"version": 1, **(metadata or {})}}
    OwnTask(config)  # a wrong judge ends it here
    folder = output_folder(Path(out or Path("runs") / task))
    for level, lines in ((logging.INFO, data.read), (logging.WARNING, data.odd)):
        for line in lines:
            log.log(level, "%s", line)
    built: dict[str, Any] = {}  # language models that several runs have in common
    files = []
    for number, run in enumerate(runs, start=1):
        log.info("Run %d of %d: %s", number, len(runs), run.label or run.name)
        files.append(_run(run, config, folder, built, limit=limit, gen_kwargs=dict(gen_kwargs or {}) or None))
    return Evaluation(folder, tuple(files), data)


def _run(run: PlannedRun, config: dict[str, Any], folder: Path, built: dict[str, Any], **options: Any) -> Path:
    from lm_eval.tasks import TaskManager

    generator = run.model.generator
    key = repr(generator.spec)
    if key in built:
        generator.lm = built[key]
    with traced_into(folder / run.name):
        file = save_run(
            run.model,
            run.arguments,
            [OwnTask(config)],
            folder / run.name,
            name=run.label,
            task_manager=TaskManager(include_defaults=False),
            **options,
        )
    if "lm" in vars(generator):
        built[key] = generator.lm
    return file


def _names(given: Any) -> list[Any]:
    """A list of names, from a list, one name, or names joined by commas."""
    if isinstance(given, str):
        return [part.strip() for part in given.split(",") if part.strip()]
    return list(given)


def _task_name(questions: Any) -> str:
    """The name of the questions' file or dataset; ``questions`` for what has none."""
    stem = re.split(r"[/:@]", questions)[-1] if isinstance(questions, str) else str(getattr(questions, "stem", ""))
    return re.sub(r"[^\w-]+", "_", stem.partition(".")[0]).strip("_") or "questions"


def _deepest(family: str, rows: Sequence[tuple[TaskRun, RunReport]]) -> list[str]:
    """The metric of a family that most runs have, and of equals the deepest: of ``recall``, ``recall@10``."""
    counts = Counter(name for _, report in rows for name in report.scores if name.partition("@")[0] == family)
    names = [name for name in counts if name == family or name.removeprefix(f"{family}@").isdigit()]
    return sorted(names, key=lambda name: (-counts[name], -int(name.partition("@")[2] or 0)))[:1]


def _scores(run: TaskRun, report: RunReport) -> dict[str, Any]:
    arguments = run.results["config"].get("model_args") or {}
    scores = {
        column: value
        for name, score in sorted(report.scores.items(), key=lambda item: item[0].partition("@")[0] not in SHOWN)
        for column, value in ((name, score.mean), (f"{name}_low", score.low), (f"{name}_high", score.high))
    }
    cost = report.cost
    return {
        "run": run.label,
        "method": arguments.get("method") or arguments.get("function") or arguments.get("url") or run.model,
        "retriever": arguments.get("retriever"),
        "questions": report.questions,
        "unscored": len(report.unscored),
        **scores,
        "prompt_tokens": cost.prompt_tokens if cost else None,
        "completion_tokens": cost.completion_tokens if cost else None,
        "dollars": cost.dollars if cost else None,
        "seconds_p50": cost.seconds_p50 if cost else None,
    }


def _answers(run: TaskRun) -> Iterator[dict[str, Any]]:
    for id, sample in run.questions.items():
        doc = sample["doc"]
        record = doc.get("_rag") or {}
        passages = record.get("passages")
        yield {
            "run": run.label,
            "id": id,
            "question": doc["query"],
            "gold_answers": doc["answers"],
            "answer": record.get("answer"),
            "abstained": record.get("abstained"),
            "failure": record.get("failure"),
            "passages": None if passages is None else [passage["id"] for passage in passages],
            **{name: run.scores[name].get(id) for name in run.scores},
            "prompt_tokens": record.get("prompt_tokens"),
            "completion_tokens": record.get("completion_tokens"),
            "seconds": record.get("seconds"),
        }
