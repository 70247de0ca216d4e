"""Error analysis: classifies wrong answers by their records (RuleRAG, appendix A.8; its authors read 300 by hand).

A wrong answer has ``em`` 0; this includes abstentions. Its class is the first that applies:

- ``rule failure``: no selected rule leads to a gold answer. A rule leads to a gold answer if some document of the
  corpus states the rule's body for the question's subject with this answer, or, of a rule with a path, facts of the
  corpus lead along it to this answer, whatever their times. Only for methods that use rules; if no rule matched, the
  class is ``rule failure``.
- ``retrieval error``: none of the first 10 documents states a gold answer (``recall@10`` is 0).
- ``attribution error``: one of them does, but the answer is another one or missing.

Departure: the paper counts a document that mentions the answer anywhere; here it must state the answer as its object,
as in ``recall@10``. After a rule failure a gold answer may still be retrieved, because a document states the question's
own relation; the number of these cases is reported separately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lm_eval_rag.harness.core.types import INVERSE_STEP
from lm_eval_rag.harness.data.corpus import Corpus, open_corpus
from lm_eval_rag.harness.report.grid import Grid
from lm_eval_rag.harness.report.run_files import TaskRun
from lm_eval_rag.harness.scoring.case import read_case
from lm_eval_rag.harness.scoring.normalise import normalise

RULE, RETRIEVAL, ATTRIBUTION = CLASSES = ("rule failure", "retrieval error", "attribution error")
DEPTH = 10  # number of documents that count as retrieved


@dataclass(frozen=True, slots=True)
class Mistake:
    """The class of a wrong answer, and whether a gold answer was retrieved."""

    kind: str
    retrieved: bool


@dataclass(frozen=True, slots=True)
class Corpora:
    """Corpora by id, each opened once."""

    opened: dict[str, Corpus] = field(default_factory=dict)

    def __getitem__(self, id: str) -> Corpus:
        if id not in self.opened:
            self.opened[id] = open_corpus(id)
        return self.opened[id]


def reaches(corpus: Corpus, subject: str, bodies: Iterable[str], answers: Iterable[str]) -> bool:
    """Whether a document states one of the bodies for the subject with one of the answers."""
    golds, relations = {normalise(answer) for answer in answers}, set(bodies)
    facts = corpus.facts(subject) if relations else ()
    return any(relation in relations and normalise(object) in golds for relation, object, _ in facts)


def leads(corpus: Corpus, subject: str, path: Sequence[str], answers: Iterable[str]) -> bool:
    """Whether facts of the corpus lead from the subject along the path of a longer rule to one of the answers."""
    import polars as pl

    table: pl.DataFrame = pl.DataFrame(corpus.fact_table()).cast(pl.String)
    reached = {subject}
    for step in path:
        start, end = ("object", "subject") if step.startswith(INVERSE_STEP) else ("subject", "object")
        facts = table.filter(pl.col("relation") == step.removeprefix(INVERSE_STEP), pl.col(start).is_in(list(reached)))
        reached = set(facts[end].drop_nulls())
    return not {normalise(answer) for answer in answers}.isdisjoint(map(normalise, reached))


def mistake(sample: Mapping[str, Any], corpora: Corpora) -> Mistake | None:
    """The class of one line of samples; None if the answer is correct, unscored, or made without retrieval."""
    doc = sample["doc"]
    record = doc.get("_rag") or {}
    if sample.get("em") != 0.0 or record.get("passages") is None or not doc.get("subject"):
        return None
    rank = read_case(doc, "", record).answer_rank
    retrieved = rank is not None and rank <= DEPTH
    if (rules := record.get("rules")) is not None:
        corpus, subject, answers = corpora[doc["corpus"]], doc["subject"], doc["answers"]
        bodies = [rule["body"] for rule in rules if not rule.get("path")]
        paths = [rule["path"] for rule in rules if rule.get("path")]
        led = reaches(corpus, subject, bodies, answers) or any(leads(corpus, subject, path, answers) for path in paths)
        if not led:
            return Mistake(RULE, retrieved)
    return Mistake(ATTRIBUTION if retrieved else RETRIEVAL, retrieved)


def mistakes(run: TaskRun, corpora: Corpora | None = None) -> dict[str, Mistake]:
    """Question id -> mistake, for the wrong answers of a run with retrieval."""
    corpora = corpora or Corpora()
    classified = {id_: mistake(sample, corpora) for id_, sample in run.questions.items()}
    return {id_: mistake_ for id_, mistake_ in classified.items() if mistake_ is not None}


@dataclass(frozen=True, slots=True)
class Counts:
    """Number of wrong answers per class.

    Args:
        wrong: Total.
        of: Class -> number.
        retrieved: Number of rule failures in which a gold answer was retrieved.
    """

    wrong: int
    of: Mapping[str, int]
    retrieved: int


def count(mistakes: Iterable[Mistake]) -> Counts:
    """Mistakes counted by class."""
    listed = list(mistakes)
    kinds = Counter(mistake.kind for mistake in listed)
    of = {kind: kinds[kind] for kind in CLASSES}
    return Counts(len(listed), of, sum(mistake.kind == RULE and mistake.retrieved for mistake in listed))


def errors_grid(runs: Sequence[TaskRun]) -> Grid:
    """A table of the classes per run, for ``lm-eval-rag report --errors``."""
    corpora = Corpora()
    rows = [(run.task, run.label, *cells(count(mistakes(run, corpora).values()))) for run in runs]
    return Grid("Wrong answers by class", ("wrong answers", "run", "n", *CLASSES), tuple(rows), (0, 1))


def cells(counts: Counts) -> list[str]:
    """Number of wrong answers, then each class with its share; ``-`` if there are no wrong answers."""
    if not counts.wrong:
        return ["-"] * (1 + len(CLASSES))
    shares = [f"{n:,} ({100 * n / counts.wrong:.0f} %)" for n in counts.of.values()]
    shares[0] += f", {counts.retrieved:,} retrieved" if counts.retrieved else ""
    return [f"{counts.wrong:,}", *shares]
