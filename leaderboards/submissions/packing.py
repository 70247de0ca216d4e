"""Packs runs of lm_eval, or predictions of other programs, into a submission."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import CALLS
from lm_eval_rag.harness.report.rescore import rescore
from lm_eval_rag.harness.report.run_files import TaskRun, arguments_of, question_id
from lm_eval_rag.leaderboards.submissions.answer_key import answer_key, data_hash, scorer_hash
from lm_eval_rag.leaderboards.submissions.form import CARD, PREDICTIONS, Card, Prediction, RunOf
from lm_eval_rag.leaderboards.submissions.verifying import budget_of

Lines = Mapping[str, Sequence[Prediction]]  # task -> predictions


def of_runs(runs: Sequence[TaskRun]) -> tuple[dict[str, RunOf], Lines]:
    """What the card says of each task, and the predictions.

    Raises:
        UserError: A run was limited, has unscored questions or oracle rules, its scores do not follow from its
            samples, its data are not those of this version, or two runs are of one task.
    """
    about: dict[str, RunOf] = {}
    lines: dict[str, list[Prediction]] = {}
    for run in runs:
        if run.task in about:
            raise UserError(f"There are two runs of {run.task} ({run.path}). A submission is one system: give one run.")
        _check(run)
        arguments = {key: value[:500] for key, value in arguments_of(run.results["config"]).items()}
        lines[run.task] = [
            _checked(f"{run.path}, question {id!r}", _line(sample)) for id, sample in run.questions.items()
        ]
        searched = (run.results["config"].get("rag") or {}).get("corpus")
        about[run.task] = _about(run.task, run.version, arguments, lines[run.task], searched)
    return about, lines


def _about(
    task: str, version: str, arguments: dict[str, str], lines: Sequence[Prediction], corpus: str | None
) -> RunOf:
    """What the card says of one task; ``corpus`` is the hash of the submitter's own, if there is one."""
    key = answer_key(task)
    if corpus is None and any(line.retrieved is not None for line in lines):
        corpus = key.sheet.corpus
    return RunOf(version=version, data=key.data, corpus=corpus, budget=budget_of(lines), arguments=arguments)


def of_predictions(task: str, path: Path, corpus: str | None = None) -> tuple[dict[str, RunOf], Lines]:
    """The same for a file of another program: JSON Lines of Prediction, of which ``id`` and ``answer`` are enough, or
    FlashRAG's ``intermediate_data.json``.

    Args:
        corpus: The file or folder of passages that was searched; None for the task's own.

    Raises:
        UserError: With file, line and key.
    """
    key = answer_key(task)
    predictions = [_checked(where, row) for where, row in _rows(path)]
    fingerprint = None if corpus is None else _fingerprint(corpus)
    return {task: _about(task, key.version, {}, predictions, fingerprint)}, {task: predictions}


def _fingerprint(corpus: str) -> str:
    """The hash of a corpus of the submitter's own, as the model argument ``corpus=`` reads it."""
    from lm_eval_rag.harness.documents.intake import as_corpus

    given = as_corpus(corpus)
    if given is None:
        raise UserError("--corpus needs a file or a folder of passages.")
    return given.fingerprint


def write_submission(folder: Path, card: Card, lines: Lines) -> None:
    """Write a new folder."""
    (folder / PREDICTIONS).mkdir(parents=True)
    (folder / CARD).write_text(_json(card, indent=2) + "\n", encoding="utf-8")
    for task, predictions in lines.items():
        text = "".join(_json(one) + "\n" for one in predictions)
        (folder / PREDICTIONS / f"{task}.jsonl").write_text(text, encoding="utf-8")


def card_of(runs: Sequence[TaskRun], tasks: Mapping[str, RunOf], said: Mapping[str, Any]) -> Card:
    """The card: what the command line says, else what the runs say.

    Raises:
        UserError: A value is not allowed.
    """
    values = _card_of_run(runs[0]) | {key: value for key, value in said.items() if value is not None} if runs else said
    try:
        return Card(**values, package=version("lm-eval-rag"), scorer=scorer_hash(), tasks=dict(tasks))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(map(str, first["loc"]))
        raise UserError(f"--{name.replace('_', '-')} {values.get(name)!r}: {first['msg']}.") from None


