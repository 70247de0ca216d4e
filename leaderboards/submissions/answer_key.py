"""A task's own questions, gold answers and documents: what predictions are scored with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.backends.corpora import Corpora
from lm_eval_rag.harness.common.errors import unknown
from lm_eval_rag.harness.core.record import PREDICTED, RagText, predicted, share_predicted
from lm_eval_rag.harness.core.types import Passage, Query
from lm_eval_rag.harness.data.corpus import open_corpus
from lm_eval_rag.harness.data.own_passages import has_own_passages
from lm_eval_rag.harness.data.page_store import split_id
from lm_eval_rag.harness.scoring.normalise import normalise
from lm_eval_rag.leaderboards.submissions.form import Prediction
from lm_eval_rag.leaderboards.submissions.question_sheet import QuestionSheet, own_tasks, rows_of

ADDED = frozenset(("_rag", "_judge", "_label", "num_fewshot", "system_instruction"))  # by a run, to a question


@dataclass(frozen=True)
class AnswerKey:
    """The questions of one task.

    Args:
        name: Of the task.
        task: lm_eval's task.
    """

    name: str
    task: Any
    corpora: Corpora = field(default_factory=Corpora)

    @cached_property
    def questions(self) -> Mapping[str, Mapping[str, Any]]:
        """Question id -> document."""
        return {str(doc["id"]): doc for doc in self.task.eval_docs}

    @cached_property
    def golds(self) -> frozenset[str]:
        """All gold answers of the task, in normal form."""
        return frozenset(normalise(gold) for doc in self.questions.values() for gold in doc["answers"])

    @property
    def main_metric(self) -> str:
        """The metric by which entries are ranked."""
        if getattr(self.task, "crag", False):
            return "crag_score"
        families = {doc.get("scoring") for doc in self.questions.values()}
        return "fever_score" if families == {"fever"} else "em"

    @cached_property
    def sheet(self) -> QuestionSheet:
        """What predictions are checked against before they are scored."""
        named = {id: doc.get("corpus") for id, doc in self.questions.items()}
        corpora = {id: corpus if _is_of_passages(corpus) else None for id, corpus in named.items()}
        folders = {split_id(corpus)[0] for corpus in corpora.values() if corpus is not None}
        corpus = open_corpus(*folders).fingerprint if len(folders) == 1 else None
        return QuestionSheet(self.name, self.version, self.data, corpora, corpus)

    @property
    def version(self) -> str:
        """The task's version, as lm_eval's results file has it."""
        return str(self.task.VERSION)

    @cached_property
    def data(self) -> str:
        """Hash of all questions with their gold answers and the ids of their corpora, whatever their order."""
        return data_hash(self.questions.values())

    def scores(
        self, predictions: Mapping[str, Prediction], passages: Mapping[str, Sequence[Passage]]
    ) -> dict[str, dict[str, float]]:
        """Metric -> question id -> score, by the task's own scoring; without a judge that is a language model.

        Args:
            passages: Of :meth:`passages`.
        """
        scores: dict[str, dict[str, float]] = {}
        records = {id: record_of(prediction, passages.get(id)) for id, prediction in predictions.items()}
        share_predicted(records.values(), predicted(records.values()))
        for id, record in records.items():
            answer = RagText(record["answer"], record)
            for metric, value in self.task.process_results(dict(self.questions[id]), [answer]).items():
                scores.setdefault(metric, {})[id] = value
        return scores

    def passages(self, predictions: Mapping[str, Prediction]) -> dict[str, list[Passage]]:
        """Question id -> the passages that were retrieved, of those that name some; not where they are parts of pages.

        How a web page is cut depends on the run, so its chunks' ids name no text that can be looked up.
        """
        by_corpus: dict[str, list[str]] = {}
        for id, prediction in predictions.items():
            corpus = self.questions[id].get("corpus")
            if prediction.retrieved is not None and corpus is not None and _is_of_passages(corpus):
                by_corpus.setdefault(corpus, []).append(id)
        passages: dict[str, list[Passage]] = {}
        for corpus, ids in by_corpus.items():
            opened = self.corpora.corpus(Query("", "", corpus=corpus))
            rows = rows_of(opened.ids, [passage for id in ids for passage in predictions[id].retrieved or ()])
            for id in ids:
                of_question = [rows[passage] for passage in predictions[id].retrieved or ()]
                if None not in of_question:
                    passages[id] = opened.passages([(row, 0.0) for row in of_question if row is not None])
        return passages


@cache
def answer_key(name: str) -> AnswerKey:
    """The answer key of a task of ours.

    Raises:
        UserError: There is no such task, or its data cannot be built.
    """
    known = own_tasks()
    if name not in known:
        raise unknown("task", name, known)
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_path=str(files("lm_eval_rag.tasks")), include_defaults=False)
    return AnswerKey(name, manager.load([name])["tasks"][name])


@cache
def scorer_hash() -> str:
    """Hash of the source code of all scores: numbers of two scorers never stand in one column."""
    from lm_eval_rag.harness import scoring

    digest = hashlib.sha256()
    folder = Path(scoring.__path__[0])
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def data_hash(documents: Iterable[Mapping[str, Any]]) -> str:
    """Hash of documents without what a run adds to them, whatever their order."""
    lines = sorted(
        json.dumps({key: value for key, value in doc.items() if key not in ADDED}, sort_keys=True) for doc in documents
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def record_of(prediction: Prediction, passages: Sequence[Passage] | None) -> dict[str, Any]:
    """The record that the adapter would have left beside this answer.

    Without what the submitter measured: no score rests on seconds.
    """
    shown = None if passages is None else [
        {"id": one.id, "text": one.text, "object": one.fact[2] if one.fact else None, "time": one.time}
        for one in passages
    ]  # fmt: skip
    return {
        "answer": prediction.answer,
        "abstained": prediction.abstained,
        "failure": None,
        "passages": shown,
        "k": len(shown or ()) if prediction.k is None else prediction.k,
        "rules": None if prediction.rules is None else [rule.model_dump() for rule in prediction.rules],
        **{name: value for name in PREDICTED if (value := getattr(prediction, name)) is not None},
    }


def _is_of_passages(corpus: str | None) -> bool:
    """Whether a corpus consists of passages with ids of their own, not of parts of web pages."""
    if corpus is None:
        return False
    folder, question = split_id(corpus)
    return question is None or has_own_passages(folder)
