"""How the replies of chat models are read: Markdown, remarks on the answer, and what they write before it."""

from __future__ import annotations

import pytest

from lm_eval_rag.methods.crp.building import read_step
from lm_eval_rag.methods.ircot import ircot
from lm_eval_rag.methods.prompts import answer_of
from lm_eval_rag.methods.reasoning.judgements import first_label
from lm_eval_rag.methods.reasoning.rationales import (
    answer_in,
    answer_or_first_line,
    answer_or_line,
    before_answer,
    first_sentence,
    rationale_of,
)
from lm_eval_rag.methods.search_agent import PROTOCOLS, _call, search_agent
from lm_eval_rag.methods.think_then_act import think_then_act
from lm_eval_rag.methods.tree_of_thoughts import tree_of_thoughts

NAMES = [
    "J. R. R. Tolkien",
    "St. Louis",
    "Dr. No",
    "Dr. He Jiankui",
    "No Country for Old Men",
    "Mr. Smith",
    "M*A*S*H",
    "Found in Translation",
    "Taken",
    "snake_case_name",
]
MARKED = [
    ("**Answer**: Bo Reed", "Bo Reed"),
    ("**Answer:** Bo Reed", "Bo Reed"),
    ("**Final Answer**: Bo Reed", "Bo Reed"),
    ("So the **answer** is Bo Reed.", "Bo Reed"),
    ("So the answer is __Bo Reed__.", "Bo Reed"),
    ("The answer is `Bo Reed`", "Bo Reed"),
    ("**Final Answer**\n\nBo Reed", "Bo Reed"),
    ("### Answer\nBo Reed", "Bo Reed"),
    ("## Final answer:\n\n**Bo Reed**", "Bo Reed"),
    ("So the answer is **No.** The two films differ.", "No"),
    ("So the answer is **Bo Reed.** He wrote Vale.", "Bo Reed"),
    ("Answer: Yes. Both are American.", "Yes"),
    ("Answer: no. Bo Reed was Dutch.", "no"),
    ("So the answer is Vale. His other book is Moor.", "Vale"),
]


@pytest.mark.parametrize(("reply", "answer"), MARKED)
def test_markdown_around_the_answer(reply, answer):
    assert answer_in(reply) == answer_or_line(reply) == answer_or_first_line(reply) == answer
    assert answer_in(f"Ada Moss read Vale. Bo Reed wrote it.\n\n{reply}") == answer


@pytest.mark.parametrize("name", NAMES)
def test_names_stay_whole(name):
    for reply in (f"Answer: {name}", f"So the answer is **{name}**.", f"The answer is {name}. It is in document 2."):
        assert answer_in(reply) == answer_or_first_line(reply) == name
    assert answer_or_first_line(name) == answer_or_first_line(f"**{name}.** It is so.") == answer_or_line(name) == name


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("**Bo Reed.** He wrote Vale.", "Bo Reed"),
        ("Yes. Both are American.", "Yes"),
        ("Bo Reed\n\nNote: The answer is based on Document 2.", "Bo Reed"),
        ("Bo Reed\n(The answer is inferred from document 1.)", "Bo Reed"),
        ("Bo Reed\n\nThe answer is clearly stated in the second document.", "Bo Reed"),
        ("Bo Reed\n\nExplanation: As he wrote Vale, the answer is Bo, not Cy.", "Bo Reed"),
        ("Based on document 2, the answer is Bo Reed.", "Bo Reed"),
        ("Sure! Here is the answer:\n\nBo Reed", "Bo Reed"),
        ("Here is the final answer:\n- **Bo Reed**", "Bo Reed"),
        ("Document 2 says who wrote Vale.\nSo the answer is Bo Reed.", "Bo Reed"),
        ("Document 2 says who wrote Vale.\n\n**Answer:** Bo Reed\n\nThe answer is based on it.", "Bo Reed"),
        ("Document 2 says it.\nTherefore, the answer is: Bo Reed", "Bo Reed"),
        ("Document 2 says it.\nBased on the documents, the final answer is Bo Reed.", "Bo Reed"),
        ("7.", "7."),
        ("The answer is:\n7.", "7"),
        ("The answer is not stated in the documents.", "The answer is not stated in the documents."),
    ],
)
def test_bare_answers(reply, answer):
    assert answer_or_first_line(reply) == answer


@pytest.mark.parametrize(
    "remark",
    [
        "Note: The answer is based on Document 2.",
        "(The answer is inferred from document 1.)",
        "This answer is supported by both documents.",
        "The answer is not explicitly stated, but follows from document 1.",
        "The answer is in the second document.",
        "The answer is derived from the text.",
    ],
)
def test_remarks_on_an_answer_are_none(remark):
    assert answer_in(remark) is None
    assert answer_or_line(f"Bo Reed wrote Vale. So the answer is Bo Reed.\n{remark}") == "Bo Reed"


