"""What the encoding of a corpus costs: said before it begins."""

from __future__ import annotations

import logging
import time

from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval.towers import Encoder

log = logging.getLogger(__name__)
LARGE = 5_000  # documents from which the cost is said
BATCHES = 4  # of documents that are encoded to estimate it


def announce(documents: int, done: int) -> None:
    """Say how many documents are encoded, and what to do instead; before the model is loaded."""
    if documents - done >= LARGE:
        log.warning(
            "All %s documents of the corpus are encoded before the first question%s, whatever --limit says. It is done "
            "once. Instead you can give a retrieval run (retriever=run,retriever_path=FILE_OR_HUB_ID) or embeddings "
            "made elsewhere (retriever_index=FILE_OR_FOLDER).",
            f"{documents:,}", f" ({done:,} of them are done)" if done else "",
        )  # fmt: skip


def estimate(encoder: Encoder, corpus: Corpus, done: int) -> None:
    """Say how long the rest takes, by a few batches of documents from all over it."""
    left = len(corpus) - done
    if left < LARGE:
        return
    step = left // (BATCHES * encoder.batch_size) or 1
    sample = corpus.texts_of(range(done, len(corpus), step)[: BATCHES * encoder.batch_size])
    encoder.encode(sample[: encoder.batch_size])  # the first batch also prepares the device
    began = time.perf_counter()
    encoder.encode(sample)
    seconds = (time.perf_counter() - began) / len(sample) * left
    log.warning("This takes %s on this machine, by a sample of %d documents.", in_words(seconds), len(sample))


def in_words(seconds: float) -> str:
    """A time as ``about 40 s``, ``about 12 min`` or ``about 3.5 h``."""
    units = ((7200.0, 3600.0, "{:.1f} h"), (120.0, 60.0, "{:.0f} min"), (0.0, 1.0, "{:.0f} s"))
    unit, form = next((unit, form) for least, unit, form in units if seconds >= least)
    return f"about {form.format(seconds / unit)}"
