"""CRP-RAG: the graph, knowledge, sufficiency, paths, refusal; its ablations and other structures."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import pytest

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.asks import Generate
from lm_eval_rag.harness.core.written import Written
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.methods.crp_rag import crp_rag

QUESTION = "Who wrote the book that Ada Moss read?"


def logs(perplexity: float, words: int) -> float:
    """The log-probability of a text of so many words with that perplexity."""
    return -words * math.log(perplexity)


class World:
    """A model with a table of next steps, and knowledge that suffices for some of them."""

    def __init__(self, steps, insufficient=(), answers=None, fused="One step.", empty=()):
        self.steps, self.insufficient, self.empty = steps, insufficient, empty
        self.answers, self.fusion = answers or {}, fused

    def __call__(self, name, ask):
        if name == "Retrieve":
            return () if ask.text in self.empty else self.documents(f"{ask.text} 1", f"{ask.text} 2")[: ask.k]
        if name.startswith("answer_step="):
            topic = self.topic(ask)
            return logs(2.0 if topic in self.insufficient else 1.2, 3)
        return self.write(name, ask)

    def write(self, name, ask):
        text = ask.prompt.query
        if name == "step":
            known = text.partition("Known:\n")[2].splitlines()[-1].partition(". ")[2] or "root"
            return tuple(
                (self.steps.get(known) or ("",))[i % len(self.steps.get(known) or ("",))] for i in range(ask.n)
            )
        fixed = {
            "fuse": self.fusion, "rewrite": "Clearly, who?", "summarise": f"Summary of {self.topic(ask)}",
            "answer_step": "In a word", "suffices": "no" if self.topic(ask) in self.insufficient else "yes",
            "fuse_answers": "All in all, the answer is Fused.",
        }  # fmt: skip
        if name in fixed:
            return fixed[name]
        step = text.splitlines()[-1].partition("step: ")[2]
        return self.answers.get(step, f"Result of {step}" if name == "reason" else "So the answer is Bo.")

    @staticmethod
    def topic(ask):
        return ask.prompt.query.splitlines()[-1].partition(": ")[2]


@pytest.fixture
def world(documents):
    class Here(World):
        pass

    Here.documents = staticmethod(documents)
    return Here


TWO_WAYS = {"root": ("Find the book", "Ask a librarian"), "Find the book": ("Final: Name its author",),
            "Ask a librarian": ("Final: Call the library",)}  # fmt: skip


def test_a_graph_of_two_ways(play, world):
    played = play(crp_rag, world(TWO_WAYS), samples=2, k=2)
    assert played.names == [
        "step", "step", "step", *["Retrieve", "summarise"] * 4, "HasLoglikelihood",
        *["answer_step", "answer_step=In a word"] * 4, "reason", "last_step", "reason", "last_step",
    ]  # fmt: skip
    assert played.queries == ["Find the book", "Ask a librarian", "Name its author", "Call the library"]
    first, second, third = played.prompts("step")
    assert f"Question: {QUESTION}\nKnown:\nnone" in first and "Known:\n1. Find the book" in second
    assert "Known:\n1. Ask a librarian" in third
    last = played.prompts("last_step")[0]
    assert "Documents:\nSummary of Name its author\n" in last and "Last step: Name its author" in last
    assert "Known:\n1. Find the book Result of Find the book\n" in last
    assert (played.answer.text, played.answer.notes) == ("Bo", ())  # both ways say so: nothing to fuse
    assert len(played.answer.passages) == 8 and played.answer.passages[0].id == "Find the book 1"


def test_only_the_new_steps_are_sampled_hot(play, world):
    played = play(crp_rag, world(TWO_WAYS))
    temperatures = {name: ask.temperature for name, ask in played.asks if isinstance(ask, Generate)}
    assert temperatures.pop("step") == 0.7 and set(temperatures.values()) == {0.1}
    assert {ask.n for name, ask in played.asks if name == "step"} == {3}
    assert {ask.k for name, ask in played.asks if name == "Retrieve"} == {5}


def test_paths_of_sufficient_nodes_alone(play, world):
    played = play(crp_rag, world(TWO_WAYS, insufficient=("Call the library",)), samples=2)
    assert played.names.count("last_step") == 1 and "Ask a librarian" not in str(played.prompts("reason"))
    assert played.answer.text == "Bo"
    assert [p.id[:-2] for p in played.answer.passages[:4]] == ["Find the book", "Name its author"] * 2
    assert len(played.answer.passages) == 8  # what was retrieved for the others comes after


@pytest.mark.parametrize("insufficient", [("Find the book", "Call the library"), ("Find the book", "Ask a librarian")])
def test_no_path_refuses(play, world, abstains, insufficient):
    played = play(crp_rag, world(TWO_WAYS, insufficient=insufficient), samples=2)
    assert abstains(played.answer, "no sufficient path") and "last_step" not in played.names
    assert len(played.answer.passages) == 8


@pytest.mark.parametrize(("threshold", "stands"), [(1.19, False), (1.21, True)])
def test_the_threshold_is_a_perplexity_per_word(play, world, threshold, stands):
    """The model's reasoning, "In a word", has 1.2 per word."""
    played = play(crp_rag, world({"root": ("Final: Look",)}), threshold=threshold)
    assert ("last_step" in played.names) == stands


