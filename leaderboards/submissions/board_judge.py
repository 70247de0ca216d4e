"""Acc-LM on a board: verdicts of one language model with open weights, pinned to a revision, and run by the board.

``judge.json`` in the folder of the board's entries names it. Its verdicts lie beside it in ``verdicts.jsonl``, each
under a hash of judge, question, gold answers and answer, so that an answer is judged once, whoever gives it. Verdicts
of submitters are not taken. A task has Acc-LM only if every answer has its verdict: a missing column, never a 0.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.scoring.judge import Item, Judge, Opinion
from lm_eval_rag.harness.scoring.judge.llm import prompt
from lm_eval_rag.harness.scoring.judge.panel import Panel, Response
from lm_eval_rag.leaderboards.submissions.answer_key import AnswerKey
from lm_eval_rag.leaderboards.submissions.form import Form, Id, Prediction

SPEC, VERDICTS = "judge.json", "verdicts.jsonl"
MISSING = CallError("the board's judge has not been asked yet")


class JudgeSpec(Form):
    """``judge.json``.

    Args:
        model: lm_eval's name of a model that runs here; an endpoint may change its weights unseen.
        pretrained: Its id on the Hub.
        revision: The commit of its weights.
        arguments: Others, such as ``dtype``.
    """

    model: Literal["hf", "vllm"]
    pretrained: Id
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    arguments: dict[Id, str | int | float | bool] = Field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """Hash of the judge and of the prompt that it is asked with."""
        wording = prompt(Item("", (), ""), check="")
        return hashlib.sha256(f"{self.model_dump_json()} {wording}".encode()).hexdigest()[:16]

    def judge(self) -> Judge:
        """The judge itself, which loads its model when it is asked."""
        from lm_eval_rag.harness.scoring.judge.choose import judges_of

        settings = {"pretrained": self.pretrained, "revision": self.revision, **self.arguments}
        (judge,) = judges_of({"judge": self.model, **{f"judge_{key}": value for key, value in settings.items()}})
        return judge


@dataclass(frozen=True)
class BoardJudge:
    """The board's judge with its verdicts so far.

    Args:
        path: The file of verdicts.
        fingerprint: Of the judge.
        opinions_by_hash: Verdicts of this judge.
        asked: The judge, where it may be asked; None for the verdicts alone.
    """

    path: Path
    fingerprint: str
    opinions_by_hash: dict[str, Opinion] = field(default_factory=dict)
    asked: Judge | None = None

    @property
    def name(self) -> str:
        """Recorded with every verdict."""
        return f"the board's judge {self.fingerprint}"

    def acc_lm(self, key: AnswerKey, predictions: Mapping[str, Prediction]) -> dict[str, float] | None:
        """Question id -> whether its answer is right; None if an answer has no verdict, or none has gold answers."""
        responses = {
            id: Response(doc.get("query", ""), tuple(doc["answers"]), predictions[id].answer, predictions[id].abstained)
            for id, doc in key.questions.items()
            if doc["answers"]
        }
        panel = Panel((self,), key.task.cut(), key.task.crag)
        verdicts = panel.verdicts(list(responses.values()))
        values = {id: verdicts[response].correct for id, response in responses.items()}
        known = {id: value for id, value in values.items() if value is not None}
        return known if known and len(known) == len(values) else None

    def opinions(self, items: Sequence[Item]) -> list[Opinion | CallError]:
        """One verdict per item; a CallError where there is none and the judge may not be asked, or failed."""
        hashes = [self._hash(item) for item in items]
        new = {hash: item for hash, item in zip(hashes, items, strict=True) if hash not in self.opinions_by_hash}
        if new and self.asked is not None:
            opinions = zip(new, self.asked.opinions(list(new.values())), strict=True)
            self._keep({hash: one for hash, one in opinions if isinstance(one, Opinion)})
        return [self.opinions_by_hash.get(hash, MISSING) for hash in hashes]

    def _keep(self, opinions: Mapping[str, Opinion]) -> None:
        """Append verdicts to the file."""
        self.opinions_by_hash.update(opinions)
        with self.path.open("a", encoding="utf-8") as file:
            for hash, one in opinions.items():
                line = {"judge": self.fingerprint, "answer": hash, "correct": one.correct, "missing": one.missing}
                file.write(json.dumps(line) + "\n")

    def _hash(self, item: Item) -> str:
        content = [self.fingerprint, item.question, sorted(item.answers), item.prediction]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]

    @property
    def digest(self) -> str:
        """Hash of the judge and its verdicts so far."""
        content = [self.fingerprint, sorted(self.opinions_by_hash)]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def read_board_judge(board: Path, ask: bool = False) -> BoardJudge | None:
    """The judge of a board with its verdicts; None if the board names none.

    Args:
        ask: Whether it is asked for verdicts that are missing.

    Raises:
        UserError: A file is malformed.
    """
    spec = _spec(board / SPEC)
    if spec is None:
        return None
    path = board / VERDICTS
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    rows = [_row(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]
    known = {
        row["answer"]: Opinion(row["correct"], missing=row["missing"])
        for row in rows
        if row["judge"] == spec.fingerprint
    }
    return BoardJudge(path, spec.fingerprint, known, spec.judge() if ask else None)


def _spec(path: Path) -> JudgeSpec | None:
    if not path.is_file():
        return None
    try:
        return JudgeSpec.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(
            f"{path}, {where}: {first['msg']}. It needs model (hf or vllm), pretrained, and the revision as a commit."
        ) from None


def _row(line: str, where: str) -> dict[str, Any]:
    try:
        row: dict[str, Any] = json.loads(line)
        if not (0 <= row["correct"] <= 1 and {"judge", "answer", "missing"} <= set(row)):
            raise ValueError("a verdict has judge, answer, correct (0 to 1) and missing")
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{where} is no verdict ({error}). Delete the line; the judge is asked again.") from None
    return row
