"""Rows with invented names: what the documents say stays true, no old name is left, and every epoch has other names."""

import re
from dataclasses import replace

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.plugin.arguments import read_arguments
from lm_eval_rag.harness.train.renamed_rows import renamed_rows
from lm_eval_rag.harness.train.training_prompts import build_rows, read_questions, taught
from lm_eval_rag.methods.rulerag_ft import rulerag_ft
from lm_eval_rag.tasks.ruleqa_demo.build import build


class Words:
    """Counts words as tokens; there is room for ``limit`` of them."""

    fingerprint, batch = "words", 4

    def __init__(self, limit=None):
        self.limit = limit

    def count_tokens(self, text):
        return len(text.split())

    def room(self, max_tokens):
        return self.limit


@pytest.fixture(scope="module")
def rows():
    setup = read_arguments("rulerag_ft", rulerag_ft, {"retriever": "bm25", "generator": "tiny"})
    questions = read_questions("ruleqa_demo", build())[:40]
    return build_rows(setup.bound(), setup.corpora, questions, Words(), max_tokens=8)


@pytest.fixture(autouse=True)
def all_rows(monkeypatch):
    monkeypatch.setattr("lm_eval_rag.harness.train.renamed_rows.SHARE", 1.0)


def renamed(rows, epoch=0, seed=0, generator=None):
    return renamed_rows(rows, generator or Words(), epoch=epoch, seed=seed, max_tokens=8, limit=None)


def facts(row):
    return [passage.fact for passage in row.parts.passages]


def test_equal_names_stay_equal_and_distinct_ones_distinct(rows):
    for old, new in zip(rows, renamed(rows), strict=True):
        pairs = {
            (a, b)
            for before, after in zip(facts(old), facts(new), strict=True)
            for a, b in zip(before[::2], after[::2], strict=True)
        }
        assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
        assert [fact[1] for fact in facts(old)] == [fact[1] for fact in facts(new)]
        assert old.parts.rules == new.parts.rules and old.question == new.question


def test_no_old_name_is_left_and_the_prompt_is_rendered_from_the_new_ones(rows):
    for old, new in zip(rows, renamed(rows), strict=True):
        names = {name for fact in facts(old) for name in fact[::2]}
        left = [name for name in names if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", new.prompt)]
        assert not left and new.prompt == new.parts.render() != old.prompt
        for passage, before in zip(new.parts.passages, old.parts.passages, strict=True):
            assert passage.text == before.text.replace(before.fact[0], passage.fact[0]).replace(
                before.fact[2], passage.fact[2]
            )


def test_the_answer_stands_where_it_stood(rows):
    for old, new in zip(rows, renamed(rows), strict=True):
        assert new.stated == old.stated and new.answer != old.answer
        places = [[place for place, fact in enumerate(facts(row)) if fact[2] == row.answer] for row in (old, new)]
        assert places[0] == places[1] and bool(places[0]) == old.stated
    assert sum(row.stated for row in rows) > 10


def test_an_abstention_stays_an_abstention(rows):
    unsure = [row for row in taught(rows, "abstain") if not row.stated]
    assert unsure and {row.answer for row in renamed(unsure)} == {"I don't know"}


def test_names_depend_on_epoch_row_and_seed_alone(rows):
    first = [row.prompt for row in renamed(rows)]
    assert first == [row.prompt for row in renamed(rows)]
    assert len({*first, *(row.prompt for row in [*renamed(rows, epoch=1), *renamed(rows, seed=1)])}) == 3 * len(first)


def test_half_of_the_rows_keep_their_names_others_in_each_epoch(rows, monkeypatch):
    monkeypatch.setattr("lm_eval_rag.harness.train.renamed_rows.SHARE", 0.5)
    kept = [[old is new for old, new in zip(rows, renamed(rows, epoch=epoch), strict=True)] for epoch in range(8)]
    assert 0.4 < sum(map(sum, kept)) / (8 * len(rows)) < 0.6 and len(set(map(tuple, kept))) == 8


def test_a_relation_that_holds_a_name_keeps_its_words(rows):
    fact = ("Vale", "lies in city of", "city")
    passage = Passage("d", "Vale lies in city of city.", fact=fact)
    parts = replace(rows[0].parts, query="what does Vale lies in city of ?", passages=(passage,), rules=())
    (new,) = renamed([replace(rows[0], parts=parts, answer="city", stated=True)])
    town, _, answer = new.parts.passages[0].fact
    assert new.parts.passages[0].text == f"{town} lies in city of {answer}."


def test_a_row_stays_as_it_is_if_the_new_names_do_not_fit(rows):
    assert renamed(rows, generator=Words(limit=3)) == rows


def test_free_texts_cannot_be_renamed(rows):
    parts = replace(rows[0].parts, passages=(Passage("d", "Vale is a town."),))
    with pytest.raises(UserError, match="--names original"):
        renamed([replace(rows[0], parts=parts)])
