"""How the replies of chat models to the short prompts of CRAG's methods are read."""

from __future__ import annotations

from typing import Any

import pytest

from lm_eval_rag.harness.backends.calculation import CalculateBackend
from lm_eval_rag.harness.core.asks import Calculate
from lm_eval_rag.harness.core.types import Query
from lm_eval_rag.methods.crag.reasoning import read_premise, read_reasoning
from lm_eval_rag.methods.crag.replies import answer_line, choice, code_line
from lm_eval_rag.methods.crag_hybrid import crag_hybrid
from lm_eval_rag.methods.crag_llm_baseline import crag_llm_baseline

DONT_KNOW, INVALID = "I don't know", "invalid question"
ALONE: dict[str, Any] = dict.fromkeys(
    ("attribute_predictor", "table_extractor", "calculator", "knowledge_extractor", "knowledge_graph"), False
)  # chunks and a prompt for the answer


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        ("1994", "1994"),
        ("\n  1994. \nIt came out then.", "1994. It came out then."),
        ("The answer is:\n\n1994", "1994"),
        ("Answer: 1994", "1994"),
        ("**Answer:** 1994", "1994"),
        ("**Answer**: 1994", "1994"),
        ("## Answer\n1994", "1994"),
        ("Final answer: **1994**", "1994"),
        ("Sure!\nThe answer is: 1994", "1994"),
        ("Sure! Here is the answer:\n\n**1994**", "1994"),
        ("The answer is 1994.", "The answer is 1994."),
        ("1. liz truss\n2. boris johnson\n3. theresa may", "1. liz truss 2. boris johnson 3. theresa may"),
        ("The members are:\n* Odile\n* Casper", "Odile * Casper"),
        ("Notes:\nAnswer:\n- 1994\n- 1995", "- 1994 - 1995"),
        ("Okay Computer: a title", "Okay Computer: a title"),
        ("M*A*S*H", "M*A*S*H"),
        ("The answer is:", "The answer is:"),
        (" \n", ""),
        ("---\n***", ""),
    ],
)
def test_the_answer_is_the_whole_reply_without_what_stands_before_it(reply: str, line: str) -> None:
    assert answer_line(reply) == line


@pytest.mark.parametrize(
    ("reply", "baseline", "refined"),
    [
        ("1. liz truss\n2. theresa may", "1. liz truss 2. theresa may", "1. liz truss 2. theresa may"),
        ("**Answer:** 1994\n", "**Answer:** 1994", "1994"),
        ("The members are:\n* Odile\n* Casper", "The members are: * Odile * Casper", "Odile * Casper"),
        ("The album is not named.\nI don't know.", DONT_KNOW, DONT_KNOW),
        ("He never won it.\n\nInvalid question.", INVALID, INVALID),
        (" \n", DONT_KNOW, DONT_KNOW),
    ],
)
def test_the_baseline_changes_white_space_alone(
    play: Any, query: Query, found: Any, reply: str, baseline: str, refined: str
) -> None:
    assert play(crag_llm_baseline(query), reply).result.text == baseline
    assert play(crag_hybrid(query, **ALONE, reasoning=False), found, reply).result.text == refined
    summary = play(crag_hybrid(query, **ALONE), found, "It came out early.", reply)
    assert (summary.result.text, summary.names[-1]) == (refined, "summary")


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("dynamic", "dynamic"),
        ("**Dynamic**", "dynamic"),
        ("Static or dynamic: dynamic", "dynamic"),
        ("**Static or dynamic:** Dynamic", "dynamic"),
        ("**Static** or **dynamic**: dynamic", "dynamic"),
        ("Static/dynamic: dynamic", "dynamic"),
        ("Static or dynamic? Static.", "static"),
        ("It is not static, it is dynamic.", "dynamic"),
        ("It isn't dynamic but static.", "static"),
        ("Static: its answer will not change, so it is not dynamic.", "static"),
        ("The question is static or dynamic", None),
        ("It is not static.", None),
        ("statistic", None),
    ],
)
def test_a_label_is_neither_repeated_nor_denied(reply: str, label: str | None) -> None:
    assert choice(reply, ("static", "dynamic")) == label


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("No.", "no"),
        ("Borne out (yes or no): no", "no"),
        ("**Borne out (yes or no):**\n\nNo", "no"),
        ("Borne out (yes/no): yes", "yes"),
        ("Yes, reference 2 says so; no other does.", "yes"),
        ("Not stated.", None),
    ],
)
def test_a_verdict(reply: str, label: str | None) -> None:
    assert choice(reply, ("yes", "no")) == label


