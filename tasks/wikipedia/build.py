"""Builds the questions of a task over a corpus: ``queries.parquet``, ``meta.json`` and a card.

The folder is ``$LM_EVAL_RAG_CACHE/<task>/<hash>``. The corpus is a folder of its own
(:mod:`lm_eval_rag.tasks.wikipedia.corpus_build`); ``meta.json`` names it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.data.corpus_files import is_corpus
from lm_eval_rag.harness.data.folders import CARD, build_when_opened, content_folder
from lm_eval_rag.harness.data.leaks import LeakCheck
from lm_eval_rag.harness.data.page_store import SEPARATOR
from lm_eval_rag.harness.data.sources import UnavailableError, fetch
from lm_eval_rag.tasks.wikipedia import card
from lm_eval_rag.tasks.wikipedia.corpus_build import build_corpus, corpus_id, is_large, manifest, sources_of
from lm_eval_rag.tasks.wikipedia.records import Fact, Question, checked_questions
from lm_eval_rag.tasks.wikipedia.specs import Choice, choice_of, task_of

log = logging.getLogger(__name__)
MIRROR = "mirror"  # the choice that needs small public files alone
VERSION = 2  # part of the folder's hash; increase it when the built data change


def build(task: str, *, corpus: str | None = None, wait: bool = False) -> str:
    """The id ``<task>/<hash>`` of a task's questions over a corpus; both are built if they do not exist.

    Args:
        task: A name in :data:`lm_eval_rag.tasks.wikipedia.specs.TASKS`.
        corpus: One of the task's choices; None takes the default.
        wait: Leave a large corpus that the questions name no passages of until it is opened: a method that does not
            retrieve never opens it. Its id and the questions are the same; its passages are not searched for leaks.

    Raises:
        UserError: Unknown task or corpus, an unavailable or malformed source, or a damaged folder.
    """
    name, choice = choice_of(task, corpus)
    with _naming_the_mirror(task, name):
        return _build(task, name, choice, wait)


@contextmanager
def _naming_the_mirror(task: str, name: str) -> Iterator[None]:
    """An unavailable file's message also says that the task can be asked over small public files."""
    try:
        yield
    except UnavailableError as error:
        if MIRROR not in task_of(task).choices or name == MIRROR:
            raise
        raise UnavailableError(
            f"{error} Without that file, {task} can be asked over the passages of the small public files, which is "
            f'another task with other numbers: --metadata \'{{"corpus": "{MIRROR}"}}\'.'
        ) from None


def _corpus_of(task: str, name: str, choice: Choice, wait: bool) -> tuple[str, bool]:
    """Id of the corpus, and whether it is built; it is, unless it may wait."""
    id = corpus_id(choice.corpus)
    if not wait or choice.gold or not is_large(choice.corpus) or is_corpus(cache_dir() / id):
        return build_corpus(choice.corpus), True

    def build_now() -> None:
        with _naming_the_mirror(task, name):
            build_corpus(choice.corpus)

    build_when_opened(id, build_now)
    return id, False


def _build(task: str, name: str, choice: Choice, wait: bool) -> str:
    spec, about = task_of(task), sources_of(choice.files)
    corpus, searched = _corpus_of(task, name, choice, wait)
    hashes = {path: one["sha256"] for path, one in about.items()}
    inputs = {"task": task, "version": VERSION, "choice": name, "corpus": corpus, "sources": hashes}
    inputs |= {} if searched else {"searched": False}

    def write(folder: Path) -> Mapping[str, Any]:
        notes: Counter[str] = Counter()
        sentences = choice.gold and _has_sentences(corpus)
        paths = [fetch(manifest()[file]) for file in choice.files]
        questions = [_within(question, choice, sentences) for question in checked_questions(choice.read(paths), notes)]
        leaks = LeakCheck(((question.id, question.text) for question in questions), _size(corpus) if searched else 0)
        gold = _look_up(questions, corpus, leaks, notes) if searched else [None] * len(questions)
        for leak in leaks.leaks():
            log.warning("%s over %s may leak gold: %s", task, name, leak)
        if len(questions) != spec.questions:
            log.warning("%s has %d questions; %d were expected", task, len(questions), spec.questions)
        table = queries_table(questions, gold, corpus, spec.scoring, own=choice.own)
        table.write_parquet(folder / "queries.parquet")
        counts = {"questions": len(questions), "with known gold passages": sum(one is not None for one in gold)}
        lacking = sum(one is None and question.gold is not None for one, question in zip(gold, questions, strict=True))
        notes["questions whose gold passages are not all in the corpus"] += lacking
        meta = {
            **inputs, "about": spec.about, "lacks": choice.lacks, "counts": counts,
            "notes": {note: n for note, n in notes.items() if n},
            "leaks": leaks.counts if searched else {}, "sources": about,
        }  # fmt: skip
        (folder / CARD).write_text(card.questions_text(meta), encoding="utf-8")
        return meta

    return content_folder(task, inputs, write)


