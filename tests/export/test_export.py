"""``lm-eval-rag export``: files with the ids that retrieval metrics know, and without answers."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag import cli
from lm_eval_rag.harness.data.corpus import corpus_from_jsonl, open_corpus
from lm_eval_rag.tasks.reasoning_demo.build import build as build_reasoning
from lm_eval_rag.tasks.ruleqa_demo.build import build as build_rules


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def export(*arguments: Any) -> int:
    return cli.main(["export", *map(str, arguments)])


def test_jsonl_is_a_corpus_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export("ruleqa_demo", "--out", tmp_path / "demo") == 0
    said = capsys.readouterr().out
    corpus, again = open_corpus(build_rules()), corpus_from_jsonl(tmp_path / "demo" / "corpus.jsonl")
    assert f"corpus.jsonl: {len(corpus)} rows" in said and "No terms" in said
    assert again.ids.to_pylist() == corpus.ids.to_pylist() and list(again.texts) == list(corpus.texts)
    last = len(corpus) - 1
    assert again.passage(last).fact == corpus.passage(last).fact is not None
    assert again.passage(last).time == corpus.passage(last).time is not None
    questions = lines(tmp_path / "demo" / "questions.jsonl")
    assert len(questions) == 200 and set(questions[0]) == {"id", "question", "time"}
    assert "no answers" in (tmp_path / "demo" / "README.md").read_text(encoding="utf-8")
    assert (tmp_path / "demo" / "CORPUS.md").read_text(encoding="utf-8").startswith("# RuleQA-demo")


def test_answers_only_if_asked_for(tmp_path: Path) -> None:
    assert export("reasoning_demo", "--out", tmp_path / "a", "--with_answers", "--limit", 3) == 0
    rows = lines(tmp_path / "a" / "questions.jsonl")
    ids = set(open_corpus(build_reasoning()).ids.to_pylist())
    assert len(rows) == 3 and all(row["answers"] for row in rows)
    assert all(set(row["gold_passages"]) <= ids for row in rows if row["gold_passages"])
    assert any(row["gold_passages"] for row in rows)
    golds = {answer for row in rows for answer in row["answers"]}
    assert export("reasoning_demo", "--out", tmp_path / "b", "--limit", 3) == 0
    without = (tmp_path / "b" / "questions.jsonl").read_text(encoding="utf-8")
    assert "answers" not in without and "gold" not in without and not (golds & set(without.split('"')))


def test_parquet(tmp_path: Path) -> None:
    import polars as pl

    assert export("ruleqa_demo", "--format", "parquet", "--out", tmp_path / "p", "--with_answers") == 0
    corpus, questions = (pl.read_parquet(tmp_path / "p" / f"{name}.parquet") for name in ("corpus", "questions"))
    assert corpus["id"].to_list() == open_corpus(build_rules()).ids.to_pylist()
    assert corpus.columns == ["id", "text", "time", "fact"] and corpus["fact"].list.len().max() == 3
    assert questions.columns == ["id", "question", "time", "answers", "gold_passages"]
    assert questions["answers"].list.len().min() == 1


def test_beir(tmp_path: Path) -> None:
    assert export("reasoning_demo", "--format", "beir", "--out", tmp_path / "b", "--with_answers") == 0
    corpus, queries = lines(tmp_path / "b" / "corpus.jsonl"), lines(tmp_path / "b" / "queries.jsonl")
    assert set(corpus[0]) == {"_id", "title", "text"} and set(queries[0]) == {"_id", "text"}
    with (tmp_path / "b" / "qrels" / "test.tsv").open(encoding="utf-8") as file:
        qrels = list(csv.DictReader(file, delimiter="\t"))
    assert {row["query-id"] for row in qrels} <= {row["_id"] for row in queries}
    assert {row["corpus-id"] for row in qrels} <= {row["_id"] for row in corpus}
    assert {row["score"] for row in qrels} == {"1"} and len(qrels) > 400
    assert export("reasoning_demo", "--format", "beir", "--out", tmp_path / "c") == 0
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == [
        "CORPUS.md", "README.md", "corpus.jsonl", "queries.jsonl",
    ]  # fmt: skip


def test_passages_of_single_questions_name_their_question(tmp_path: Path) -> None:
    pytest.importorskip("resiliparse", reason="needs the extra web")
    assert export("crag_demo", "--out", tmp_path / "c", "--limit", 2) == 0
    questions, passages = lines(tmp_path / "c" / "questions.jsonl"), lines(tmp_path / "c" / "corpus.jsonl")
    assert {row["question"] for row in passages} == {row["id"] for row in questions} and len(questions) == 2
    assert len({(row["question"], row["id"]) for row in passages}) == len(passages)


def test_terms_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str], mirror: Path | None) -> None:
    assert export("musique_train_100", "--out", tmp_path / "m", "--limit", 1) == 0
    said = capsys.readouterr().out
    assert "subject to the terms of their sources" in said
    assert said.splitlines()[-1] in (tmp_path / "m" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ruleqa_dem"], "Unknown task 'ruleqa_dem'"),
        (["ruleqa_demo", "--format", "xml"], "Allowed: beir, jsonl, parquet"),
        (["ruleqa_demo", "--format", "beir", "--with_answers"], "there are no qrels"),
        (["crag_demo", "--format", "beir"], "one corpus for all"),
        (["ruleqa_demo", "--limit", "0"], "--limit=0"),
        (["ruleqa_demo", "--metadata", "[]"], "not a JSON object"),
    ],
)
def test_bad_input(arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export(*arguments, "--out", tmp_path / "x") == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("mine", encoding="utf-8")
    for folder in (tmp_path, tmp_path / "mine"):
        assert export("ruleqa_demo", "--out", folder) == 2
        assert "nothing is overwritten" in capsys.readouterr().err
    assert (tmp_path / "mine").read_text(encoding="utf-8") == "mine"
    (tmp_path / "empty").mkdir()
    assert export("ruleqa_demo", "--out", tmp_path / "empty") == 0
    assert (tmp_path / "empty" / "corpus.jsonl").is_file()
