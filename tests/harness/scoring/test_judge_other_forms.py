"""The judge without a model: other forms of names, numbers, ratios and countries, and names that are only mentioned."""

from __future__ import annotations

import pytest

from lm_eval_rag.harness.scoring.judge.given_names import in_gold_form
from lm_eval_rag.harness.scoring.judge.mentions import only_mentioned
from lm_eval_rag.harness.scoring.judge.nationalities import asks_nationality, with_countries
from lm_eval_rag.harness.scoring.judge.refusals import refused, refused_after_context
from lm_eval_rag.harness.scoring.judge.rule_judge import judge
from lm_eval_rag.harness.scoring.judge.values import quantities, same_quantity

WHO = "who directed the film?"
SHOOT = "how many goals did ada score?"
YEARS = "how many years did it take?"
TEAM = "which nba team won?"


@pytest.mark.parametrize(
    ("question", "gold", "prediction", "right"),
    [
        (SHOOT, "2", "She found the net twice.", True), (SHOOT, "3", "She found the net twice.", False),
        (SHOOT, "12", "A dozen.", True), (SHOOT, "6", "Half a dozen", True), (SHOOT, "24", "Two dozen goals", True),
        (SHOOT, "12", "half a dozen", False), (YEARS, "70 years", "seven decades", True),
        (YEARS, "71 years", "seven decades", False), (YEARS, "100 years", "a century", True),
        (YEARS, "100", "three quarters of a century", False), (YEARS, "25", "a quarter of a century", True),
        (YEARS, "36 years", "36 months", False), (YEARS, "1.5 years", "A year and a half.", True),
        ("how long is it?", "5 minutes and 55 seconds", "355 seconds", True),
        ("how long is it?", "5 minutes and 55 seconds", "55 seconds and 5 minutes", False),
        ("how long did it last?", "6 years", "5 years and 11 months", False),
    ],
)  # fmt: skip
def test_numbers_in_other_units(question: str, gold: str, prediction: str, right: bool) -> None:
    assert judge(question, [gold], prediction)[0] == right


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("100 °C", "212 °F", True), ("-89.2 °C", "−128.6 °F", True), ("100 degrees Celsius", "100 °C", True),
        ("100 °C", "100 °F", False), ("0 °C", "32 degrees Fahrenheit", True), ("20 °C", "70 °F", False),
        ("20 °C", "68 °F", True), ("68 °F", "68", True), ("20 °C", "20.4 °C", True), ("20 °C", "21 °C", False),
    ],
)  # fmt: skip
def test_temperatures(one: str, other: str, same: bool) -> None:
    """Celsius is (Fahrenheit - 32) * 5/9."""
    (left,), (right,) = quantities(one), quantities(other)
    assert same_quantity(left, right) is same and same_quantity(right, left) is same


@pytest.mark.parametrize(
    ("gold", "prediction", "right"),
    [
        ("4-for-1", "a 4:1 split", True), ("4-for-1", "four-for-one", True), ("4-for-1", "1-for-4", False),
        ("4-for-1", "4 to 1", True), ("3-1", "3–1", True), ("3-1", "They won 3-1, after a 1-1 draw.", True),
        ("3-1", "2-1", False), ("3-1", "3-1 or 2-1", False), ("3-1", "It was not 3-1.", False),
        ("20-for-1", "a twenty-for-one split", True), ("3-1", "3-10", False),
    ],
)  # fmt: skip
def test_ratios_and_scores(gold: str, prediction: str, right: bool) -> None:
    assert judge("what was the result?", [gold], prediction)[0] == right


@pytest.mark.parametrize(
    ("gold", "prediction", "wanted"),
    [
        ("bill quill", "William J. Quill was it.", "Bill Quill was it."), ("ada quill", "ADA QUILL", "ADA QUILL"),
        ("Bill Quill", 'Willem "Bill" Quill', "Bill Quill"), ("bill quill", "Robert Quill", "Robert Quill"),
        ("bill quill", "William Quill Jr.", "William Quill Jr."), ("quill", "William", "William"),
        ("william quill", "Bill Quill", "William Quill"), ("bill quill", "William Holt", "William Holt"),
    ],
)  # fmt: skip
def test_given_names(gold: str, prediction: str, wanted: str) -> None:
    assert in_gold_form(gold, prediction) == wanted


