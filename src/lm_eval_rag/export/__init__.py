"""``lm-eval-rag export``: a task's corpus and questions as files, so that any system can index them."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lm_eval_rag.describe.tasks import about_tasks, names_in_files
from lm_eval_rag.export.rows import Exported, exported
from lm_eval_rag.export.writers import FORMATS, Counts
from lm_eval_rag.harness.common.errors import UserError, at_least, unknown
from lm_eval_rag.harness.common.paths import cache_dir, written_whole
from lm_eval_rag.harness.data.folders import CARD, META
from lm_eval_rag.harness.hub.terms import statements
from lm_eval_rag.harness.plugin.retrieve_cli import load_tasks

README = """# {task}, exported

By `lm-eval-rag export`. {counts}.

{answers}

The ids of passages are those that the retrieval metrics know. A system that returns them is scored by them:
`lm_eval --tasks {task} --model external --model_args function=my.py:answer`.

{terms}
"""
WITHOUT = "The questions have no answers. `--with_answers` writes them, and the gold passages where they are known."
WITH = "The questions have their gold answers: show them to no system that is to be evaluated."


def export_main(argv: Sequence[str]) -> int:
    """Write the files of a task, or of each task of a group in a folder of its own; returns 0.

    Raises:
        UserError: An unknown task or format, a folder that is not empty, or a task without a corpus.
    """
    chosen = _parser().parse_args(list(argv))
    if chosen.task not in names_in_files():
        raise unknown("task", chosen.task, names_in_files())
    if chosen.format not in FORMATS:
        raise unknown("format", chosen.format, FORMATS)
    if chosen.limit is not None:
        at_least("--limit", chosen.limit)
    _check_empty(chosen.out)
    tasks = load_tasks([chosen.task], chosen.metadata)
    for name, task in tasks.items():
        folder = chosen.out if len(tasks) == 1 else chosen.out / name
        _check_empty(folder)
        one = exported(name, task, chosen.limit)
        terms = _terms(one)
        counts = _write(one, folder, chosen.format, chosen.with_answers, terms)
        sys.stdout.write("".join(f"{folder / file}: {count} rows\n" for file, count in counts.items()) + f"{terms}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lm-eval-rag export", description="Write a task's corpus and questions as files, to index them."
    )
    parser.add_argument("task", metavar="TASK", help="a task or group; `lm-eval-rag describe` lists them")
    parser.add_argument("--format", default="jsonl", help="jsonl (default), parquet or beir")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="a folder that is new or empty")
    parser.add_argument(
        "--with_answers", action="store_true", help="write gold answers and gold passages (in beir: the qrels) too"
    )
    parser.add_argument("--metadata", default="{}", help='as lm_eval\'s: \'{"corpus": "mirror"}\'')
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N questions")
    return parser


def _check_empty(folder: Path) -> None:
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise UserError(f"--out {folder} is not empty, and nothing is overwritten. Give a new folder.")


def _write(task: Exported, folder: Path, format: str, with_answers: bool, terms: str) -> Counts:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(folder) as beside:
        counts = FORMATS[format](beside, task, with_answers)
        text = "; ".join(f"`{file}`: {count} rows" for file, count in counts.items())
        readme = README.format(task=task.name, counts=text, answers=WITH if with_answers else WITHOUT, terms=terms)
        (beside / "README.md").write_text(readme, encoding="utf-8")
        for place, corpus in enumerate(task.folders):
            card = cache_dir() / corpus / CARD
            if card.is_file():
                shutil.copyfile(card, beside / f"CORPUS{place or ''}.md")
    return counts


def _terms(task: Exported) -> str:
    """The terms of all sources of the questions and of the corpora, in a sentence."""
    known = about_tasks().get(task.name)
    terms = dict.fromkeys(statements(known.files)) if known else {}
    for corpus in task.folders:
        terms |= dict.fromkeys(_statements(cache_dir() / corpus / META))
    if not terms:
        return "No terms of sources apply to these data."
    return f"The data are subject to the terms of their sources: {'; '.join(terms)}."


def _statements(meta: Path) -> list[str]:
    """What a built folder notes of its sources, where it notes more than their hashes."""
    sources: dict[str, Any] = json.loads(meta.read_text(encoding="utf-8")).get("sources", {}) if meta.is_file() else {}
    return [f"{one['licence']}: {one.get('terms', '')}" for one in sources.values() if "licence" in one]