def test_rationales_end_before_the_answer():
    reply = "**Reasoning:**\n\nAda read **Vale**. Bo wrote it.\n\n### Final Answer\nBo Reed"
    assert rationale_of(reply) == "Ada read Vale. Bo wrote it."
    assert before_answer("He was Dutch.\n**Answer**: Dutch") == "He was Dutch."


# --- the first sentence

PREAMBLES = [
    "**Reasoning:**\n\n",
    "Reasoning: ",
    "### Reasoning\n",
    "**Thought**: ",
    "Next thought: ",
    "**Step 1:** ",
    "Sure! Here is the next sentence of the reasoning:\n\n",
    "Certainly! ",
    "Okay.\n",
    "To answer the question, we need to find the author:\n\n",
    "Let's think step by step.\n\n",
    "Certainly!\n\nTo find the author:\n1. ",
]


@pytest.mark.parametrize("preamble", PREAMBLES)
def test_a_preamble_is_no_sentence(preamble):
    assert first_sentence(f"{preamble}Bo Reed wrote **Vale**. It was long.") == "Bo Reed wrote Vale."


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        ("So the answer is:\n\nBo Reed", "So the answer is: Bo Reed"),
        ("Here is the answer:\nBo Reed.", "Here is the answer: Bo Reed."),
        ("To find the author:", "To find the author:"),
        ("Sure!", "Sure!"),
        ("Reasoning:", ""),
        ("Surely Bo Reed wrote it.", "Surely Bo Reed wrote it."),
        ("Let's find the author. It is Bo.", "Let's find the author."),
        ("Step on it: Bo wrote it.", "Step on it: Bo wrote it."),
    ],
)
def test_other_first_sentences(reply, sentence):
    assert first_sentence(reply) == sentence


@pytest.mark.parametrize(("variant", "query"), [("paper", "Bo Reed wrote Vale."), ("official", "Bo Reed wrote Vale."),
                                                ("flashrag", "Sure! Here is:")])  # fmt: skip
def test_ircot_asks_with_the_thought(play, documents, variant, query):
    replies = [documents("a"), "Sure! Here is:\n\nBo Reed wrote Vale.", documents("b"), "So the answer is: Bo.", "Bo"]
    played = play(ircot, replies[: 4 if variant == "flashrag" else 5], variant=variant, reader="direct")
    assert played.queries[1] == query


def test_tree_of_thoughts_values_the_thought(play):
    replies = ["**Next thought:** Bo Reed wrote Vale. So", "I'm not sure.", "**Bo Reed.** He wrote Vale."]
    played = play(tree_of_thoughts, replies, steps=1, thoughts=1, votes=1)
    assert "\n1. Bo Reed wrote Vale.\n" in played.prompts("value")[0]
    assert (played.answer.text, played.answer.notes) == ("Bo Reed", ("value unparsed", "no answer in thoughts"))


# --- steps, calls, labels


@pytest.mark.parametrize(
    ("reply", "step"),
    [
        ("Next step: Final: Who wrote Vale?", ("Who wrote Vale?", True)),
        ("Next step: Who wrote Vale?", ("Who wrote Vale?", False)),
        ("Final sub-question: Who wrote Vale?", ("Who wrote Vale?", True)),
        ("Final question: Who wrote Vale?", ("Who wrote Vale?", True)),
        ("The final step: Who wrote Vale?", ("Who wrote Vale?", True)),
        ("The final step is to find the author of Vale.", ("find the author of Vale.", True)),
        ("**Final:** Who wrote Vale?", ("Who wrote Vale?", True)),
        ("**Final:**\nWho wrote Vale?", ("Who wrote Vale?", True)),
        ("Here is the next step:\n\nWho wrote Vale?", ("Who wrote Vale?", False)),
        ("Sure! Here is the next step:\n\n**Final: Who wrote Vale?**", ("Who wrote Vale?", True)),
        ("Here is the final step:\n\nWho wrote Vale?", ("Who wrote Vale?", True)),
        ("1. Who wrote Vale?", ("Who wrote Vale?", False)),
        ("Sub-question: Who wrote Vale?", ("Who wrote Vale?", False)),
        ("Final-year students read which book?", ("Final-year students read which book?", False)),
        ("The final question of the quiz was what?", ("The final question of the quiz was what?", False)),
    ],
)
def test_reading_steps(reply, step):
    assert read_step(reply) == step