@pytest.mark.parametrize(
    ("prediction", "mentioned"),
    [
        ("Bob Holt, although Ada Quill is often named", True), ("Although not Bob Holt, Ada Quill", False),
        ("Bob Holt wrote it, while Ada Quill directed it", False),
        ("Bob Holt directed it, while Ada Quill wrote", True),
        ("Bob Holt, before Ada Quill did", True), ("Bob Holt; Ada Quill was his assistant", True),
        ("Bob Holt and his deputy, Ada Quill", True), ("Bob Holt took over from Ada Quill", True),
        ("Bob Holt, beating Ada Quill", True), ("Bob Holt won it over Ada Quill", True),
        ("It was named after Ada Quill in Teth", False), ("The film was by Ada Quill", False),
    ],
)  # fmt: skip
def test_names_that_are_only_mentioned(prediction: str, mentioned: bool) -> None:
    assert only_mentioned("ada quill", prediction, WHO) is mentioned


def test_a_relative_is_the_answer_if_one_is_asked_for() -> None:
    assert not only_mentioned("ada quill", "Bob Holt and his wife, Ada Quill", "who is the wife of the director?")
    assert only_mentioned("ada quill", "Bob Holt and his wife, Ada Quill", WHO)
    played = "Rex was played by Bob Holt, and he is married to Ada Quill."
    assert not only_mentioned("ada quill", played, "who is the wife of the actor who played rex?")


@pytest.mark.parametrize(
    ("gold", "prediction", "right"),
    [
        ("dallas mavericks", "the Mavs", True), ("miami heat", "the Heat", True), ("miami heat", "the Bulls", False),
        ("chicago white sox", "the Sox", False), ("dallas mavericks", "the Mags", False),
        ("dallas mavericks", "They won it all with the Mavs.", True),
        ("dallas mavericks", "The Mavs' rivals in Miami", False),
    ],
)  # fmt: skip
def test_short_names_of_teams(gold: str, prediction: str, right: bool) -> None:
    assert judge(TEAM, [gold], prediction)[0] == right


def test_the_doer_in_a_sentence() -> None:
    who = "who painted the gate?"
    assert judge(who, ["vincent van holt"], "Van Holt painted it in 1889, while he stayed in Teth.")[0]
    assert judge(who, ["ada quill"], "It was Redfern's gate, so Quill.")[0]
    assert not judge(who, ["ada quill"], "Quill painted the hall; Holt painted the gate.")[0]
    assert not judge(who, ["ada quill"], "Quill's brother painted it in Teth.")[0]


def test_other_names_in_brackets() -> None:
    gold = "facebook, twitter"
    assert judge("which firms?", [gold], "X (formerly Twitter) and Facebook")[0]
    assert not judge("which firms?", [gold], "X (formerly Orkut) and Facebook")[0]


def test_countries_and_their_adjectives() -> None:
    asked = "what is the nationality of ada quill?"
    assert asks_nationality(asked) and not asks_nationality("which country won?")
    assert with_countries("He was Dutch.") == "He was Netherlands."
    assert with_countries("the U.S.") == with_countries("United States") == "America"
    assert judge(asked, ["german"], "She's from Germany.")[0] and not judge(asked, ["german"], "Austria")[0]
    assert not judge("which team won?", ["germany"], "the German one")[0]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Bob Holt is the lead, but I found nothing about his sister.", True),
        ("Redfern won it. However, no director is given in the sources.", True),
        ("It was Bob Holt, but the sources do not say when.", False), ("Probably Bob Holt, but I don't know.", False),
        ("Bob Holt, but I could not verify this.", False), ("The page does not say so, but it was Bob Holt.", False),
    ],
)  # fmt: skip
def test_refusals_after_context(text: str, wanted: bool) -> None:
    assert not refused(text) and refused_after_context(text) is wanted
    assert (judge(WHO, ["ada quill"], text)[1] == "refusal") is wanted


def test_a_refusal_after_the_answer_is_no_refusal() -> None:
    assert judge(WHO, ["ada quill"], "Ada Quill directed it, but I found nothing about her youth.")[0] == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "No idea, sorry.", "Nothing I found names her.", "That can't be calculated.", "I can't work that out.",
        "I can't help with that; nothing I retrieved mentions it.",
        "The text is about films, but nothing in it says who.",
        "I wasn't given any text.", "I don't have the dates.", "Apologies, I have no information.",
    ],
)  # fmt: skip
def test_more_refusals(text: str) -> None:
    assert refused(text)


def test_yes_at_the_end_and_more_taller_than() -> None:
    assert judge("is it a fruit?", ["yes"], "Strictly speaking, yes.")[0]
    assert judge("is it a fruit?", ["yes"], "It certainly is.")[0] and not judge("is it?", ["yes"], "Sadly, no.")[0]
    taller = "who is taller, samuel quill or bo holt?"
    assert not judge(taller, ["bo holt"], "Sammo is taller than Bo Holt.")[0]
    assert judge(taller, ["samuel quill"], "Sammo is taller than Bo Holt.")[0]
    assert judge(taller, ["bo holt"], "Nobody is taller than Bo Holt.")[0]
    assert not judge("did ada or bob score more?", ["ada"], "Ada's score was lower than Bob's.")[0]
