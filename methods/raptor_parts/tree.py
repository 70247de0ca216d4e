"""The tree: nodes by id, what a retrieved node stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from lm_eval_rag.harness.core.types import Passage

TABLE = "nodes"


@dataclass(frozen=True, slots=True)
class Node:
    """A leaf or a summary.

    Args:
        id: ``L<layer>.<number>``.
        layer: 0 for leaves.
        children: Ids of the nodes that it summarises; () for a leaf.
        passage: Id of the passage that a leaf is a part of; "" for a summary.
    """

    id: str
    text: str
    layer: int
    children: tuple[str, ...] = ()
    passage: str = ""

    def row(self) -> dict[str, Any]:
        """For a table."""
        return asdict(self)


@dataclass(frozen=True)
class Tree:
    """All nodes of a corpus."""

    nodes: Mapping[str, Node]

    @classmethod
    def of(cls, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Tree:
        """The tree from what the preparation stored."""
        rows = tables[TABLE]
        fields = ("id", "text", "layer", "children", "passage")
        nodes = (Node(**{name: row[name] for name in fields}) for row in rows)
        return cls({node.id: replace(node, children=tuple(node.children)) for node in nodes})

    @cached_property
    def top(self) -> tuple[Node, ...]:
        """The nodes of the highest layer."""
        highest = max((node.layer for node in self.nodes.values()), default=0)
        return tuple(node for node in self.nodes.values() if node.layer == highest)

    def passages(self, nodes: Iterable[Node]) -> tuple[Passage, ...]:
        """What nodes stand for, in their order: each passage once, with the leaves that were chosen of it as its text.

        A summary stands for itself, with its node's id, or one that no passage has.
        """
        texts: dict[str, list[str]] = {}
        for node in nodes:
            texts.setdefault(node.passage or self._own_id(node), []).append(node.text)
        return tuple(Passage(id, "\n".join(parts)) for id, parts in texts.items())

    def _own_id(self, node: Node) -> str:
        id = node.id
        while id in self._passages:
            id += "'"
        return id

    @cached_property
    def _passages(self) -> frozenset[str]:
        """The ids of the passages that leaves are parts of."""
        return frozenset(node.passage for node in self.nodes.values())


def tree_of(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Tree:
    """:meth:`Tree.of` as a function of one identity, by which it is kept."""
    return Tree.of(tables)
