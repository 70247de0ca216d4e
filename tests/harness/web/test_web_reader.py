"""Extractors on our own pages, and the reader's limits."""

from __future__ import annotations

import builtins
import bz2
import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.extras import install_line
from lm_eval_rag.harness.web import extract as extracting
from lm_eval_rag.harness.web.extract import EXTRACTORS, extract, plain
from lm_eval_rag.harness.web.reader import PageReader

pytest.importorskip("resiliparse")
pytest.importorskip("trafilatura")
pytest.importorskip("blingfire")

SENTENCE = "The ferry from Aldmouth to Brenn Island leaves at nine and takes forty minutes when the sea is calm."
ARTICLE = "".join(f"<p>{SENTENCE} It was built in {1900 + n} by the yard of Sund &amp; Sons.</p>" for n in range(9))
FARES = "<table><tr><th>Port<th>Fare</tr><tr><td>Brenn<td>4</table>"
PAGE = (
    "<!doctype html><html><head><title>Ferries</title><style>p { top: 0 }</style><script>var hidden = 1</script></head>"
    f"<body><nav><a href=/>Menu entry</a></nav><main><article><h1>Ferries</h1>{ARTICLE}{FARES}<!-- unseen --></article>"
    "</main><footer>Imprint</footer></body></html>"
)
BOMBS = {
    "deep": "<div>" * 300_000,
    "tables in tables": "<table><tr><td>" * 100_000,
    "formatting": "<p>" + "".join(f"<b id={n}>" for n in range(20_000)) + "</p>" + "<p>x</p>" * 20_000,
    "a million tags": "<br>" * 1_000_000,
    "attributes": "<p " + " ".join(f"a{n}=1" for n in range(250_000)) + ">x",
    "100 MB": "<p>word. " * 12_500_000,
}


@pytest.fixture(scope="module", params=EXTRACTORS)
def reader(request: pytest.FixtureRequest) -> Iterator[PageReader]:
    with PageReader(request.param) as opened:
        opened.read("<p>The process starts with the first page.")
        yield opened


@pytest.fixture(scope="module")
def fast() -> Iterator[PageReader]:
    with PageReader("fast") as opened:
        yield opened


def test_main_text_and_tables(reader: PageReader) -> None:
    read = reader.read(PAGE, "Ferries")
    assert read.text.count(SENTENCE) == 9 and "Sund & Sons" in read.text
    assert not any(word in read.text for word in ("Menu entry", "hidden", "unseen", "Imprint", "top:", "Brenn 4"))
    assert read.tables == ("Page name: Ferries\n| Port | Fare |\n| --- | --- |\n| Brenn | 4 |",)
    assert read.extractor == {"fast": "resiliparse", "faithful": "trafilatura"}[reader.extractor]
    assert read.notes == ()
    assert reader.read(PAGE.encode("utf-16"), "Ferries") == read


@pytest.mark.parametrize("page", [None, "", " \n", b"", "\x00", "\ufeff"])
def test_a_blank_page_has_nothing(reader: PageReader, page: str | bytes | None) -> None:
    read = reader.read(page)
    assert (read.text, read.tables, read.extractor, read.notes) == ("", (), "none", ("empty page",))


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_take_two_seconds_of_cpu_at_most(
    reader: PageReader, cpu: Callable[[PageReader], float], name: str
) -> None:
    began = cpu(reader)
    read = reader.read(BOMBS[name])
    assert cpu(reader) - began < 3  # 2 on a quiet machine; on a busy one the same work counts for more
    assert read.notes
    assert reader.read(PAGE).notes == ()  # the next page is read as ever


@pytest.mark.parametrize(("seconds", "wall"), [(0.2, 600.0), (600.0, 0.2)], ids=["CPU", "clock"])
def test_each_limit_ends_a_page(seconds: float, wall: float) -> None:
    with PageReader(seconds=seconds, wall=wall) as opened:
        assert opened.read(BOMBS["formatting"]).notes[0] == "timed out"


def test_a_long_page_is_read_whole(fast: PageReader) -> None:
    page = f"<article>{ARTICLE}<!-- {'x' * 1_500_000} --><p>The last sentence of the page stands here.</p></article>"
    read = fast.read(page)
    assert "The last sentence" in read.text and read.notes == ()


def test_where_it_is_cut_is_noted() -> None:
    with PageReader(max_chars=1000) as opened:
        assert "page cut" in opened.read(PAGE).notes
        assert "page cut" in opened.read(PAGE.encode()).notes
        assert "page cut" not in opened.read(PAGE[:1000]).notes