def _within(question: Question, choice: Choice, sentences: bool) -> Question:
    """A question with the evidence that can be named in its corpus: passages by name, sentences by number."""
    if not choice.gold:
        question = replace(question, gold=None)
    return question if choice.gold and sentences else replace(question, facts=None, evidence_sets=None)


def _has_sentences(corpus: str) -> bool:
    """Whether the passages of a corpus are split into sentences; the first ones tell."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(cache_dir() / corpus / "corpus.parquet") as file:
        column = next(file.iter_batches(columns=["sentences"])).column("sentences")
        return bool(column.null_count < len(column))


def _look_up(
    questions: Sequence[Question], corpus: str, leaks: LeakCheck, notes: Counter[str]
) -> list[list[str] | None]:
    """Ids of the gold passages by question, in one pass over the corpus, which also searches it for leaks.

    A gold passage is found by its id, by its whole text, or, if only one passage has its title, by its title. Evidence
    that names a sentence that the corpus lacks is counted and stays, as in the official scores, which never find it.
    """
    wanted = {key for question in questions for key in question.gold or ()}
    titles = {key.partition("\n")[0] for key in wanted}
    named = {passage for question in questions for passage, _ in question.evidence}
    sentences: set[Fact] = set()  # of the named passages
    by_key: dict[str, str] = {}
    by_title: dict[str, list[str]] = {}
    for id, title, text, lines in _passages(corpus):
        leaks.look(id, text)
        for key in {id, text} & wanted:
            by_key[key] = id
        if title in titles:
            by_title.setdefault(title, []).append(id)
        if id in named or title in named:
            sentences.update((id, number) for number, line in enumerate(lines.as_py() or [text]) if line.strip())
    by_key |= {key: by_title[title][0] for key in wanted - set(by_key)
               if len(by_title.get(title := key.partition("\n")[0], ())) == 1}  # fmt: skip
    gold = [None if q.gold is None or not set(q.gold) <= set(by_key) else [by_key[key] for key in q.gold]
            for q in questions]  # fmt: skip
    for question, ids in zip(questions, map(_ids, questions, gold), strict=True):
        missing = sum((ids.get(passage, passage), number) not in sentences for passage, number in question.evidence)
        notes["evidence names a missing sentence"] += missing
    return gold


def _size(corpus: str) -> int:
    import pyarrow.parquet as pq

    with pq.ParquetFile(cache_dir() / corpus / "corpus.parquet") as file:
        return int(file.metadata.num_rows)


def _passages(corpus: str) -> Iterator[tuple[str, str, str, Any]]:
    """(id, title, text, sentences as a value of Arrow) of every passage of a built corpus."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(cache_dir() / corpus / "corpus.parquet") as file:
        for batch in file.iter_batches(columns=["id", "title", "text", "sentences"]):
            texts = (batch.column(name).to_pylist() for name in ("id", "title", "text"))
            yield from zip(*texts, batch.column("sentences"), strict=True)


def queries_table(
    questions: Sequence[Question], gold: Sequence[list[str] | None], corpus: str, scoring: str, *, own: bool = False
) -> Any:
    """The Polars table of ``queries.parquet``.

    Args:
        gold: Ids of the gold passages of each question; None if they are unknown.
        corpus: Id of the corpus of all these questions.
        scoring: Family of official scores.
        own: Whether each question is asked over its own passages.
    """
    import polars as pl

    text, fact = pl.String, pl.Struct({"passage": pl.String, "sentence": pl.Int64})
    schema: dict[str, Any] = {
        "id": text, "query": text, "time": text, "answers": pl.List(text), "type": text, "corpus": text,
        "scoring": text, "gold": pl.List(text), "facts": pl.List(fact), "evidence_sets": pl.List(pl.List(fact)),
        "triples": pl.List(pl.List(text)),
    }  # fmt: skip
    corpora = [f"{corpus}{SEPARATOR}{question.id}" if own else corpus for question in questions]
    rows = [_row(*one, scoring) for one in zip(questions, gold, corpora, strict=True)]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _row(question: Question, gold: list[str] | None, corpus: str, scoring: str) -> dict[str, Any]:
    facts, sets, triples = question.facts, question.evidence_sets, question.triples
    ids = _ids(question, gold)
    return {
        "id": question.id, "query": question.text, "time": None, "answers": list(question.answers),
        "type": question.type, "corpus": corpus, "scoring": scoring, "gold": gold,
        "facts": None if facts is None else _named(facts, ids),
        "evidence_sets": None if sets is None else [_named(one, ids) for one in sets],
        "triples": None if triples is None else [list(triple) for triple in triples],
    }  # fmt: skip


def _ids(question: Question, gold: list[str] | None) -> dict[str, str]:
    """Title -> id: evidence names a passage by its title; in the corpus it may be the second passage of that title."""
    return {key.partition("\n")[0]: id for key, id in zip(question.gold or (), gold or (), strict=False)}


def _named(facts: Sequence[tuple[str, int]], ids: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"passage": ids.get(passage, passage), "sentence": sentence} for passage, sentence in facts]
