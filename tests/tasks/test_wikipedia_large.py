"""The choices that need large downloads, on small files of the same formats under the same names."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from lm_eval_rag.tasks.wikipedia import build as build_module
from lm_eval_rag.tasks.wikipedia import corpus_build
from lm_eval_rag.tasks.wikipedia.build import build

CONTEXT = [["Ed Wood", ["Ed Wood is a film.", " Tim Burton made it."]], ["Tim Burton", ["He was born in Burbank."]]]
OTHER = [["Burbank", ["Burbank is a city."]], ["Ed Wood", ["Ed Wood is a film.", " Tim Burton made it."]]]


def hotpotqa() -> list[dict[str, Any]]:
    """Two items as columns, as on the Hub."""
    items = [("q1", CONTEXT, [("Ed Wood", 1), ("Tim Burton", 0)]), ("q2", OTHER, [("Burbank", 0)])]
    return [
        {
            "id": id, "question": "Who?", "answer": "Tim Burton", "type": "bridge", "level": "hard",
            "supporting_facts": {"title": [title for title, _ in facts], "sent_id": [n for _, n in facts]},
            "context": {"title": [title for title, _ in context], "sentences": [lines for _, lines in context]},
        }
        for id, context, facts in items
    ]  # fmt: skip


def wiki2() -> list[dict[str, Any]]:
    """One item with nested values as JSON texts."""
    triples = [["Ed Wood", "director", "Tim Burton"]]
    texts = {"supporting_facts": [["Ed Wood", 0]], "context": CONTEXT, "evidences": triples}
    return [{"_id": "w1", "type": "compositional", "question": "Who?", "answer": "Burton",
             **{name: json.dumps(value) for name, value in texts.items()}}]  # fmt: skip


def musique() -> dict[str, Any]:
    paragraphs = [("A", "one", True), ("A", "two", True), ("B", "three", False)]
    return {
        "id": "2hop__1_2", "question": "Who?", "answer": "Ada", "answer_aliases": [], "answerable": True,
        "paragraphs": [{"idx": i, "title": title, "paragraph_text": text, "is_supporting": gold}
                       for i, (title, text, gold) in enumerate(paragraphs)],
    }  # fmt: skip


PAGE = "Soul_Food_-LRB-film-RRB-"
CLAIMS = [
    {"id": 1, "claim": "It is a film.", "label": "SUPPORTS", "evidence": [[[1, 2, PAGE, 1]]]},
    {"id": 2, "claim": "It is a song.", "label": "REFUTES", "evidence": [[[1, 2, "Nowhere", 0]]]},
    {"id": 3, "claim": "It is.", "label": "NOT ENOUGH INFO", "evidence": [[[1, None, None, None]]]},
]
BEIR = [{"_id": "12", "title": "Ed Wood", "text": "Ed Wood is a film. Made by Burton."},
        {"_id": "13", "title": "Tim Burton", "text": "He was born in Burbank."}]  # fmt: skip
FEVER_BEIR = [{"_id": PAGE, "title": "Soul Food (film)", "text": "Soul Food . A film ."}]


@pytest.fixture
def queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], tuple[list[dict[str, Any]], Any]]:
    """``queries(task, corpus)``: the rows of the built questions, and the corpus's table."""
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LM_EVAL_RAG_MIRROR", str(tmp_path))
    known = {path: replace(one, sha256="UNVERIFIED", bytes=0) for path, one in corpus_build.manifest().items()}
    for module in (corpus_build, build_module):
        monkeypatch.setattr(module, "manifest", known.copy)
    for folder in ("hotpotqa", "2wikimultihopqa", "musique", "fever", "wiki18", "bamboogle", "hipporag"):
        (tmp_path / folder).mkdir()
    pl.DataFrame(hotpotqa()).write_parquet(tmp_path / "hotpotqa/validation-00000-of-00001.parquet")
    pl.DataFrame(BEIR).write_parquet(tmp_path / "hotpotqa/corpus-00000-of-00001.parquet")
    pl.DataFrame(FEVER_BEIR).write_parquet(tmp_path / "fever/corpus-00000-of-00001.parquet")
    pl.DataFrame(wiki2()).write_parquet(tmp_path / "2wikimultihopqa/dev.parquet")
    (tmp_path / "musique/musique_ans_v1.0_dev.jsonl").write_text(json.dumps(musique()))
    (tmp_path / "hipporag/musique.json").write_text(json.dumps([musique()]))
    pool = [{"idx": i, "title": title, "text": text} for i, (title, text) in enumerate([("A", "two"), ("A", "one")])]
    (tmp_path / "hipporag/musique_corpus.json").write_text(json.dumps(pool))
    (tmp_path / "fever/paper_dev.jsonl").write_text("\n".join(map(json.dumps, CLAIMS)))
    with zipfile.ZipFile(tmp_path / "fever/wiki-pages.zip", "w") as archive:
        rows = [{"id": "", "text": "", "lines": ""}, {"id": PAGE, "text": "", "lines": "0\tSoul Food .\n1\tA film ."}]
        archive.writestr("wiki-pages/wiki-001.jsonl", "\n".join(map(json.dumps, rows)))
    with gzip.open(tmp_path / "wiki18/psgs_w100.tsv.gz", "wt") as file:
        file.write('id\ttext\ttitle\n1\t"Citibank was founded in 1812."\tCitibank\n2\tA city.\tVale\n')
    (tmp_path / "bamboogle/bamboogle_125.jsonl").write_text(
        json.dumps({"extra_info": {"question": "Who?", "answer": "Ada"}})
    )

    def queries(task: str, corpus: str) -> tuple[list[dict[str, Any]], Any]:
        folder = tmp_path / "cache" / build(task, corpus=corpus)
        rows = pl.read_parquet(folder / "queries.parquet").to_dicts()
        home = rows[0]["corpus"].partition("#")[0]
        return rows, pl.read_parquet(tmp_path / "cache" / home / "corpus.parquet")

    return queries


