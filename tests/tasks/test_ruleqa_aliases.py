"""Which further names count as right answers."""

import polars as pl

from lm_eval_rag.harness.scoring.answer import em
from lm_eval_rag.harness.scoring.case import read_case
from lm_eval_rag.tasks.ruleqa import aliases, names, tables


def test_a_note_of_ours_is_an_alias_even_if_several_entities_share_it() -> None:
    raw = {1: "Forward", 2: "Forward", 3: "Drama"}
    distinct = names.unique(raw, lambda id: {1: "football position", 2: "ice hockey position"}.get(id, ""))
    found = aliases.accepted(distinct, raw)
    assert found == {1: ("Forward",), 2: ("Forward",)}
    assert aliases.shared(found) == {1, 2}


def test_an_alias_is_never_the_name_of_another_entity() -> None:
    raw = {1: "Forward", 2: "forward", 3: "Lisboa", 4: "Lisbon"}
    distinct = names.unique(raw, lambda id: "position" if id == 2 else "")
    assert distinct[1] == "Forward"  # without a note, so the name is taken
    assert aliases.accepted(distinct, raw, {4: ["The Lisboa", "Lissabon"], 3: ["Lisboa."]}) == {4: ("Lissabon",)}


def test_a_note_of_the_source_is_left_out_only_where_nobody_else_has_the_name() -> None:
    raw = {1: "James Welch (writer)", 2: "Citizen (India)", 3: "Citizen (Thailand)", 4: "Police (Iraq)", 5: "police"}
    assert aliases.accepted(raw) == {1: ("James Welch",)}


def test_other_names_that_two_entities_have_are_left_out() -> None:
    raw = {1: "Denton", 2: "El Paso"}
    others = {1: ["Denton, Texas", "Texas city", "Denton Texas"], 2: ["texas city", "el paso"], 9: ["Denton, Texas"]}
    assert aliases.accepted(raw, None, others) == {1: ("Denton, Texas",)}


def test_names_that_scoring_cannot_distinguish_are_made_distinct() -> None:
    distinct = names.unique(
        {1: "The Beatles", 2: "beatles", 3: "U.S.", 4: "us", 5: "Mining/Energy", 6: "mining energy"}
    )
    cases = [read_case({"answers": [name]}, name, None) for name in distinct.values()]
    assert len({case.golds for case in cases}) == 6


def test_renamed_entities_keep_only_names_without_a_note() -> None:
    old = {1: "Forward (position)", 2: "Denton", 3: "James Welch (writer)"}
    known = {1: ("Forward",), 2: ("Denton, Texas",), 3: ("James Welch", "J. Welch")}
    new = {1: "Bralu (kipo)", 2: "Moru", 3: "Tano Pelik (sura)"}
    assert aliases.renamed(known, old, new) == {1: ("Bralu",), 3: ("Tano Pelik",)}


def test_answers_have_all_names_first() -> None:
    table = pl.DataFrame({"id": ["q0", "q1"], "answers": [["Oslo", "Bergen"], ["Rome"]]})
    known = {"Oslo": ("Christiania", "Kristiania"), "Bergen": ("Bjørgvin", "Oslo")}
    found = tables.with_aliases(table, known)
    assert found["answers"].to_list() == [["Oslo", "Bergen", "Christiania", "Kristiania", "Bjørgvin"], ["Rome"]]
    assert found["objects"].to_list() == [
        [["Oslo", "Christiania", "Kristiania"], ["Bergen", "Bjørgvin", "Oslo"]],
        [["Rome"]],
    ]
    row = found.row(0, named=True)
    assert [em(read_case(row, answer, None)) for answer in ("christiania", "Bergen", "Rome")] == [1.0, 1.0, 0.0]
