"""ITER-RETGEN: the output of a round is part of the next query, and each round sees its own passages alone."""

from __future__ import annotations

from lm_eval_rag.methods.iter_retgen import iter_retgen


def test_three_rounds(play, documents):
    played = play(
        iter_retgen,
        [documents("a", "b"), "Ada read Vale. So the answer is Vale.", documents("b", "c"), "Hm. The answer is Moor.",
         documents("d"), "Ada read Moor.\nSo the answer is Bo Reed."],
        k=2,
    )  # fmt: skip
    question = "Who wrote the book that Ada Moss read?"
    assert played.names == ["Retrieve", "paper"] * 3
    assert played.queries == [
        question, f"{question} Ada read Vale. So the answer is Vale.", f"{question} Hm. The answer is Moor."
    ]  # fmt: skip
    assert [ask.k for name, ask in played.asks if name == "Retrieve"] == [2, 2, 2]
    first, second, third = played.prompts("paper")
    assert "Documents:\na\nb\n" in first and "Documents:\nb\nc\n" in second and "Documents:\nd\nQuestion" in third
    assert all(f"Question: {question}" in prompt and "Vale" not in prompt for prompt in (first, second, third))
    assert (played.answer.text, played.answer.notes) == ("Bo Reed", ())
    assert [passage.id for passage in played.answer.passages] == ["d", "b", "c", "a"]  # the last round's first


def test_defaults_are_the_papers(play, documents):
    played = play(iter_retgen, lambda name, ask: documents("a") if name == "Retrieve" else "the answer is x")
    assert played.names == ["Retrieve", "paper"] * 3 and played.asks[0][1].k == 5
    assert played.asks[1][1].temperature == 0


def test_flashrag_asks_for_the_bare_answer(play, documents):
    """So the second query holds an answer, where the paper's holds a chain of thought."""
    replies = [documents("a"), "Vale", documents("b"), "Moor"]
    official = play(iter_retgen, replies, iterations=2, variant="flashrag")
    assert official.names == ["Retrieve", "flashrag"] * 2 and official.queries[1].endswith("read? Vale")
    assert official.answer.text == "Moor" and not official.answer.notes
    assert "step by step" not in official.prompts("flashrag")[0]
    paper = play(iter_retgen, replies, iterations=2)
    assert "step by step" in paper.prompts("paper")[0] and paper.answer.notes == ("answer unparsed",)


def test_without_passages_the_model_answers_from_memory(play):
    played = play(iter_retgen, [(), "The answer is Vale."], iterations=1)
    assert "Documents" not in played.prompts("paper")[0] and played.answer.text == "Vale"
    assert played.answer.passages == ()


def test_refusals_and_blanks_abstain(play, documents, abstains):
    assert play(iter_retgen, [documents("a"), "I don't know."], iterations=1).answer.abstained
    assert abstains(play(iter_retgen, [documents("a"), " "], iterations=1).answer, "blank answer")
    over = play(iter_retgen, [documents("a"), "x", documents("b"), "y", documents("c")], max_calls=2)
    assert abstains(over.answer, "max_calls reached") and len(over.answer.passages) == 3