def test_answers_of_several_paths_are_fused(play, world):
    answers = {"Name its author": "The answer is Bo.", "Call the library": "the answer is Cy"}
    played = play(crp_rag, world(TWO_WAYS, answers=answers), samples=2)
    assert played.names[-1] == "fuse_answers" and "Answers:\n1. Bo\n2. Cy" in played.prompts("fuse_answers")[0]
    assert played.answer.text == "Fused"


def test_paths_that_begin_alike_share_their_results(play, world):
    steps = {"root": ("Begin",), "Begin": ("Final: One end", "Final: Another close")}
    played = play(crp_rag, world(steps), samples=2)
    assert played.names.count("reason") == 1 and played.names.count("last_step") == 2


# --- merging


MERGING = {
    "root": ("Find the book of Ada", "Ask a librarian"),
    "Find the book of Ada": ("Final: who wrote the old book", "Final: nothing in common"),
    "Ask a librarian": ("Final: who wrote the new book", "Final: something else entirely"),
}


def test_similar_steps_of_one_iteration_become_one(play, world):
    played = play(crp_rag, world(MERGING, fused="1. who wrote\nthe book"), samples=2)
    assert "Steps:\n1. who wrote the old book\n2. who wrote the new book" in played.prompts("fuse")[0]
    assert played.queries == [
        "Find the book of Ada", "Ask a librarian", "who wrote the book", "nothing in common", "something else entirely"
    ]  # fmt: skip
    ways = [prompt for prompt in played.prompts("last_step") if "Last step: who wrote the book" in prompt]
    assert len(ways) == 2  # it has both parents: two paths lead through it
    assert "Find the book of Ada" in ways[0] and "Ask a librarian" in ways[1]


@pytest.mark.parametrize(("similarity", "fused"), [(0.79, True), (0.8, False), (1.0, False)])
def test_above_the_threshold_only(play, world, similarity, fused):
    """Four of five words are shared: 0.8."""
    steps = {"root": ("Final: who wrote this very tale", "Final: who wrote this very song")}
    assert ("fuse" in play(crp_rag, world(steps), samples=2, similarity=similarity).names) == fused


def test_equal_steps_merge_without_the_model(play, world):
    steps = {**TWO_WAYS, "Ask a librarian": ("Final: name its author!",)}
    played = play(crp_rag, world(steps), samples=2)
    assert "fuse" not in played.names and played.names.count("Retrieve") == 3
    assert played.names.count("last_step") == 2


