"""The judge without a model, rule by rule: which rule decides on which question, and what its text functions read."""

from __future__ import annotations

import pytest

from lm_eval_rag.harness.scoring.judge.gold_answers import reduced
from lm_eval_rag.harness.scoring.judge.reading import content, denied, items, words
from lm_eval_rag.harness.scoring.judge.refusals import refused
from lm_eval_rag.harness.scoring.judge.rule_judge import judge

WHICH = "Which is older, Skarn or Holm?"
WHEN = "When did it open?"
FILM = "Who directed the film?"
RIGHT, WRONG = 1.0, 0.0
Row = tuple[str, str, str, float]

EQUAL: list[Row] = [
    ("Who?", "Ada Quill", "ada  QUILL.", RIGHT),
    (WHICH, "Skarn or Holm", "skarn or holm", RIGHT),
]
YES_OR_NO: list[Row] = [
    ("Is it?", "yes", "Yes, it is", RIGHT), ("Is it?", "yes", "yeah sure", RIGHT), ("Is it?", "Yeah", "yes", RIGHT),
    ("Is it?", "no", "Nope, never", RIGHT), ("Is it?", "nope", "no it is not", RIGHT), ("Is it?", "yes", "no", WRONG),
    ("Is it?", "no", "yes", WRONG), ("Is it?", "no", "yeah", WRONG), ("Is it?", "yes", "nope", WRONG),
    ("Is it?", "yes", "it is", RIGHT), ("Is it?", "yes, since 1990", "Yes.", RIGHT),
    ("Is it?", "yes, it is", "No!", WRONG),
]  # fmt: skip
OPTION: list[Row] = [
    (WHICH, "Holm", "I think Holm", RIGHT), (WHICH, "Holm", "Skarn", WRONG), (WHICH, "Holm", "Varn", WRONG),
    (WHICH, "Holm", "Holm or Skarn", WRONG), (WHICH, "Holm", "not Holm", WRONG),
    (WHICH, "Skarn is older than Holm", "Skarn", RIGHT),
    (WHICH, "Skarn is older than Holm", "Holm", WRONG), (WHICH, "Holm", "Holm, and Skarn came later", RIGHT),
    (WHICH, "Holm", "Skarn came after Holm", RIGHT), (WHICH, "Holm, then Skarn, then Holm", "it is Holm", RIGHT),
    (WHICH, "it is Skarn", "Holm, or rather Skarn", WRONG),
    ("Of two or more, the red Skarn or the blue Holm?", "blue Holm", "blue Holm it is", RIGHT),
    ("In Teth, Skarn or Holm?", "Teth, Skarn", "it is Skarn", RIGHT),
    ("Skarn or Holm, in Teth?", "Holm in Teth", "it is Holm", RIGHT),
    ("In Teth: now then; Skarn or Holm; in Varn", "Skarn", "it is Skarn", RIGHT),
    ("Is it the red Skarn or Holm?", "the red Skarn", "it is red Skarn", RIGHT),
    ("Is it the red Skarn or Holm?", "red Skarn", "it is Skarn", RIGHT),
    ("Is it Skarn or Holm built in Teth?", "Holm", "it is Holm", RIGHT),
    ("Is it Holm or Holm Hall?", "Holm Hall", "Holm", WRONG),
    ("Is it Holm or Holm Hall?", "Holm Hall", "it is Holm Hall", RIGHT),
    ("Is it the red Skarn or Holm?", "Holm", "red Skarn then Holm", WRONG),
    ("SKARN OR HOLM?", "holm", "it is Holm", RIGHT),
]  # fmt: skip
DATE: list[Row] = [
    (WHEN, "May 3, 1998", "It opened on 3 May 1998", RIGHT), (WHEN, "May 3, 1998", "May 1998", WRONG),
    (WHEN, "May 1998", "May 3, 1998", RIGHT), (WHEN, "1998", "May 3, 1998", RIGHT), (WHEN, "1998", "in 1999", WRONG),
    (WHEN, "1998", "It was 1998", RIGHT), (WHEN, "1998", "1998 or 1999", WRONG), (WHEN, "1998", "long ago", WRONG),
    (WHEN, "1998", "not 1998", WRONG), (WHEN, "1998", "May 3 in 1998", RIGHT),
    (WHEN, "It opened in 1998", "around the year 1998", RIGHT),
    (WHEN, "It opened in May 1998", "1998", WRONG), ("What film?", "May 3, 1998", "on May 3, 1998", RIGHT),
    ("What film?", "on May 3, 1998", "May 4, 1998", WRONG),
    ("In what year did it open?", "1998", "the year 1998", RIGHT),
    ("When did the 1990 film get a sequel?", "The 1990 film got one in 1998", "in 1998", RIGHT),
    ("When did the 1990 film get a sequel?", "The 1990 film got one in 1998", "in 1990", WRONG),
    ("When did the 1990 film get a sequel?", "in 1998", "eight years after 1990, in 1998", RIGHT),
    ("When in 1998 did it open?", "May 3, 1998", "on May 3, 1998", RIGHT),
    ("When in 1998 did it open?", "1998", "in 1998", RIGHT),
    ("What is the release date of it?", "It came out on May 3, 1998", "May 3rd, 1998", RIGHT),
]  # fmt: skip
LIST: list[Row] = [
    ("Who?", "Ada, Bob and Cy", "Cy, Ada & Bob", RIGHT), ("Who?", "Ada, Bob and Cy", "Ada and Bob", WRONG),
    ("Who?", "Ada and Bob", "Ada, Bob and Cy", WRONG), ("Who?", "Ada and Bob", "Ada and Cy", WRONG),
    ("Who?", "Ada, Bob", "Ada or Bob", WRONG), ("Who?", "Ada and Bob", "Ada or Bob, Cy", WRONG),
    ("Who?", "Ada and Bob", "Ada or Cy, Bob", WRONG),
    ("Who?", "Ada; Bob", "It was Ada and then Bob", RIGHT), ("Who?", "Ada and Bob", "Ada, not Bob", WRONG),
    ("Who?", "Ada, Ada", "Ada, Bob", WRONG), ("Who?", "Ada or Bob; Cy", "Cy; Ada or Bob", RIGHT),
    ("Scores?", "3, 4 and 5", "3; 4; 5", RIGHT), ("Scores?", "3, 4 and 5", "5, 4 and 3", WRONG),
    ("Scores?", "3 goals and 4 fouls", "3 and 4", WRONG),
    ("Dates?", "May 3, 1998 and June 4, 1999", "4 June 1999, 3 May 1998", RIGHT),
    ("Dates?", "May 3, 1998 and June 4, 1999", "5 June 1999, 3 May 1998", WRONG),
    ("Who?", "Ada Quill and Bob", "Quill and Bob", WRONG),
    ("Who?", "Quill and Bob", "Ada Quill and Bob", RIGHT), ("Who?", "Quill and Bob", "Quillfeather and Bob", WRONG),
    ("Who?", "Ada and Bob", "Ada Quill and Bob Holt", RIGHT),
    ("Who?", "the old mill by Teth town and Bob", "Bob, the old mill by Teth town", RIGHT),
]  # fmt: skip
NUMBER: list[Row] = [
    ("How many rooms?", "12", "about 12 rooms", RIGHT), ("How many rooms?", "12 rooms", "twelve of them", RIGHT),
    ("How many rooms?", "12", "13", WRONG), ("How many rooms?", "12", "many", WRONG),
    ("How many rooms?", "12", "not 12", WRONG),
    ("How many rooms?", "12", "12 or 13", WRONG), ("What is left?", "12", "it is 12", RIGHT),
    ("How many rooms in 2020?", "12 in 2020", "in 2020 it had 12", RIGHT),
    ("How many rooms?", "12", "in 2021, 12", RIGHT),
    ("How many rooms did the 7 houses have?", "The 7 houses had 12", "7 houses, 12", RIGHT),
    ("How many rooms did the 7 houses have?", "The 7 houses had 12", "12", RIGHT),
    ("How many rooms did the 7 houses have?", "7", "only 7", RIGHT),
    ("How many rooms?", "12 small red rooms", "12", RIGHT),
    ("How many rooms?", "12 small red rooms of old Teth in Varn", "12", RIGHT),
    ("How tall is it?", "3 km", "3000 metres", RIGHT),
    ("What is its price?", "$26.59", "26.59 dollars", RIGHT), ("What is its price?", "$26.59", "$26.72", WRONG),
    ("How many rooms?", "1998", "in 2020, 1998 rooms", RIGHT), ("How many rooms?", "1998 red old rooms", "1998", RIGHT),
    ("How many rooms?", "1998", "1998 rooms", RIGHT),
    ("How many?", "between 12 in 1998 in Teth town and hall", "12", RIGHT),
]  # fmt: skip
HELD: list[Row] = [
    (FILM, "Ada Quill", "It was Ada Quill", RIGHT), (FILM, "Ada Quill", "not Ada Quill", WRONG),
    (FILM, "Ada Quill", "It was Ada Quill or Bob Holt", WRONG), (FILM, "Ada Quill", "Bob Holt or Ada Quill", WRONG),
    (FILM, "Ada Quill", "Ada Quill, Bob Holt, Cy Varn", WRONG), (FILM, "Ada Quill", "Ada Quill, of Teth", RIGHT),
    (FILM, "Ada Quill", "Ada Quill did not", WRONG), (FILM, "Ada Quill", "It is Ada Quill, not Bob", RIGHT),
    (FILM, "Ada Quill", "Ada Quill, Bob Holt, and a man whose name nobody at all remembers", RIGHT),
    (FILM, "Ada Quill", "Ada Quill, Bob Holt, one two old big red men", WRONG),
    (FILM, "Ada Quill", "It was Ada Quill herself or her twin", RIGHT), (FILM, "Ada", "this or that Ada", RIGHT),
    (FILM, "Ada Quill", "Ada Quill or Bob, so Ada Quill", WRONG),
    ("Is it this or Holm?", "Holm", "it is Holm", RIGHT), ("Which film?", "12 Monkeys", "the film 12 Monkeys", RIGHT),
    ("Where?", "in Teth on May 3, 1998", "It was in Teth on May 3, 1998", RIGHT),
]  # fmt: skip
NAMED: list[Row] = [
    (FILM, "Ada Quill directed the film in Teth", "Ada Quill", RIGHT),
    (FILM, "The director is Ada Quill", "Ada Quill", RIGHT),
    (FILM, "It was Ada Quill who directed it", "Ada Quill", RIGHT),
    (FILM, "The winner of the prize that year was Ada Quill, aged 40", "Ada Quill", RIGHT),
    (FILM, "The winner was Ada Quill (aged forty)", "Ada Quill.", RIGHT),
    (FILM, "The winner of the prize that year was Ada Quill, a man of Teth", "Ada Quill", RIGHT),
    (FILM, "In that year the one who was called Ada Quill won and left", "Ada Quill", RIGHT),
    (FILM, "One of them is called Ada Quill", "Ada Quill", RIGHT),
    ("What did Ada Quill direct?", "Redfern was directed by Ada Quill", "Redfern", RIGHT),
]  # fmt: skip
REFUSAL: list[Row] = [
    (FILM, "Ada Quill", "The documents do not mention the director.", WRONG),
    (FILM, "Ada Quill", "I'm sorry, but I can't find who directed it.", WRONG),
    (FILM, "Ada Quill", "I am not sure whether Ada Quill directed it.", WRONG),
    (FILM, "Ada Quill", "There is not enough information. The page only describes Ada Quill's house.", WRONG),
    ("Is it old?", "no", "No information is available in the text.", WRONG),
    ("How many rooms?", "12", "It is not possible to say how many of the 12 rooms.", WRONG),
    (FILM, "Ada Quill", "This is not stated in the given context.", WRONG), (FILM, "Ada Quill", "Unknown.", WRONG),
]  # fmt: skip
DENIAL: list[Row] = [
    ("Who is the king of Teth?", "Teth has no king", "There is no king of Teth.", RIGHT),
    ("When did Ada Quill win?", "Ada Quill never won", "Ada Quill has not won it.", RIGHT),
    ("Why did it close?", "fire never destroyed its roof", "fire destroyed its roof, never", RIGHT),
]  # fmt: skip
CLAIMS: list[Row] = [
    (FILM, "Ada Quill", "Bob Holt, a friend of Ada Quill", WRONG),
    (FILM, "Ada Quill", "Holt's wife, Ada Quill, did it", RIGHT),
    ("Where is it?", "Teth", "Varn, near Teth", WRONG),
    ("Where is it?", "Teth", "Teth, SK, with its mills and hall", RIGHT),
    ("Where is it?", "Teth", "Teth, Skarn, Varnland", RIGHT),
    ("Where was Ada born?", "Teth", "Ada was born in Varn and moved to Teth", WRONG),
    ("Where was Ada born?", "Teth", "Ada was born in Varn, and died in Teth", WRONG),
    (FILM, "Ada Quill", "It was Ada Quill, Bob Holt and Cy Varn", WRONG),
    ("Who won in 1990?", "Ada Quill", "Bob Holt, who beat Ada Quill", WRONG),
    ("What sport does Ada play?", "golf", "Ada's brother, Bob, plays golf", RIGHT),
]  # fmt: skip
ASSERTED_OPTION: list[Row] = [
    (WHICH, "Holm", "Skarn is younger than Holm", RIGHT), (WHICH, "Holm", "Skarn is older than Holm", WRONG),
    (WHICH, "Holm", "Skarn is from 1900 and Holm from 1800, so Holm is older", RIGHT),
    (WHICH, "Skarn", "Skarn is from 1900 and Holm from 1800, so Holm is older", WRONG),
    (WHICH, "Holm", "Both Skarn and Holm are equally old", WRONG),
    (WHICH, "Holm", "Compared with Skarn, Holm is older", RIGHT), (WHICH, "Holm", "Unlike Holm, Skarn is older", WRONG),
    ("Which costs more, Skarn or Holm?", "Holm", "Skarn costs less than Holm", RIGHT),
    ("Who won more, Ada Quill or Bob Holt?", "Ada Quill", "Quill", RIGHT),
    ("Who won more, Ada Quill or Bob Holt?", "Ada Quill", "Holt", WRONG),
    ("Who won more, Ada Quill or Bob Holt?", "Ada Quill", "not Quill", WRONG),
]  # fmt: skip
STATED_YES: list[Row] = [
    ("Is Skarn older than Holm?", "yes", "Skarn is older than Holm.", RIGHT),
    ("Is Skarn older than Holm?", "yes", "Holm is older than Skarn.", WRONG),
    ("Is Skarn older than Holm?", "yes", "Holm is younger than Skarn.", RIGHT),
    ("Is Skarn older than Holm?", "no", "Skarn is not older than Holm.", RIGHT),
    ("Can people drink its water?", "no", "Its water is not drinkable.", RIGHT),
    ("Can people drink its water?", "yes", "Its water is not drinkable.", WRONG),
    ("Was Skarn Hall built in 1900?", "yes", "Skarn Hall was built in 1800.", WRONG),
    ("Was Skarn Hall built in 1900?", "no", "It was not.", RIGHT),
]  # fmt: skip
CLAIMED_NUMBER: list[Row] = [
    ("How many seasons?", "1", "It plays in Ligue 1", WRONG), ("How many goals?", "57", "Teth shot 57 goals", RIGHT),
    ("How many goals?", "57", "57 goals in all: 18, 21 and 18", RIGHT),
    ("How many years?", "18", "1993 - 1975 = 18", RIGHT),
    ("How many goals?", "57", "He wore number 57 and shot 60 goals", WRONG),
    ("What was the price?", "$41.27", "It was $41.27, up 2.1% from $40.42", RIGHT),
    ("What was the price?", "$41.27", "It rose from $41.27 to $43", WRONG),
    ("How many rooms?", "12", "12, one more than before", RIGHT), ("How many rooms?", "12", "3 x 4 = 13", WRONG),
    ("How many rooms?", "12", "12 in 2022, for $3 each", RIGHT),
]  # fmt: skip
SENTENCE_GOLD: list[Row] = [
    (FILM, "The actress who directed the film is Ada Quill.", "It was Ada Quill who did", RIGHT),
    (FILM, "The film was directed by Ada Quill.", "Ada Quill", RIGHT),
    (FILM, "The film was directed by Ada Quill.", "Bob Holt", WRONG),
]  # fmt: skip
COVERED: list[Row] = [
    ("Why did it close?", "a fire destroyed the old roof", "The old roof had been destroyed by a fire", RIGHT),
    ("Why did it close?", "a fire destroyed the old roof", "a flood destroyed the old roof", WRONG),
    ("Why did it close?", "a fire destroyed 3 roofs", "fire destroyed roofs, 3 of them", RIGHT),
    ("Why did it close?", "a fire destroyed 3 roofs", "fire destroyed 4 roofs", WRONG),
    ("Why did it close?", "fire never destroyed its roof", "fire destroyed its roof", WRONG),
    ("Why did it close?", "fire destroyed its roof", "roof never destroyed, fire", WRONG),
    ("Why did it close?", "fire destroyed its roof", "roof or fire destroyed", WRONG),
    ("How many rooms?", "1998 red old rooms of Teth", "1998", WRONG), 
    (FILM, "Ada Quill was there", "Bob", WRONG),
    (FILM, "The winner of the prize that year was Ada Quill and the loser was Bob", "Ada Quill", WRONG),
]  # fmt: skip
NO_RULE: list[Row] = [
    ("Who?", "Holm", "Varn", WRONG), (WHICH, "Varn", "Skarn", WRONG), (FILM, "Ada was in", "Bob", WRONG),
]  # fmt: skip
TABLE = {
    "equal": EQUAL, "yes or no": YES_OR_NO, "option": OPTION, "date": DATE, "list": LIST, "number": NUMBER,
    "held": HELD, "refusal": REFUSAL, "denial": DENIAL, "named": NAMED, "covered": COVERED, "no rule": NO_RULE,
}  # fmt: skip


