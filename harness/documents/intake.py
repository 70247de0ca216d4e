"""Documents from whatever the user has, as passages; what cannot be read is listed, and anything unknown is an error.

A row of a table has ``text``, and optionally ``id`` (or BEIR's ``_id``), ``title``, ``time``, ``source`` (or ``url``)
and a fact: ``fact`` (a list of three), or ``subject``, ``relation`` and ``object``. A fact alone is its own text. The
other columns are the passages' metadata.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.progress import Meter
from lm_eval_rag.harness.core.types import Passage, Query, Rule
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.data.corpus_files import is_corpus
from lm_eval_rag.harness.documents.cutting import check_budget, cut
from lm_eval_rag.harness.documents.foreign import LIBRARIES, foreign_fields
from lm_eval_rag.harness.documents.hub import HUB
from lm_eval_rag.harness.documents.records import READERS, Record, is_table, records
from lm_eval_rag.harness.documents.text_files import KINDS, TextFiles, UnreadError

log = logging.getLogger(__name__)
TOKENS, OVERLAP = 128, 32  # words and signs of a passage, and of what two neighbours share
LISTED = 5  # maximum number of unread files in a warning
FACT = ("subject", "relation", "object")
KNOWN = ("id", "_id", "text", "title", "time", "source", "url", "fact", *FACT)
ALLOWED = (
    f"a folder, a file ({', '.join((*KINDS, *READERS))}), hub:ORG/NAME, a frame of pandas or polars, a "
    f"datasets.Dataset, or a list of texts, Passages, dictionaries or documents of {', '.join(LIBRARIES)}"
)


@dataclass(frozen=True, slots=True)
class Document:
    """A document before it is cut.

    Args:
        where: Where it stands, for messages.
        passage: Its id, text and all else that its passages have.
        title: "" if it has none.
        whole: Whether it must not be cut.
    """

    where: str
    passage: Passage
    title: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Intake:
    """What was read.

    Args:
        passages: In the order of the documents.
        documents: Number of documents.
        unread: (file or row, why) of all that could not be read or holds no text.
    """

    passages: tuple[Passage, ...]
    documents: int
    unread: tuple[tuple[str, str], ...] = ()


def read_documents(source: Any, *, tokens: int = TOKENS, overlap: int = OVERLAP) -> Intake:
    """Documents as passages.

    Args:
        source: What :data:`ALLOWED` says. Passage objects are taken as they are; other documents are cut.
        tokens: Limit of words and signs in a passage, 1 or more.
        overlap: Words and signs that neighbouring passages of a document share at most, below ``tokens``.

    Raises:
        UserError: Something that is no document, a row of the wrong form, an id that is repeated, or no document.
    """
    check_budget(tokens, overlap)
    passages: list[Passage] = []
    unread: list[tuple[str, str]] = []
    first: dict[str, str] = {}
    with Meter("reading of documents", unit="documents") as meter:
        for item in _documents(source):
            meter.update()
            if isinstance(item, tuple):
                unread.append(item)
                continue
            id = item.passage.id
            if id in first:
                raise UserError(f"{item.where}: {first[id]} has the id {id!r} too. Give each document its own id.")
            first[id] = item.where
            passages += pieces(item, tokens, overlap)
    if not passages:
        raise UserError(f"There are no documents in {_shown(source)}{reasons(unread)}. Give {ALLOWED}.")
    return Intake(tuple(passages), len(first), tuple(unread))


def pieces(document: Document, tokens: int, overlap: int) -> list[Passage]:
    """The passages of one document, with the limits of :func:`read_documents`."""
    return [document.passage] if document.whole else cut(document.passage, tokens, overlap, document.title)


def as_corpus(
    given: Any,
    rules: Iterable[Rule] = (),
    examples: Iterable[tuple[Query, str]] = (),
    *,
    tokens: int = TOKENS,
    overlap: int = OVERLAP,
) -> Corpus | None:
    """A corpus of one's own documents (:func:`read_documents`); None stays None.

    A corpus, or the path of a folder that :meth:`Corpus.save` wrote, is taken as it is, but for ``rules``, if any.
    """
    if given is None:
        return None
    if isinstance(given, (str, Path)) and is_corpus(Path(given)):
        given = Corpus.open(given)
    if isinstance(given, Corpus):
        rules = tuple(rules)
        return given.with_rules(rules) if rules else given
    intake = read_documents(given, tokens=tokens, overlap=overlap)
    if intake.unread:
        log.warning("%d documents were not read%s.", len(intake.unread), reasons(intake.unread))
    return Corpus.of(intake.passages, rules, examples)


Read = Document | tuple[str, str]


def _documents(source: Any) -> Iterator[Read]:
    if isinstance(source, (str, Path)) and not str(source).startswith(HUB):
        yield from _of_path(Path(source))
    elif is_table(source):
        yield from _of_records(records(source, "documents"))
    elif isinstance(source, Iterable) and not isinstance(source, (Mapping, bytes, bytearray)):
        for number, item in enumerate(source):
            yield _of_item(item, f"document {number + 1}", f"d{number}")
    else:
        hint = " A dictionary is one document: put it into a list; or name a split, as in data['train']."
        raise UserError(
            f"Documents cannot be read from {_shown(source)}. Give {ALLOWED}.{hint * isinstance(source, Mapping)}"
        )


def _of_path(path: Path) -> Iterator[Read]:
    """The documents of a folder or a file."""
    root, files = files_of(path)
    with TextFiles() as reader:
        for file in files:
            yield from read_file(reader, file, root, alone=len(files) == 1)


def files_of(path: Path) -> tuple[Path, list[Path]]:
    """A folder, and all files in it in order; of a single file its folder, and that file.

    Raises:
        UserError: There is no such path, or a single file has an unknown ending.
    """
    if os.path.isdir(path):  # False, not an error, for a long text that was taken for a path
        return path, sorted(file for file in path.rglob("*") if file.is_file() and not _hidden(file.relative_to(path)))
    if os.path.isfile(path):
        if path.suffix.lower() not in KINDS.keys() | READERS.keys():
            raise UserError(f"{path} has an unknown ending. Give {ALLOWED}.")
        return path.parent, [path]
    what = "is a device, not a file" if os.path.exists(path) else "does not exist"
    raise UserError(f"{_shown(path)} {what}. Give {ALLOWED}.")


def read_file(reader: TextFiles, file: Path, root: Path, *, alone: bool) -> Iterator[Read]:
    """The documents of one file; the id of a text is its path within ``root``.

    Args:
        alone: Whether it is the only file: otherwise its name is in the ids of rows that have none.
    """
    if file.suffix.lower() in READERS:
        yield from _of_records(records(file, "documents"), prefix="" if alone else f"{file.stem}-")
    else:
        yield _of_file(reader, file, file.relative_to(root).as_posix())


def _of_file(reader: TextFiles, file: Path, name: str) -> Read:
    if file.suffix.lower() not in KINDS:
        return str(file), "unknown ending"
    try:
        return Document(str(file), Passage(name, reader.read(file), source=name))
    except UnreadError as error:
        return str(file), str(error)


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "~$")) for part in path.parts)


def _of_records(rows: Iterable[Record], prefix: str = "") -> Iterator[Read]:
    for number, record in enumerate(rows):
        yield document_of_record(record, f"{prefix}d{number}")


def _of_item(item: Any, where: str, id: str) -> Read:
    if isinstance(item, Passage):
        return Document(where, item, whole=True)
    if isinstance(item, str):
        return Document(where, Passage(id, item)) if item.strip() else (where, "no text in it")
    fields = item if isinstance(item, Mapping) else foreign_fields(item)
    if fields is None:
        raise UserError(f"{where}: {_shown(item)} is no document. Give {ALLOWED}.")
    return document_of_record(Record.of(where, fields), id)


def document_of_record(record: Record, id: str) -> Read:
    """The document of a row, or where it stands and that it holds no text.

    Args:
        id: Its id, if the row has none.

    Raises:
        UserError: A value has the wrong type, there is neither text nor fact, or a fact is not whole.
    """
    fact, time = fact_of(record), record.text("time")
    title = record.text("title") or ""
    others = record.fields.keys() - set(KNOWN)  # one of them may be the text, under another name
    if not {"text", *FACT, "fact"} & record.fields.keys() and (others or "title" not in record.fields):
        raise record.wrong(f"there is no 'text' (columns: {', '.join(record.fields)}). Name the column 'text'.")
    text = record.text("text") or (stated(fact, time) if fact else "")
    if not text:
        text, title = title, ""
    if not text:
        return record.where, "no text in it"
    metadata = {name: _plain(value) for name, value in record.fields.items() if name not in KNOWN and value is not None}
    passage = Passage(
        id=record.text("id", "_id") or id,
        text=text,
        time=time,
        source=record.text("source", "url") or "",
        fact=fact,
        metadata=metadata,
    )
    return Document(record.where, passage, title, whole=fact is not None)


def fact_of(record: Record) -> tuple[str, str, str] | None:
    """The fact of a row, from ``fact`` or ``subject``, ``relation`` and ``object``; None if it states none.

    Raises:
        UserError: A part of the fact is missing.
    """
    given = record.fields.get("fact")
    parts = record.texts("fact", given) if given is not None else tuple(record.text(name) for name in FACT)
    if not any(parts):
        return None
    if len(parts) != 3 or not all(parts):
        raise record.wrong(f"the fact is {list(parts)}. Give a subject, a relation and an object, or none of them.")
    subject, relation, object = map(str, parts)
    return subject, relation, object


def stated(fact: tuple[str, str, str], time: str | None) -> str:
    """A fact as a text, in the form of the documents of RuleQA."""
    return f"{f'Time {time} ' if time else ''}{' '.join(fact)}."


def _plain(value: Any) -> Any:
    """A value that JSON can hold."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def _shown(value: Any) -> str:
    text = " ".join(repr(str(value) if isinstance(value, Path) else value).split())
    return text if len(text) <= 200 else f"{text[:197]}..."


def reasons(unread: Sequence[tuple[str, str]]) -> str:
    """What could not be read, and why, as the end of a sentence."""
    if not unread:
        return ""
    more = f"; and {len(unread) - LISTED} more" if len(unread) > LISTED else ""
    return ": " + "; ".join(f"{name} ({why})" for name, why in unread[:LISTED]) + more
