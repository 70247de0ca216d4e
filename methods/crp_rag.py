"""CRP-RAG: a reasoning graph guides retrieval, aggregation and the choice of paths.

From doi:10.20944/preprints202411.1648.v1:

1. Graph construction (section 3.2): for each sink the model samples next steps; similar new steps are merged into one,
   which the model writes; until all sinks are final steps.
2. Knowledge (section 3.3): passages are retrieved for each node, and the model summarises them.
3. Answer (section 3.4): a node's knowledge suffices if the perplexity of the model's reasoning by it is below a
   threshold. Along each path from a source to a sink whose nodes all suffice the model reasons step by step; it fuses
   the paths' answers. Where no such path stands the method refuses to answer (note ``no sufficient path``).

``structure``, ``aggregation``, ``evaluation`` and ``iterative`` are the rows of its Tables 2 and 5. ``evaluation=off``
takes the shortest and the longest path, as the paper; ``shortest`` and ``longest`` take one of them.

Defaults of the paper: 5 passages a node, temperature 0.1 but for the sampled steps. It prints neither thresholds, nor
the samples of a sink, nor their temperature, nor a limit of the graph. Ours: 3 samples at temperature 0.7; at most 20
nodes, 5 steps in sequence and 5 paths.

``threshold=1.4`` and ``similarity=0.7`` were chosen on 50 training questions of MuSiQue
(``scripts/calibrate_crp_rag.py``, with SmolLM2-135M-Instruct). Each of their 118 hops was judged with the paragraph
that answers it and without. The best threshold is 1.42, by balanced accuracy, and 1.66 and 1.40 on the halves of the
questions, where it is right on 53.4 % of the other half; 50 % is chance. So with this model a perplexity hardly tells
whether the knowledge suffices: the area under the ROC curve is 0.544 [0.486, 0.605]. Nine in ten perplexities are below
2.6, since a reply at temperature 0.1 is likely by construction. A threshold of 50, between the perplexities of answers
that the paper prints (21.4 and 112.0, Table 3, HotpotQA), refuses no node at all. Of 89 pairs of different hops a
similarity of 0.5 would merge 2.2 %, 0.6 to 0.9 none; nothing tells how many equal steps each value leaves apart, so it
is one between. Run the script with your model before you compare: it takes minutes.

Departures:
- The wording of the prompts is ours, without the examples that the paper's have.
- The question is where all paths begin, and no node itself: it has no knowledge of its own that would have to suffice.
- A step is final if the model begins it with "Final:" or states an answer in it. At the limits, and where the model
  proposes nothing new, sinks count as final (notes ``max_nodes reached``, ``max_depth reached``, ``no new step``).
- Similarity is the share of common words (Dice). ``similar=retriever`` takes the run's retriever, with the score of a
  step for itself as 1: with a normalised encoder (``retriever=dense``) that is equation 5; BM25 is no measure of it. A
  step that repeats one that it follows from is dropped, whatever ``similar`` is (note ``repeated step dropped``).
- Perplexity is per word, so that a threshold is in the same unit for every tokenizer. Where the model gives no
  log-probabilities it is asked whether the knowledge suffices (note ``no log-probabilities: sufficiency asked``). A
  node without passages does not suffice.
- The last step of a path is told to answer the question. Equal answers of all paths are not fused by the model.
- Where knowledge is not evaluated only the nodes on the chosen paths get any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Literal

from lm_eval_rag.harness.core.asks import log_probabilities, together
from lm_eval_rag.harness.core.parameters import AtLeastOne, Depth, NonNegative, Positive, Share
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query
from lm_eval_rag.harness.retrieval.fusion import round_robin
from lm_eval_rag.methods.crp.building import Growth, Structure, build
from lm_eval_rag.methods.crp.node_knowledge import Judge, Knowledge, gathered
from lm_eval_rag.methods.crp.path_reasoning import Reasoner
from lm_eval_rag.methods.crp.reasoning_graph import Graph, Path
from lm_eval_rag.methods.prompts.worded import wordings
from lm_eval_rag.methods.reasoning.judgements import PROXY
from lm_eval_rag.methods.reasoning.steps import abstention, final, limited, merged

REFUSED = "no sufficient path"  # note of an abstention
# evaluation -> the paths that are taken without one
UNEVALUATED: dict[str, Callable[[Graph], tuple[Path, ...]]] = {
    "off": lambda graph: (graph.shortest(), graph.longest()),
    "shortest": lambda graph: (graph.shortest(),),
    "longest": lambda graph: (graph.longest(),),
}


@limited
def crp_rag(
    query: Query,
    *,
    k: Depth = 5,
    structure: Structure = "graph",
    aggregation: Literal["on", "off"] = "on",
    evaluation: Literal["on", "off", "shortest", "longest"] = "on",
    iterative: Literal["on", "off"] = "on",
    samples: Positive = 3,
    similarity: Share = 0.7,
    similar: Literal["words", "retriever"] = "words",
    threshold: AtLeastOne = 1.4,
    max_nodes: Positive = 20,
    max_depth: Positive = 5,
    max_paths: Positive = 5,
    sampling_temperature: NonNegative = 0.7,
    temperature: NonNegative = 0.1,
    step_tokens: Positive = 100,
    summary_tokens: Positive = 256,
    prompt_file: str | None = None,
    max_calls: Positive | None = None,
) -> Plan[Answer]:
    """Answer along the paths of a reasoning graph whose knowledge suffices; refuse where there is none.

    Args:
        k: Passages of each node.
        structure: ``graph``; ``tree``, without merging; ``chain``, several first steps with one after each; ``text``,
            the question written anew in place of steps.
        aggregation: ``off`` shows the passages themselves in place of a summary.
        evaluation: ``off`` takes the shortest and the longest path; ``shortest`` or ``longest`` one of them.
        iterative: ``off`` answers each path with one prompt in place of step by step.
        samples: Steps sampled for each sink.
        similarity: Steps are merged above it; in [0, 1].
        similar: What measures it: common words, or the run's retriever, which should be an encoder.
        threshold: Knowledge suffices below this perplexity per word; 1 or more.
        max_nodes: Nodes of the graph, at most.
        max_depth: Steps in sequence, at most.
        max_paths: Paths that are followed, at most: the first in the order of their nodes.
        sampling_temperature: Of the sampled steps.
        temperature: Of all else.
        step_tokens: Limit of tokens of a step, of its result, and of an answer.
        summary_tokens: Limit of tokens of a summary.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
        max_calls: Calls of the model, at most; beyond them it abstains. None is as many as the parameters lead to.
    """
    wording = wordings("crp_rag", prompt_file)
    notes: list[str] = []
    growth = Growth(
        wording,
        samples=samples,
        similarity=similarity,
        similar=similar,
        max_nodes=max_nodes,
        max_depth=max_depth,
        sampling_temperature=sampling_temperature,
        temperature=temperature,
        step_tokens=step_tokens,
    )
    graph = yield from build(query.text, structure, growth, notes)
    chosen = UNEVALUATED[evaluation](graph) if evaluation != "on" else ()
    wanted = range(len(graph.nodes)) if evaluation == "on" else sorted({number for path in chosen for number in path})
    noted: list[list[str]] = [[] for _ in wanted]
    options: dict[str, Any] = {"k": k, "summary": aggregation == "on", "temperature": temperature}
    gathering = (
        gathered(graph.nodes[number].text, wording, new, tokens=summary_tokens, **options)
        for number, new in zip(wanted, noted, strict=True)
    )
    knowledge: dict[int, Knowledge] = dict(zip(wanted, (yield from together(gathering)), strict=True))
    notes += chain(*noted)
    if evaluation == "on":
        judge = Judge(wording, (yield from log_probabilities()), threshold, temperature, step_tokens)
        notes += [] if judge.logs else [f"{PROXY}: sufficiency asked"]
        judged = together(judge.suffices(graph.nodes[number].text, known) for number, known in knowledge.items())
        sufficient = [number for number, is_enough in zip(knowledge, (yield from judged), strict=True) if is_enough]
        chosen = tuple(islice(graph.paths(sufficient), max_paths))
    paths = [path for path in dict.fromkeys(chosen) if path]
    passages = _passages(paths, knowledge)
    if not paths:
        return abstention(passages, *notes, REFUSED)
    reasoner = Reasoner(query.text, graph, knowledge, wording, temperature, step_tokens)
    follow = reasoner.step_by_step if iterative == "on" else reasoner.at_once
    answers = []
    for path in paths:
        answers.append((yield from follow(path)))
    return final((yield from reasoner.fused(answers)), passages, notes, reasoner.rationale)


def _passages(paths: Sequence[Path], knowledge: Mapping[int, Knowledge]) -> tuple[Passage, ...]:
    """All passages: in turn those of the nodes on the paths, then those of the others."""
    on_paths = sorted({number for path in paths for number in path})
    others = [number for number in sorted(knowledge) if number not in set(on_paths)]
    return merged(round_robin(knowledge[number].passages for number in part) for part in (on_paths, others))
