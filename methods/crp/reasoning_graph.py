"""A directed acyclic graph of reasoning steps (section 3.1): a step's parents have smaller numbers than it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

Path = tuple[int, ...]  # numbers of nodes, from a source to a sink


@dataclass(frozen=True, slots=True)
class Node:
    """A reasoning step.

    Args:
        text: A sub-question or an explanation.
        parents: Numbers of the steps that it follows from, ascending; () for a source, which follows from the question.
        final: Whether it is the last step of a way to the answer.
    """

    text: str
    parents: tuple[int, ...] = ()
    final: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    """The steps; a node's number is its place."""

    nodes: tuple[Node, ...] = ()

    def __post_init__(self) -> None:
        for number, node in enumerate(self.nodes):
            if any(not 0 <= parent < number for parent in node.parents):
                raise ValueError(f"node {number} follows from {node.parents}: a parent must come before its child")

    def children(self) -> list[list[int]]:
        """The numbers of the steps that follow from each node, ascending."""
        after: list[list[int]] = [[] for _ in self.nodes]
        for number, node in enumerate(self.nodes):
            for parent in node.parents:
                after[parent].append(number)
        return after

    def before(self, number: int) -> list[int]:
        """The node and all steps that it follows from, in order."""
        found, left = {number}, [number]
        while left:
            new = set(self.nodes[left.pop()].parents) - found
            found |= new
            left += new
        return sorted(found)

    def paths(self, sufficient: Collection[int]) -> Iterator[Path]:
        """The paths from a source to a sink whose nodes are all among ``sufficient``, in the order of their numbers.

        They are found one by one, as there may be very many.
        """
        after, allowed = self.children(), set(sufficient)
        leading: set[int] = set()  # the allowed nodes from which an allowed path leads to a sink
        for number in reversed(range(len(self.nodes))):
            if number in allowed and (not after[number] or leading & set(after[number])):
                leading.add(number)

        def along(path: Path) -> Iterator[Path]:
            if not after[path[-1]]:
                yield path
            for number in after[path[-1]]:
                if number in leading:
                    yield from along((*path, number))

        for number, node in enumerate(self.nodes):
            if not node.parents and number in leading:
                yield from along((number,))

    def shortest(self) -> Path:
        """A path with the fewest nodes; of several the first found. () in an empty graph."""
        return self._extreme(min)

    def longest(self) -> Path:
        """A path with the most nodes."""
        return self._extreme(max)

    def _extreme(self, choose: Callable[..., Path]) -> Path:
        best: list[Path] = []  # to each node
        for number, node in enumerate(self.nodes):
            best.append((*choose((best[parent] for parent in node.parents), key=len, default=()), number))
        return choose((best[i] for i, after in enumerate(self.children()) if not after), key=len, default=())
