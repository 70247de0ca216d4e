"""The preparation of RAPTOR: a tree over the passages of a corpus, each layer of which summarises the one below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.common.progress import Meter
from lm_eval_rag.harness.core.asks import embed, generate
from lm_eval_rag.harness.core.parameters import Natural, Positive, Share
from lm_eval_rag.harness.core.preparing import Estimate, Product, for_each
from lm_eval_rag.harness.core.types import Passage, Plan
from lm_eval_rag.harness.scoring.normalise import count_words
from lm_eval_rag.methods.prompts.worded import Wording, wordings
from lm_eval_rag.methods.raptor_parts.clusters import Cluster, check_packages, fitting, soft_clusters
from lm_eval_rag.methods.raptor_parts.leaves import SPLITS
from lm_eval_rag.methods.raptor_parts.tree import TABLE, Node
from lm_eval_rag.methods.reasoning.steps import STOP

CHILDREN = 6.7  # of a node, on average, in the paper's trees (its appendix)
CLUSTERING = 0.03  # seconds of one core for each node; 500 leaves took 12 s, and larger corpora have larger mixtures
VERSION = "raptor-2.1"  # of its prompt, and of its code
Variant = Literal["paper", "official"]


def grow_tree(
    passages: Sequence[Passage],
    *,
    leaf_tokens: Positive = 100,
    dimensions: Positive = 10,
    membership: Share = 0.1,
    layers: Natural = 5,
    cluster_tokens: Positive = 3500,
    summary_tokens: Positive = 100,
    seed: Natural = 0,
    variant: Variant = "paper",
    prompt_file: str | None = None,
) -> Plan[Product]:
    """The tree; the parameters are those of the method.

    Layers are added until one has too few nodes to be clustered (``dimensions`` + 1), or is no smaller than the one
    below, or there are ``layers`` of them.
    """
    check_packages()
    wording, notes = wordings("raptor", prompt_file)["summarise"], Counter[str]()
    layer = leaves_of(passages, leaf_tokens, variant)
    nodes = list(layer)
    for height in range(1, layers + 1):
        if len(layer) <= dimensions + 1:
            break
        vectors = yield from embed(node.text for node in layer)
        options: dict[str, Any] = {"dimensions": dimensions, "threshold": membership, "seed": seed}
        options["keep"] = variant == "paper"
        with Meter(f"clusters of {len(layer):,} nodes"):
            clusters = soft_clusters(vectors, **options)
            sizes = [count_words(node.text) for node in layer]
            clusters = fitting(clusters, vectors, sizes, cluster_tokens, **options)
        if len(clusters) >= len(layer):
            notes["layer not smaller than the one below"] += 1
            break
        layer = yield from _summaries(layer, clusters, height, wording, summary_tokens, notes)
        nodes += layer
    return Product({TABLE: [node.row() for node in nodes]}, notes)


def leaves_of(passages: Sequence[Passage], tokens: int, variant: Variant) -> list[Node]:
    """The leaves; none holds text of two passages."""
    leaves: list[Node] = []
    for passage in passages:
        for text in SPLITS[variant](passage.text, tokens):
            leaves.append(Node(f"L0.{len(leaves)}", text, 0, passage=passage.id))
    return leaves


def _summaries(
    layer: Sequence[Node], clusters: Sequence[Cluster], height: int, wording: Wording, tokens: int, notes: Counter[str]
) -> Plan[list[Node]]:
    """The next layer: one summary for each cluster."""

    def summarise(cluster: Cluster) -> Plan[str]:
        texts = [Passage(layer[row].id, layer[row].text) for row in cluster]
        return generate(wording.prompt(texts, count=str(len(texts))), temperature=0.0, max_tokens=tokens, stop=STOP)

    above: list[Node] = []
    replies = yield from for_each(clusters, summarise)
    for cluster, reply in zip(clusters, replies, strict=True):
        if isinstance(reply, CallError) or not reply.strip():
            notes["summary failed" if isinstance(reply, CallError) else "blank summary"] += 1
            continue
        children = tuple(layer[row].id for row in cluster)
        above.append(Node(f"L{height}.{len(above)}", reply.strip(), height, children))
    return above


def estimated_calls(
    passages: Sequence[Passage], *, leaf_tokens: int, dimensions: int, layers: int, variant: Variant, **others: Any
) -> Estimate:
    """One call for each node above the leaves, if nodes have as many children as in the paper; time to cluster all."""
    leaves = len(leaves_of(passages, leaf_tokens, variant))
    if not layers or leaves <= dimensions + 1:
        return Estimate(leaves, 0)
    calls = round(leaves / (CHILDREN - 1))
    return Estimate(leaves, calls, CLUSTERING * (leaves + calls))
