"""RAPTOR: how the tree grows and when it stops, both searches, budgets, variants; from a corpus to answers."""

from __future__ import annotations

from collections import Counter

import pytest

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.types import Passage, Query
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.methods.prompts.worded import wordings
from lm_eval_rag.methods.raptor import raptor
from lm_eval_rag.methods.raptor_parts.growing import VERSION, estimated_calls, grow_tree
from lm_eval_rag.methods.raptor_parts.searching import within
from lm_eval_rag.methods.raptor_parts.tree import Node, Tree, tree_of

pytest.importorskip("sklearn", reason="needs the extra raptor")


def passages(count: int, towns: int = 3) -> list[Passage]:
    return [Passage(f"p{i}", f"Person{i} lives in Town{i % towns}.") for i in range(count)]


def summary(ask) -> str:
    """Names the towns of a cluster, so that summaries have vectors near each other."""
    towns = sorted({word.rstrip(".") for p in ask.prompt.passages for word in p.text.split() if "Town" in word})
    return f"Of {len(ask.prompt.passages)}: {' '.join(towns)}."


def nodes_of(product) -> list[Node]:
    return list(tree_of(product.tables).nodes.values())


def test_each_layer_summarises_the_one_below(prepare):
    asks = []
    product = prepare(grow_tree, lambda ask: (asks.append(ask), summary(ask))[1], passages(60), dimensions=3)
    nodes = nodes_of(product)
    layers = Counter(node.layer for node in nodes)
    assert layers[0] == 60 and layers[1] < 60 and all(layers[n + 1] < layers[n] for n in range(max(layers)))
    assert [node.passage for node in nodes if node.layer == 0] == [f"p{i}" for i in range(60)]
    by_id = {node.id: node for node in nodes}
    for node in nodes:
        assert {by_id[child].layer for child in node.children} <= {node.layer - 1}
        assert bool(node.children) == (node.layer > 0) == (not node.passage)
    assert {child for node in nodes if node.layer == 1 for child in node.children} == {f"L0.{i}" for i in range(60)}
    assert len(asks) == len(nodes) - 60 and {(ask.temperature, ask.max_tokens) for ask in asks} == {(0.0, 100)}
    first = asks[0].prompt.render()
    assert "Texts:\nPerson" in first and first.endswith("\nSummary:")
    assert product.tables == prepare(grow_tree, summary, passages(60), dimensions=3).tables


@pytest.mark.parametrize(("count", "layers", "expected"), [(11, 5, 0), (12, 5, 1), (12, 0, 0), (60, 1, 1), (0, 5, 0)])
def test_layers_end(count, layers, expected, prepare):
    """With 11 nodes or fewer UMAP has nothing to reduce; ``layers`` are never exceeded."""
    product = prepare(grow_tree, summary, passages(count), layers=layers)
    highest = max((node.layer for node in nodes_of(product)), default=0)
    assert highest == expected if layers < 5 or count < 60 else highest <= layers


def test_a_layer_that_does_not_get_smaller_ends_the_tree(prepare, monkeypatch):
    monkeypatch.setattr(
        "lm_eval_rag.methods.raptor_parts.growing.soft_clusters",
        lambda vectors, **_: [(i,) for i in range(len(vectors))],
    )
    product = prepare(grow_tree, lambda ask: pytest.fail("no call is worth it"), passages(20))
    assert product.notes == {"layer not smaller than the one below": 1} and len(product.tables["nodes"]) == 20


def test_summaries_that_are_blank_or_failed_are_left_out_and_counted(prepare):
    blank = prepare(grow_tree, lambda ask: "  \n", passages(30))
    assert {node.layer for node in nodes_of(blank)} == {0} and set(blank.notes) == {"blank summary"}
    with pytest.raises(CallError, match="down"):  # more than one in a hundred
        prepare(grow_tree, lambda ask: CallError("down"), passages(30))