def test_a_step_is_final_if_both_are(play, world):
    steps = {"root": ("Final: who wrote this very tale", "who wrote this very song"), "One step.": ("Final: End",)}
    played = play(crp_rag, world(steps), samples=2)
    assert played.queries == ["One step.", "End"]


def test_a_blank_fusion_keeps_the_first(play, world):
    steps = {"root": ("Final: who wrote this very tale", "Final: who wrote this very song")}
    played = play(crp_rag, world(steps, fused=" "), samples=2)
    assert played.queries == ["who wrote this very tale"] and "blank fusion" in played.answer.notes


def test_similarity_by_the_retriever(play, world):
    """Relative to a step's score for itself: 8 of 10 is 0.8; what Rank leaves out is 0."""
    steps = {"root": ("Final: alpha", "Final: beta", "Final: gamma")}
    model = world(steps)

    def replies(name, ask):
        if name != "Rank":
            return model(name, ask)
        assert ask.texts[0] == ask.text and ask.k == len(ask.texts)
        scores = {"beta": ((0, 10.0), (1, 8.0)), "gamma": ((0, 4.0),)}
        return scores[ask.text]

    played = play(crp_rag, replies, similar="retriever", similarity=0.75)
    assert played.names.count("Rank") == 2 and played.names.count("fuse") == 1
    assert played.queries == ["One step.", "gamma"]
    assert "fuse" not in play(crp_rag, replies, similar="retriever", similarity=0.8).names


# --- limits


def test_circles_are_dropped_and_named(play, world):
    steps = {"root": ("Find the book",), "Find the book": ("Name its author", "find the book!"),
             "Name its author": ("Find the book", "Name its author")}  # fmt: skip
    played = play(crp_rag, world(steps), samples=2)
    assert played.queries == ["Find the book", "Name its author"]
    assert set(played.answer.notes) == {"repeated step dropped", "no new step"} and played.answer.text == "Bo"


class Endless(World):
    """Always proposes steps that nobody has seen."""

    count = 0

    def write(self, name, ask):
        if name != "step":
            return super().write(name, ask)
        Endless.count += ask.n
        return tuple(f"step{Endless.count - i} alone{Endless.count - i}" for i in range(ask.n))


@pytest.mark.parametrize(
    ("limits", "nodes", "note"),
    [
        ({"max_nodes": 7}, 7, "max_nodes reached"),
        ({"max_depth": 1}, 3, "max_depth reached"),
        ({"max_depth": 2}, 12, "max_depth reached"),
        ({}, 20, "max_nodes reached"),
    ],
)
def test_endless_steps_end(play, documents, limits, nodes, note):
    Endless.documents = staticmethod(documents)
    played = play(crp_rag, Endless({}), **limits)
    assert len(played.queries) == nodes and note in played.answer.notes and played.answer.text == "Bo"
    assert played.calls <= 300 and played.names.count("last_step") <= 5


def test_at_most_max_paths(play, documents):
    Endless.documents = staticmethod(documents)
    played = play(crp_rag, Endless({}), max_paths=2, max_depth=2)
    assert played.names.count("last_step") == 2


def test_it_abstains_at_its_limit(play, world, abstains):
    played = play(crp_rag, world(TWO_WAYS), max_calls=12)
    assert abstains(played.answer, "max_calls reached") and played.calls <= 12 and played.answer.passages


def test_a_model_that_proposes_nothing(play, world, abstains):
    assert abstains(play(crp_rag, world({})).answer, "no sufficient path")


def test_without_passages_a_node_does_not_suffice(play, world, abstains):
    played = play(crp_rag, world(TWO_WAYS, empty=("Find the book",)), samples=2)
    assert played.names.count("last_step") == 1 and played.answer.notes == ("nothing retrieved",)
    none = play(crp_rag, world({"root": ("Final: x",)}, empty=("x",)))
    assert abstains(none.answer, "no sufficient path") and "summarise" not in none.names


