"""Retrievers by name. A retriever returns the rows of a corpus that match a text best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.core.parameters import Depth, Natural, bind
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval.bm25 import BM25
from lm_eval_rag.harness.retrieval.cross_encoder import Reranked
from lm_eval_rag.harness.retrieval.dense import dense
from lm_eval_rag.harness.retrieval.hybrid import Hybrid
from lm_eval_rag.harness.retrieval.lucene import lucene
from lm_eval_rag.harness.retrieval.run import Run
from lm_eval_rag.harness.retrieval.static import static
from lm_eval_rag.harness.retrieval.tokens import Dates


class Retriever(Protocol):
    """Searches the documents of one corpus."""

    @property
    def fingerprint(self) -> str:
        """A text that names all that the results depend on: corpus, settings, versions."""
        ...

    def search(self, texts: Sequence[str], k: int) -> list[list[tuple[int, float]]]:
        """For each text at most ``k`` (row, score) pairs, best first, ties by row."""
        ...


def _bm25(corpus: Corpus, *, k1: float = 0.9, b: float = 0.4, dates: Dates = "split") -> Retriever:
    """BM25 by its options.

    Args:
        k1: Saturation of the term frequency, 0 or more.
        b: Weight of the document's length, in [0, 1].
        dates: Whether an ISO date is one token (``whole``) or three (``split``).
    """
    return BM25(corpus, k1=k1, b=b, dates=dates)


def _hybrid(
    corpus: Corpus,
    first_options: Mapping[str, Any],
    second_options: Mapping[str, Any],
    *,
    first: str = "bm25",
    second: str = "static",
    constant: Natural = 60,
    depth: Depth = 100,
) -> Retriever:
    """A hybrid by its options.

    Args:
        first: The first retriever, by name.
        second: The second retriever, by name.
        constant: Constant of the fusion; 60 in the paper.
        depth: Documents of each retriever that are merged; k if that is more.
    """
    retrievers = [make_retriever(first, corpus, **first_options), make_retriever(second, corpus, **second_options)]
    return Hybrid(retrievers, constant=constant, depth=depth)


def _run(
    corpus: Corpus, fallback_options: Mapping[str, Any], *, path: str | None = None, fallback: str | None = None
) -> Retriever:
    """A saved run by its options.

    Args:
        path: A file that ``lm-eval-rag retrieve`` wrote, a folder of such files, or the Hub id of a dataset.
        fallback: A retriever, by name, for queries that the run lacks; None makes them an error.
    """
    if not path:
        raise UserError(
            "retriever=run needs retriever_path=...: a file written by `lm-eval-rag retrieve`, a folder of such files, "
            "or the Hub id of a dataset, ORG/NAME."
        )
    if fallback is None:
        if fallback_options:
            raise UserError(f"fallback_{next(iter(fallback_options))} without fallback is not allowed: name it.")
        return Run(corpus, path)
    make = prepare(fallback, **fallback_options)
    options = ", ".join(f"{key}={value!r}" for key, value in sorted(fallback_options.items()))
    if fallback == "run":
        made = make(corpus)
    else:  # over another corpus, since the index is built when a query needs it
        name, own = for_other_texts(fallback, fallback_options)
        made = make_retriever(name, Corpus.of([Passage("0", "text")]), **own)
    return Run(corpus, path, make, f"{fallback}({options}) as {made.fingerprint}")


def reranked(retriever: Retriever, corpus: Corpus, *, rerank: str, rerank_depth: Depth = 50) -> Retriever:
    """A retriever whose best documents are reranked.

    Args:
        rerank: Folder or Hub id of a cross-encoder that reranks the best documents.
        rerank_depth: Documents that are reranked; k if that is more.
    """
    return Reranked(retriever, corpus, rerank, rerank_depth)


RETRIEVERS: dict[str, Callable[..., Retriever]] = {
    "bm25": _bm25,
    "dense": dense,
    "hybrid": _hybrid,
    "lucene": lucene,
    "run": _run,
    "static": static,
}
PARTS = {  # retrievers that consist of others, which have options such as first_* and second_*
    "hybrid": ("first", "second"),
    "run": ("fallback",),
}
USUAL = {"first": "bm25", "second": "static"}  # of a hybrid
PREBUILT = {"dense": ("index", "index_ids"), "lucene": ("index", "index_names")}  # options that belong to one corpus
BUILT_HERE = ("flat", "hnsw")  # values of dense's index that are no file
RERANKING = ("rerank", "rerank_depth")  # options that every retriever has


def make_retriever(name: str, corpus: Corpus, **options: Any) -> Retriever:
    """The retriever of that name over a corpus.

    Args:
        options: Keyword parameters of its entry in ``RETRIEVERS``. With ``rerank=MODEL`` a cross-encoder reranks its
            best ``rerank_depth`` documents.

    Raises:
        UserError: An unknown name or option, a value of a wrong type or out of range, or a package that is missing.
    """
    return prepare(name, **options)(corpus)


def prepare(name: str, **options: Any) -> Callable[[Corpus], Retriever]:
    """Makes the retriever of that name over any corpus; the options are checked here.

    Raises:
        UserError: An unknown name or option, or a value of a wrong type or out of range.
    """
    if name not in RETRIEVERS:
        raise unknown("retriever", name, RETRIEVERS)
    prefixes = tuple(f"{part}_" for part in PARTS.get(name, ()))
    part_options: list[dict[str, Any]] = [
        {key.removeprefix(prefix): value for key, value in options.items() if key.startswith(prefix)}
        for prefix in prefixes
    ]
    own_options = {k: v for k, v in options.items() if k not in RERANKING and not k.startswith(prefixes)}
    rerank_options = {key: value for key, value in options.items() if key in RERANKING}
    rerank = bind(reranked, rerank_options) if "rerank" in rerank_options else None
    if rerank_options and not rerank:
        raise UserError("rerank_depth without rerank is not allowed: give the cross-encoder too, rerank=MODEL.")
    also_allowed = (*RERANKING, *(f"{prefix}*" for prefix in prefixes))
    bound = bind(RETRIEVERS[name], own_options, also_allowed)

    def make(corpus: Corpus) -> Retriever:
        retriever: Retriever = bound(corpus, *part_options)
        return rerank(retriever, corpus) if rerank else retriever

    return make


def for_other_texts(name: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A run's retriever for other texts than its corpus: by name and options, without prebuilt indexes and saved runs.

    Raises:
        UserError: The retriever is a saved run without a fallback.
    """
    if name == "run":
        if options.get("fallback") is None:
            raise UserError(
                "retriever=run has passages of the corpus alone, and the method also searches other texts. Give "
                "retriever_fallback= a retriever for these, such as bm25."
            )
        return for_other_texts(options["fallback"], of_part("fallback", options))
    own = {key: value for key, value in options.items() if key not in PREBUILT.get(name, ())}
    if name == "dense" and options.get("index") in BUILT_HERE:
        own["index"] = options["index"]
    for part in PARTS.get(name, ()):
        chosen, parts = for_other_texts(options.get(part, USUAL[part]), of_part(part, options))
        own = {key: value for key, value in own.items() if not key.startswith(f"{part}_")}
        own |= {part: chosen, **{f"{part}_{key}": value for key, value in parts.items()}}
    return name, own


def of_part(part: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a retriever's part."""
    prefix = f"{part}_"
    return {key.removeprefix(prefix): value for key, value in options.items() if key.startswith(prefix)}


def source_of(retriever: Retriever, text: str) -> str:
    """Who serves a text, if the retriever has a fallback or may have one; else ""."""
    source = getattr(retriever, "source_of", None)
    return str(source(text)) if source else ""
