"""The formats: JSON Lines, Parquet, and the folder of BEIR (arXiv:2104.08663)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from lm_eval_rag.export.rows import SLICE, Exported, Row
from lm_eval_rag.harness.common.errors import UserError

Counts = dict[str, int]  # file -> rows
Write = Callable[[Path, Exported, bool], Counts]


def write_jsonl(folder: Path, task: Exported, with_answers: bool) -> Counts:
    """``corpus.jsonl`` and ``questions.jsonl``."""
    return {
        "corpus.jsonl": _lines(folder / "corpus.jsonl", task.passages()),
        "questions.jsonl": _lines(folder / "questions.jsonl", task.questions(with_answers)),
    }


def write_parquet(folder: Path, task: Exported, with_answers: bool) -> Counts:
    """``corpus.parquet`` and ``questions.parquet``."""
    import pyarrow as pa

    text, texts = pa.large_string(), pa.list_(pa.large_string())
    passage = {"id": text, "text": text, "time": text, "fact": texts} | ({"question": text} if task.own else {})
    question = {"id": text, "question": text, "time": text}
    question |= {"answers": texts, "gold_passages": texts} if with_answers else {}
    return {
        "corpus.parquet": _table(folder / "corpus.parquet", pa.schema(passage), task.passages()),
        "questions.parquet": _table(folder / "questions.parquet", pa.schema(question), task.questions(with_answers)),
    }


def write_beir(folder: Path, task: Exported, with_answers: bool) -> Counts:
    """``corpus.jsonl``, ``queries.jsonl`` and, with answers, ``qrels/test.tsv``.

    Raises:
        UserError: Each question has passages of its own, or gold passages are asked for and are not known.
    """
    if task.own:
        raise UserError(
            f"The questions of {task.name} come with passages of their own, and BEIR's format has one corpus for all. "
            "Give --format jsonl or parquet, or choose a shared corpus with --metadata."
        )
    gold = {str(doc["id"]): list(doc.get("gold") or ()) for doc in task.docs} if with_answers else {}
    if with_answers and not any(gold.values()):
        raise UserError(
            f"The gold passages of {task.name} are not known, so there are no qrels. Leave --with_answers out, or give "
            "--format jsonl, which has the gold answers."
        )
    passages = ({"_id": row["id"], "title": "", "text": row["text"]} for row in task.passages())
    queries = ({"_id": row["id"], "text": row["question"]} for row in task.questions(with_answers=False))
    counts = {
        "corpus.jsonl": _lines(folder / "corpus.jsonl", passages),
        "queries.jsonl": _lines(folder / "queries.jsonl", queries),
    }
    return counts | (_qrels(folder, gold) if with_answers else {})


def _qrels(folder: Path, gold: dict[str, list[str]]) -> Counts:
    pairs = [(question, passage) for question, passages in gold.items() for passage in passages]
    (folder / "qrels").mkdir()
    lines = ["query-id\tcorpus-id\tscore", *(f"{question}\t{passage}\t1" for question, passage in pairs)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {"qrels/test.tsv": len(pairs)}


def _lines(path: Path, rows: Iterable[Row]) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for count, row in enumerate(rows, 1):  # noqa: B007 - the last number is the count
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return count


def _table(path: Path, schema: Any, rows: Iterator[Row]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    count = 0
    with pq.ParquetWriter(path, schema) as writer:
        while part := list(islice(rows, SLICE)):
            writer.write_table(pa.Table.from_pylist(part, schema))
            count += len(part)
    return count


FORMATS: dict[str, Write] = {"jsonl": write_jsonl, "parquet": write_parquet, "beir": write_beir}
