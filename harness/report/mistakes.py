"""Why answers are wrong, told from the record of each (RuleRAG, appendix A.8, whose authors read 300 by hand).

A wrong answer is one that was scored and whose ``em`` is 0, abstentions included. Its class is the first that fits:

- ``rule failure``: no rule that was selected leads to a gold answer. A rule leads there if a document of the corpus
  states its body about the question's subject with a gold answer. Only for methods that go by rules; where such a
  method has none, none leads there.
- ``retrieval error``: none of the first 10 documents states a gold answer (``recall@10`` is 0).
- ``attribution error``: one of them does, and another answer was given, or none.

Departure: the paper counts a document that mentions the answer anywhere; one that states it as its object is wanted
here, as in ``recall@10``. A rule may fail although the answer is among the documents all the same (a document states
the question's own relation): ``rule failure`` says how many of its answers these are, apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lm_eval_rag.harness.data.corpus import Corpus, open_corpus
from lm_eval_rag.harness.report.run_files import TaskRun
from lm_eval_rag.harness.report.table import table
from lm_eval_rag.harness.scoring.case import read_case
from lm_eval_rag.harness.scoring.normalise import normalise

RULE, RETRIEVAL, ATTRIBUTION = CLASSES = ("rule failure", "retrieval error", "attribution error")
DEPTH = 10  # documents that count as retrieved


@dataclass(frozen=True, slots=True)
class Mistake:
    """What kind of mistake an answer is, and whether a gold answer was retrieved."""

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
    """Whether a document states one of the bodies about the subject with one of the answers."""
    golds, wanted = {normalise(answer) for answer in answers}, set(bodies)
    facts = corpus.facts(subject) if wanted else ()
    return any(relation in wanted and normalise(object) in golds for relation, object, _ in facts)


def mistake(sample: Mapping[str, Any], corpora: Corpora) -> Mistake | None:
    """The class of one line of samples; None for a right answer, one that was not scored, and one without retrieval."""
    doc = sample["doc"]
    record = doc.get("_rag") or {}
    if sample.get("em") != 0.0 or record.get("passages") is None or not doc.get("subject"):
        return None
    rank = read_case(doc, "", record).answer_rank
    retrieved = rank is not None and rank <= DEPTH
    if (rules := record.get("rules")) is not None:
        bodies = [rule["body"] for rule in rules]
        if not reaches(corpora[doc["corpus"]], doc["subject"], bodies, doc["answers"]):
            return Mistake(RULE, retrieved)
    return Mistake(ATTRIBUTION if retrieved else RETRIEVAL, retrieved)


def mistakes(run: TaskRun, corpora: Corpora | None = None) -> dict[str, Mistake]:
    """Question id -> its mistake, for the wrong answers of a run that retrieved."""
    corpora = corpora or Corpora()
    found = {id_: mistake(sample, corpora) for id_, sample in run.questions.items()}
    return {id_: one for id_, one in found.items() if one is not None}


@dataclass(frozen=True, slots=True)
class Counts:
    """How many wrong answers there are of each class.

    Args:
        wrong: In all.
        of: Class -> number.
        retrieved: Rule failures in which a gold answer was among the documents all the same.
    """

    wrong: int
    of: Mapping[str, int]
    retrieved: int


def count(found: Iterable[Mistake]) -> Counts:
    """The counts of mistakes."""
    made = list(found)
    kinds = Counter(one.kind for one in made)
    of = {kind: kinds[kind] for kind in CLASSES}
    return Counts(len(made), of, sum(one.kind == RULE and one.retrieved for one in made))


def errors_text(runs: Sequence[TaskRun]) -> str:
    """A table of the classes over runs, for ``lm-eval-rag report --errors``."""
    corpora = Corpora()
    rows = [[run.task, run.label, *cells(count(mistakes(run, corpora).values()))] for run in runs]
    return table(["wrong answers", "", "n", *CLASSES], rows, left=(0, 1)) + "\n"


def cells(counts: Counts) -> list[str]:
    """Number of wrong answers, then each class with its share; ``-`` where nothing can be told."""
    if not counts.wrong:
        return ["-"] * (1 + len(CLASSES))
    shares = [f"{n:,} ({100 * n / counts.wrong:.0f} %)" for n in counts.of.values()]
    shares[0] += f", {counts.retrieved:,} retrieved" if counts.retrieved else ""
    return [f"{counts.wrong:,}", *shares]