def test_one_cluster_only_gives_one_root(prepare):
    product = prepare(grow_tree, summary, [Passage(f"p{i}", "Town0.") for i in range(14)])
    top = tree_of(product.tables).top
    assert [len(node.children) for node in top] == [14]


def test_large_clusters_are_summarised_in_parts(prepare):
    sizes = []
    prepare(
        grow_tree,
        lambda ask: (sizes.append(len(ask.prompt.passages)), "short")[1],
        passages(40, 1),
        cluster_tokens=20,
        layers=1,
    )
    assert max(sizes) <= 4  # of five tokens each


def test_long_passages_have_several_leaves(prepare):
    text = " ".join(f"Sentence {i} has five words." for i in range(10))
    product = prepare(grow_tree, summary, [Passage("long", text), Passage("none", " ")], leaf_tokens=12)
    leaves = nodes_of(product)
    assert {leaf.passage for leaf in leaves} == {"long"} and len(leaves) == 5
    assert " ".join(leaf.text for leaf in leaves) == text


def test_sentences_without_end_are_cut(prepare):
    table = " ".join(f"row{i}" for i in range(1, 122))
    (whole,) = nodes_of(prepare(grow_tree, summary, [Passage("p", table[: table.index(" row121")])], leaf_tokens=12))
    cut = nodes_of(prepare(grow_tree, summary, [Passage("p", table)], leaf_tokens=12, layers=0))
    assert len(whole.text.split()) == 120  # ten times as many: as in the paper, a leaf of its own
    assert [len(leaf.text.split()) for leaf in cut] == [12] * 10 + [1] and " ".join(n.text for n in cut) == table
    japanese = nodes_of(prepare(grow_tree, summary, [Passage("p", "猫がいる。犬もいる！鳥は？" * 2)], leaf_tokens=4))
    assert [leaf.text for leaf in japanese] == ["猫がいる。 犬もいる！", "鳥は？ 猫がいる。", "犬もいる！ 鳥は？"]


def test_the_official_variant_splits_as_its_code(prepare):
    for variant, text in (("paper", "Ada read. Bo wrote."), ("official", "Ada read Bo wrote")):
        assert (
            nodes_of(prepare(grow_tree, summary, [Passage("p", "Ada read. Bo wrote.")], variant=variant))[0].text
            == text
        )


@pytest.mark.parametrize(("count", "calls", "seconds"), [(0, 0, 0), (11, 0, 0), (570, 100, 20.1)])
def test_the_estimate(count, calls, seconds):
    estimate = estimated_calls(
        passages(count), leaf_tokens=100, dimensions=10, layers=5, variant="paper", seed=0, prompt_file=None
    )
    assert (estimate.chunks, estimate.calls, estimate.seconds) == (count, calls, pytest.approx(seconds))


# --- the question

LEAVES = [Node(f"L0.{i}", f"leaf {i} " + "word " * 8, 0, passage=f"p{i // 2}") for i in range(6)]
TOP = [
    Node("L1.0", "left side", 1, ("L0.0", "L0.1", "L0.2")),
    Node("L1.1", "right side", 1, ("L0.2", "L0.3", "L0.4", "L0.5")),
]
TREE = {"nodes": [node.row() for node in (*LEAVES, *TOP)]}


def hits(*ids):
    texts = {node.id: node.text for node in (*LEAVES, *TOP)}
    return tuple(Passage(id, texts[id], 1.0) for id in ids)


def test_collapsed_search_shows_the_best_nodes_of_all_layers(play):
    played = play(raptor, [hits("L0.3", "L1.0", "L0.0", "L0.2"), "Bo"], tables=TREE)
    _, (_, asked), (_, answered) = played.asks
    assert (asked.among, asked.k) == ("nodes", 100) and played.names == ["Prepared", "Retrieve", "answer"]
    assert [passage.id for passage in answered.prompt.passages] == ["L0.3", "L1.0", "L0.0", "L0.2"]
    assert played.answer.text == "Bo" and played.answer.notes == ()
    assert [(p.id, p.text.count("leaf")) for p in played.answer.passages] == [("p1", 2), ("L1.0", 0), ("p0", 1)]
    assert played.answer.passages[0].text == f"{LEAVES[3].text}\n{LEAVES[2].text}"