def test_without_log_probabilities_sufficiency_is_asked(play, world):
    played = play(crp_rag, world(TWO_WAYS, insufficient=("Call the library",)), samples=2, scored=False)
    assert "answer_step" not in played.names and played.names.count("suffices") == 4
    assert played.names.count("last_step") == 1
    assert played.answer.notes == ("no log-probabilities: sufficiency asked",)


@pytest.mark.parametrize(("threshold", "stands"), [(4.9, False), (5.1, True)])
def test_a_model_that_gives_log_probabilities_of_its_replies(play, world, threshold, stands):
    """The reply itself tells its perplexity, 5 per word; nothing is asked for it."""
    words = [(f" {word}", -math.log(5)) for word in ("In", "a", "word")]
    reply, model = Written(" In a word\n", [*words, ("\n\n", -9.0)]), world({"root": ("Final: Look",)})

    def replies(name, ask):
        return (reply,) if name == "answer_step" else model(name, ask)

    played = play(crp_rag, replies, threshold=threshold, scored="replies")
    assert ("last_step" in played.names) == stands and played.names.count("answer_step") == 1
    assert not any(name.startswith(("suffices", "answer_step=")) for name in played.names)
    assert not any(note.startswith("no log-prob") for note in played.answer.notes)


def test_a_reply_that_came_without_log_probabilities_is_a_failure(play, world):
    with pytest.raises(CallError, match="without log-probabilities"):
        play(crp_rag, world({"root": ("Final: Look",)}), scored="replies")


# --- ablations (Table 2)


def test_without_aggregation_the_passages_are_shown(play, world):
    played = play(crp_rag, world(TWO_WAYS), samples=2, k=2, aggregation="off")
    assert "summarise" not in played.names
    assert "Documents:\nName its author 1\nName its author 2\n" in played.prompts("last_step")[0]


LADDER = {"root": ("Long way", "Final: Short cut"), "Long way": ("Middle",), "Middle": ("Final: End",)}


@pytest.mark.parametrize(
    ("evaluation", "queries"),
    [
        ("shortest", ["Short cut"]),
        ("longest", ["Long way", "Middle", "End"]),
        ("off", ["Long way", "Short cut", "Middle", "End"]),
    ],
)
def test_without_evaluation_the_shortest_and_the_longest_path(play, world, evaluation, queries):
    everything = ("Long way", "Short cut", "Middle", "End")
    played = play(crp_rag, world(LADDER, insufficient=everything), samples=2, evaluation=evaluation)
    assert played.queries == queries and "HasLoglikelihood" not in played.names
    assert not [name for name in played.names if name.startswith(("answer_step", "suffices"))]
    assert played.names.count("last_step") == (2 if evaluation == "off" else 1) and played.answer.text == "Bo"


def test_without_evaluation_one_path_is_followed_once(play, world):
    played = play(crp_rag, world({"root": ("Final: Look",)}), evaluation="off")
    assert played.names.count("last_step") == 1


def test_without_iteration_a_path_is_one_prompt(play, world):
    played = play(crp_rag, world(TWO_WAYS), samples=2, iterative="off")
    assert "reason" not in played.names and played.names.count("one_shot") == 2
    shown = "Documents:\nSummary of Find the book\nSummary of Name its author\nQuestion: "
    assert shown in played.prompts("one_shot")[0]
    assert "Steps:\n1. Find the book\n2. Name its author\n" in played.prompts("one_shot")[0]


# --- structures (Table 5)


def test_a_tree_does_not_merge(play, world):
    played = play(crp_rag, world(MERGING), samples=2, structure="tree")
    assert "fuse" not in played.names and len(played.queries) == 6
    assert played.names.count("last_step") == 4


def test_a_chain_has_one_step_after_each(play, world):
    played = play(crp_rag, world(MERGING), samples=2, structure="chain")
    assert [ask.n for name, ask in played.asks if name == "step"] == [2, 1, 1]
    assert len(played.queries) == 4 and "fuse" not in played.names and played.names.count("last_step") == 2


