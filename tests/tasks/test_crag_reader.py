"""scripts/crag_reader.py: a reader that makes no mistakes, and what the steps of the ladder are worth to it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lm_eval_rag.harness.core.calculate import calculate
from lm_eval_rag.harness.kg.building import FIELDS
from lm_eval_rag.tasks.crag.schema import Record, parse
from lm_eval_rag.tasks.crag_demo.build import lines
from lm_eval_rag.tasks.crag_demo.world import make_world
from scripts import crag_reader
from scripts.crag_reader import INVALID, KINDS, STEPS, expression, measured, stated, value_of


def record(kind: str, query: str, *answers: str) -> Record:
    return Record("q", query, answers, labels={"question_type": kind})


@pytest.mark.parametrize(
    ("question", "shown", "answer"),
    [
        (record("simple", "who leads it?", "Ines Tarvold", "Tarvold"), "Text: led by ines tarvold.", "Ines Tarvold"),
        (record("simple", "who leads it?", "Ines Tarvold"), "Text: led by Ines Tarvoldson.", ""),
        (record("set", "who?", "Mox, Lin and Dee"), "Text: Dee. Text: Mox and Lin.", "Mox, Lin and Dee"),
        (record("set", "who?", "A Mox and C Dee"), "Text: C Dee.", ""),
        (record("comparison", "what is older, the isk or ostrand?", "ostrand"), "Isk, Ostrand", "ostrand"),
        (record("comparison", "what is older, the isk or ostrand?", "ostrand"), "Ostrand", ""),
        (record("aggregation", "how many?", "3", "three"), "Text: three of 3 boats.", ""),
        (record("aggregation", "how many?", "3"), "1. Calculation: 1 + 2 = 3", "3"),
        (record("post-processing", "by how much?", "2.6%", "2.59%"), "1. Calculation: 2 + 0.591 = 2.591", "2.6%"),
    ],
)  # fmt: skip
def test_an_answer_counts_as_stated_if_the_references_hold_all_of_it(question: Record, shown: str, answer: str) -> None:
    assert stated(question, shown) == answer


def test_expressions_have_the_value_that_the_calculator_gives() -> None:
    texts = [text for _, kind in KINDS for text in kind(["2019", "2004", "0.5", "1200"])]
    assert len(texts) == 12 * 2 + 4 + 6 + 4
    assert all(abs(float(str(calculate(text))) - value_of(text)) < 1e-6 * abs(value_of(text)) for text in texts)
    asked = record("post-processing", "how many years later?", "15 years")
    assert expression(asked, "Table: 2004-03-12 | 2019-10-04") in ("2019 - 2004", "2004 - 2019")
    assert value_of(expression(asked, "2004, 2019")) == 15
    assert expression(record("simple", "when?", "15 years"), "2004, 2019") == expression(asked, "2004") == ""
    counted = record("aggregation", "how many songs has she released?", "15")
    assert expression(counted, "2004, 2019") == ""  # a difference that has the value by chance


def test_fields_are_those_of_the_graph() -> None:
    fields = crag_reader.Fields(make_world(0))
    for line in lines(0):
        row = json.loads(line)
        written = fields.of(row["domain"], row["query"])
        assert set(written) <= {"domain", "datetime", *FIELDS[written["domain"]]}, row
    assert fields.of("movie", "when did ashgrove station: the return come out?")["movie_name"] == (
        "Ashgrove Station: The Return"
    )
    assert fields.of("sports", "who won on february 3, 2024?")["datetime"] == "2024-02-03"


def test_the_reader_makes_no_mistakes_and_steps_matter() -> None:
    score = dict(measured(limit=16))
    assert list(score) == [label for label, _, _ in crag_reader.ladder()] and len(score) == len(STEPS) + 3
    assert min(min(points) for points in score.values()) == 0  # it never answers wrongly
    total = {label: sum(points) for label, points in score.items()}
    assert total["+ attribute_predictor"] < total["+ prompt_refinement"]  # declines what it could answer
    assert total["+ table_extractor"] > total["+ attribute_predictor"]
    assert total["+ false_premise"] > total["+ reasoning"]
    assert total["dynamic=answer, with the graph"] > total["+ knowledge_graph"]


def test_a_false_premise_is_told_where_the_prompt_asks_for_it() -> None:
    records = [parse(line, "a line") for line in lines(0)]
    false = next(one for one in records if one.labels["question_type"] == "false_premise")
    reader = crag_reader.Reader(records, make_world(0))
    prompts: dict[str, Any] = {name: start for start, name in reader.starts}
    asked = f"\n\nQuestion: {false.query}\nAnswer:"
    assert reader.reply(prompts["refined_false_premise"] + asked) == INVALID
    assert reader.reply(prompts["refined"] + asked) == "I don't know"
    form = reader.reply(prompts["reasoning_false_premise"] + asked)
    assert form.endswith(f"## Answer:\n{INVALID}\n## False Premise:\nyes")