Queries = Callable[[str, str], tuple[list[dict[str, Any]], Any]]


def test_hotpotqa(queries: Queries) -> None:
    (first, second), corpus = queries("hotpotqa", "pooled")
    assert corpus["id"].to_list() == ["Ed Wood", "Tim Burton", "Burbank"]
    assert (first["id"], first["gold"], second["gold"]) == ("q1", ["Ed Wood", "Tim Burton"], ["Burbank"])
    assert first["facts"] == [{"passage": "Ed Wood", "sentence": 1}, {"passage": "Tim Burton", "sentence": 0}]
    assert corpus["sentences"].to_list()[0] == ["Ed Wood is a film.", " Tim Burton made it."]
    own, same = queries("hotpotqa", "own")
    assert same.equals(corpus) and own[1]["corpus"].endswith("#q2") and own[1]["gold"] == second["gold"]


def test_hotpotqa_over_all_of_wikipedia(queries: Queries) -> None:
    """Gold passages are found by title; facts have no numbered sentences there; a lacking page leaves gold unknown."""
    (first, second), corpus = queries("hotpotqa", "fullwiki")
    assert corpus["id"].to_list() == ["Ed Wood", "Tim Burton"] and corpus["sentences"].null_count() == 2
    assert (first["gold"], second["gold"], first["facts"]) == (["Ed Wood", "Tim Burton"], None, None)


def test_2wikimultihopqa(queries: Queries) -> None:
    (row,), corpus = queries("2wikimultihopqa", "pooled")
    assert row["triples"] == [["Ed Wood", "director", "Tim Burton"]] and row["gold"] == ["Ed Wood"]
    assert row["facts"] == [{"passage": "Ed Wood", "sentence": 0}] and corpus.height == 2


def test_musique(queries: Queries) -> None:
    (row,), corpus = queries("musique", "pooled")
    assert corpus["id"].to_list() == ["A", "A#2", "B"] and row["gold"] == ["A", "A#2"]
    (same,), pool = queries("musique_hipporag", "hipporag")
    assert pool["text"].to_list() == ["A\ntwo", "A\none"] and same["gold"] == ["A#2", "A"]


def test_fever(queries: Queries) -> None:
    (first, second, third), corpus = queries("fever", "pages")
    assert corpus.select("id", "title", "text").rows() == [
        (PAGE, "Soul Food (film)", "Soul Food (film)\nSoul Food . A film .")
    ]
    assert first["evidence_sets"] == [[{"passage": PAGE, "sentence": 1}]] and first["gold"] == [PAGE]
    assert second["evidence_sets"] and second["gold"] is None  # the corpus lacks the page
    assert third["evidence_sets"] is None and [row["answers"][0] for row in (first, second, third)] == [
        "SUPPORTS", "REFUTES", "NOT ENOUGH INFO",
    ]  # fmt: skip
    beir, _ = queries("fever", "beir")
    assert beir[0]["gold"] == [PAGE] and beir[0]["evidence_sets"] is None


def test_wiki18(queries: Queries, caplog: pytest.LogCaptureFixture) -> None:
    (row,), corpus = queries("bamboogle", "wiki18_100w")
    assert corpus["id"].to_list() == ["1", "2"] and row["gold"] is None
    assert corpus["text"].to_list()[0] == "Citibank\nCitibank was founded in 1812."
    assert "this takes a long time" in caplog.text and "1 questions; 125 were expected" in caplog.text
