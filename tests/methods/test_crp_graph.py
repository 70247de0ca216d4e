"""CRP-RAG's graph against brute force, and the reading of proposed steps."""

from __future__ import annotations

import math
import random
from itertools import chain, combinations, pairwise

import pytest

from lm_eval_rag.methods.crp.building import read_step
from lm_eval_rag.methods.crp.node_knowledge import perplexity
from lm_eval_rag.methods.crp.reasoning_graph import Graph, Node


def random_graph(rng: random.Random) -> Graph:
    nodes = []
    for number in range(rng.randrange(1, 9)):
        parents = tuple(i for i in range(number) if rng.random() < 0.35)
        nodes.append(Node(f"n{number}", parents))
    return Graph(tuple(nodes))


def all_paths(graph: Graph) -> list[tuple[int, ...]]:
    """Every ascending tuple of numbers that is a path from a source to a sink."""
    size = range(len(graph.nodes))
    has_child = {parent for node in graph.nodes for parent in node.parents}
    tuples = chain.from_iterable(combinations(size, length) for length in range(1, len(graph.nodes) + 1))
    return [
        path
        for path in tuples
        if not graph.nodes[path[0]].parents
        and path[-1] not in has_child
        and all(a in graph.nodes[b].parents for a, b in pairwise(path))
    ]


def test_paths_of_sufficient_nodes():
    rng = random.Random(0)
    for _ in range(300):
        graph = random_graph(rng)
        allowed = {i for i in range(len(graph.nodes)) if rng.random() < 0.8}
        expected = sorted(path for path in all_paths(graph) if set(path) <= allowed)
        assert list(graph.paths(allowed)) == expected


def test_shortest_and_longest():
    rng = random.Random(1)
    for _ in range(300):
        graph = random_graph(rng)
        paths = all_paths(graph)
        assert graph.shortest() in paths and len(graph.shortest()) == min(map(len, paths))
        assert graph.longest() in paths and len(graph.longest()) == max(map(len, paths))
    assert Graph().shortest() == Graph().longest() == () and list(Graph().paths(())) == []


def test_what_comes_before():
    graph = Graph((Node("a"), Node("b"), Node("c", (0,)), Node("d", (1, 2)), Node("e", (2,))))
    assert graph.before(3) == [0, 1, 2, 3] and graph.before(4) == [0, 2, 4] and graph.before(0) == [0]


@pytest.mark.parametrize("parents", [(0,), (1,), (-1,)])
def test_a_circle_cannot_be_written(parents):
    with pytest.raises(ValueError, match="a parent must come before its child"):
        Graph((Node("a", parents),))


def test_very_many_paths_are_found_one_by_one():
    nodes, before = [], ()
    for _ in range(15):
        layer = tuple(range(len(nodes), len(nodes) + 10))
        nodes += [Node("x", before) for _ in layer]
        before = layer
    assert len(next(Graph(tuple(nodes)).paths(range(150)))) == 15  # of 10 ** 15


@pytest.mark.parametrize(
    ("reply", "step"),
    [
        ("Who wrote it?\nAnd then?", ("Who wrote it?", False)),
        ("Final: Bo wrote it.", ("Bo wrote it.", True)),
        ("- **Final step:** Bo wrote it.", ("Bo wrote it.", True)),
        ("2. Final - who is Bo?", ("who is Bo?", True)),
        ("Finally he wrote it.", ("Finally he wrote it.", False)),
        ("Final scores of the match?", ("Final scores of the match?", False)),
        ("So the answer is Bo.", ("So the answer is Bo.", True)),
        ("Final:", ("", False)),
        ("\n  ", ("", False)),
    ],
)
def test_reading_steps(reply, step):
    assert read_step(reply) == step


def test_perplexity_is_per_word():
    assert perplexity(math.log(0.25), "two words") == pytest.approx(2)
    assert perplexity(0.0, "x") == 1 and perplexity(-math.inf, "x") > 1e300
