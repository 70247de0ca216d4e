"""Reasoning graph construction (section 3.2), and the structures that Table 5 puts in its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Literal

from lm_eval_rag.harness.core.asks import generate, rank, sample, together
from lm_eval_rag.harness.core.types import Plan
from lm_eval_rag.harness.scoring.normalise import normalise
from lm_eval_rag.methods.crp.reasoning_graph import Graph, Node
from lm_eval_rag.methods.prompts.worded import Wording
from lm_eval_rag.methods.reasoning.rationales import lines, overlap, states_answer, without_preamble
from lm_eval_rag.methods.reasoning.steps import STOP

Structure = Literal["graph", "tree", "chain", "text"]
FINAL = re.compile(
    r"^(?:\W*step\s*\d*\W+)?(?:here(?:['’]s|\s+is)\s+)?(?:the\s+)?\W*final"
    r"(?:(?:\s+(?:reasoning\s+)?(?:step|(?:sub-?)?question))?(?:\s+is)?(?:\W*[:.)]|\s+[–-]\s)\W*|\s+step\s+is\s+to\s+)",
    re.IGNORECASE,
)
CAPPED = {"nodes": "max_nodes reached", "depth": "max_depth reached"}


@dataclass(frozen=True, slots=True)
class Growth:
    """How a structure grows; see the method's parameters of the same names."""

    wording: Mapping[str, Wording]
    samples: int
    similarity: float
    similar: str
    max_nodes: int
    max_depth: int
    sampling_temperature: float
    temperature: float
    step_tokens: int


def build(question: str, structure: Structure, growth: Growth, notes: list[str]) -> Plan[Graph]:
    """The steps towards the answer of a question; empty if the model writes none.

    Args:
        notes: Gets ``max_nodes reached`` or ``max_depth reached`` where steps that are not final stay without others,
            ``repeated step dropped``, ``no new step``, ``blank fusion``, ``blank rewriting``.
    """
    return (yield from STRUCTURES[structure](question, growth, notes))


def _merged(question: str, growth: Growth, notes: list[str]) -> Plan[Graph]:
    return (yield from _grown(question, growth, notes, merging=True))


def _tree(question: str, growth: Growth, notes: list[str]) -> Plan[Graph]:
    return (yield from _grown(question, growth, notes))


def _chains(question: str, growth: Growth, notes: list[str]) -> Plan[Graph]:
    """Several first steps, each of which has one step after it, and so on."""
    return (yield from _grown(question, growth, notes, branches=1))


def _text(question: str, growth: Growth, notes: list[str]) -> Plan[Graph]:
    """The question, written anew, is the one step."""
    prompt = growth.wording["rewrite"].prompt(question=question)
    reply = yield from generate(prompt, temperature=growth.temperature, max_tokens=growth.step_tokens, stop=STOP)
    notes += [] if reply.strip() else ["blank rewriting"]
    return Graph((Node(next(iter(lines(without_preamble(reply))), question), final=True),))


STRUCTURES: dict[str, Callable[[str, Growth, list[str]], Plan[Graph]]] = {
    "graph": _merged,
    "tree": _tree,
    "chain": _chains,
    "text": _text,
}


def _grown(
    question: str, growth: Growth, notes: list[str], *, merging: bool = False, branches: int | None = None
) -> Plan[Graph]:
    """Iterations of new nodes for each sink, until all sinks are final or a limit is reached.

    Args:
        merging: Whether similar new nodes become one.
        branches: New nodes of each sink but the question; None is ``samples``.
    """
    graph = Graph()
    sinks: list[int | None] = [None]  # None is the question
    for _ in range(growth.max_depth):
        noted: list[list[str]] = [[] for _ in sinks]
        counts = [growth.samples if branches is None or sink is None else branches for sink in sinks]
        growing = (
            _next_steps(question, graph, *one) for one in zip(sinks, counts, repeat(growth), noted, strict=False)
        )
        new = list(chain(*(yield from together(growing))))
        notes += chain(*noted)
        if merging:
            new = yield from _without_similar(question, new, growth, notes)
        room = growth.max_nodes - len(graph.nodes)
        if len(new) > room:
            notes.append(CAPPED["nodes"])
        begin = len(graph.nodes)
        graph = Graph((*graph.nodes, *new[:room]))
        sinks = [number for number in range(begin, len(graph.nodes)) if not graph.nodes[number].final]
        if not sinks:
            return graph
        if len(graph.nodes) == growth.max_nodes:
            break
    notes.append(CAPPED["nodes" if len(graph.nodes) == growth.max_nodes else "depth"])
    return graph


def _next_steps(
    question: str, graph: Graph, sink: int | None, n: int, growth: Growth, notes: list[str]
) -> Plan[list[Node]]:
    """The new nodes of one sink (equation 4): what was sampled, each once, without steps that it already follows from.

    Such repeated steps would be a circle in the reasoning.
    """
    known = [] if sink is None else [graph.nodes[number].text for number in graph.before(sink)]
    prompt = growth.wording["step"].prompt(question=question, known=known)
    replies = yield from sample(prompt, n, growth.sampling_temperature, max_tokens=growth.step_tokens, stop=STOP)
    new: dict[str, Node] = {}
    for text, final in map(read_step, replies):
        if any(overlap(text, before) > growth.similarity for before in known):
            notes.append("repeated step dropped")
        elif text:
            new.setdefault(normalise(text), Node(text, () if sink is None else (sink,), final))
    if not new:
        notes.append("no new step")
    return list(new.values())


def read_step(reply: str) -> tuple[str, bool]:
    """The step in a reply, its first line after a preamble, and whether it is final: "Final:", or an answer stated."""
    written = "\n".join(lines(without_preamble(reply)))
    text = FINAL.sub("", written)
    step = text.partition("\n")[0]
    return step, bool(step) and (text != written or states_answer(step))


def _without_similar(question: str, new: Sequence[Node], growth: Growth, notes: list[str]) -> Plan[list[Node]]:
    """Node merging (equations 5 and 6): a node and the most similar one before it become one, with both's parents.

    Only nodes of one iteration merge, so that no circle can arise. Equal ones need no model.
    """
    kept: list[Node] = []
    for node in new:
        scores = yield from _similarities(node.text, [other.text for other in kept], growth.similar)
        best = max(range(len(kept)), key=scores.__getitem__, default=-1)
        if best < 0 or scores[best] <= growth.similarity:
            kept.append(node)
            continue
        other, text = kept[best], kept[best].text
        if normalise(text) != normalise(node.text):
            prompt = growth.wording["fuse"].prompt(question=question, steps=[text, node.text])
            reply = yield from generate(
                prompt, temperature=growth.temperature, max_tokens=growth.step_tokens, stop=STOP
            )
            notes += [] if reply.strip() else ["blank fusion"]
            text = " ".join(lines(without_preamble(reply))) or text
        parents = tuple(sorted({*other.parents, *node.parents}))
        kept[best] = replace(other, text=text, parents=parents, final=other.final and node.final)
    return kept


def _similarities(text: str, others: Sequence[str], similar: str) -> Plan[list[float]]:
    """How similar each other text is, in [0, 1]."""
    if similar == "words" or not others:
        return [overlap(text, other) for other in others]
    scores = dict((yield from rank(text, (text, *others), len(others) + 1)))
    itself = scores.get(0, 0.0)  # of normalised embeddings 1, so that nothing changes
    return [min(1.0, max(0.0, scores.get(place, 0.0) / itself)) if itself > 0 else 0.0
            for place in range(1, len(others) + 1)]  # fmt: skip