def test_a_domain_after_the_list_of_all() -> None:
    domains = ("finance", "sports", "music", "movie", "open")
    assert choice("Domain (finance, sports, music, movie or open): music", domains) == "music"
    assert choice("Domain: finance/sports/music/movie/open: open", domains) == "open"
    assert choice("Domain: sports, then music", domains) == "sports"


FORMS = [
    *((f"## Answer:\n5\n## False Premise:\n{value}", "5", True) for value in
      ("yes", "- yes", "`yes`", "<yes>", '"yes"', "[yes]", "**Yes**", "Yes, it does.")),
    ("## Answer:\n5\n## False Premise (yes or no): yes", "5", True),
    ("## Answer:\n5\n## False Premise (yes or no)\nno", "5", False),
    ("## Answer:\n5\n## Has False Premise:\nno", "5", False),
    ("## Answer:\n5\n**False premise?** No", "5", False),
    ("## Answer:\n5\n<has_false_premise>yes", "5", True),
    ("## Answer:\n5\nFalse premise - no. Reason: yes-men say so", "5", False),
    ("## Answer:\n5\n2. False premise: no", "5", False),
    ("## Answer:\n5\n## False Premise:\nyes or no", "5", None),
    ("## Answer:\n5\n## False Premise:\nThe question has none.", "5", None),
    ("## False Premise: yes\n## Reasoning:\n- x\n## Answer:\n5", "5", True),
    ("- Does the question have a false premise?\nyes\n## Answer:\n5", "5", None),
    ("## Reasoning:\nx\n## Final Answer:\n5\n## False Premise: no", "5", False),
    ("- Answer: 5\n- False Premise: no", "5", False),
    ("1. Answer: 5\n2. False Premise: no", "5", False),
    ("**Answer**\n5", "5", None),
    ("`Answer:` 5", "5", None),
    ("__Answer:__ 5\n__False Premise:__ no", "5", False),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "answer", "premise"), FORMS)
def test_decorated_fields_of_the_form(reply: str, answer: str, premise: bool | None) -> None:
    read = read_reasoning(reply)
    assert read is not None and (read.answer, read_premise(reply)) == (answer, premise)


def test_a_line_that_begins_with_answer_is_no_field() -> None:
    assert read_reasoning("## Reasoning:\nAnswer to the question depends on the date.") is None
    read = read_reasoning("Answer to the question depends on the date.\n## Answer:\n5")
    assert read is not None and read.answer == "5"


@pytest.mark.parametrize(("premise", "text"), [("yes", INVALID), ("no", "5 million")])
def test_the_field_counts_where_the_summariser_is_asked(
    play: Any, query: Query, found: Any, premise: str, text: str
) -> None:
    reply = f"It earned 5 million.\n## False Premise: {premise}"
    played = play(crag_hybrid(query, **ALONE), found, reply, "5 million")
    assert (played.result.text, played.result.notes) == (text, ("answer unparsed",))
    off = play(crag_hybrid(query, **ALONE, false_premise=False), found, reply, "5 million")
    assert off.result.text == "5 million"


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        ("2017 - 2004", "2017 - 2004"),
        ("```python\nyears = 2017 - 2004\n```", "2017 - 2004"),
        ("The expression is:\n\n`2017 - 2004`", "2017 - 2004"),
        (">>> print(2017 - 2004)", "2017 - 2004"),
        ("The expression would compute the difference.\n2017 - 2004", "2017 - 2004"),
        ("To find it, subtract the years.\n\n**2017 - 2004**\n", "**2017 - 2004**"),
        ("1/0", "1/0"),
        ("Nothing to calculate.\nReally.", "Nothing to calculate."),
        ("None is needed:", ""),
        ("", ""),
    ],
)
def test_code_line(reply: str, line: str) -> None:
    assert code_line(reply) == line


@pytest.mark.parametrize(
    "reply",
    ["**Expression:** 5 + 3", "**Expression**: 5 + 3", "**Expression: 5 + 3**", "The expression is: 5 + 3",
     "The expression to evaluate is: `5 + 3`", "Expression: **5 + 3**", "**5 + 3**", "__Result:__ 5 + 3 = 8",
     "__Result__: 5 + 3", "`Expression: 5 + 3`", "1. **Expression:** 5 + 3", "It adds both.\nExpression: 5 + 3",
     "2 ** 3"],
)  # fmt: skip
def test_decorated_expressions_are_calculated(reply: str) -> None:
    (served,) = CalculateBackend().serve([(Query("q", ""), Calculate(code_line(reply)))])
    assert served.value.value == "8"  # type: ignore[union-attr]
