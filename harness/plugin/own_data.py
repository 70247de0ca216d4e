"""Documents, questions and rules of the user's made ready: a stored corpus, a task's rows, and what is odd in them."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.journal import digest
from lm_eval_rag.harness.core.record import FORM
from lm_eval_rag.harness.core.types import SHORT, Passage
from lm_eval_rag.harness.data.corpus import Corpus, open_corpus
from lm_eval_rag.harness.data.corpus_files import is_corpus
from lm_eval_rag.harness.data.folders import content_folder
from lm_eval_rag.harness.data.leaks import LeakCheck
from lm_eval_rag.harness.data.parts import document_of
from lm_eval_rag.harness.documents.intake import OVERLAP, TOKENS, read_documents
from lm_eval_rag.harness.documents.questions import ANSWERS, GOLD, Question, read_questions
from lm_eval_rag.harness.documents.rule_files import MIN_SUPPORT, read_rules
from lm_eval_rag.harness.scoring.normalise import has_words, normalise
from lm_eval_rag.harness.scoring.official import OWN
from lm_eval_rag.harness.scoring.squad import CLOSED

log = logging.getLogger(__name__)
FOLDER, VERSION = "documents", 1  # of stored corpora in the cache; the version is part of a folder's hash
NAMED = 5  # maximum number of named questions in a line
UNREAD = 20  # maximum number of lines about documents that were not read
LONGEST = 20_000_000_000  # characters to look through for answers, about a minute


@dataclass(frozen=True)
class OwnData:
    """What a task of the user's is made of.

    Args:
        corpus: The documents with the rule bank, as stored.
        rows: A row of the task a question.
        facts: Number of passages that state a fact.
        read: What was read, in lines.
        odd: What is odd in it, in lines: files that were not read, questions that cannot be scored, leaks of gold.
    """

    corpus: Corpus
    rows: tuple[dict[str, Any], ...]
    facts: int
    read: tuple[str, ...]
    odd: tuple[str, ...]

    def gold_texts(self, gold: Sequence[str]) -> tuple[str, ...]:
        """The texts of gold passages: of a document all its passages."""
        return tuple(text for id in gold for text in self._texts.get(id, ()))

    @cached_property
    def _texts(self) -> dict[str, list[str]]:
        """The texts of each passage and of each document."""
        texts: dict[str, list[str]] = defaultdict(list)
        for id, text in zip(self.corpus.ids.to_pylist(), self.corpus.texts, strict=True):
            for name in {id, document_of(id)}:
                texts[name].append(text)
        return dict(texts)


def own_data(
    documents: Any,
    questions: Any,
    rules: Any = None,
    *,
    tokens: int = TOKENS,
    overlap: int = OVERLAP,
    min_support: int = MIN_SUPPORT,
    rule_length: int = 1,
) -> OwnData:
    """Read documents, questions and rules, compare them, and store the corpus in the cache.

    Args:
        documents: As :func:`lm_eval_rag.harness.documents.intake.read_documents` reads them, a corpus, or the folder of
            a saved one.
        questions: As :func:`lm_eval_rag.harness.documents.questions.read_questions` reads them.
        rules: None, ``mine``, or as :func:`lm_eval_rag.harness.documents.rule_files.read_rules` reads them.
        tokens: Limit of words and signs in a passage.
        overlap: Words and signs that neighbouring passages share at most.
        min_support: Number of facts that a mined rule must hold for at least.
        rule_length: Relations in the body of a mined rule at most.

    Raises:
        UserError: Something cannot be read, or no id among the gold passages is one of the documents.
    """
    asked = read_questions(questions)
    if isinstance(documents, (str, Path)) and is_corpus(Path(documents)):
        documents = Corpus.open(documents)
    if isinstance(documents, Corpus):
        passages: Sequence[Passage] = documents.passages([(row, 0.0) for row in range(len(documents))])
        corpus, read, odd = documents, f"{len(documents):,} passages of a saved corpus", []
    else:
        intake = read_documents(documents, tokens=tokens, overlap=overlap)
        passages, corpus = intake.passages, Corpus.of(intake.passages)
        read = f"{intake.documents:,} documents, {len(passages):,} passages"
        odd = [f"Not read: {name} ({why})." for name, why in intake.unread[:UNREAD]]
        odd += [f"Not read: {len(intake.unread) - UNREAD:,} more."] if len(intake.unread) > UNREAD else []
    bank = read_rules(rules, passages, min_support=min_support, rule_length=rule_length)
    facts = sum(passage.fact is not None for passage in passages)
    corpus = stored(corpus.with_rules(bank) if bank else corpus, passages)
    counts = (f"{read}, {facts:,} of them facts; {len(corpus.rules()):,} rules.", _count(asked))
    gold = _gold(asked, {passage.id for passage in passages})
    rows = tuple(_row(question, gold.get(question.id), corpus.id) for question in asked)
    return OwnData(corpus, rows, facts, counts, (*odd, *_oddities(asked, gold, passages)))


def stored(corpus: Corpus, passages: Iterable[Passage]) -> Corpus:
    """The corpus as a folder of the cache, written if it is not there, and opened."""
    more = digest([[passage.source, dict(passage.metadata)] for passage in passages])
    inputs = {"version": VERSION, "fingerprint": corpus.fingerprint, "more": more}

    def write(folder: Path) -> dict[str, Any]:
        corpus.write(folder)
        return {**inputs, "counts": {"passages": len(corpus), "rules": len(corpus.rules())}}

    return open_corpus(content_folder(FOLDER, inputs, write))


def _row(question: Question, gold: list[str] | None, corpus: str) -> dict[str, Any]:
    return {
        **question.slices,
        "id": question.id,
        "query": question.text,
        "time": question.time,
        "answers": list(question.answers),
        "corpus": corpus,
        "scoring": OWN,
        "gold": gold,
        FORM: SHORT,
    }


def _gold(questions: Sequence[Question], ids: set[str]) -> dict[str, list[str]]:
    """Question id -> its gold passages, where the documents have all of them.

    Raises:
        UserError: The documents have none of the gold passages of any question.
    """
    known = ids | {document_of(id) for id in ids}
    named = [question for question in questions if question.gold]
    gold = {question.id: list(question.gold) for question in named if known.issuperset(question.gold)}
    if named and not any(known.intersection(question.gold) for question in named):
        raise UserError(
            f"{named[0].where}: no document has the id {named[0].gold[0]!r}, and none has any other id of the "
            f"gold_passages. The documents' ids are such as {min(ids)!r}. Give gold_passages the ids of documents."
        )
    return gold


def _count(questions: Sequence[Question]) -> str:
    answers, gold = (sum(map(bool, column)) for column in zip(*((q.answers, q.gold) for q in questions), strict=True))
    return f"{len(questions):,} questions, {answers:,} with answers, {gold:,} with gold passages."


def _oddities(questions: Sequence[Question], gold: dict[str, list[str]], passages: Sequence[Passage]) -> Iterable[str]:
    """Which questions cannot be scored or answered, and which passages may tell a gold answer."""
    answered = [question for question in questions if question.answers]
    named = [question for question in questions if question.gold]
    if not answered:
        yield (
            "No question has answers, so answers are not scored: only retrieval (with gold_passages), cost, and with "
            "a judge whether an answer lies in the gold passages (factual_consistency). Gold answers stand in a column "
            f"'answer' or 'answers'{_others(questions)}."
        )
        yield from _misspelt(questions)
    lacking = [question for question in named if question.id not in gold]
    yield from _listed("Gold passages that no document has, so that they are not scored", lacking, named)
    yield from _listed("Answers that no document holds", _nowhere(answered, passages), answered)
    check = LeakCheck(((question.id, question.text) for question in questions), len(passages))
    for passage in passages:
        check.look(passage.id, passage.text)
    yield from (f"The documents may leak gold: {leak}." for leak in check.leaks())


def _others(questions: Sequence[Question]) -> str:
    columns = dict.fromkeys(name for question in questions for name in question.slices)
    return f"; read as slices were {', '.join(columns)}" if columns else ""


def _misspelt(questions: Sequence[Question]) -> Iterable[str]:
    """Columns whose names are nearly those that would have been read."""
    for column in dict.fromkeys(name for question in questions for name in question.slices):
        near = get_close_matches(column.lower(), (*ANSWERS, GOLD), n=1, cutoff=0.75)
        if near:
            yield f"The column {column!r} is read as a slice. Did you mean {near[0]!r}?"


def _nowhere(questions: Sequence[Question], passages: Sequence[Passage]) -> list[Question]:
    """The questions of which no passage contains an answer as whole words, yes and no left out; [] if too many."""
    if len(questions) * sum(len(passage.text) for passage in passages) > LONGEST:
        log.info("Whether the documents hold the answers is not checked: there is too much text.")
        return []
    text = " \n ".join(f" {normalise(passage.text)} " for passage in passages)
    return [
        question
        for question in questions
        if not any(answer in CLOSED or has_words(text, answer) for answer in map(normalise, question.answers))
    ]


def _listed(what: str, questions: Sequence[Question], of: Sequence[Question]) -> Iterable[str]:
    if questions:
        more = f" and {len(questions) - NAMED:,} more" if len(questions) > NAMED else ""
        named = ", ".join(question.id for question in questions[:NAMED])
        yield f"{what}: {len(questions):,} of {len(of):,} questions ({named}{more})."