def _card_of_run(run: TaskRun) -> dict[str, Any]:
    """Method, generator and retriever as the run's record names them; of a stock model its name alone."""
    record = run.results["config"].get("rag")
    if not record:
        arguments = arguments_of(run.results["config"])
        return {"method": run.model, "generator": arguments.get("pretrained") or arguments.get("model")}
    generator: Sequence[Any] = record["generator"] or ("", {})
    name, options = generator[:2]
    calls = record.get("counts", {})
    return {
        "method": record["method"],
        "generator": (options.get("pretrained") or options.get("model") or name or None)
        if any(calls.get(call) for call in CALLS)
        else None,
        "revision": options.get("revision"),
        "retriever": record["retriever"][0] if calls.get("Retrieve") else None,
    }


def _check(run: TaskRun) -> None:
    """Raise unless the run may be submitted."""
    config = run.results["config"]
    if arguments_of(config).get("rules") == "oracle":
        raise UserError(
            f"{run.path}: rules=oracle reads gold answers; such a run is a control and cannot be submitted."
        )
    if config.get("limit") is not None:
        raise UserError(f"{run.path}: the run has --limit {config['limit']}. Run all questions of {run.task}.")
    failed = [id for id, sample in run.questions.items() if (sample["doc"].get("_rag") or {}).get("failure")]
    if failed:
        raise UserError(
            f"{run.path}: {len(failed)} questions of {run.task} are unscored (first: {failed[0]!r}). Run the same "
            "command again: it goes on from its journal."
        )
    checked = rescore(run)
    if not checked.agrees:
        raise UserError(f"{run.path}: the scores do not follow from the samples. `lm-eval-rag rescore` shows where.")
    key = answer_key(run.task)
    if data_hash(sample["doc"] for sample in run.questions.values()) != key.data:
        raise UserError(
            f"{run.path}: the questions of {run.task} are not those of this version (other data, or --metadata). "
            "Run it again without."
        )


def _checked(where: str, line: Any) -> Prediction:
    """A line of predictions, if the form allows it."""
    try:
        return Prediction.model_validate_json(json.dumps(line))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(map(str, first["loc"]))
        raise UserError(f"{where}, key {name!r}: {first['msg']}. docs/leaderboard.md has the keys.") from None


def _line(sample: Mapping[str, Any]) -> dict[str, Any]:
    """One line of samples without scores, texts and prompts."""
    record = sample["doc"].get("_rag") or {}
    passages, rules = record.get("passages"), record.get("rules")
    return {
        "id": question_id(sample),
        "answer": sample["filtered_resps"][0],
        "abstained": bool(record.get("abstained")),
        "confidence": record.get("confidence"),
        "retrieved": None if passages is None else [passage["id"] for passage in passages],
        "k": record.get("k") if passages is not None else None,
        "rules": None if rules is None else [{"head": rule["head"], "body": rule["body"]} for rule in rules],
        "evidence": record.get("evidence"),
        "triples": record.get("triples"),
        "calls": sum(record["calls"].get(name, 0) for name in CALLS) if "calls" in record else None,
        "prompt_tokens": record.get("prompt_tokens"),
        "completion_tokens": record.get("completion_tokens"),
        "seconds": float(record["seconds"]) if "seconds" in record else None,
        "cost": record.get("cost"),
    }


def _rows(path: Path) -> Iterable[tuple[str, Any]]:
    """(place, row) of JSON Lines, or of a JSON list as FlashRAG writes it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read ({error}). Give a file of JSON Lines.") from None
    if text.lstrip().startswith("["):
        yield from ((f"{path}, row {i}", _of_flashrag(row)) for i, row in enumerate(_load(text, str(path)), 1))
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield f"{path}, line {number}", _load(line, f"{path}, line {number}")


def _of_flashrag(row: Any) -> Any:
    """One item of FlashRAG's output: id, output.pred, output.retrieval_result."""
    output = row.get("output") if isinstance(row, Mapping) else None
    if not isinstance(output, Mapping):
        return row
    results = output.get("retrieval_result")
    retrieved = None if results is None else [str(passage["id"]) for passage in results]
    return {"id": str(row["id"]), "answer": str(output.get("pred", "")), "retrieved": retrieved}


def _load(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{where} is not JSON ({error}).") from None


def _json(form: Card | Prediction, indent: int | None = None) -> str:
    return form.model_dump_json(exclude_defaults=isinstance(form, Prediction), indent=indent)