def test_text_is_the_question_written_anew(play, world, abstains):
    played = play(crp_rag, world({}), structure="text")
    assert played.names == [
        "rewrite", "Retrieve", "summarise", "HasLoglikelihood", "answer_step", "answer_step=In a word", "last_step"
    ]  # fmt: skip
    assert played.queries == ["Clearly, who?"] and played.answer.text == "Bo"
    refused = play(crp_rag, world({}, insufficient=("Clearly, who?",)), structure="text")
    assert abstains(refused.answer, "no sufficient path")


# --- with real backends


class Proposer:
    """A generator that proposes the given steps, and else answers."""

    fingerprint, batch = "proposer", 4

    def __init__(self, *steps):
        self.steps, self.prompts = steps, []

    def generate(self, prompts, decoding, samples):
        self.prompts += prompts
        return [self.steps[i % len(self.steps)] if p.endswith("Next step:") else "The answer is Vale." for p, i in
                zip(prompts, samples, strict=True)]  # fmt: skip

    def loglikelihood(self, pairs):
        return [-1.0 for _ in pairs]

    def count_tokens(self, text):
        return None

    def room(self, max_tokens):
        return None


@pytest.mark.parametrize(
    ("other", "merged"),
    [("Final: where was Ada Moss born now", True), ("Final: which town is the capital of Norn", False)],
)
@pytest.mark.parametrize("similar", ["words", "retriever"])
def test_similar_steps_in_a_run(similar, other, merged):
    """BM25 is no measure of similarity (words that both steps share weigh least), so that it merges neither."""
    documents = ["Ada Moss was born in Vale.", "Vale is the capital of Norn.", "Norn is cold."]
    generator = Proposer("Final: where was Ada Moss born", other)
    ((answer, trace),) = run(crp_rag, [QUESTION], corpus=documents, generator=generator, samples=2, similar=similar)
    fused = any("These reasoning steps" in prompt for prompt in generator.prompts)
    assert fused == (merged and similar == "words")
    assert trace.count("Rank") == (similar == "retriever") and answer.text == "Vale" and answer.passages


class Prolific:
    """A model whose steps are new, and many of them similar to others; all knowledge suffices, no answers are equal."""

    def __init__(self, documents, seed):
        self.documents, self.rng = documents, random.Random(seed)
        self.alike = self.rng.random()

    def words(self, n):
        return " ".join(f"w{self.rng.randrange(10**9)}" for _ in range(n))

    def __call__(self, name, ask):
        if name == "Retrieve":
            return self.documents("a")
        if name.startswith("answer_step="):
            return -1.0
        if name != "step":
            text = self.words(8)
            return "yes" if name == "suffices" else (Written(text, [(text, -1.0)]),) * ask.n
        base = self.words(7)
        return tuple(
            f"{base} {self.words(1)}" if self.rng.random() < self.alike else self.words(8) for _ in range(ask.n)
        )


SMALL = {"samples": 2, "max_nodes": 4, "max_depth": 2, "max_paths": 2}


@pytest.mark.parametrize("scored", [True, False, "replies"])
@pytest.mark.parametrize("parameters", [{}, SMALL, {"samples": 5, "max_nodes": 9}], ids=str)
def test_calls_have_the_limit_that_the_page_derives(play, documents, parameters, scored):
    values = {name: crp_rag.__wrapped__.__kwdefaults__[name] for name in SMALL} | parameters
    samples, nodes, depth, paths = values.values()
    most = nodes * (2 * samples + 1 + (scored is True)) + paths * depth + 1
    counts = [play(crp_rag, Prolific(documents, seed), scored=scored, **parameters).calls for seed in range(20)]
    assert 0.4 * most < max(counts) <= most
    if not parameters:
        page = (Path(__file__).parents[2] / "docs" / "reasoning.md").read_text(encoding="utf-8")
        assert re.search(rf"^\| all \| \| {most} \|$" if scored is True else rf"at most {most}\.", page, re.MULTILINE)
