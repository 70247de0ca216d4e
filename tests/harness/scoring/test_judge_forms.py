"""The judge without a model on the forms of CRAG's answers: lower-case questions, right and wrong predictions.

The lines of ``judge_forms.jsonl`` were written with the rules, so they show what the rules do, not how good they are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.scoring.judge.reading import folded, items, without_opening
from lm_eval_rag.harness.scoring.judge.refusals import refused
from lm_eval_rag.harness.scoring.judge.rule_judge import judge

LINES = Path(__file__).with_name("judge_forms.jsonl").read_text(encoding="utf-8").splitlines()
FORMS: list[dict[str, Any]] = [json.loads(line) for line in LINES]
REFUSALS = [
    "Not mentioned in the references.",
    "None of the references say.",
    "None of the provided documents mentions the director.",
    "Sorry, no idea.",
    "there isn't enough detail to answer",
    "Based on the references, there isn't enough detail to answer.",
    "I do not know.",
    "The references do not contain this information.",
    "I'm sorry, I can't find this.",
    "Not enough information.",
    "I cannot determine this from the references provided.",
    "It cannot be determined from the references.",
    "No information available.",
    "The references don't specify who directed it.",
    "I don't have an answer to that.",
    "I have no information about this.",
    "The answer is not in the references.",
    "This information isn't in the provided context.",
    "Unable to determine from the context.",
    "Could you clarify which film you mean?",
    "I need more context to answer that.",
    "The question cannot be answered with the given sources.",
    "Insufficient context.",
    "No relevant details were found.",
    "It's unclear from the documents.",
    "Unfortunately, the passages do not say.",
    "Sorry, I could not find that.",
    "I'm unable to answer this question based on the references.",
    "The given text does not specify.",
    "No source mentions this.",
    "Not specified.",
    "Not stated in the documents",
    "No clue.",
    "unclear",
    "I am not sure, so I cannot answer.",
    "The references are about other films and do not mention this one.",
    "None of the references mention it",
    "I can't say.",
    "I couldn't say.",
    "I don't have information about this.",
    "The documents provided don't mention the president of France.",
    "Unfortunately I can't help with that.",
    "There is no answer in the references.",
    "Cannot be determined from the given information.",
    "This question cannot be answered based on the context.",
    "The context doesn't say who the president is.",
    "It is not stated.",
    "Not available in the documents.",
    "I have no idea.",
    "I'm afraid I don't have that information.",
    "The information is unavailable.",
    "My sources are silent on this.",
    "I could not verify this.",
    "There's no mention of a president in the text.",
    "no info",
    "Can't tell from the references.",
    "Don't know.",
    "Undetermined",
    "The question is unclear; please provide more details.",
    "The provided context lacks that information.",
    "I lack the information to answer this.",
    "I wasn't able to find the answer.",
]
NO_REFUSALS = [
    "Red pandas can be found in Nepal.", "It can be found in the north of Italy", "Not Ada Quill but Bob Holt.", "No.",
    "None.", "None of them won.", "Neither of the teams won.", "He does not have any children.", "Not yet.",
    "The page does not mention it, so it was Ada Quill.", "Canada is not a member of the EU.", "It is not in Europe.",
    "The data company Palantir", "Unknown Pleasures", "She is not known to have married.", "There is no king of Teth.",
    "The information provided does not mention who scored; however, it was Ada Quill.", "The Sorry Tale",
    "According to the text, the film was not released.", "Based on the references, it was Ada Quill.",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form['question'][:40]} {form['gold'][:20]}")
def test_form(form: dict[str, Any]) -> None:
    for verdict, predictions in ((1.0, form["right"]), (0.0, form["wrong"])):
        for prediction in predictions:
            found, rule = judge(form["question"], [form["gold"]], prediction)
            assert found == verdict, (prediction, rule)


def test_forms_are_lower_case_and_have_wrong_predictions() -> None:
    assert len(FORMS) > 100 and all(form["question"] == form["question"].lower() for form in FORMS)
    assert sum(len(form["wrong"]) for form in FORMS) > 300 and sum(len(form["right"]) for form in FORMS) > 250


@pytest.mark.parametrize("text", REFUSALS)
def test_what_is_a_refusal(text: str) -> None:
    assert refused(text) and judge("who wrote it?", ["ada quill"], text) == (0.0, "refusal")


def test_a_refusal_is_missing_for_a_list_in_a_sentence_too() -> None:
    gold = "the members of mgmt are andrew vanwyngarden and ben goldwasser."
    assert judge("who are the members of mgmt?", [gold], "The references do not say.") == (0.0, "refusal")


@pytest.mark.parametrize("text", NO_REFUSALS)
def test_what_is_an_answer(text: str) -> None:
    assert not refused(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1. Red 2. Blue 3. Yellow", ["red", "blue", "yellow"]),
        ("The colours are: 1) Red, 2) Blue and 3) Yellow", ["red", "blue", "yellow"]),
        ("* Red * Blue", ["red", "blue"]), ("- Red\n- Blue", ["red", "blue"]), ("It is: - red - blue", ["red", "blue"]),
        ("1. Red", ["1. red"]), ("In 2010. 2. Red", ["in 2010. 2. red"]), ("Ada - Bob", ["ada - bob"]),
        ("Nike, Inc., Salesforce, Inc.", ["nike inc.", "salesforce inc"]), ("Ada, who left, and Bob", ["ada", "bob"]),
        ("Based on the pages, Ada and Bob", ["ada", "bob"]), ("Ada vs. Bob, respectively", ["ada", "bob"]),
    ],
)  # fmt: skip
def test_the_items_of_a_list_with_marks(text: str, wanted: list[str]) -> None:
    assert items(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Mario Götze", "Mario Gotze"), ("Brøndby Łódź", "Brondby Lodz"), ("Ǻ é ñ", "A e n"), ("й が", "й が"),
        ("3 ≠ 4", "3 ≠ 4"), ("plain", "plain"),
    ],
)  # fmt: skip
def test_accents_of_latin_letters_are_folded(text: str, wanted: str) -> None:
    assert folded(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Based on the references, the answer is Teth.", "Teth."), ("The answer is: 12", "12"), 
        ("The answer is not given", "The answer is not given"), ("Answer: no", "no"),
        ("According to the text, it is Teth", "it is Teth"), ("-3.5", "-3.5"), ("the answer is", "the answer is"),
        ("Based on a true story", "Based on a true story"),
    ],
)  # fmt: skip
def test_the_opening_of_a_prediction_is_left_out(text: str, wanted: str) -> None:
    assert without_opening(text) == wanted
