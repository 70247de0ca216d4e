"""Documents that state their fact in other words than the names of subject, relation and object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

FACT = ("subject", "relation", "object")


def paraphrased(columns: Mapping[str, Any], size: int) -> list[tuple[str, str, str, str]]:
    """(text, subject, relation, object) of the documents that paraphrase their fact, in row order.

    Args:
        columns: The Arrow columns ``text``, ``subject``, ``relation``, ``object`` and ``time``.
        size: Documents that are compared at once, since it takes memory.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    join = pc.binary_join_element_wise
    documents: list[tuple[str, str, str, str]] = []
    for start in range(0, len(columns["text"]), size):
        slices = (columns[name].slice(start, size) for name in ("text", *FACT, "time"))
        text, *fact, time = (pc.cast(part, pa.string()) for part in slices)
        undated = join(join(*fact, " "), ".", "")
        rows = pc.indices_nonzero(pc.not_equal(text, pc.coalesce(join("Time", time, undated, " "), undated)))
        documents += zip(*(column.take(rows).to_pylist() for column in (text, *fact)), strict=True)
    pa.default_memory_pool().release_unused()
    return documents


def wordings_of(columns: Mapping[str, Any], size: int) -> dict[str, str]:
    """Paraphrase of a relation -> the relation's name; arguments as in :func:`paraphrased`.

    A paraphrase is the text between subject and object of a document that does not use the relation's name. If it
    stands for several relations, the most frequent is taken; ties go to the first name in alphabetical order.
    """
    counts = Counter(
        (text.partition(subject)[2].partition(object)[0].strip(), relation)
        for text, subject, relation, object in paraphrased(columns, size)
    )
    ranked = sorted(counts, key=lambda pair: (-counts[pair], pair[1]), reverse=True)
    return {wording: relation for wording, relation in ranked if wording}