@pytest.mark.parametrize(("rule", "row"), [(rule, row) for rule, rows in TABLE.items() for row in rows], ids=str)
def test_the_rule_that_decides(rule: str, row: Row) -> None:
    question, gold, prediction, verdict = row
    assert judge(question, [gold], prediction) == (verdict, rule)


@pytest.mark.parametrize(
    "row", [*CLAIMS, *ASSERTED_OPTION, *STATED_YES, *CLAIMED_NUMBER, *SENTENCE_GOLD], ids=str
)  # fmt: skip
def test_what_is_claimed_decides(row: Row) -> None:
    question, gold, prediction, verdict = row
    assert judge(question, [gold], prediction)[0] == verdict


@pytest.mark.parametrize(
    "text",
    [
        "The page does not mention it, but it was Ada Quill.",
        "It is not known that Ada Quill directed it, yet she did.",
        "Ada Quill", "She could not find the mill. She was Ada Quill.", "It was not Bob Holt.", "",
        "The text of the song does not rhyme.", "I know: Ada Quill.",
    ],
)  # fmt: skip
def test_what_is_no_refusal(text: str) -> None:
    assert not refused(text)


@pytest.mark.parametrize(
    ("gold", "question", "wanted"),
    [
        ("The actress who played Katniss is Jennifer Lawrence.", "Who played Katniss?", "Jennifer Lawrence"),
        ("The film Titanic was directed by James Cameron.", "Who directed Titanic?", "James Cameron"),
        ("Redfern is the film by Ada Quill", "Which film is by Ada Quill?", "Redfern"),
        ("Ada Quill", "Who directed it?", ""), ("There was no such film", "Who directed Redfern?", ""),
        ("The winner is Ada Quill and the loser is Bob Holt", "Who is the winner of the prize?", ""),
    ],
)  # fmt: skip
def test_the_answer_within_a_sentence(gold: str, question: str, wanted: str) -> None:
    assert reduced(gold, question) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("3.5", "3.5"), ("35", "35"), ("1,234,567 birds", "1234567 birds"), ("1,23", "1 23"), ("-3", "-3"),
        ("− 3", "3"),
        ("−3", "-3"), ("x -3", "x -3"), ("1-3", "1 3"), ("-$3", "-dollars 3"), ("3%", "3 percent"),
        ("$3", "dollars 3"),
        ("€3 £4 ¥5", "euros 3 sterling 4 yen 5"), ("The Hague.", "hague"), ("v1.2.3", "v1.2.3"), ("end. 5", "end 5"),
        ("x.-3", "x 3"), ("1,234.5 m", "1234.5 m"), ("1,2345", "1 2345"),
    ],
)  # fmt: skip
def test_words_keep_decimals_signs_and_units(text: str, wanted: str) -> None:
    assert words(text) == wanted


