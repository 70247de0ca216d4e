"""The open domain: encyclopedia entities, from ``open/kg.0.jsonl.bz2`` and ``open/kg.1.jsonl.bz2``."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.kg.convert import open_records
from lm_eval_rag.harness.kg.names import NameIndex, ranking_of
from lm_eval_rag.harness.kg.records import Records

FILES = ("open/kg.0.jsonl.bz2", "open/kg.1.jsonl.bz2")


class Open:
    """The two functions of the open domain.

    Args:
        folder: The graph's folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def _parts(self) -> list[Records]:
        return [open_records(self.folder, name) for name in FILES]

    @cached_property
    def _names(self) -> tuple[list[str], NameIndex]:
        names = list(dict.fromkeys(key for part in self._parts for key in part.keys))  # a name may be in both
        return names, NameIndex(names, ranking_of("open", *self._parts))

    def search_entity_by_name(self, query: str) -> list[str]:
        """At most 10 entities, best match first."""
        names, index = self._names
        return [names[row] for row in index.search(query)]

    def get_entity(self, entity: str) -> Any:
        """The entity of exactly this name, as in the file; if both files have it, the later one, as on the server."""
        values = (part.get(entity) for part in reversed(self._parts))
        return next((value for value in values if value is not None), None)
