"""Published numbers of papers, read from a folder of CSV files, for comparison with ours.

``names.csv`` maps a paper's method to ours; ``contradictions.csv`` lists numbers that contradict each other.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lm_eval_rag.harness.common.errors import UserError

COLUMNS = ("table", "task", "method", "retriever", "generator", "metric", "value", "unit", "note")
PAPERS = {  # file -> short name of the paper
    "rulerag": "RuleRAG",
    "crag_hybrid": "CRAG hybrid",
    "crp_rag": "CRP-RAG",
    "flashrag": "FlashRAG",
    "hipporag": "HippoRAG 2",
    "search_r1": "Search-R1",
}
TASKS = {"nq": "rag_nq", "triviaqa": "rag_triviaqa", "webquestions": "rag_webquestions"}  # a benchmark -> our task

# A paper's metric -> our metric that stands beside it. The papers search for the answer anywhere in all retrieved
# documents, and with several rules these are more than ten.
COUNTERPARTS = {
    "em": "em",
    "token_f1": "token_f1",
    "recall@10": "pooled_recall_contains",
    "acc_lm": "acc_lm",
    "correct": "crag_correct",
    "missing": "crag_missing",
    "hallucination": "crag_hallucination",
    "crag_score": "crag_score",
    "perplexity": "perplexity",
    "factual_consistency": "factual_consistency",
    "squad_em": "squad_em",
    "squad_f1": "squad_f1",
    "hotpot_em": "hotpot_em",
    "hotpot_f1": "hotpot_f1",
    "evidence_recall@5": "evidence_recall@5",
}
COUNTERPARTS_OF: dict[str, dict[str, str | None]] = {  # paper -> where its metrics mean something else
    "CRP-RAG": {"em": "em_contains"},
    "RuleRAG": {"token_f1": None},  # no token F1 of any kind: some values are below the EM of the same answers
}
FIRST_ENTITY = (
    "RuleRAG's released code takes as the answer the first known entity that the reply names and the question does "
    "not; em here compares the whole answer."
)
READ_OTHERWISE = {("RuleRAG", "em"): FIRST_ENTITY}  # (paper, metric) -> how it reads, if not as ours


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One published number.

    Args:
        paper: Short name of the paper.
        table: ``table_N`` or ``figure_N``, as numbered in the paper.
        task: The benchmark, by the name of our task.
        method: As in the paper.
        retriever: As in the paper; ``None`` without retrieval, "" if the paper does not say.
        generator: As in the paper, or "".
        metric: As in the CSV's README.
        value: The number.
        unit: ``%`` (0 to 100), ``points`` or "".
        note: Further description of the row.
        ours: Our method for it, or None.
        doubts: Statements that contradict this number.
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

    @property
    def counterpart(self) -> str | None:
        """Our metric that stands beside it, or None if its definition is unknown or ours has none like it."""
        return COUNTERPARTS_OF.get(self.paper, {}).get(self.metric, COUNTERPARTS.get(self.metric))

    @property
    def read_otherwise(self) -> str:
        """How it reads answers, where the counterpart reads them in another way; else ""."""
        return READ_OTHERWISE.get((self.paper, self.metric), "")


def read_published(folder: Path) -> tuple[PublishedRow, ...]:
    """All rows of the result files, in order.

    Raises:
        UserError: A file is missing, or a row has the wrong format.
    """
    names = {(line["file"], line["printed"]): line["method"] for line in _lines(folder / "names.csv")}
    doubts = _lines(folder / "contradictions.csv")
    rows = []
    for file, paper in PAPERS.items():
        for line in _lines(folder / f"{file}.csv"):
            if set(line) != set(COLUMNS) or None in line.values():
                raise UserError(f"{folder / file}.csv: a row lacks the columns {', '.join(COLUMNS)}: {line}.")
            texts = {key: text for key, text in line.items() if key != "value"}
            texts["task"] = TASKS.get(line["task"], line["task"])
            rows.append(
                PublishedRow(
                    paper,
                    **texts,
                    value=_number(line["value"], folder / f"{file}.csv"),
                    ours=names.get((file, line["method"])),
                    doubts=tuple(doubt["doubt"] for doubt in doubts if _touches(doubt, file, line)),
                )
            )
    return tuple(rows)


def _touches(doubt: Mapping[str, str], file: str, line: Mapping[str, str]) -> bool:
    """Whether a contradiction applies to a row; its empty cells match any value."""
    keys = ("table", "task", "method", "retriever", "generator", "metric")
    return doubt["file"] == file and all(doubt[key] in ("", line[key]) for key in keys)


def _lines(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        raise UserError(
            f"{path} does not exist, so the published numbers are incomplete. Give the folder that contains them."
        )
    with path.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def _number(text: str, path: Path) -> float:
    try:
        return float(text)
    except ValueError:
        raise UserError(f"{path}: {text!r} is not a number.") from None