@pytest.mark.parametrize(("tokens", "count"), [(10, 1), (12, 2), (21, 2), (22, 3), (10_000, 3)])
def test_the_budget_ends_the_list_at_the_first_that_does_not_fit(tokens, count):
    nodes = [LEAVES[0], TOP[0], LEAVES[1]]  # of 10, 2 and 10 tokens
    assert within(nodes, tokens) == nodes[:count]


def test_a_first_node_beyond_the_budget_is_cut_to_it():
    (node,) = within([LEAVES[0], TOP[0]], 4)
    assert node.text.split() == LEAVES[0].text.split()[:4] and node.id == LEAVES[0].id
    (unbroken,) = within([Node("L0.0", "1.2,3-" * 50, 0)], 4)  # a word or a sign is a token, with or without blanks
    assert unbroken.text == "1.2,"
    assert within([], 4) == []


@pytest.mark.parametrize(("variant", "k", "tokens"), [("paper", 100, 2000), ("official", 10, 3500)])
def test_budgets_of_the_variants(variant, k, tokens, play):
    many = [Node(f"L0.{i}", "word " * 100, 0, passage=f"p{i}") for i in range(100)]
    found = tuple(Passage(node.id, node.text) for node in many)
    played = play(raptor, lambda name, ask: found[: ask.k] if name == "Retrieve" else "Bo", tables={
        "nodes": [node.row() for node in many]}, variant=variant)  # fmt: skip
    assert played.asks[1][1].k == k and len(played.answer.passages) == min(k, tokens // 100)


def test_tree_search_goes_down_from_the_top(play):
    def replies(name, ask):
        if name == "Rank":
            return tuple((place, 1.0) for place in reversed(range(len(ask.texts))))[: ask.k]
        return "Bo"

    played = play(raptor, replies, tables=TREE, search="tree", per_layer=2)
    first, second = [ask for name, ask in played.asks if name == "Rank"]
    assert first.texts == ("left side", "right side") and first.k == 2
    assert len(second.texts) == 6  # the child of both is there once
    (shown,) = [ask.prompt.passages for name, ask in played.asks if name == "answer"]
    assert [p.id for p in shown] == ["L1.1", "L1.0", "L0.1", "L0.0"]
    assert [p.id for p in played.answer.passages] == ["L1.1", "L1.0", "p0"]
    less = play(raptor, replies, tables=TREE, search="tree", per_layer=2, context_tokens=13)  # of 2, 2, 10 and 10
    assert [p.id for p in less.answer.passages] == ["L1.1", "L1.0"]


def test_tree_search_fills_up_with_nodes_that_the_retriever_does_not_rank(play):
    ranked = {2: ((1, 1.0),), 4: ()}  # number of texts -> what shares a word with the question
    played = play(
        raptor, lambda name, ask: ranked[len(ask.texts)] if name == "Rank" else "Bo", tables=TREE, search="tree",
        per_layer=1,
    )  # fmt: skip
    (shown,) = [ask.prompt.passages for name, ask in played.asks if name == "answer"]
    assert [p.id for p in shown] == ["L1.1", "L0.2"]


def test_a_summary_is_no_evidence_for_a_passage_with_its_id(play):
    nodes = [Node("L0.0", "leaf", 0, passage="L1.0"), Node("L1.0", "summary", 1, ("L0.0",))]
    tree = Tree.of({"nodes": [node.row() for node in nodes]})
    assert [(p.id, p.text) for p in tree.passages(nodes)] == [("L1.0", "leaf"), ("L1.0'", "summary")]


def test_nothing_retrieved_is_answered_without_documents(play):
    played = play(raptor, lambda name, ask: () if name == "Retrieve" else "Bo", tables=TREE)
    assert played.answer.notes == ("nothing retrieved",) and "Documents" not in played.prompts("answer")[0]
    assert play(raptor, lambda name, ask: "Bo", tables={"nodes": []}, search="tree").answer.text == "Bo"


def test_the_tree_is_read_once_and_keeps_its_order():
    tree = Tree.of(TREE)
    assert list(tree.nodes)[:2] == ["L0.0", "L0.1"] and tree.top == tuple(TOP) and Tree.of({"nodes": []}).top == ()


# --- whole runs


class Summariser:
    """Summarises by the towns it reads, and answers with its first document."""

    fingerprint, batch = "summariser", 4

    def __init__(self, killed_at=None):
        self.prompts, self.killed_at = [], killed_at

    def generate(self, prompts, decoding, samples):
        if self.killed_at is not None and len(self.prompts) >= self.killed_at:
            raise RuntimeError("killed")
        self.prompts += prompts
        return [self._reply(prompt) for prompt in prompts]

    @staticmethod
    def _reply(prompt):
        if prompt.endswith("Summary:"):
            towns = sorted({word.rstrip(".") for word in prompt.split() if word.startswith("Town")})
            return f"People who live in {' and '.join(towns)}."
        return prompt.partition("Documents:\n")[2].partition("\n")[0] or "nothing"

    def count_tokens(self, text):
        return len(text.split())

    def room(self, max_tokens):
        return None


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))


