"""Runs the preparation of a method over the corpora of its questions, unless an earlier run has stored its product.

A product is stored under a hash of the corpus, the generator, the encoder (if vectors are asked for), the preparation
and its parameters. The calls are kept in a journal beside the run's: one for all runs with this generator and
preparation, so that whatever run goes on pays for none of them twice, nor one with another corpus or other parameters.
Of several processes with the same parameters one prepares.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.backends.corpora import Corpora
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.locks import locked
from lm_eval_rag.harness.common.paths import cache_dir, storing
from lm_eval_rag.harness.core.journal import digest
from lm_eval_rag.harness.core.preparing import Estimate, Preparation, estimated, options_of
from lm_eval_rag.harness.core.types import Passage, Query
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.data.folders import content_hash
from lm_eval_rag.harness.data.page_store import split_id
from lm_eval_rag.harness.data.products import FOLDER, OpenProduct, find_product
from lm_eval_rag.harness.generators.base import Generator
from lm_eval_rag.harness.retrieval import for_other_texts
from lm_eval_rag.harness.retrieval.encoding import encoder_fingerprint

log = logging.getLogger(__name__)
FORMAT = 1  # of products on disk
MAX_CALLS = 10_000  # of the model, unless prepare_max_calls= says otherwise
SAMPLE = 10_000  # passages from which an estimate is made
READ = 4096  # passages that are read at once
FILE = "_file"  # how parameters end whose value is the path of a file, so that its content counts
TOKENS = ("prompt_tokens", "completion_tokens")
SUMMED = ("calls", *TOKENS, "seconds", "elapsed", "cost", "dropped_passages")  # of an account


class Passages(Sequence[Passage]):
    """All passages of a corpus, read in slices."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def __len__(self) -> int:
        return len(self._corpus)

    def __getitem__(self, place: Any) -> Any:
        rows = range(len(self))[place]
        if isinstance(rows, int):
            return self._corpus.passage(rows)
        return self._corpus.passages([(row, 0.0) for row in rows])

    def __iter__(self) -> Iterator[Passage]:
        for start in range(0, len(self), READ):
            yield from self[start : start + READ]


@dataclass(frozen=True, slots=True)
class Job:
    """One corpus that is to be prepared.

    Args:
        query: The first question over it.
        inputs: All that the product depends on.
    """

    query: Query
    inputs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Work:
    """What a preparation is run with.

    Args:
        options: Its keyword parameters.
        generator: The language model, or None.
        limit: The most tokens of a prompt.
        max_calls: The most calls of the model.
    """

    name: str
    preparation: Preparation
    options: Mapping[str, Any]
    corpora: Corpora
    generator: Generator | None
    limit: int | None
    max_calls: int

    def settings(self) -> dict[str, Any]:
        """What all its products depend on, beside the corpus."""
        files = {name: Path(value) for name, value in self.options.items() if name.endswith(FILE) and value}
        named = {name: digest(path.read_bytes().hex()) for name, path in files.items() if path.is_file()}
        encoder = encoder_fingerprint(self.corpora.retriever, self.corpora.options) if self.preparation.embeds else None
        return {
            "preparation": [self.preparation.name, self.preparation.version, FORMAT],
            "options": {**self.options, **named},
            "generator": self.generator.fingerprint if self.generator else None,
            "encoder": encoder,
            "max_prompt_tokens": self.limit,
        }

    def passages(self, query: Query) -> Passages:
        """All passages of a query's corpus."""
        return Passages(self.corpora.corpus(query))

    def estimate(self, job: Job) -> Estimate:
        """What one corpus will about need."""
        return estimated(self.preparation, self.passages(job.query), self.options, SAMPLE)


def work_of(
    name: str, method: Callable[..., Any], preparation: Preparation, corpora: Corpora, generator: Generator | None,
    limit: int | None, max_calls: int | None,
) -> Work:  # fmt: skip
    """The work of a method's preparation."""
    options = options_of(preparation, method)
    return Work(name, preparation, options, corpora, generator, limit, MAX_CALLS if max_calls is None else max_calls)


