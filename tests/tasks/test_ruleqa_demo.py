"""The demo world: exact planted rules, promised sizes, no leak, the same for the same seed."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from importlib import resources
from pathlib import Path

import polars as pl
import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.data.corpus import open_corpus
from lm_eval_rag.tasks.ruleqa_demo.build import build
from lm_eval_rag.tasks.ruleqa_demo.world import BODY_FACTS, make_world

FILES = ("corpus", "rules", "queries", "retriever_train", "generator_train")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LM_EVAL_RAG_CACHE", str(cache))
        return cache / build()


@pytest.fixture(scope="module")
def tables(folder: Path) -> dict[str, pl.DataFrame]:
    return {name: pl.read_parquet(folder / f"{name}.parquet") for name in FILES}


def test_sizes_and_slices(tables: dict[str, pl.DataFrame], folder: Path) -> None:
    counts = {name: table.height for name, table in tables.items()}
    assert 2900 <= counts["corpus"] <= 3100
    assert (counts["queries"], counts["retriever_train"], counts["generator_train"]) == (200, 150, 150)
    slices = dict(tables["queries"].group_by("slice").len().iter_rows())
    assert slices == {"rule_required": 130, "direct": 56, "unreachable": 14}
    meta = json.loads((folder / "meta.json").read_text("utf-8"))
    assert meta["counts"] == counts and meta["slices"] == slices and meta["hash"] == folder.name
    assert "130" in (folder / "README.md").read_text("utf-8")


def test_slices_restated(tables: dict[str, pl.DataFrame]) -> None:
    """The definition, by loops over the rows."""
    stated = defaultdict(set)
    for row in tables["corpus"].iter_rows(named=True):
        stated[row["subject"], row["relation"]].add(row["object"])
    bodies = defaultdict(list)
    for row in tables["rules"].filter(~pl.col("repeat")).iter_rows(named=True):
        bodies[row["head"]].append(row["body"])
    for row in tables["queries"].iter_rows(named=True):
        gold = set(row["answers"])
        direct = gold & stated[row["subject"], row["relation"]]
        through = any(gold & stated[row["subject"], body] for body in bodies[row["relation"]][:3])
        assert row["slice"] == ("direct" if direct else "rule_required" if through else "unreachable")
        assert row["in_main"] and row["in_hard"] == (row["slice"] == "rule_required")


def test_mining_recovers_the_planted_rules(tables: dict[str, pl.DataFrame], folder: Path) -> None:
    """Confidence as planted, to the nearest document, and the planted rules alone stand out."""
    planted = json.loads((folder / "meta.json").read_text("utf-8"))["planted"]
    mined = {(row["body"], row["head"]): row for row in tables["rules"].iter_rows(named=True)}
    assert len(planted) == 14
    for rule in planted:
        row = mined[rule["body"], rule["head"]]
        assert row["body_support"] == BODY_FACTS
        assert row["support"] == round(rule["confidence"] * BODY_FACTS)
    crossing = {pair for pair, row in mined.items() if not row["repeat"]}
    noise = crossing - {(rule["body"], rule["head"]) for rule in planted}
    assert max((mined[pair]["confidence"] for pair in noise), default=0.0) < 0.25


def test_no_document_or_training_question_knows_the_test(tables: dict[str, pl.DataFrame]) -> None:
    last = tables["corpus"]["time"].max()
    trained = [tables[name] for name in ("retriever_train", "generator_train")]
    for part in trained:
        assert last < part["time"].min() and part["time"].max() < tables["queries"]["time"].min()
    keys = ["subject", "relation", "time", "text"]
    parts = [set(table.select(keys).iter_rows()) for table in (*trained, tables["queries"])]
    assert all(not a & b for i, a in enumerate(parts) for b in parts[:i])
    assert [len(part) for part in parts] == [150, 150, 200]


def test_documents_and_questions_read_as_promised(tables: dict[str, pl.DataFrame]) -> None:
    worded = 0
    for row in tables["corpus"].iter_rows(named=True):
        start, end = f"Time {row['time']} {row['subject']} ", f" {row['object']}."
        assert row["text"].startswith(start) and row["text"].endswith(end)
        worded += row["text"][len(start) : -len(end)] != row["relation"]
    assert 0.1 < worded / tables["corpus"].height < 0.2
    assert tables["corpus"]["id"].is_sorted() and tables["corpus"]["id"].is_unique().all()
    assert tables["corpus"]["time"].is_sorted()
    usual = pl.format("Time {} what does {} {} ?", "time", "subject", "relation").alias("usual")
    plain = tables["queries"].select(pl.col("text") == usual.meta.undo_aliases()).to_series()
    assert 0.7 < plain.mean() < 0.95


def test_a_corpus_opens_and_is_built_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(folder.parent.parent))
    stamp = (folder / "meta.json").stat().st_mtime_ns
    assert build(0) == f"ruleqa_demo/{folder.name}"
    assert (folder / "meta.json").stat().st_mtime_ns == stamp
    corpus = open_corpus(f"ruleqa_demo/{folder.name}")
    assert len(corpus.examples()) == 150 and corpus.passage(0).fact is not None
    assert [path for path in folder.parent.iterdir() if path.name.startswith(".")] == []


def test_seeds() -> None:
    start = time.process_time()
    one, again, other = make_world(0), make_world(0), make_world(1)
    assert time.process_time() - start < 3  # a world takes well under a second
    assert one == again
    people = [{fact.subject for fact in world.documents} for world in (one, other)]
    assert len(people[0] & people[1]) < 0.02 * len(people[0])
    assert [rule[:2] for rule in one.planted] != [rule[:2] for rule in other.planted]


def test_a_bad_seed_is_refused() -> None:
    with pytest.raises(UserError, match="seed=-1"):
        build(-1)


def test_lm_eval_loads_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lm_eval.tasks import TaskManager

    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    include = resources.files("lm_eval_rag.tasks.ruleqa_demo")
    manager = TaskManager(include_defaults=False, include_path=str(include))
    loaded = manager.load(["ruleqa_demo"])["tasks"]["ruleqa_demo"]
    docs = list(loaded.test_docs())
    assert len(docs) == 200 and docs[0]["corpus"].startswith("ruleqa_demo/")
    assert loaded.doc_to_text(docs[0]) == f"Question: {docs[0]['query']}\nAnswer:"
    assert loaded.doc_to_target(docs[0]) == docs[0]["answers"][0]