def test_little_main_content_gives_the_whole_page() -> None:
    page = f"<nav>{'<a href=/x>An entry of the menu that says much</a><br>' * 60}</nav><article><p>Short.</p></article>"
    assert extract(page, "fast").extractor == "whole page"


def test_beautifulsoup_steps_in(monkeypatch: pytest.MonkeyPatch) -> None:
    import trafilatura

    monkeypatch.setattr(trafilatura, "extract", lambda *given, **options: None)
    read = extract(PAGE, "faithful")
    assert read.extractor == "beautifulsoup" and read.notes == ("trafilatura found nothing",)
    assert SENTENCE in read.text and "Brenn 4" not in read.text and "hidden" not in read.text

    def fail(*given: Any, **options: Any) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(trafilatura, "extract", fail)
    assert extract(PAGE, "faithful").notes == ("trafilatura failed",)


def test_failures_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any, **options: Any) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(extracting, "take_tables", fail)
    monkeypatch.setitem(EXTRACTORS, "fast", (True, {"resiliparse": fail}))
    read = extract(PAGE, "fast")
    assert read == extracting.PageText("", (), "none", ("tables failed", "resiliparse failed"))


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>a <b>b</b></p>c", "a b c"),
        ("<script>x<y</script>a<style>b</style><STYLE>q</style>c", "a c"),
        ("1 < 2 &amp; 3", "1 < 2 & 3"),
        ("<!-- x -->a</p", "a"),
        ("<script>never closed <p>x", ""),
        (f"&#{'9' * 9000};a", "a"),
    ],
)
def test_plain_scan(html: str, text: str) -> None:
    assert " ".join(plain(html)[0].split()) == text


def test_a_lost_process_is_noted_and_replaced(fast: PageReader) -> None:
    fast.read(PAGE)
    worker = fast.guarded.process
    assert isinstance(worker, subprocess.Popen)
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    read = fast.read(PAGE)
    assert read.notes == ("reader lost", "plain scan") and SENTENCE in read.text
    assert fast.read(PAGE).notes == ()


def test_threads_share_a_reader(fast: PageReader) -> None:
    reads: dict[int, str] = {}

    def read(number: int) -> None:
        reads[number] = fast.read(PAGE.replace("forty", str(number))).text

    threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(f"takes {number} minutes" in reads[number] for number in range(8))


def test_a_closed_reader_leaves_no_process() -> None:
    opened = PageReader()
    opened.read(PAGE)
    worker = opened.guarded.process
    assert worker is not None
    opened.close()
    opened.close()
    assert worker.returncode is not None


def test_bad_values(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"fast"):
        PageReader("fats")
    with pytest.raises(UserError, match="seconds"):
        PageReader(seconds=0)
    with pytest.raises(UserError, match="wall"):
        PageReader(wall=-1)
    with pytest.raises(UserError, match="max_chars"):
        PageReader(max_chars=0)


def test_a_missing_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "resiliparse.py").write_text("raise ImportError(\"No module named 'resiliparse'\")")
    monkeypatch.syspath_prepend(str(tmp_path))
    with PageReader() as opened, pytest.raises(UserError, match=rf"resiliparse.*{re.escape(install_line('web'))}"):
        opened.read(PAGE)


def test_packages_are_imported_when_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.split(".")[0] in ("trafilatura", "bs4", "resiliparse", "lxml"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError):
        extract(PAGE, "fast")


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_real_pages(mirror: Path | None, extractor: str) -> None:
    """The 10 development records of CRAG: 47 of the 50 pages have text, and all are read as they should be."""
    file = (mirror or Path()) / "crag" / "dev_data.jsonl.bz2"
    if not file.is_file():
        pytest.skip("needs crag/dev_data.jsonl.bz2 in the mirror")
    records = [json.loads(line) for line in bz2.decompress(file.read_bytes()).splitlines()]
    pages = [page for record in records for page in record["search_results"]]
    with PageReader(extractor, wall=600) as opened:
        reads = {html: opened.read(html, "page") for html in {page["page_result"] for page in pages}}
    assert sum(bool(reads[page["page_result"]].text) for page in pages) == 47
    notes = {note for read in reads.values() for note in read.notes}
    assert notes <= {"empty page"}
    assert sum(len(reads[page["page_result"]].tables) for page in pages) > 400