def ensure(work: Work, queries: Sequence[Query], run: Callable[[Sequence[Job], str, int], None]) -> dict[str, Any]:
    """Have a product for the corpus of every query, and say what they cost.

    Args:
        run: Prepares corpora and stores their products; also given the name of the journal's file and the calls that
            are expected.

    Raises:
        UserError: More calls are expected than are allowed, a product is damaged, or the retriever is a saved run
            without a fallback, which cannot search what is prepared.
    """
    settings, first = work.settings(), dict[str | None, Query]()
    for query in queries:
        first.setdefault(work.corpora.key(query), query)
    groups: dict[str, list[Job]] = {}
    for key, query in first.items():
        if key not in work.corpora.products.ids:
            inputs = {**settings, "corpus": work.corpora.corpus(query).fingerprint}
            groups.setdefault(split_id(key or "")[0], []).append(Job(query, inputs))
    built: set[str] = set()
    journal = f"prepare-{digest([work.preparation.name, settings['generator']])[:16]}"
    for jobs in groups.values():
        built |= _prepared(work, jobs, lambda missing, calls: run(missing, journal, calls))
    account = _account(work, first, built)
    noted = {**account["notes"], "text left out of a prompt that was too long": account.get("dropped_passages", 0)}
    if counts := ", ".join(f"{note} ({times:,})" for note, times in noted.items() if times):
        log.warning("What the preparation of %s noted: %s.", work.name, counts)
    return account


def _prepared(work: Work, jobs: Sequence[Job], run: Callable[[Sequence[Job], int], None]) -> set[str]:
    """Prepare those of one folder's corpora that are not prepared; the ids of their products."""
    missing = _missing(work, jobs)
    if not missing:
        return set()
    with _alone(work, missing[0]):
        missing = _missing(work, missing)  # another process may have prepared them meanwhile
        if missing:
            for_other_texts(work.corpora.retriever, work.corpora.options)  # a saved run cannot search what is prepared
            run(missing, _expected(work, missing))
    assert not _missing(work, missing)
    return {work.corpora.products.ids[work.corpora.key(job.query)] for job in missing}


def _missing(work: Work, jobs: Sequence[Job]) -> list[Job]:
    """The jobs without a product; those of the others are noted."""
    found = {i: id for i, job in enumerate(jobs) if (id := find_product(job.inputs)) is not None}
    work.corpora.products.ids.update({work.corpora.key(jobs[i].query): id for i, id in found.items()})
    return [job for i, job in enumerate(jobs) if i not in found]


def _expected(work: Work, jobs: Sequence[Job]) -> int:
    """The calls that are expected; said before any is made, and refused if they are too many."""
    passages = sum(len(work.passages(job.query)) for job in jobs)
    estimates = [work.estimate(job) for job in jobs]
    chunks, calls = sum(each.chunks for each in estimates), sum(each.calls for each in estimates)
    seconds = sum(each.seconds for each in estimates)
    needs = (
        f"The preparation of {work.name} reads {passages:,} passages ({chunks:,} chunks) and needs about {calls:,} "
        "calls of the model"
    )
    if calls > work.max_calls:
        raise UserError(
            f"{needs}; allowed are {work.max_calls:,}. Give prepare_max_calls={2 * calls} to allow it, or a smaller "
            "corpus."
        )
    own = f" and about {_duration(seconds)} of one CPU core beside them" if seconds else ""
    log.warning("%s (at most %s)%s. Its product serves all later runs.", needs, f"{work.max_calls:,}", own)
    return calls


def _duration(seconds: float) -> str:
    """Minutes, or hours if there are many; at least one minute."""
    minutes = max(1, round(seconds / 60))
    return f"{minutes} min" if minutes < 100 else f"{minutes / 60:.0f} hours"


@contextmanager
def _alone(work: Work, job: Job) -> Iterator[None]:
    """Held by one process for all corpora of a job's settings, since two runs may share some of theirs."""
    folder = cache_dir() / FOLDER

    def waiting() -> None:
        log.warning("Another process runs the preparation of %s; this one waits for it.", work.name)

    with storing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = folder / f".{content_hash({**job.inputs, 'corpus': None})}.lock"
    with locked(lock, waiting):
        yield


def _account(work: Work, queries: Mapping[str | None, Query], built: set[str]) -> dict[str, Any]:
    """What the products of a run cost when they were made, and how many were made now."""
    ids = sorted({work.corpora.products.ids[key] for key in queries})
    metas = [OpenProduct(id).meta for id in ids]
    notes: Counter[str] = Counter()
    for meta in metas:
        notes.update(meta["notes"])
    accounts = [meta["account"] for meta in metas]
    if len(accounts) > 1:  # those by the clock overlap
        accounts = [{name: value for name, value in account.items() if name != "elapsed"} for account in accounts]
    sums = {name: round(sum(each[name] for each in accounts), 6) for name in SUMMED if all(name in a for a in accounts)}
    return {
        "preparation": work.preparation.name,
        "version": work.preparation.version,
        "corpora": len(ids),
        "prepared_now": len(built & set(ids)),
        "folders": ids[:10],
        **sums,
        "notes": dict(sorted(notes.items())),
    }
