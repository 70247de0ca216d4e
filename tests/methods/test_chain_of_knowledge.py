"""Chain-of-Knowledge: agreement decides what is corrected; each sentence goes on from the corrected ones."""

from __future__ import annotations

from lm_eval_rag.methods.chain_of_knowledge import chain_of_knowledge
from lm_eval_rag.methods.verify_and_edit import verify_and_edit

QUESTION = "Who wrote the book that Ada Moss read?"


def votes(*answers: str) -> tuple[str, ...]:
    return tuple(f"Ada read Vale. {a} wrote it. So the answer is {a}." for a in answers)


def test_agreement_is_the_answer(play):
    played = play(chain_of_knowledge, [votes("Bo", "Cy", "Bo", "Bo", "Di")])
    assert played.names == ["rationale"] and played.answer.text == "Bo"
    assert (played.asks[0][1].n, played.asks[0][1].temperature) == (5, 0.7)


def test_disagreement_is_corrected_in_sequence(play, documents):
    played = play(
        chain_of_knowledge,
        [votes("Bo", "Cy", "Bo", "Di", "Ed"),
         "ada moss book\nx", documents("a", "b"), "Ada read Moor. Sure.", "Cy wrote Moor. And on.",
         "author of moor", documents("c"), "Di wrote Moor.", "So the answer is Di.",
         "Di Reed"],
        k=2,
    )  # fmt: skip
    assert played.names == ["rationale", *["query", "Retrieve", "correct", "rationale"] * 2, "answer"]
    assert played.queries == ["ada moss book", "author of moor"]
    assert "Known:\nnone\nSentence: Ada read Vale." in played.prompts("query")[0]
    assert played.prompts("rationale")[1].endswith("Answer: Ada read Moor.")  # it goes on from the corrected sentence
    assert "Known:\n1. Ada read Moor.\nSentence: Cy wrote Moor." in played.prompts("query")[1]
    assert "Documents:\nc\nKnown:\n1. Ada read Moor.\nSentence: Cy wrote Moor." in played.prompts("correct")[1]
    assert "Facts:\n1. Ada read Moor.\n2. Di wrote Moor.\nAnswer:" in played.prompts("answer")[0]
    assert (played.answer.text, played.answer.notes) == ("Di Reed", ())
    assert [passage.id for passage in played.answer.passages] == ["a", "c", "b"]


def test_in_sequence_where_verify_and_edit_works_alone(play, documents):
    """The second correction sees the first; Verify-and-Edit's does not."""
    start = votes("Bo", "Cy", "Di", "Ed", "Flo")
    sequence = play(
        chain_of_knowledge,
        [start, "q", documents("a"), "FIXED.", "Next.", "q", documents("b"), "Next.", "The answer is x.", "x"],
    )
    alone = play(verify_and_edit, [start, "q", documents("a"), "FIXED.", "q", documents("b"), "Next.", "x"])
    assert "FIXED." in sequence.prompts("correct")[1] and "FIXED." not in alone.prompts("edit")[1]


def test_endless_sentences_end(play, documents):
    def endless(name, ask):
        if name == "Retrieve":
            return documents("a")
        return votes("A", "B", "C", "D", "E") if ask.n == 5 else "And on."

    played = play(chain_of_knowledge, endless, sentences=3)
    corrected = ["query", "Retrieve", "correct"]
    assert played.names == ["rationale", *[*corrected, "rationale"] * 2, *corrected, "answer"]
    assert played.answer.text == "And on."


def test_number_of_calls(play, documents):
    """5 if samples agree or reason nothing; 6 if the rationale has no sentence but the answer; else 9 to 20."""

    def calls(replies, then="And on."):
        return play(
            chain_of_knowledge,
            lambda name, ask: documents("a") if name == "Retrieve" else replies if ask.n == 5 else then,
        ).calls

    assert calls(votes("A", "A", "A", "B", "C")) == calls(("",) * 5) == 5
    assert calls(tuple(f"The answer is {a}." for a in "ABCDE")) == 6
    assert calls(votes("A", "B", "C", "D", "E"), "The answer is A.") == 9
    assert calls(votes("A", "B", "C", "D", "E")) == 20


def test_malformed_replies(play, documents, abstains):
    blank = play(chain_of_knowledge, [("Ada read it.", "", "x", "", ""), "", documents("a"), " ", "", "I don't know"])
    assert blank.queries == ["Ada read it."]  # the sentence itself where no query is written
    assert blank.answer.abstained and blank.answer.notes == ("answer unparsed", "sentence not corrected")
    assert "Facts:\n1. Ada read it.\n" in blank.prompts("answer")[0]
    assert abstains(play(chain_of_knowledge, [("",) * 5]).answer, "no rationale")
    empty = play(chain_of_knowledge, [votes("A", "B", "C", "D", "E"), "q", (), "Fixed.", "The answer is A.", "A"])
    assert "Documents" not in empty.prompts("correct")[0] and empty.answer.passages == ()


def test_it_abstains_at_its_limit(play, documents, abstains):
    played = play(chain_of_knowledge, [votes("A", "B", "C", "D", "E"), "q", documents("a"), "Fixed."], max_calls=7)
    assert abstains(played.answer, "max_calls reached") and played.answer.passages == documents("a")
