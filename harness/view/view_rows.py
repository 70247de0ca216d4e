"""What the page holds of every question: a row of the list, which filters read, and the whole, which is shown.

A row has the question, its golds and slices, and of each run the answer, the scores and the classes of the answer. The
whole has in addition passages, rules, prompts, replies and further fields. Passage texts that several runs have are
held once per question.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.report.content import SLICES
from lm_eval_rag.harness.report.mistakes import Corpora, mistakes
from lm_eval_rag.harness.report.run_files import TaskRun
from lm_eval_rag.harness.scoring.case import Case, read_case
from lm_eval_rag.harness.scoring.verdict import VERDICT
from lm_eval_rag.harness.view.view_traces import Steps, read_steps

log = logging.getLogger(__name__)
SHOWN_APART = ("id", "query", "question", "answers", "corpus")  # fields of a document with a place of their own
COSTS = ("prompt_tokens", "completion_tokens", "seconds", "cost", "prompts", "dropped_passages", "journalled")
NO_SLICES = frozenset({*SHOWN_APART, "time", "scoring", "gold", "answer_form"})  # of columns that are in every document
SHORT_VALUE = 100  # characters of a value of such a column
MOST_VALUES = 50  # of a column that filters
TEXTS = ("rationale", "thinking", "notes", "evidence", "triples", "grounding")  # of a record, shown if not empty
SHORT = 2_000  # maximum number of characters of a further field of a document


@dataclass(frozen=True)
class RunView:
    """One run on one task as the page needs it.

    Args:
        run: The run.
        steps: Question id -> its steps.
        classes: Question id -> class of its wrong answer (:mod:`~lm_eval_rag.harness.report.mistakes`).
    """

    run: TaskRun
    steps: Mapping[str, Steps]
    classes: Mapping[str, str]


def read_views(runs: Iterable[TaskRun]) -> list[RunView]:
    """Traces and error classes of runs. Without the corpus of a run that uses rules, its answers have no class."""
    corpora = Corpora()
    return [RunView(run, read_steps(run), _classes(run, corpora)) for run in runs]


def _classes(run: TaskRun, corpora: Corpora) -> dict[str, str]:
    try:
        return {id_: mistake.kind for id_, mistake in mistakes(run, corpora).items()}
    except UserError as error:
        log.warning("%s, %s: wrong answers have no error class. %s", run.task, run.label, error)
        return {}


def question_ids(views: Sequence[RunView]) -> list[str]:
    """The ids of the questions of runs of one task, in order of first appearance."""
    return list(dict.fromkeys(id_ for view in views for id_ in view.run.questions))


def slice_keys(views: Sequence[RunView]) -> list[str]:
    """The columns of the documents of a task by which questions are filtered.

    They are those that define slices in our tasks, and columns of the user's with a few short values: at most half as
    many as there are questions.
    """
    docs = [_first(views, id_)["doc"] for id_ in question_ids(views)]
    columns = dict.fromkeys(key for doc in docs for key in doc if key not in NO_SLICES and not key.startswith("_"))
    return [key for key in (*SLICES, *(key for key in columns if key not in SLICES)) if _filters(key, docs)]


def _filters(key: str, docs: Sequence[Mapping[str, Any]]) -> bool:
    values = [doc[key] for doc in docs if doc.get(key) is not None]
    if key in SLICES:
        return bool(values)
    plain = all(isinstance(value, str | int | float) and len(str(value)) <= SHORT_VALUE for value in values)
    return plain and "=" not in key and 2 <= len(set(map(str, values))) <= min(MOST_VALUES, len(docs) / 2)


def row(views: Sequence[RunView], id_: str, metrics: Sequence[str], keys: Sequence[str]) -> dict[str, Any]:
    """The row of the list: ``runs`` has an entry per run, None if the run does not have the question.

    Args:
        keys: The columns by which questions are filtered.
    """
    sample = _first(views, id_)
    doc = sample["doc"]
    slices = {key: str(doc[key]) for key in keys if doc.get(key) is not None}
    runs = [_row_of_run(view, id_, metrics) if id_ in view.run.questions else None for view in views]
    question = {"task": views[0].run.task, "id": id_, "question": _question(sample), "golds": _golds(sample)}
    return {**question, "slices": slices, "runs": runs}


def whole(views: Sequence[RunView], id_: str) -> dict[str, Any]:
    """All that is shown of a question. ``text`` of a passage is its place in ``texts``."""
    sample = _first(views, id_)
    texts: dict[str, int] = {}
    runs = [_whole_of_run(view, id_, texts) if id_ in view.run.questions else None for view in views]
    question = {"id": id_, "question": _question(sample), "golds": _golds(sample), "fields": _fields(sample["doc"])}
    return {**question, "runs": runs, "texts": list(texts)}


def _first(views: Sequence[RunView], id_: str) -> Mapping[str, Any]:
    return next(view.run.questions[id_] for view in views if id_ in view.run.questions)


def _row_of_run(view: RunView, id_: str, metrics: Sequence[str]) -> dict[str, Any]:
    sample = view.run.questions[id_]
    scores = [view.run.scores.get(metric, {}).get(id_) for metric in metrics]
    return {"answer": _answer(sample), "scores": scores, "classes": list(_classes_of(view, id_, sample))}


def _classes_of(view: RunView, id_: str, sample: Mapping[str, Any]) -> Iterator[str]:
    record = sample["doc"].get("_rag") or {}
    if id_ in view.classes:
        yield view.classes[id_]
    for name, applies in (
        ("abstained", record.get("abstained")),
        ("truncated", record.get("truncated")),
        ("withheld by a content filter", record.get("filtered")),
        ("failed", record.get("failure")),
        ("no verdict", (sample["doc"].get(VERDICT) or {"correct": 0})["correct"] is None),
    ):
        if applies:
            yield name


def _whole_of_run(view: RunView, id_: str, texts: dict[str, int]) -> dict[str, Any]:
    sample = view.run.questions[id_]
    record, steps = sample["doc"].get("_rag") or {}, view.steps.get(id_)
    shown: dict[str, Any] = {
        "answer": _answer(sample),
        "failure": record.get("failure"),
        "scores": {metric: values[id_] for metric, values in view.run.scores.items() if id_ in values},
        "passages": _passages(sample, record, texts),
        "rules": record.get("rules"),
        "judge": sample["doc"].get(VERDICT),
        "costs": {name: record[name] for name in COSTS if record.get(name)},
        "notes": {name: record[name] for name in TEXTS if record.get(name)},
    }
    if steps is not None:
        shown["steps"] = [_step(step) for step in steps]
    else:
        shown |= {"prompt": record.get("prompt") if record else _context(sample), "replies": _replies(sample)}
    return {name: value for name, value in shown.items() if value is not None}


def _passages(sample: Mapping[str, Any], record: Mapping[str, Any], texts: dict[str, int]) -> list[Any] | None:
    passages = record.get("passages")
    if passages is None:
        return None
    case = read_case({**sample["doc"], "answers": _golds(sample)}, "", record)
    return [_passage(passage, case, texts) for passage in passages]


def _passage(passage: Mapping[str, Any], case: Case, texts: dict[str, int]) -> dict[str, Any]:
    place = texts.setdefault(passage["text"], len(texts))
    others = {name: passage[name] for name in ("title", "source", "time") if passage.get(name)}
    if case.states(passage["text"], passage.get("object")):
        others["gold"] = True
    return {"id": passage["id"], "score": passage.get("score"), "text": place, **others}


def _step(step: Mapping[str, Any]) -> dict[str, Any]:
    """A step; ids of passages are left out where the reply names them."""
    if step.get("reply") == " ".join(step.get("passages", ())):
        return {name: value for name, value in step.items() if name != "passages"}
    return dict(step)


def _question(sample: Mapping[str, Any]) -> str:
    doc = sample["doc"]
    return str(doc.get("query") or doc.get("question") or _context(sample) or "")


def _golds(sample: Mapping[str, Any]) -> list[str]:
    golds = sample["doc"].get("answers")
    if isinstance(golds, list):
        return [str(gold) for gold in golds]
    target = sample.get("target")
    return [] if target is None else [str(one) for one in (target if isinstance(target, list) else [target])]


def _answer(sample: Mapping[str, Any]) -> str:
    answer = sample["filtered_resps"]
    while isinstance(answer, list | tuple):
        answer = answer[0] if answer else ""
    return answer if isinstance(answer, str) else str(answer)


def _context(sample: Mapping[str, Any]) -> str | None:
    """The prompt that lm_eval made; our own methods make their own prompts."""
    arguments = sample.get("arguments")
    first = arguments.get("gen_args_0", {}).get("arg_0") if isinstance(arguments, dict) else None
    return first if isinstance(first, str) else None


def _replies(sample: Mapping[str, Any]) -> list[str]:
    replies = sample.get("resps") or []
    return [str(one) for reply in replies for one in (reply if isinstance(reply, list) else [reply])]


def _fields(doc: Mapping[str, Any]) -> dict[str, str]:
    """The further fields of a document that are short: times, relations, domains."""
    fields = {name: value for name, value in doc.items() if name not in SHOWN_APART and not name.startswith("_")}
    texts = {name: value if isinstance(value, str) else str(value) for name, value in fields.items()}
    return {name: text for name, text in texts.items() if fields[name] not in (None, "", []) and len(text) <= SHORT}
