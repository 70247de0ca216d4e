"""BM25 as Lucene scores it (Kamphuis et al., ECIR 2020, "Lucene (accurate)"), exact, ties by row.

    score(q, d) = sum over the tokens t of q of  idf(t) * tf / (tf + k1 * (1 - b + b * |d| / average |d|))
    idf(t) = ln(1 + (N - df + 0.5) / (df + 0.5))

A token that stands twice in the query counts twice. bm25s computes the scores of all (token, document) pairs once, when
the index is built. A long run is searched by numba, if it is installed (extra ``fast``), which computes once what
queries with one rule have in common; other runs by numpy. Both give the same results, float by float.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from lm_eval_rag.harness.common.errors import UserError, at_least, unknown
from lm_eval_rag.harness.common.extras import versions
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval.bm25_compiled import CompiledSearch, is_started
from lm_eval_rag.harness.retrieval.bm25_index import FORMAT, Index, build_index, stored_index
from lm_eval_rag.harness.retrieval.bm25_pruned import Ranking, pruned_search, terms_of
from lm_eval_rag.harness.retrieval.tokens import TOKENS, Dates

log = logging.getLogger(__name__)
# When numba is used: from so many queries of one retriever on, or at once if it has been started in this process. On
# RuleQA its start is repaid after some 1,000 queries (scripts/bench_bm25.py), and a run that has come to half of them
# is likely to come to all. On the first run on a machine it compiles for 5 seconds, which later runs repay.
LONG = 500


class BM25:
    """Searches one corpus; the index of a built corpus is stored in its folder and memory-mapped.

    Args:
        k1: Saturation of the term frequency, 0 or more.
        b: Weight of the document's length, in [0, 1].
        dates: Whether an ISO date is one token or three.

    Raises:
        UserError: A value out of range.
    """

    def __init__(self, corpus: Corpus, *, k1: float = 0.9, b: float = 0.4, dates: Dates = "split") -> None:
        if dates not in TOKENS:
            raise unknown("dates", str(dates), TOKENS)
        if k1 < 0 or not 0 <= b <= 1:
            raise UserError(f"bm25 with k1={k1!r}, b={b!r} is not allowed: k1 must be 0 or more, b in [0, 1].")
        made_by = f"format={FORMAT}, {versions('bm25s')}"
        self.settings = f"bm25(k1={float(k1)}, b={float(b)}, dates={dates}, {made_by})"
        self.fingerprint = f"{self.settings} over {corpus.fingerprint}"
        self._documents = len(corpus)
        self._dates: Dates = dates
        self._searched = 0  # queries so far

        def build() -> Index:
            return build_index(corpus.texts, k1, b, dates)

        self._index = stored_index(corpus.folder, self.settings, build) if corpus.folder else build()

    def search(self, texts: Sequence[str], k: int) -> list[Ranking]:
        """For each text at most ``k`` (row, score) pairs, best first, ties by row.

        Documents that share no token with the text are not returned. Results do not depend on the batch.

        Raises:
            UserError: k is below 1.
        """
        at_least("k", k)
        queries = [self._index.numbers(text, self._dates) for text in texts]
        self._searched += len(queries)
        compiled = self._compiled if self._searched >= LONG or is_started() else None
        served = [i for i, query in enumerate(queries) if compiled and compiled.serves(query, k)]
        rankings = dict(zip(served, compiled.search([queries[i] for i in served], k), strict=True)) if compiled else {}
        totals = np.zeros(self._documents if len(rankings) < len(queries) else 0)  # zeros again after each query
        return [
            rankings[i] if i in rankings else pruned_search(terms_of(self._index, query), k, totals)
            for i, query in enumerate(queries)
        ]

    @cached_property
    def _compiled(self) -> CompiledSearch | None:
        try:
            return CompiledSearch(self._index, self._documents)
        except ImportError as error:
            log.debug("BM25 is searched by numpy alone: %s", error)
            return None
