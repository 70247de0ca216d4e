"""The table extractor: which tables are shown, in which order, and where they are cut."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.core.asks import pages, retrieve
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query, WebPage
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.methods.crag.page_tables import select_tables
from lm_eval_rag.tasks.crag.build import build
from lm_eval_rag.tasks.crag.task import questions


def test_tables(play: Any, query: Query, web: Any) -> None:
    everything = [table for page in web for table in page.tables]
    assert play(select_tables(query, web, length=4000, order="pages")).result == tuple(everything)
    assert play(select_tables(query, web, length=len(everything[0]) + 5, order="pages")).result == (everything[0],)
    played = play(select_tables(query, web, length=4000, order="pages", best=1), ((1, 1.0),))
    assert (played.names, played.result) == (["Rank"], (everything[1],))
    assert play(select_tables(query, (), length=4000, best=3)).result == ()
    assert play(select_tables(query, web, length=0)).names == []


def test_tables_are_ranked_by_the_question_with_the_best_chunk_of_their_page(play: Any, query: Query, web: Any) -> None:
    everything = [table for page in web for table in page.tables]
    chunks = (Passage("3.1", "Salt tastes of salt."), Passage("3.0", "Salt is a mineral."))
    shown_pages = (replace(web[0], snippet="a film of 1994"), *web[1:])
    played = play(select_tables(query, shown_pages, length=4000, chunks=chunks), ((1, 2.0), (0, 1.0)))
    assert played.names == ["Rank"] and played.result == (everything[1], everything[0])
    (ask,) = played.asks
    assert (ask.text, ask.k) == (query.text, 2)
    assert ask.texts == (f"a film of 1994\n{everything[0]}", f"Salt tastes of salt.\n{everything[1]}")
    unrelated = play(select_tables(query, shown_pages, length=4000, chunks=chunks), ((1, 2.0),))
    assert unrelated.result == (everything[1],)  # the retriever left the other one out


def test_a_cut_table_keeps_a_row_below_its_header(play: Any, query: Query) -> None:
    long = "Page name: Long\n| year | gross |\n| --- | --- |\n" + "\n".join(f"| {1990 + n} | {n} |" for n in range(5))
    short = "Page name: Short\n| a |\n| --- |\n| 1 |"
    page = WebPage(0, "Long", "http://a", "", "", "", (long, short), ())
    for length in range(140):
        shown = play(select_tables(query, (page,), length=length, order="pages")).result
        assert sum(map(len, shown)) <= length
        for table in shown:
            lines = table.split("\n")
            assert long.startswith(table) or table == short
            assert lines[2].startswith("| ---") and len(lines) > 3 and all(line.endswith("|") for line in lines[1:])
        if length >= len(short):
            assert shown


def test_a_table_that_is_a_header_alone_is_left_out(play: Any, query: Query) -> None:
    page = WebPage(
        0, "Prices", "http://a", "", "", "", ("| symbol | price |\n| --- | --- |", "| a |\n| --- |\n| 1 |"), ()
    )
    assert play(select_tables(query, (page,), length=4000, order="pages")).result == (page.tables[1],)


@pytest.mark.parametrize("order", ["question", "pages"])
def test_on_a_real_question_the_language_packs_come_last(mirror: Path | None, order: Any) -> None:
    """Its first page has 349 tables of language packs, its third two tables about Microsoft Office 2019."""
    pytest.importorskip("resiliparse")
    if mirror is None:
        pytest.skip("needs the mirror's ten records")
    row = questions(build("crag_task1", data_files=str(mirror / "crag" / "dev_data.jsonl.bz2")))["test"][0]
    assert "microsoft office 2019" in row["query"]

    def tables(query: Query) -> Plan[Answer]:
        chunks = yield from retrieve(query.text, 10)
        shown = yield from select_tables(query, (yield from pages()), length=4000, chunks=chunks, order=order)
        return Answer("", notes=shown)

    ((answer, _),) = run(tables, [Query(row["id"], row["query"], row["time"], row["corpus"])])
    about = [
        table.startswith("Page name: Microsoft Office 2019 - Wikipedia\nMicrosoft Office 2019")
        for table in answer.notes
    ]
    assert about[:2] == [order == "question"] * 2 and sum(map(len, answer.notes)) <= 4000
    assert all("\n| " in table.partition("\n| ---")[2] for table in answer.notes)
