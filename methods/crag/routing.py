"""Routing by domain: which sources are used for a question's domain.

The paper uses the same sources for every question; winners of KDD Cup 2024 chose by domain. This table is ours: tables
and the graph for finance, whose figures change daily while pages are old; pages alone for the open domain.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sources:
    """Where references may come from: the text of pages, their tables, the knowledge graph and some of its domains."""

    chunks: bool = True
    tables: bool = True
    graph: bool = True
    domains: tuple[str, ...] = ("finance", "movie", "music", "open", "sports")


ALL = Sources()
BY_DOMAIN = {
    "finance": Sources(chunks=False, tables=True, domains=("finance",)),
    "sports": Sources(tables=True, domains=("sports",)),
    "music": Sources(tables=False, domains=("music",)),
    "movie": Sources(tables=False, domains=("movie",)),
    "open": Sources(graph=False, domains=("open",)),
}
