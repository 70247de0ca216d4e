"""Search in the tree (section 3, "Querying"): all nodes at once, or layer by layer from the top."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from lm_eval_rag.harness.core.asks import rank, retrieve
from lm_eval_rag.harness.core.types import Plan
from lm_eval_rag.harness.scoring.normalise import count_words
from lm_eval_rag.harness.web.chunking import pieces
from lm_eval_rag.methods.raptor_parts.tree import TABLE, Node, Tree


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is retrieved; see the method's parameters of the same names."""

    k: int
    per_layer: int


def collapsed(question: str, tree: Tree, limits: Limits) -> Plan[list[Node]]:
    """The best nodes of all layers."""
    found = yield from retrieve(question, limits.k, TABLE)
    return [tree.nodes[passage.id] for passage in found]


def within(nodes: Sequence[Node], tokens: int) -> list[Node]:
    """The first nodes whose tokens are at most ``tokens`` together; of a first that is longer, its beginning alone."""
    taken: list[Node] = []
    left = tokens
    for node in nodes:
        left -= count_words(node.text)
        if left < 0:
            break
        taken.append(node)
    return taken or [replace(node, text=next(pieces(node.text, tokens))) for node in nodes[:1]]


def traversed(question: str, tree: Tree, limits: Limits) -> Plan[list[Node]]:
    """The ``per_layer`` best nodes of the top layer, then of their children, and so on; the summaries come first.

    Nodes that share no word with the question, which BM25 does not rank, come last.
    """
    taken: list[Node] = []
    layer: Sequence[Node] = tree.top
    while layer:
        best = yield from rank(question, [node.text for node in layer], limits.per_layer)
        ranked = dict.fromkeys([*(place for place, _ in best), *range(len(layer))])
        chosen = [layer[place] for place in islice(ranked, limits.per_layer)]
        taken += chosen
        below = dict.fromkeys(child for node in chosen for child in node.children)
        layer = [tree.nodes[id] for id in below]
    return taken


SEARCHES: dict[str, Callable[[str, Tree, Limits], Plan[list[Node]]]] = {"collapsed": collapsed, "tree": traversed}
