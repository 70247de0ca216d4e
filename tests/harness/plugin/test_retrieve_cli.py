"""``lm-eval-rag retrieve``: questions of tasks in, a run out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lm_eval_rag import cli
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Query
from lm_eval_rag.harness.data.corpus import open_corpus
from lm_eval_rag.harness.documents.intake import as_corpus
from lm_eval_rag.harness.plugin.retrieve_cli import Wanted, make_run, retrieve_main, retriever_options
from lm_eval_rag.harness.retrieval import make_retriever
from lm_eval_rag.harness.retrieval.run_file import read_note


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "run.parquet"


def test_options_are_read_as_model_args() -> None:
    """A prefix keeps its space: without it the vectors would be those of another encoder."""
    text = "retriever_model=e5,query_prefix=query: ,document_prefix=passage: ,normalize=true,max_length=512"
    assert retriever_options(text) == {
        "model": "e5", "query_prefix": "query: ", "document_prefix": "passage: ", "normalize": True, "max_length": 512,
    }  # fmt: skip
    assert retriever_options("") == {}
    with pytest.raises(UserError, match=r"--retriever-args 'e5' cannot be read.*Write NAME=VALUE"):
        retriever_options("e5")


def test_the_questions_of_a_task(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--retriever-args", "k1=1.2,b=0.5", "--k", "7", "--limit", "12", "--out", str(out)]
    assert cli.main(["retrieve", "--tasks", "ruleqa_demo", *arguments]) == 0
    note = read_note(out)
    (corpus,) = note.corpora.values()
    assert (note.k, note.tasks, corpus.queries) == (7, ("ruleqa_demo",), 12)
    assert note.retriever == "bm25(b=0.5, k1=1.2)" and f"retriever_path={out}" in capsys.readouterr().out
    texts = pq.read_table(out)["query"].to_pylist()
    built = open_corpus(corpus.id)
    expected = make_retriever("bm25", built, k1=1.2, b=0.5).search(texts, 7)
    assert make_retriever("run", built, path=str(out)).search(texts, 7) == expected
    first = pq.read_table(out)
    assert cli.main(["retrieve", "--tasks", "ruleqa_demo", *arguments]) == 0  # from the journal
    assert pq.read_table(out).equals(first)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tasks", "ruleqa_demo", "--retriever", "bm52"], "Did you mean 'bm25'"),
        (["--tasks", "ruleqa_demo", "--retriever-args", "k2=1.0"], "Did you mean 'k1'"),
        (["--tasks", "ruleqa_demo", "--k", "0"], "k=0 is not allowed"),
        (["--tasks", "ruleqa_demo", "--k", "20000"], "10000 or less"),
        (["--tasks", "ruleqa_demo", "--limit", "0"], "--limit=0"),
        (["--tasks", "ruleqa_demo", "--metadata", "[1]"], "not a JSON object"),
        (["--tasks", "crag_demo", "--limit", "1"], "passages of their own"),
    ],
)
def test_bad_arguments_teach(arguments: list[str], message: str, out: Path) -> None:
    with pytest.raises(UserError, match=message):
        retrieve_main([*arguments, "--out", str(out)])
    assert not out.exists()


def test_an_unknown_task_is_named(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Manager:
        def __init__(self, metadata: dict[str, str]) -> None:
            self.known = ["ruleqa_demo"]  # lm_eval's own are not indexed here, which takes seconds

        def match_tasks(self, names: list[str]) -> list[str]:
            return [name for name in names if name in self.known]

    monkeypatch.setattr("lm_eval.tasks.TaskManager", Manager)
    with pytest.raises(UserError, match="Unknown task 'ruleqa_dmo'"):
        retrieve_main(["--tasks", "ruleqa_demo,ruleqa_dmo", "--out", str(out)])


def test_lm_eval_with_a_run_gives_the_same_and_counts_who_served(
    evaluate: Callable[..., Any], documents: str, docs: list[dict[str, Any]], tmp_path: Path
) -> None:
    path, queries = tmp_path / "run.parquet", [Query(doc["id"], doc["query"]) for doc in docs]
    make_run(Wanted(("visits",), queries[:4], "bm25", {}, 20), path, as_corpus(documents))
    plain = evaluate()
    run = evaluate(arguments={"retriever": "run", "retriever_path": str(path), "retriever_fallback": "bm25"})
    assert run["results"] == plain["results"]
    counts = run["config"]["rag"]["counts"]
    assert (counts["retrieved by run"], counts["retrieved by bm25"]) == (4, 2)
    records = [sample["doc"]["_rag"] for sample in run["samples"]["visits"]]
    assert [record["retrieved_by"] for record in records] == [{"run": 1}] * 4 + [{"bm25": 1}] * 2
    named = f"no passages for the query {docs[4]['query']!r}, {docs[5]['query']!r}."
    with pytest.raises(UserError, match=re.escape(named)):
        evaluate(arguments={"retriever": "run", "retriever_path": str(path)})
