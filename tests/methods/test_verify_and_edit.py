"""Verify-and-Edit: agreement decides what is edited; each sentence by itself; the code that edits everything."""

from __future__ import annotations

import pytest

from lm_eval_rag.harness.core.written import Written
from lm_eval_rag.methods.verify_and_edit import verify_and_edit

QUESTION = "Who wrote the book that Ada Moss read?"


def votes(*answers: str) -> tuple[str, ...]:
    return tuple(f"Ada read Vale. {a} wrote it. So the answer is {a}." for a in answers)


def test_agreement_is_the_answer(play):
    played = play(verify_and_edit, [votes("Bo", "Cy", "Bo", "the bo!", "Di")])
    assert played.names == ["rationale"] and (played.answer.text, played.answer.notes) == ("Bo", ())
    assert played.answer.passages == () and (played.asks[0][1].n, played.asks[0][1].temperature) == (5, 0.7)
    assert "Documents" not in played.prompts("rationale")[0]


def test_disagreement_is_edited_sentence_by_sentence(play, documents):
    played = play(
        verify_and_edit,
        [votes("Bo", "Cy", "Bo", "Di", "Ed"), "What did Ada Moss read?\nx", documents("a", "b"), "She read Moor. Yes.",
         "- Who wrote Vale?", documents("c"), "Cy Reed wrote Vale.", "Cy Reed"],
        k=2,
    )  # fmt: skip
    assert played.names == ["rationale", *["verify", "Retrieve", "edit"] * 2, "answer"]
    assert played.queries == ["What did Ada Moss read?", "Who wrote Vale?"]
    assert "Sentence: Ada read Vale.\n" in played.prompts("verify")[0]
    assert "Sentence: Bo wrote it.\n" in played.prompts("verify")[1]
    assert "Moor" not in played.prompts("verify")[1]  # alone, not in sequence
    assert "Documents:\na\nb\nQuestion: What did Ada Moss read?" in played.prompts("edit")[0]
    assert "Facts:\n1. She read Moor.\n2. Cy Reed wrote Vale.\nAnswer:" in played.prompts("answer")[0]
    assert (played.answer.text, played.answer.notes) == ("Cy Reed", ())
    assert [passage.id for passage in played.answer.passages] == ["a", "c", "b"]


EDITING = ["What?", (), "Fact.", "Who?", (), "Fact.", "Cy"]


@pytest.mark.parametrize(
    ("answers", "paper", "official"),
    [
        (("Bo", "Bo", "Bo", "Bo", "Bo"), False, True),
        (("Bo", "Bo", "Bo", "Cy", "Di"), False, True),
        (("Bo", "Bo", "Cy", "Cy", "Di"), True, True),
    ],
)
def test_the_authors_code_edits_everything(play, answers, paper, official):
    """5 / 5 = 1 is below 3."""
    for variant, edited in (("paper", paper), ("official", official)):
        played = play(verify_and_edit, [votes(*answers), *(EDITING if edited else [])], variant=variant)
        assert ("verify" in played.names) == edited, variant
        assert played.answer.text == ("Cy" if edited else "Bo")


FIVE = (
    "Ada read Moor. So the answer is Bo.",
    "One. So the answer is Cy.",
    "Ada read Vale, which is a long book of many pages. So the answer is Bo.",
    "Ada read Ulm. So the answer is Bo.",
    "Two. So the answer is Di.",
)


@pytest.mark.parametrize(
    ("logs", "edited"),
    [((-9.0, -9.0, -8.0), "Vale"), ((-2.0, -9.0, -3.0), "Moor"), ((-5.0, -20.0, -5.0), "Moor"),
     ((-5.0, -20.0, -4.0), "Ulm")],
)  # fmt: skip
def test_the_authors_code_edits_the_majoritys_rationale_with_the_highest_mean_probability(play, logs, edited):
    """Longer ones have a lower probability, but not a lower mean. The others' samples are not asked about."""
    played = play(verify_and_edit, [FIVE, *logs, *EDITING[:3], "Cy"], variant="official")
    asked = [ask.continuation for name, ask in played.asks if name.startswith("rationale=")]
    assert asked == [f" {FIVE[place]}" for place in (0, 2, 3)]
    assert edited in played.prompts("verify")[0] and played.answer.notes == ()
    paper = play(verify_and_edit, [FIVE[:1] + ("x",) * 4, *EDITING[:3], "Cy"])
    assert "Moor" in paper.prompts("verify")[0] and "HasLoglikelihood" not in paper.names


def test_without_log_probabilities_the_first_rationale_is_edited(play):
    played = play(verify_and_edit, [FIVE, *EDITING[:3], "Cy"], variant="official", scored=False)
    assert "Moor" in played.prompts("verify")[0]
    assert played.answer.notes == ("no log-probabilities: first rationale",)


def test_replies_with_log_probabilities_tell_the_likeliest_rationale(play):
    """As with log-probabilities that are asked for, but without a call."""
    likely = tuple(Written(text, [(text, -20.0 if "Moor" in text else -2.0)]) for text in FIVE)
    played = play(verify_and_edit, [likely, *EDITING[:3], "Cy"], variant="official", scored="replies")
    assert "Moor" not in played.prompts("verify")[0] and played.answer.notes == ()
    assert played.names == ["rationale", "HasLoglikelihood", "verify", "Retrieve", "edit", "answer"]


@pytest.mark.parametrize(("samples", "count", "edited"), [(1, 1, False), (4, 2, False), (4, 1, True), (7, 3, True)])
def test_half_of_the_samples_rounded_up(play, samples, count, edited):
    answers = ["Bo"] * count + [f"X{i}" for i in range(samples - count)]
    played = play(verify_and_edit, [votes(*answers), *(EDITING if edited else [])], samples=samples)
    assert ("verify" in played.names) == edited


def test_malformed_samples_have_no_vote(play, documents, abstains):
    played = play(verify_and_edit, [("Ada read it.", "No idea.", "", "", "x"), "What?", documents("a"), " ", "Cy"])
    assert played.answer.notes == ("answer unparsed", "sentence not edited") and played.answer.text == "Cy"
    assert "1. Ada read it." in played.prompts("answer")[0]  # the sentence stays
    assert abstains(play(verify_and_edit, [("",) * 5]).answer, "no rationale")
    stays = play(verify_and_edit, [votes("A", "B", "C", "D", "E"), "", "", "I don't know"])
    assert stays.names == ["rationale", "verify", "verify", "answer"] and stays.answer.abstained


def test_a_bare_answer_without_rationale_is_asked_for_again(play):
    played = play(verify_and_edit, [("The answer is A.", "x", "y", "z", "v"), "B"])
    assert played.names == ["rationale", "answer"] and played.answer.text == "B"


def test_it_abstains_at_its_limit(play, documents, abstains):
    long = "One. Two. Three. Four. " * 20
    played = play(verify_and_edit, lambda name, ask: documents(ask.text) if name == "Retrieve" else long, max_calls=12)
    assert abstains(played.answer, "max_calls reached") and played.calls == 12
