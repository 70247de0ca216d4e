"""The asks about a question's own pages: Pages, Retrieve over their chunks, Rank over given texts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lm_eval_rag.harness.backends import corpora as corpora_module
from lm_eval_rag.harness.backends.corpora import Corpora
from lm_eval_rag.harness.backends.page_reading import Reading
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.core.asks import pages, rank, retrieve
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query, WebPage
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.plugin.engine import Engine, run
from lm_eval_rag.harness.web.chunking import chunks
from lm_eval_rag.harness.web.reader import PageReader
from lm_eval_rag.harness.web.sentences import sentences
from lm_eval_rag.tasks.crag.build import build

pytest.importorskip("resiliparse")
pytest.importorskip("blingfire")

LIGHT = "<h1>Light</h1><p>The lighthouse of Dunmere is 71 metres tall. It was built in 1867.</p>"
TABLE = "<table><tr><th>Port<th>Ships<tr><td>Dunmere<td>{}<tr><td>Ostrand<td>7</table>"
FERRY = "<p>The ferry to Ostrand leaves at nine. Tickets are sold on board.</p>"


def row(i: int, *htmls: str) -> str:
    results = [{"page_name": f"Page {p}", "page_url": f"u{p}", "page_snippet": f"s{p}", "page_result": html}
               for p, html in enumerate(htmls)]  # fmt: skip
    return json.dumps({"interaction_id": f"i{i}", "query": "how tall is it?", "answer": "a", "search_results": results})


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Twelve questions: page 0 of each has its own number; page 2 repeats page 0; the last two have nothing to read."""
    folder = tmp_path_factory.mktemp("own")
    first = [LIGHT + f"<p>Note {i} on the lamp.</p>" + TABLE.format(i) for i in range(10)]
    rows = [row(i, html, FERRY, html, "") for i, html in enumerate(first)]
    (folder / "own.jsonl").write_text("\n".join([*rows, row(10, "", ""), row(11)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LM_EVAL_RAG_CACHE", str(folder / "cache"))
        yield build("crag_task1", data_files=str(folder / "own.jsonl"))


def query(corpus: str, i: int) -> Query:
    return Query(f"i{i}", "how tall is the lighthouse of Dunmere?", corpus=f"{corpus}#i{i}")


def reads(query: Query) -> Plan[Answer]:
    """Asks for all there is about a question's pages."""
    found = yield from pages()
    best = yield from retrieve(query.text, 3)
    tables = [table for page in found for table in page.tables]
    ranked = yield from rank("how many ships in Dunmere?", ["", *tables, "Nothing about it.", " "], 3)
    return Answer(json.dumps([[page.number for page in found], ranked, tables]), best)


def serve(queries: list[Query], journal: Journal | None = None, retriever: str = "bm25"):
    return Engine(Corpora(retriever), None, Journal(None) if journal is None else journal).run(reads, queries)


def test_pages_are_read_once_each_in_their_order(corpus: str) -> None:
    found = Reading().pages(f"{corpus}#i3")
    assert [type(page) for page in found] == [WebPage] * 3
    assert [(page.number, page.name, page.url, page.snippet) for page in found] == [
        (0, "Page 0", "u0", "s0"), (1, "Page 1", "u1", "s1"), (3, "Page 3", "u3", "s3")]  # fmt: skip
    with PageReader() as reader:
        for page, html in zip(found, [LIGHT + "<p>Note 3 on the lamp.</p>" + TABLE.format(3), FERRY, ""], strict=True):
            read = reader.read(html, page.name)
            assert (page.text, page.tables, page.notes) == (read.text, read.tables, read.notes)
    assert "empty page" in found[2].notes


def test_retrieve_searches_the_chunks_of_the_questions_own_pages(corpus: str) -> None:
    ((answer, trace),) = serve([query(corpus, 3)])
    texts = {}
    for page in Reading().pages(f"{corpus}#i3"):
        for place, text in enumerate(chunks(sentences(page.text))):
            texts.setdefault(text, Passage(f"{page.number}.{place}", text, source=page.url))

    def three(question: Query) -> Plan[Answer]:
        return Answer("", (yield from retrieve(question.text, 3)))

    expected = run(three, [query("none/0", 3).text], corpus=list(texts.values()))[0][0].passages
    assert [(p.id, p.text, p.source, p.score) for p in answer.passages] == [
        (p.id, p.text, p.source, p.score) for p in expected]  # fmt: skip
    assert answer.passages[0].source == "u0"
    assert "71 metres" in answer.passages[0].text
    assert [step.ask for step in trace.steps] == ["Pages", "Retrieve", "Rank"]


@pytest.mark.parametrize("retriever", ["bm25", "static", "hybrid"])
def test_rank_gives_places_in_the_texts_best_first_without_blank_ones(corpus: str, retriever: str) -> None:
    options = {"second": "static"} if retriever == "hybrid" else {}
    engine = Engine(Corpora(retriever, options), None, Journal(None))
    texts = ["", "ferries to Ostrand", "ships in Dunmere harbour", " \n", "ships"]

    def method(query: Query) -> Plan[Answer]:
        return Answer(
            json.dumps([(yield from rank("ships in Dunmere", texts, 2)), (yield from rank("x", ["", " "], 2))])
        )

    ((answer, _),) = engine.run(method, [Query("q", "x")])
    ranked, none = json.loads(answer.text)
    assert [place for place, _ in ranked] == [2, 4] and ranked[0][1] > ranked[1][1]
    assert none == []


def test_questions_without_anything_to_read_get_nothing(corpus: str) -> None:
    for i, numbers in ((10, [0, 1]), (11, [])):
        ((answer, trace),) = serve([query(corpus, i)])
        assert json.loads(answer.text)[0] == numbers
        assert answer.passages == () and trace.failure is None
    ((answer, _),) = serve([Query("q", "x", corpus=f"{corpus}#i11")])
    assert answer.passages == ()


def test_together_or_alone_the_answers_are_the_same(corpus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = [query(corpus, i) for i in range(12)]
    together = [answer for answer, _ in serve(queries)]
    assert together == [serve([one])[0][0] for one in queries]
    assert len({answer.text for answer in together}) > 9
    monkeypatch.setattr(corpora_module, "OWN", 1)
    assert together == [answer for answer, _ in serve(queries)]


def test_only_the_last_corpora_stay_in_memory(corpus: str) -> None:
    kept = Corpora()
    for i in range(12):
        kept.retriever_of(kept.corpus(query(corpus, i % 10)))
    assert len(kept._corpora) <= corpora_module.OWN
    assert len(kept._retrievers) <= corpora_module.OWN
    assert kept.identity() == {}


def test_what_was_read_is_kept_for_later_runs(corpus: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = serve([query(corpus, 5)], journal := Journal(tmp_path / "j.sqlite"))
    journal.close()

    def refuse(*_: object) -> None:
        raise AssertionError("a page is read again")

    monkeypatch.setattr(PageReader, "read", refuse)
    again = serve([query(corpus, 5)], Journal(tmp_path / "j.sqlite"))
    assert again[0][0] == first[0][0]
    assert [step.journalled for step in again[0][1].steps] == [False, True, True]
    with pytest.raises(AssertionError, match="read again"):
        Reading("faithful").pages(f"{corpus}#i5")


def test_what_a_busy_machine_spoils_is_not_kept(corpus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for kept in (cache_dir() / "crag_pages").glob("*/read-*"):
        kept.unlink()
    calls = []

    def read(self: PageReader, page: str, name: str = "") -> object:
        calls.append(name)
        return stock(self, page, name) if len(calls) > 2 else late

    stock = PageReader.read
    with PageReader() as reader:
        late = replace(stock(reader, FERRY, "Page 1"), notes=("timed out", "plain scan"))
    monkeypatch.setattr(PageReader, "read", read)
    reading = Reading()
    spoiled = [page for page in reading.pages(f"{corpus}#i7") if "timed out" in page.notes]
    assert spoiled and reading.notes["timed out"] == len(spoiled)
    assert not any("timed out" in page.notes for page in reading.pages(f"{corpus}#i7"))


def test_a_given_corpus_stands_in_the_place_of_the_pages(corpus: str) -> None:
    given = Corpus.of([Passage("d", "The lighthouse is a ruin.", source="")])
    ((answer, _),) = Engine(Corpora(given=given), None, Journal(None)).run(reads, [query(corpus, 1)])
    assert json.loads(answer.text)[0] == []
    assert [(p.id, p.source) for p in answer.passages] == [("d", "memory")]


@pytest.mark.parametrize(
    ("id", "message"),
    [
        ("crag_task1/none#i1", "There is no corpus 'crag_task1/none'"),
        ("#i99", "holds no question 'i99'"),
        ("", "not pages of a question"),
    ],
)
def test_what_is_not_there_is_named(corpus: str, id: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Reading().pages(id if id.startswith("crag") else corpus + id)
