"""The facts that a corpus states, counted: which entities they name with a subject or a relation, and how often."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from lm_eval_rag.harness.core.asks import Stated

Asked = tuple[str | None, str | None, bool]


class StatedFacts:
    """The facts of one corpus.

    Args:
        table: Arrow table with the text columns ``subject``, ``relation``, ``object`` and ``time``, one row a document;
            documents that state no fact have null there.
    """

    def __init__(self, table: Any) -> None:
        import polars as pl

        names = ["subject", "relation", "object"]
        whole = (
            pl.DataFrame(pl.from_arrow(table)).drop_nulls(names).with_columns(pl.col(*names, "time").cast(pl.String))
        )
        counted = whole.group_by(names).agg(pl.len().alias("documents"), pl.col("time").max().alias("last"))
        self._of_subject, self._of_relation, self._of_object = (
            counted.partition_by(name, as_dict=True) for name in names
        )
        self.known = counted.height > 0
        self.stated = lru_cache(maxsize=1 << 14)(self._stated)

    def _stated(self, subject: str | None, relation: str | None, inverse: bool) -> tuple[Stated, ...]:
        """As :class:`~lm_eval_rag.harness.core.ask_types.Facts` says; () for an unknown subject or relation."""
        import polars as pl

        by_entity = self._of_object if inverse else self._of_subject
        part = self._of_relation.get((relation,)) if subject is None else by_entity.get((subject,))
        if part is None:
            return ()
        if subject is not None and relation is not None:
            part = part.filter(pl.col("relation") == relation)
        rows = part.group_by("subject" if inverse else "object").agg(pl.col("documents").sum(), pl.col("last").max())
        return tuple(sorted((Stated(*row) for row in rows.iter_rows()), key=lambda one: (-one.documents, one.entity)))
