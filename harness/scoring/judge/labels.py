"""Answers labelled by people: JSON Lines with ``question``, ``answers``, ``prediction`` and ``label``.

A label is one of CRAG's four (perfect, acceptable, missing, incorrect), or correct, wrong, true or false. A line may
have a ``source``, a text that says where the answer is from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.scoring.crag import HUMAN

LABELS: dict[str, str] = {**{name: name for name in HUMAN}, "correct": "perfect", "true": "perfect"}
LABELS |= {"wrong": "incorrect", "false": "incorrect"}
FORMAT = 'One JSON object per line: {"question": ..., "answers": [...], "prediction": ..., "label": "perfect"}.'


@dataclass(frozen=True, slots=True)
class Labelled:
    """An answer, its label on CRAG's scale, and where it is from ("" if the file does not say)."""

    question: str
    answers: tuple[str, ...]
    prediction: str
    label: str
    source: str = ""

    @property
    def correct(self) -> bool:
        """Whether a person accepted it."""
        return HUMAN[self.label] > 0


def read_labels(file: str | Path) -> list[Labelled]:
    """The labelled answers of a file.

    Raises:
        UserError: The file cannot be read, or a line has the wrong format.
    """
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file} cannot be read: {error}. {FORMAT}") from None
    labelled = [_read(line, f"{file}, line {number}") for number, line in enumerate(lines, start=1) if line.strip()]
    if not labelled:
        raise UserError(f"{file} contains no labelled answers. {FORMAT}")
    return labelled


def _read(line: str, where: str) -> Labelled:
    try:
        row: Any = json.loads(line)
    except json.JSONDecodeError as error:
        raise UserError(f"{where} is not JSON ({error}). {FORMAT}") from None
    if not isinstance(row, Mapping):
        raise UserError(f"{where} is not a JSON object. {FORMAT}")
    answers = row.get("answers")
    texts = (row.get("question"), row.get("prediction"))
    if not all(isinstance(text, str) for text in texts) or not isinstance(answers, list) or not answers:
        raise UserError(f"{where} lacks a question, a prediction or a list of answers. {FORMAT}")
    label = str(row.get("label")).lower()
    if label not in LABELS:
        raise unknown("label", label, LABELS, hint=f"In {where}.")
    return Labelled(str(texts[0]), tuple(map(str, answers)), str(texts[1]), LABELS[label], str(row.get("source") or ""))