QUESTIONS = [Query("q0", "Where does Person7 live?"), Query("q1", "Which people live in Town1?")]


@pytest.mark.parametrize("retriever", ["bm25", "static"])
def test_from_a_corpus_to_answers(own_cache, retriever, tmp_path):
    first, second = Summariser(), Summariser()
    options = {"corpus": passages(30), "retriever": retriever}
    results = run(raptor, QUESTIONS, generator=first, **options)
    assert results[0][0].text == "Person7 lives in Town1." and results[0][0].passages[0].id == "p7"
    assert len(first.prompts) > 2
    assert [answer for answer, _ in run(raptor, QUESTIONS, generator=second, **options)] == [a for a, _ in results]
    assert len(second.prompts) == 2  # the questions alone
    assert [step.ask for step in results[0][1].steps] == ["Prepared", "Retrieve", "Generate"]


def test_a_killed_tree_grows_on(own_cache, tmp_path):
    whole = Summariser()
    run(raptor, QUESTIONS[:1], generator=whole, corpus=passages(60), cluster_tokens=30, seed=9)  # another product
    killed, again = Summariser(killed_at=4), Summariser()
    options = {"corpus": passages(60), "cluster_tokens": 30, "journal": tmp_path / "run.sqlite"}
    with pytest.raises(RuntimeError, match="killed"):
        run(raptor, QUESTIONS[:1], generator=killed, **options)
    run(raptor, QUESTIONS[:1], generator=again, **options)
    assert len(killed.prompts) == 4 and not set(killed.prompts) & set(again.prompts)


def test_what_is_missing_is_said_before_any_call(own_cache, monkeypatch):
    monkeypatch.setattr(
        "lm_eval_rag.harness.common.extras.find_spec", lambda name: None if name == "umap" else object()
    )
    generator = Summariser()
    with pytest.raises(
        UserError, match=r"The method raptor needs umap, which is not installed\. Install with .*raptor"
    ):
        run(raptor, QUESTIONS, generator=generator, corpus=passages(30))
    assert generator.prompts == []


def test_the_version_names_the_prompt():
    """A product follows from the prompt of summaries: whoever changes it changes the version, and this digest."""
    from hashlib import sha256

    wording = wordings("raptor")["summarise"]
    assert VERSION.rpartition(".")[0] == wording.template.version
    assert sha256(f"{wording.template}{wording.text}".encode()).hexdigest()[:12] == "81cc4bd5a144"
