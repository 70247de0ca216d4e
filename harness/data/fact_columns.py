"""What the facts of a corpus say together: the rows of each subject, and which relations go beside each other."""

from __future__ import annotations

from typing import Any

from lm_eval_rag.harness.data.tables import encoded

Spans = tuple[dict[str, tuple[int, int]], Any]


def spans(column: Any) -> Spans:
    """Start and end of each text's rows in the list of rows sorted by text, and that list.

    Args:
        column: Arrow array of texts; null rows come last and belong to no text.
    """
    import numpy as np

    texts = encoded(column)
    names = texts.dictionary.to_pylist()
    codes = texts.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
    ends = np.cumsum(np.bincount(codes, minlength=len(names) + 1)).tolist()
    bounds = zip([0, *ends], ends, strict=False)
    return dict(zip(names, bounds, strict=False)), np.argsort(codes, kind="stable")


def relations_beside(table: Any) -> dict[str, dict[str, int]]:
    """Relation -> the relations of subjects that have it too -> number of documents with them.

    Args:
        table: Arrow table with the columns ``subject`` and ``relation``; rows with a null do not count.
    """
    import polars as pl

    facts = pl.DataFrame(pl.from_arrow(table)).select("subject", "relation").drop_nulls()
    facts = facts.with_columns(pl.all().cast(pl.String))
    documents = dict(facts["relation"].value_counts().iter_rows())
    pairs = facts.unique()
    both = pairs.join(pairs, on="subject").select("relation", "relation_right").unique()
    beside: dict[str, dict[str, int]] = {}
    for one, other in both.iter_rows():
        beside.setdefault(one, {})[other] = documents[other]
    return beside
