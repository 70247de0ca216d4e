"""The choices that need large downloads, on small files of the same formats under the same names."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.data.corpus import open_corpus
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
        "id": "2hop__1_2", "question": "Who?", "answer": "Ada", "answer_aliases": ["A. Moss"], "answerable": True,
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


def test_musique_over_all_of_wikipedia_has_official_ids_and_aliases(queries: Queries) -> None:
    (row,), corpus = queries("musique", "wiki18_100w")
    assert (row["id"], row["type"], row["answers"]) == ("2hop__1_2", "2hop", ["Ada", "A. Moss"])
    assert row["gold"] is None and corpus["id"].to_list() == ["1", "2"]


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


def test_fevers_evidence_that_the_pages_lack_is_counted(queries: Queries, tmp_path: Path) -> None:
    """A number beyond the page, one that the page skips, a page that is not there; what repeats counts once."""
    groups = [[(PAGE, 0), (PAGE, 99)], [(PAGE, 99)], [(PAGE, 2)], [("Nowhere", 0)], [(PAGE, 3)]]
    claim = {**CLAIMS[0], "evidence": [[[1, 2, page, number] for page, number in one] for one in groups]}
    (tmp_path / "fever/paper_dev.jsonl").write_text("\n".join(map(json.dumps, (claim, CLAIMS[2]))))
    with zipfile.ZipFile(tmp_path / "fever/wiki-pages.zip", "w") as archive:
        lines = "0\tSoul Food .\n1\tA film .\n2\t\n3\tThe end ."
        archive.writestr("wiki-pages/wiki-001.jsonl", json.dumps({"id": PAGE, "text": "", "lines": lines}))
    folder = tmp_path / "cache" / build("fever", corpus="pages")
    assert json.loads((folder / "meta.json").read_text())["notes"]["evidence names a missing sentence"] == 3
    (row, _) = pl.read_parquet(folder / "queries.parquet").to_dicts()
    assert [[(fact["passage"], fact["sentence"]) for fact in one] for one in row["evidence_sets"]] == groups


def test_wiki18(queries: Queries, caplog: pytest.LogCaptureFixture) -> None:
    (row,), corpus = queries("bamboogle", "wiki18_100w")
    assert corpus["id"].to_list() == ["1", "2"] and row["gold"] is None
    assert corpus["text"].to_list()[0] == "Citibank\nCitibank was founded in 1812."
    assert "this takes a long time" in caplog.text and "1 questions; 125 were expected" in caplog.text


# --- a large corpus waits until it is opened


def test_a_corpus_that_nobody_opens_is_not_built(queries: Queries, tmp_path: Path) -> None:
    """The questions are the same with it, and name it by the same id."""
    cache, large = tmp_path / "cache", tmp_path / "cache" / "wiki18_100w"
    waiting = build("bamboogle", corpus="wiki18_100w", wait=True)
    assert not large.exists() and "were not searched" in (cache / waiting / "README.md").read_text()
    (row,) = pl.read_parquet(cache / waiting / "queries.parquet").to_dicts()
    with pytest.raises(UserError, match="There is no corpus 'wiki18_100w/other'"):
        open_corpus("wiki18_100w/other")
    corpus = open_corpus(row["corpus"])
    assert [corpus.passage(i).id for i in range(len(corpus))] == ["1", "2"] and len(list(large.iterdir())) == 1
    whole = build("bamboogle", corpus="wiki18_100w", wait=True)  # it is built now, so it is searched
    assert whole == build("bamboogle", corpus="wiki18_100w") != waiting
    assert json.loads((cache / whole / "meta.json").read_text())["leaks"]["passages searched"] == 2
    assert pl.read_parquet(cache / whole / "queries.parquet").to_dicts() == [row]


def test_a_small_corpus_and_one_with_gold_passages_do_not_wait(queries: Queries, tmp_path: Path) -> None:
    for task, corpus in (("hotpotqa", "fullwiki"), ("fever", "beir"), ("hotpotqa", "pooled")):
        folder = tmp_path / "cache" / build(task, corpus=corpus, wait=True)
        meta = json.loads((folder / "meta.json").read_text())
        assert (tmp_path / "cache" / meta["corpus"] / "corpus.parquet").is_file() and meta["leaks"]


def test_a_corpus_that_cannot_be_built_is_named_when_it_is_opened(queries: Queries, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / build("bamboogle", corpus="wiki18_100w", wait=True)
    (tmp_path / "wiki18/psgs_w100.tsv.gz").write_bytes(b"")
    (id,) = pl.read_parquet(folder / "queries.parquet")["corpus"].to_list()
    for _ in range(2):  # it waits on
        with pytest.raises(UserError, match="psgs_w100"):
            open_corpus(id)


def test_a_method_that_does_not_retrieve_needs_the_questions_alone(
    queries: Queries, tmp_path: Path, undescribed: None
) -> None:
    import lm_eval
    from lm_eval.tasks import TaskManager

    import lm_eval_rag

    lm_eval_rag.register()
    folder, metadata = str(files("lm_eval_rag.tasks.wikipedia")), {"corpus": "wiki18_100w"}

    def run(method: str, arguments: str) -> dict[str, Any]:
        manager = TaskManager(include_defaults=False, include_path=folder, metadata=metadata)
        done = lm_eval.simple_evaluate(method, arguments, tasks=["bamboogle"], task_manager=manager)
        (sample,) = done["samples"]["bamboogle"]
        return dict(sample["doc"])

    direct = run("standard_prompting", "generator=dummy,journal=off")
    assert not (tmp_path / "cache" / "wiki18_100w").exists() and direct["_rag"]["passages"] is None
    found = run("standard_rag", "generator=dummy,journal=off,k=1")
    assert (tmp_path / "cache" / found["corpus"] / "corpus.parquet").is_file()
    assert found["_rag"]["passages"] is not None and found["corpus"] == direct["corpus"]
