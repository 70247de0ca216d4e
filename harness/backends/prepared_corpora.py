"""What was prepared for the corpora of a run: opened when first needed, the last few kept in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.data.page_store import split_id
from lm_eval_rag.harness.data.products import OpenProduct

KEPT = 16  # products that stay in memory; questions with passages of their own have one each


@dataclass(slots=True)
class Products:
    """The products by the query's corpus.

    Args:
        ids: Of the product for each corpus; None is the one corpus that was given for all questions.
    """

    ids: dict[str | None, str] = field(default_factory=dict)
    _open: dict[str, OpenProduct] = field(default_factory=dict)
    _corpora: dict[str, Corpus] = field(default_factory=dict)

    def of(self, corpus: str | None) -> OpenProduct:
        """The product for a corpus.

        Raises:
            UserError: Nothing was prepared for it.
        """
        if corpus not in self.ids:
            raise UserError(
                "The method asks for what was prepared from the corpus, and nothing was. Give the method a preparation "
                "by @prepared_by (lm_eval_rag.harness.core.preparing)."
            )
        id = self.ids[corpus]
        product = self._open.pop(id, None) or OpenProduct(id)
        self._open[id] = product  # the last is the one that was used last
        for old in list(self._open)[:-KEPT]:
            del self._open[old]
        return product

    def derived(self, corpus: str | None, table: str) -> tuple[Corpus, list[str]]:
        """A table as a corpus, and the ids of such corpora that are no longer kept.

        The index over what was prepared for a single question is small, so it is not stored.
        """
        product = self.of(corpus)
        id = f"{product.id}/{table}"
        opened = self._corpora.pop(id, None)
        if opened is None:
            opened = product.corpus(table, stored=corpus is None or split_id(corpus)[1] is None)
        self._corpora[id] = opened
        old = list(self._corpora)[:-KEPT]
        for one in old:
            del self._corpora[one]
        return opened, old
