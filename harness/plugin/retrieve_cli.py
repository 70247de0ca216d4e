"""``lm-eval-rag retrieve``: save the best k passages of every question of tasks as a retrieval run.

It retrieves with the text of the question, once per question and corpus. Finished queries are kept in a journal, so an
interrupted command continues where it stopped.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.backends.corpora import Corpora, RetrieveBackend
from lm_eval_rag.harness.common.errors import CallError, UserError, at_least
from lm_eval_rag.harness.common.paths import cache_dir, output_folder
from lm_eval_rag.harness.common.progress import Meter
from lm_eval_rag.harness.core.asks import Retrieve
from lm_eval_rag.harness.core.journal import Journal, digest
from lm_eval_rag.harness.core.parameters import Depth, check
from lm_eval_rag.harness.core.types import Query
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.data.page_store import split_id
from lm_eval_rag.harness.documents.intake import as_corpus
from lm_eval_rag.harness.retrieval import prepare
from lm_eval_rag.harness.retrieval.run_file import Row, RunCorpus, RunNote, write_run

log = logging.getLogger(__name__)
BATCH = 256  # queries after which the progress moves
ONE_PASS = {"dense": 16_384}  # queries that are searched in one pass over the vectors of a corpus
CHECKED, SHALLOW = 20, 10  # so many queries are searched again, so deep


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run is made of.

    Args:
        tasks: Names of the tasks.
        queries: Their questions, each text once per corpus.
        retriever: Name of the retriever.
        options: Its options.
        k: Depth.
    """

    tasks: tuple[str, ...]
    queries: Sequence[Query]
    retriever: str
    options: Mapping[str, Any]
    k: int

    @property
    def name(self) -> str:
        """The retriever and its options, as ``bm25(k1=1.2)``."""
        options = ", ".join(f"{key}={value!r}" for key, value in sorted(self.options.items()))
        return f"{self.retriever}({options})"


def retrieve_main(argv: Sequence[str]) -> int:
    """Run the command; returns 0.

    Raises:
        UserError: Bad arguments, a task without a corpus, or a retriever that cannot be used.
    """
    chosen = _parser().parse_args(list(argv))
    check("--k", chosen.k, Depth)
    if chosen.limit is not None:
        at_least("--limit", chosen.limit)
    options = retriever_options(chosen.retriever_args)
    prepare(chosen.retriever, **options)  # a wrong name or option ends the command before any work
    output_folder(chosen.out.parent)
    given = as_corpus(chosen.corpus)
    tasks = load_tasks(chosen.tasks.split(","), chosen.metadata)
    queries = list(questions_of(tasks, chosen.limit, given))
    wanted = Wanted(tuple(tasks), queries, chosen.retriever, options, chosen.k)
    note = make_run(wanted, chosen.out, given)
    for corpus in note.corpora.values():
        sys.stdout.write(f"{corpus.queries} queries over {corpus.id} ({corpus.documents} documents)\n")
    sys.stdout.write(f"{chosen.out}\nUse it with --model_args retriever=run,retriever_path={chosen.out}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lm-eval-rag retrieve", description="Save the best k passages of every question as a retrieval run."
    )
    parser.add_argument("--tasks", required=True, metavar="TASKS", help="names of tasks or groups, joined by commas")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE.parquet")
    parser.add_argument("--retriever", default="bm25", help="default: bm25")
    parser.add_argument(
        "--retriever-args", default="", metavar="ARGS", help="its options without the prefix: k1=1.2,b=0.5"
    )
    parser.add_argument("--k", type=int, default=100, help="passages per question (default: 100)")
    parser.add_argument("--metadata", default="{}", help='as lm_eval\'s: \'{"corpus": "mirror"}\'')
    parser.add_argument("--corpus", metavar="DOCUMENTS", help="a folder or file in place of the tasks' own")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N questions of each task")
    return parser


def retriever_options(text: str) -> dict[str, Any]:
    """The options of a retriever by ``NAME=VALUE,NAME=VALUE``, with or without the prefix ``retriever_``.

    They are read as ``--model_args`` of ``lm_eval run``, which keeps the space at the end of ``query_prefix=query: ``.

    Raises:
        UserError: The text is of another form.
    """
    from lm_eval._cli.utils import key_val_to_dict

    try:
        options = key_val_to_dict(text)
    except ValueError as error:
        raise UserError(f"--retriever-args {text!r} cannot be read ({error}). Write NAME=VALUE,NAME=VALUE.") from None
    return {name.removeprefix("retriever_"): value for name, value in options.items()}