def test_content_is_words_without_stop_words() -> None:
    assert content("How many of the 3.5% were in Teth, and who?") == {"3.5", "percent", "teth"}


@pytest.mark.parametrize(
    ("text", "negated"),
    [
        ("it is not [Holm]", True), ("never ever [Holm]", True), ("neither [Holm] nor", True),
        ("it isn't [Holm]", True),
        ("it wasn’t [Holm]", True), ("Varn rather than [Holm]", True), ("instead of [Holm]", True),
        ("[Holm] is not", True),
        ("[Holm] isn't it", True), ("[Holm] did never", True), ("[Holm], not Varn", False),
        ("[Holm] and not Varn", True),
        ("it is [Holm]", False), ("it is nothing but [Holm]", False), ("NOT [Holm]", True), ("[Holm] IS NOT", True),
        ("not " + "x" * 20 + " [Holm]", True), ("not " + "x" * 21 + " [Holm]", False),
        ("[Holm] was big, not small", False),
        ("Holm is not as old as [Holm]", True),
    ],
)  # fmt: skip
def test_what_is_negated(text: str, negated: bool) -> None:
    start, end = text.index("["), text.index("]") - 1
    assert denied(text.replace("[", "").replace("]", ""), start, end) is negated


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Ada, Bob and Cy.", ["ada", "bob", "cy"]), ("Ada; Bob\n• Cy", ["ada", "bob", "cy"]),
        ("Ada & Bob", ["ada", "bob"]),
        ("Ada, and Bob, & Cy", ["ada", "bob", "cy"]), ("1,234 birds, 5 cats", ["1,234 birds", "5 cats"]),
        ("March 3, 2024 and May 4th, 2025", ["march 3 2024", "may 4th 2025"]), ("Ada (a, b), Bob (c)", ["ada", "bob"]),
        (" \n. ", []), ("Ada,, Bob", ["ada", "bob"]), ("Andrew and Sandy", ["andrew", "sandy"]),
        ("12, 2024", ["12", "2024"]),
        ("Dec. 12, 2024, x", ["dec. 12 2024", "x"]), ("A(b)C", ["a c"]), ("AT&T, X", ["at&t", "x"]),
    ],
)  # fmt: skip
def test_the_items_of_a_list_in_prose(text: str, wanted: list[str]) -> None:
    assert [" ".join(item.split()) for item in items(text)] == wanted


def test_the_best_verdict_over_the_answers_and_the_first_rule_in_a_tie() -> None:
    assert judge("Who?", [], "x") == (0.0, "no answers")
    assert judge("How many?", ["Holm", "12"], "13") == (0.0, "no rule")
    assert judge("How many?", ["12", "Holm"], "13") == (0.0, "number")
    assert judge("How many?", ["Holm", "13"], "13") == judge("How many?", ["13", "Holm"], "13") == (1.0, "equal")
    assert judge("How many?", ["13", "it is 13"], "it is 13") == (1.0, "number")
