"""Numbers that papers print, read from a folder of CSV files, to stand beside our own.

``names.csv`` says which printed method is which of ours; ``contradictions.csv`` which numbers contradict others.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lm_eval_rag.harness.common.errors import UserError

COLUMNS = ("table", "task", "method", "retriever", "generator", "metric", "value", "unit", "note")
PAPERS = {"rulerag": "RuleRAG", "crag_hybrid": "CRAG hybrid", "crp_rag": "CRP-RAG"}  # file -> name of the paper

# A printed metric -> ours that is computed the same way. The papers look for the answer anywhere in all documents that
# a method retrieved, which over rules are more than ten.
COUNTERPARTS = {
    "em": "em",
    "token_f1": "token_f1",
    "recall@10": "pooled_recall_contains",
    "acc_lm": "acc_lm",
    "correct": "crag_correct",
    "missing": "crag_missing",
    "hallucination": "crag_hallucination",
    "crag_score": "crag_score",
}


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One printed number.

    Args:
        paper: Short name of the paper.
        table: ``table_N`` or ``figure_N``, as numbered there.
        task: Name of the benchmark, as our tasks are named.
        method: As printed.
        retriever: As printed; ``None`` where nothing is retrieved, "" where the paper does not say.
        generator: As printed, or "".
        metric: As in the CSV's README.
        value: As a number.
        unit: ``%`` (0 to 100), ``points`` or "".
        note: What else tells the row apart.
        ours: Our method of that name, or None.
        doubts: What contradicts this number.
    """

    paper: str
    table: str
    task: str
    method: str
    retriever: str
    generator: str
    metric: str
    value: float
    unit: str
    note: str
    ours: str | None = None
    doubts: tuple[str, ...] = ()


def read_published(folder: Path) -> tuple[PublishedRow, ...]:
    """All rows of the result files, in order.

    Raises:
        UserError: A file is missing, or a row is not as the README says.
    """
    names = {(line["file"], line["printed"]): line["method"] for line in _lines(folder / "names.csv")}
    doubts = _lines(folder / "contradictions.csv")
    rows = []
    for file, paper in PAPERS.items():
        for line in _lines(folder / f"{file}.csv"):
            if set(line) != set(COLUMNS) or None in line.values():
                raise UserError(f"{folder / file}.csv: a row has not the columns {', '.join(COLUMNS)}: {line}.")
            told = {key: text for key, text in line.items() if key != "value"}
            rows.append(
                PublishedRow(
                    paper,
                    **told,
                    value=_number(line["value"], folder / f"{file}.csv"),
                    ours=names.get((file, line["method"])),
                    doubts=tuple(doubt["doubt"] for doubt in doubts if _touches(doubt, file, line)),
                )
            )
    return tuple(rows)


def _touches(doubt: Mapping[str, str], file: str, line: Mapping[str, str]) -> bool:
    """Whether a contradiction is about a row: an empty cell there stands for any."""
    keys = ("table", "task", "method", "retriever", "generator", "metric")
    return doubt["file"] == file and all(doubt[key] in ("", line[key]) for key in keys)


def _lines(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        raise UserError(
            f"{path} does not exist: the published numbers are incomplete. Give the folder that holds them."
        )
    with path.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def _number(text: str, path: Path) -> float:
    try:
        return float(text)
    except ValueError:
        raise UserError(f"{path}: {text!r} is no number.") from None
