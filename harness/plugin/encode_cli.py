"""``lm-eval-rag encode``: encode the corpora of tasks for ``retriever=dense``, ahead of their first use.

The vectors are those that a run would make at its start. Several processes or machines take a share of the shards each
(``--shard I/N``), or Ray gives them to its workers (``--engine ray``). The last command, without ``--shard``, finds all
of them finished, and compares every checksum.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import storing
from lm_eval_rag.harness.common.ray_engine import add_engine, engine_of
from lm_eval_rag.harness.common.shares import share_of
from lm_eval_rag.harness.data.corpus import Corpus, open_corpus
from lm_eval_rag.harness.documents.intake import as_corpus
from lm_eval_rag.harness.plugin.encode_on_ray import encode_on_ray
from lm_eval_rag.harness.plugin.retrieve_cli import load_tasks, questions_of, retriever_options
from lm_eval_rag.harness.retrieval import PREBUILT, RERANKING, make_retriever, prepare
from lm_eval_rag.harness.retrieval.embeddings import RESUMED
from lm_eval_rag.harness.retrieval.manifest import verify
from lm_eval_rag.harness.retrieval.shards import Shards

WHOLE = "1/1"


def encode_main(argv: Sequence[str]) -> int:
    """Run the command; returns 0.

    Raises:
        UserError: Bad arguments, a task without a corpus, or an encoder that cannot be used.
        MachineError: The disk is full or the cache cannot be written.
    """
    chosen = _parser().parse_args(list(argv))
    share = share_of("--shard", chosen.shard)
    options = retriever_options(chosen.retriever_args)
    for name in sorted(options.keys() & {*PREBUILT["dense"], *RERANKING}):
        raise UserError(f"{name} has no meaning here: it is not of the encoding. Leave it out.")
    prepare("dense", **options)  # a wrong option ends the command before any work
    if (chosen.tasks is None) == (chosen.corpus is None):
        raise UserError("Give --tasks, whose corpora are encoded, or --corpus DOCUMENTS: one of the two.")
    engine = engine_of(chosen)
    if engine is not None and chosen.shard != WHOLE:
        raise UserError("--shard divides the work among commands, --engine ray among workers: give one of the two.")
    for corpus in _corpora(chosen):
        if engine is not None:
            encode_on_ray(engine, corpus, options, chosen.corpus)
        sys.stdout.write(_encode(corpus, options, share))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lm-eval-rag encode", description="Encode corpora for retriever=dense, ahead of their first use."
    )
    parser.add_argument("--tasks", metavar="TASKS", help="names of tasks or groups, joined by commas")
    parser.add_argument("--corpus", metavar="DOCUMENTS", help="a folder or file in place of tasks")
    parser.add_argument(
        "--retriever-args", default="", metavar="ARGS", help="options of dense without the prefix: model=e5,store=int8"
    )
    parser.add_argument("--metadata", default="{}", help='as lm_eval\'s: \'{"corpus": "mirror"}\'')
    parser.add_argument("--shard", default=WHOLE, metavar="I/N", help="of N processes this is the I-th (default: 1/1)")
    add_engine(parser)
    return parser


def _corpora(chosen: argparse.Namespace) -> Iterator[Corpus]:
    if chosen.corpus is not None:
        given = as_corpus(chosen.corpus)
        assert given is not None
        yield given
        return
    tasks = load_tasks(chosen.tasks.split(","), chosen.metadata)
    yield from map(open_corpus, dict.fromkeys(str(query.corpus) for query in questions_of(tasks)))


def _encode(corpus: Corpus, options: dict[str, Any], share: tuple[int, int]) -> str:
    """Encode one corpus and say what is there."""
    retriever: Any = make_retriever("dense", corpus, **options)
    with storing(retriever.folder, RESUMED):
        vectors: Shards | None = retriever.encode_share(share)
    if vectors is None:
        return (
            f"{corpus.id}: share {share[0]} of {share[1]} is finished, other shards are missing: {retriever.folder}\n"
        )
    verify(vectors)
    rows, dimensions = vectors.shape
    count = len(vectors.shards)
    return (
        f"{corpus.id}: {len(corpus)} documents in, {rows} vectors of {dimensions} numbers out, in "
        f"{count} shard{'s' if count > 1 else ''}, checksums right: {retriever.folder}\n"
    )