@pytest.mark.parametrize(
    ("reply", "call"),
    [
        ("`Search: author of Vale`", ("search", "author of Vale")),
        ("Action: Search: author of Vale", ("search", "author of Vale")),
        ("**Action:** `Search: author of Vale`", ("search", "author of Vale")),
        ("Search query: author of Vale", ("search", "author of Vale")),
        ("I need the author. **Search**: author of Vale", ("search", "author of Vale")),
        ("I need the author. **Search:** author of Vale", ("search", "author of Vale")),
        ("No more is needed. `Answer: Bo Reed`", ("answer", "Bo Reed")),
        ("The action: Search: Vale", (None, "")),
    ],
)
def test_reading_calls(reply, call):
    assert _call(reply, PROTOCOLS["plain"]) == call


@pytest.mark.parametrize("reply", ["Answer: The answer is Bo.", "**Answer:** **Bo.** He wrote Vale.", "Answer: `Bo`"])
def test_a_search_agent_answers_with_the_answer_alone(play, documents, reply):
    assert play(search_agent, [reply]).answer.text == "Bo"
    played = play(search_agent, ["Search: x", documents("a"), reply], max_searches=1)
    assert played.answer.text == "Bo"
    tagged = play(search_agent, ["<answer>The answer is Bo.</answer>"], protocol="search_r1")
    assert tagged.answer.text == "The answer is Bo."


VALUES, CLEAR = ("sure", "likely", "impossible"), ("clear", "incomplete", "ambiguous")


@pytest.mark.parametrize(
    ("reply", "labels", "label"),
    [
        ("I'm not sure.", VALUES, None),
        ("It isn’t likely", VALUES, None),
        ("That is **not** very likely.", VALUES, None),
        ("Not impossible, but likely.", VALUES, "likely"),
        ("The question is not clear", CLEAR, None),
        ("It isn't clear, it is ambiguous.", CLEAR, "ambiguous"),
        ("not incomplete but ambiguous", CLEAR, "ambiguous"),
        ("It cannot be clear", CLEAR, None),
        ("No, I do not think so.", ("yes", "no"), "no"),
        ("I do not think so, no.", ("yes", "no"), "no"),
        ("Not yes: no", ("yes", "no"), "no"),
    ],
)
def test_negated_labels_do_not_count(reply, labels, label):
    assert first_label(reply, labels) == label


def test_a_rewritten_question_has_no_preamble(play, documents):
    replies = ["ambiguous", "Here are the precise questions:\n\n1. Who wrote A?\n2. Who wrote B?", -5.0, -1.0]
    played = play(think_then_act, [*replies, documents("a"), documents("b"), "Bo"])
    assert played.queries == ["Who wrote A?", "Who wrote B?"]
    unclear = play(think_then_act, ["The question is not clear", -1.0, -5.0, "Bo"])
    assert unclear.names[1] == "HasLoglikelihood" and unclear.answer.notes == ("clarity unparsed",)


@pytest.mark.parametrize(
    ("reply", "free", "short"),
    [
        ("Bo Reed", "Bo Reed", "Bo Reed"),
        ("**Answer:**\n\nBo Reed", "Bo Reed", "Bo Reed"),
        ("The answer is Bo Reed.", "Bo Reed", "Bo Reed"),
        ("Based on the documents, the answer is:\n\n**Bo Reed**", "Bo Reed", "Bo Reed"),
        ("Answer: Bo Reed", "Bo Reed", "Bo Reed"),
        ("Bo Reed. He wrote Vale.", "Bo Reed. He wrote Vale.", "Bo Reed"),
        ("Bo Reed\n(The answer is based on document 1.)", "Bo Reed\n(The answer is based on document 1.)", "Bo Reed"),
        ("The answer is:\n1. Bo Reed\n2. Ada Moss", "The answer is:\n1. Bo Reed\n2. Ada Moss", "Bo Reed"),
        (
            "I don't know. The answer is unclear.",
            "I don't know. The answer is unclear.",
            "I don't know. The answer is unclear.",
        ),
        ("I don't know.\nThe answer is likely Paris", "I don't know.\nThe answer is likely Paris", "I don't know."),
        (
            "Paris. I hope this answer is helpful.",
            "Paris. I hope this answer is helpful.",
            "Paris. I hope this answer is helpful.",
        ),
        ("No answer is possible.", "No answer is possible.", "No answer is possible."),
        ("E.T. The Extra-Terrestrial", "E.T. The Extra-Terrestrial", "E.T. The Extra-Terrestrial"),
        ("Brown vs. The Board of Education", "Brown vs. The Board of Education", "Brown vs. The Board of Education"),
        ("The answer is 1. FC Köln.", "1. FC Köln", "1. FC Köln"),
        ("The Answer", "The Answer", "The Answer"),
        ("Bo Reed wrote it in 1912.", "Bo Reed wrote it in 1912.", "Bo Reed wrote it in 1912."),
        (" \n", "", ""),
    ],
)
def test_the_answer_of_methods_of_one_step(reply, free, short):
    """A list stays whole where the answer is free: its last line does not state it."""
    assert (answer_of(reply, "free"), answer_of(reply, "short")) == (free, short)
