"""RAPTOR: retrieval from a tree of summaries over the whole corpus (arXiv:2401.18059).

Preparation, once a corpus: passages are split into leaves of 100 tokens. Leaves with similar vectors are clustered and
the model summarises each cluster; the summaries are clustered again, up to 5 layers. Clusters: UMAP to 10 dimensions, a
Gaussian mixture whose size minimises BIC, first of all nodes, then within each cluster; a node is in every cluster to
which it belongs with a probability over 0.1. A cluster of more than 3,500 tokens is clustered again. The extra
``raptor`` has the packages.

Question: ``search=collapsed`` takes the best nodes of all layers up to 2,000 tokens; ``search=tree`` the 5 best of the
top layer, then of their children, and so on. The run's retriever ranks nodes. The paper's is SBERT with the cosine:
``retriever=dense``, whose encoder also makes the vectors to cluster; runs with another retriever cluster by ``static``.

Leaves and passages: a leaf is a part of one passage and never of two. The answer's passages are those whose leaves were
shown, by their own ids, in the order of their best leaf, with the text of the leaves that were shown; a summary that
was shown stands among them under its node's id (``L2.7``, or another that no passage has). So evidence counts by
passage; what a summary says counts for recall by text, but not as evidence.

``variant=official`` is the authors' code (parthsarthi03/raptor at 2e3e83e), where it departs from the paper: what ends
a sentence is cut off, and a sentence of more than 100 tokens is split at commas, colons and semicolons (the paper moves
it whole) into leaves of its own, before the leaf that was begun, which goes on behind it; a node whose probabilities
all lie below 0.1 is lost; the collapsed tree gives the 10 best nodes up to 3,500 tokens. Not taken over even there: its
UMAP has no seed, so that no tree is built twice (ours has one, ``seed``); texts that are equal share each other's
clusters; a summary that failed becomes a node with the error's text; a cluster that does not get smaller is clustered
without end; tree search by threshold keeps the nodes that are *farther* than it.

Departures: a token is a word or a sign, so leaves are the same for every model. The corpus has many passages, where the
paper has one long text, so no leaf spans two. A sentence of more than ten leaves (a table without full stops) is cut.
The summary's limit of 100 tokens is the code's; the paper prints none. Clusters with the same nodes are summarised
once. The wording of the prompts is ours. Summaries that are blank or failed are left out (notes of the product: ``blank
summary``, ``summary failed``). If nothing is retrieved, the model answers without documents (note ``nothing
retrieved``).
"""

from __future__ import annotations

from typing import Literal

from lm_eval_rag.harness.core.asks import generate, prepared
from lm_eval_rag.harness.core.parameters import Depth, Natural, Positive, Share
from lm_eval_rag.harness.core.preparing import prepared_by
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query
from lm_eval_rag.methods.prompts.worded import wordings
from lm_eval_rag.methods.raptor_parts.growing import VERSION, Variant, estimated_calls, grow_tree
from lm_eval_rag.methods.raptor_parts.searching import SEARCHES, Limits, within
from lm_eval_rag.methods.raptor_parts.tree import tree_of
from lm_eval_rag.methods.reasoning.rationales import answer_or_first_line
from lm_eval_rag.methods.reasoning.steps import STOP, final, limited

NODES = {
    "paper": 100,
    "official": 10,
}  # that are looked at: of 20 tokens or more on average, 100 fill the paper's 2,000
TOKENS = {"paper": 2000, "official": 3500}


@limited
@prepared_by(grow_tree, version=VERSION, estimate=estimated_calls, embeds=True)
def raptor(
    query: Query,
    *,
    k: Depth | None = None,
    search: Literal["collapsed", "tree"] = "collapsed",
    context_tokens: Positive | None = None,
    per_layer: Positive = 5,
    leaf_tokens: Positive = 100,
    dimensions: Positive = 10,
    membership: Share = 0.1,
    layers: Natural = 5,
    cluster_tokens: Positive = 3500,
    summary_tokens: Positive = 100,
    seed: Natural = 0,
    variant: Variant = "paper",
    answer_tokens: Positive = 64,
    prompt_file: str | None = None,
    max_calls: Positive | None = None,
) -> Plan[Answer]:
    """Answer from the best nodes of the tree.

    Args:
        k: Nodes that are looked at, at most; None is 100, and 10 for ``official``.
        search: All layers at once (``collapsed``), or from the top down (``tree``).
        context_tokens: Tokens of the nodes that are shown; None is 2,000, 3,500 for ``official``, and all of
            ``search=tree``.
        per_layer: Nodes that are taken of each layer by ``search=tree``.
        leaf_tokens: Tokens of a leaf.
        dimensions: Dimensions that UMAP leaves; layers of at most one node more are not clustered.
        membership: A node is in the clusters that it belongs to with a higher probability; in [0, 1].
        layers: Layers of summaries, at most; 0 builds none.
        cluster_tokens: Tokens of a cluster that one summary may read.
        summary_tokens: Limit of tokens of a summary.
        seed: Of UMAP and of the mixtures.
        variant: ``paper``, or what the authors' code does.
        answer_tokens: Limit of tokens of the answer.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
        max_calls: Calls of the model for a question, at most; it makes one. Those of the preparation have
            ``prepare_max_calls``.
    """
    wording = wordings("raptor", prompt_file)["answer"]
    tree = yield from prepared(tree_of)
    limits = Limits(k or NODES[variant], per_layer)
    nodes = yield from SEARCHES[search](query.text, tree, limits)
    room = context_tokens or (TOKENS[variant] if search == "collapsed" else None)
    nodes = within(nodes, room) if room else nodes
    shown = [Passage(node.id, node.text) for node in nodes]
    prompt = wording.prompt(shown, question=query.text)
    reply = yield from generate(prompt, temperature=0.0, max_tokens=answer_tokens, stop=STOP)
    return final(answer_or_first_line(reply), tree.passages(nodes), [] if nodes else ["nothing retrieved"])
