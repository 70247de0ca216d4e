"""By which fields of its documents a task's questions are clustered, as its metadata declares: ``clusters``.

A key is the name of a field, or several names together: ``clusters: [[subject, relation], relation]`` clusters once by
subject and relation, and once by relation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown

CLUSTERS = "clusters"  # the key of a task's metadata
Keys = tuple[tuple[str, ...], ...]


def cluster_keys(metadata: Mapping[str, Any] | None) -> Keys:
    """What a task's metadata declares; () if it declares nothing.

    Raises:
        UserError: It is not a list of names, or of lists of names.
    """
    declared = (metadata or {}).get(CLUSTERS) or []
    keys = _lists(declared)
    if not all(keys) or not all(isinstance(name, str) for key in keys for name in key):
        raise UserError(
            f"metadata: clusters = {declared!r} is not allowed. Write a list of fields of the documents, or of lists "
            "of them, such as [[subject, relation], relation]."
        )
    return tuple(tuple(key) for key in keys)


def _lists(declared: Any) -> list[list[Any]]:
    """A name alone as a list; [] for what is no list at all."""
    if not isinstance(declared, (list, tuple)):
        return [[]]
    return [[key] if isinstance(key, str) else list(key) if isinstance(key, (list, tuple)) else [] for key in declared]


def cluster_labels(docs: Iterable[Mapping[str, Any]], keys: Keys) -> list[list[Hashable]]:
    """For each key the label of each question; None, a cluster of its own, if the question has none of the fields.

    Raises:
        UserError: No question has one of the fields.
    """
    rows = list(docs)
    for name in dict.fromkeys(name for key in keys for name in key):
        if rows and not any(name in doc for doc in rows):
            known = sorted({field for doc in rows for field in doc if not field.startswith("_")})
            raise unknown("field of the questions in metadata: clusters,", name, known)
    return [[label_of(doc, key) for doc in rows] for key in keys]


def label_of(doc: Mapping[str, Any], key: Sequence[str]) -> Hashable:
    """The values of the key's fields as texts."""
    values = [doc.get(name) for name in key]
    return None if all(value is None for value in values) else tuple(map(str, values))


def clustering_text(keys: Keys) -> str:
    """``by subject and relation; by relation``."""
    return "; ".join(f"by {' and '.join(key)}" for key in keys)
