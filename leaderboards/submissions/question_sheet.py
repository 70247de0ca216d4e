"""What predictions are checked against before anything is scored: a task's question ids, corpora and data hash.

Loading a task takes seconds, and most wrong submissions name other questions or other data. So what one load has shown
is kept in the cache, under a hash of this package's code: other code, another sheet.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_rag.harness.common.paths import cache_dir

if TYPE_CHECKING:
    from lm_eval_rag.leaderboards.submissions.form import Prediction

FOLDER = "question_sheets"
CODE = (".py", ".yaml", ".toml")
SEPARATOR = "#"  # between a corpus and the question whose own passages are meant


@dataclass(frozen=True)
class QuestionSheet:
    """The questions of one task, without what is asked and answered.

    Args:
        version: Of the task.
        data: Hash of its questions and gold answers.
        corpora: Question id -> id of the corpus whose passages have ids; None for a question without one.
        corpus: Hash of the task's corpus; None if there is none, or more than one.
    """

    name: str
    version: str
    data: str
    corpora: Mapping[str, str | None]
    corpus: str | None

    @property
    def is_built(self) -> bool:
        """Whether its corpora are still in the cache."""
        folders = {corpus.partition(SEPARATOR)[0] for corpus in self.corpora.values() if corpus is not None}
        return all((cache_dir() / folder).is_dir() for folder in folders)

    def is_foreign(self, corpus: str | None) -> bool:
        """Whether predictions were made over another corpus than the task's."""
        return corpus is not None and corpus != self.corpus

    def strangers(self, predictions: Mapping[str, Prediction]) -> list[str]:
        """Ids of questions that name a passage which their corpus does not hold."""
        by_corpus: dict[str, list[str]] = {}
        for id, prediction in predictions.items():
            corpus = self.corpora[id]
            if prediction.retrieved and corpus is not None:
                by_corpus.setdefault(corpus, []).append(id)
        strangers: list[str] = []
        for name, ids in by_corpus.items():
            known = rows_of(_ids(name), [passage for id in ids for passage in predictions[id].retrieved or ()])
            strangers += [id for id in ids if None in map(known.get, predictions[id].retrieved or ())]
        return strangers


def _ids(name: str) -> Any:
    """The ids of a built corpus, or of a question's own passages; nothing else of a corpus is read."""
    from lm_eval_rag.harness.data.corpus_ids import open_ids
    from lm_eval_rag.harness.data.own_passages import OwnPassages

    folder, separator, question = name.partition(SEPARATOR)
    return OwnPassages(folder).corpus(question).ids if separator else open_ids(folder)


def rows_of(known: Any, ids: Sequence[str]) -> dict[str, int | None]:
    """Passage id -> row; None for an id that is not in ``known``, an Arrow array of a corpus's ids."""
    import pyarrow as pa
    import pyarrow.compute as pc

    distinct = sorted(set(ids))
    wanted = pa.lib.StringBuilder()  # pa.array would import pandas, which takes longer than all the rest
    wanted.append_values(distinct)
    places = pc.index_in(wanted.finish().cast(known.type), value_set=known).to_pylist()
    return dict(zip(distinct, places, strict=True))


def question_sheet(task: str) -> QuestionSheet:
    """The sheet of a task of ours; from an earlier load if there was one.

    Raises:
        UserError: There is no such task, or its data cannot be built.
    """
    path = _path(task)
    sheet: QuestionSheet | None
    try:
        sheet = QuestionSheet(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        sheet = None
    if sheet is None or not sheet.is_built:
        from lm_eval_rag.leaderboards.submissions.answer_key import answer_key

        sheet = keep(answer_key(task).sheet)
    return sheet


def keep(sheet: QuestionSheet) -> QuestionSheet:
    """Write a sheet to the cache."""
    path = _path(sheet.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps({**vars(sheet), "corpora": dict(sheet.corpora)}), encoding="utf-8")
    temporary.replace(path)
    return sheet


@cache
def own_tasks() -> frozenset[str]:
    """Names of the tasks that come with this package."""
    folder = Path(str(files("lm_eval_rag.tasks")))
    lines = (line for path in folder.rglob("*.yaml") for line in path.read_text(encoding="utf-8").splitlines())
    return frozenset(line.removeprefix("task:").strip() for line in lines if line.startswith("task: "))


def _path(task: str) -> Path:
    return cache_dir() / FOLDER / f"{task}-{_code_hash()}.json"


@cache
def _code_hash() -> str:
    """Hash of the code and the task files of this package."""
    digest = hashlib.sha256()
    for room in ("tasks", "harness", "leaderboards/submissions"):
        folder = Path(str(files("lm_eval_rag"))) / room
        for path in sorted(one for one in folder.rglob("*") if one.suffix in CODE):
            digest.update(f"{room}/{path.relative_to(folder)}".encode() + path.read_bytes())
    return digest.hexdigest()[:16]