def load_tasks(names: Sequence[str], metadata: str = "{}") -> dict[str, Any]:
    """lm_eval's tasks by name; groups are replaced by their tasks.

    Raises:
        UserError: The metadata are no JSON object, or a task is unknown.
    """
    from lm_eval.tasks import TaskManager

    try:
        about = json.loads(metadata)
        if not isinstance(about, dict):
            raise ValueError("not an object")
    except ValueError as error:
        raise UserError(f"--metadata {metadata!r} is not a JSON object ({error}).") from None
    manager = TaskManager(metadata=about)
    unknown = [name for name in names if not manager.match_tasks([name])]
    if unknown:
        raise UserError(f"Unknown task {unknown[0]!r}. `lm_eval ls tasks` lists all tasks.")
    return dict(manager.load(list(names))["tasks"])


def questions_of(tasks: Mapping[str, Any], limit: int | None = None, given: Corpus | None = None) -> Iterator[Query]:
    """The questions of tasks, each text once per corpus.

    Args:
        limit: Only so many of each task.
        given: The documents of all questions, in place of their own.

    Raises:
        UserError: A task has no corpus, or its questions come with passages of their own.
    """
    seen: set[tuple[str | None, str]] = set()
    for name, task in tasks.items():
        docs = task.eval_docs
        for doc in docs if limit is None else (docs[i] for i in range(min(limit, len(docs)))):
            corpus = None if given is not None else doc.get("corpus")
            if "query" not in doc or (given is None and corpus is None):
                raise UserError(f"The questions of {name} have no corpus, so there is no retrieval run of them.")
            if corpus is not None and split_id(corpus)[1] is not None:
                raise UserError(
                    f"The questions of {name} come with passages of their own, a few each: no index and no run is "
                    "needed for them. Leave the task out, or choose a shared corpus (--metadata)."
                )
            if (corpus, doc["query"]) not in seen:
                seen.add((corpus, doc["query"]))
                yield Query(str(doc["id"]), doc["query"], doc.get("time"), corpus)


def make_run(wanted: Wanted, path: Path, given: Corpus | None = None) -> RunNote:
    """Retrieve, write the run, and return its note.

    Args:
        given: The documents of all questions, in place of their own.
    """
    corpora = Corpora(wanted.retriever, wanted.options, given)
    run = digest([wanted.name, wanted.k, version("lm-eval-rag")])
    journal = Journal(cache_dir() / "journal" / f"retrieve-{run[:16]}.sqlite", run)
    try:
        rows, held = [], dict[str, RunCorpus]()
        batch = ONE_PASS.get(wanted.retriever, BATCH)
        for query, row in _served(wanted, RetrieveBackend(corpora, journal, batch)):
            rows.append(row)
            known = held.get(row[0])
            held[row[0]] = _counted(known, corpora, query)
    finally:
        journal.close()
    note = RunNote(wanted.k, wanted.tasks, wanted.name, held, version("lm-eval-rag"))
    write_run(path, note, rows)
    return note


def _counted(known: RunCorpus | None, corpora: Corpora, query: Query) -> RunCorpus:
    if known is not None:
        return RunCorpus(known.id, known.documents, known.retriever, known.queries + 1)
    corpus = corpora.corpus(query)
    retriever = corpora.retriever_of(corpus)
    return RunCorpus(corpus.id, len(corpus), retriever.fingerprint, 1)


def _served(wanted: Wanted, backend: RetrieveBackend) -> Iterator[tuple[Query, Row]]:
    """Each query with its row of the run, corpus by corpus."""
    order = sorted(wanted.queries, key=lambda query: query.corpus or "")  # stable: questions stay in their order
    with Meter("retrieval", len(order), "queries") as meter:
        for part in (order[start : start + backend.batch] for start in range(0, len(order), backend.batch)):
            replies = backend.serve([(query, Retrieve(query.text, wanted.k)) for query in part])
            for query, reply in zip(part, replies, strict=True):
                if isinstance(reply, CallError):
                    raise UserError(f"Retrieval for the query {query.text!r} failed: {reply}")
                ids, scores = [passage.id for passage in reply.value], [passage.score for passage in reply.value]
                yield query, (backend.corpora.corpus(query).fingerprint, query.text, ids, scores)
            meter.update(len(part))
    _warn_of_shallow(wanted, backend.corpora, order[:CHECKED])


def _warn_of_shallow(wanted: Wanted, corpora: Corpora, queries: Iterable[Query]) -> None:
    """Warn if a search for few passages finds others than the first of a deep search, as with reranking."""
    k = min(SHALLOW, wanted.k)
    for query in queries:
        search = corpora.retriever_of(corpora.corpus(query)).search
        if search([query.text], k)[0] != search([query.text], wanted.k)[0][:k]:
            log.warning(
                "With %s the best %d of %d are not what a search for %d finds, because it explores as deep as it is "
                "asked to. The run is exact for k=%d alone: give --k the depth that your methods use.",
                wanted.name, k, wanted.k, k, wanted.k,
            )  # fmt: skip
            return
