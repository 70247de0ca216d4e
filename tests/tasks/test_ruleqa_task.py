"""The YAML files: every name that the documentation promises, and what a loaded task holds."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from lm_eval_rag.tasks.ruleqa.build import VERSION, build
from lm_eval_rag.tasks.ruleqa.natural import build_natural
from lm_eval_rag.tasks.ruleqa.task import FewRelationsTask, RuleQATask

FOLDER = Path(str(files("lm_eval_rag.tasks.ruleqa")))
LETTERS = "iywfn"
NAMES = {
    *(f"ruleqa_{letter}" for letter in LETTERS),
    *(f"ruleqa_{letter}_fresh" for letter in LETTERS),
    *(f"ruleqa_{letter}_natural" for letter in LETTERS),
    *(f"ruleqa_{letter}_hard" for letter in "ifn"),
    "ruleqa_n_dense",
}
SIZES = {"ruleqa_i": 1559, "ruleqa_i_hard": 1799, "ruleqa_n_fresh": 815, "ruleqa_i_natural": 1559}


@pytest.fixture(scope="module")
def manager() -> Any:
    from lm_eval.tasks import TaskManager

    return TaskManager(include_defaults=False, include_path=str(FOLDER))


def test_a_set_that_is_there_is_opened_without_polars() -> None:
    """Its import takes a third of a second, at every start."""
    code = (
        "import lm_eval_rag.tasks.ruleqa.task, lm_eval_rag.tasks.ruleqa.build, sys; sys.exit('polars' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_all_names_are_there(manager: Any) -> None:
    assert set(manager.all_tasks) == {*NAMES, "ruleqa", "ruleqa_natural"}
    assert sorted(manager.all_groups) == ["ruleqa", "ruleqa_natural"]
    assert yaml.safe_load((FOLDER / "ruleqa.yaml").read_text())["task"] == [f"ruleqa_{letter}" for letter in LETTERS]
    natural = yaml.safe_load((FOLDER / "ruleqa_natural.yaml").read_text())["task"]
    assert natural == [f"ruleqa_{letter}_natural" for letter in LETTERS]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_yaml_says_only_its_name(name: str) -> None:
    lines = (FOLDER / f"{name}.yaml").read_text().splitlines()
    rest = [line for line in lines if not line.startswith("class: !function lm_eval_rag.tasks.ruleqa.task.")]
    assert yaml.safe_load("\n".join(rest)) == {"include": "_ruleqa", "task": name}


@pytest.fixture(scope="module")
def loaded(mirror: Path | None, cache: Path, once: Callable[..., Any], manager: Any) -> dict[str, Any]:
    for name in ("ruleqa_i", "ruleqa_n_fresh"):
        once(name, partial(build, name))
    once("ruleqa_i_natural", partial(build_natural, "ruleqa_i_natural"))
    return dict(manager.load(list(SIZES))["tasks"])


@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_documents(name: str, size: int, loaded: dict[str, Any], cache: Path) -> None:
    task = loaded[name]
    docs = list(task.test_docs())
    assert len(docs) == size
    assert {doc["corpus"] for doc in docs} == {docs[0]["corpus"]}
    assert docs[0]["corpus"].startswith(name.removesuffix("_hard") + "/")
    asked = pl.read_parquet(cache / docs[0]["corpus"] / "queries.parquet")
    wanted = asked.filter("in_hard" if name.endswith("hard") else "in_main").rename({"text": "query"})
    columns = [*docs[0]][:-1]
    slices = ["rule_confidence", "subject_documents", *(["change"] if "_i" in name else []), "seen"]
    assert columns == ["id", "query", "subject", "relation", "time", "answers", "slice", "popularity", *slices]
    assert [{key: doc[key] for key in columns} for doc in docs] == wanted.select(columns).to_dicts()


def test_the_prompt_of_stock_models(loaded: dict[str, Any]) -> None:
    task = loaded["ruleqa_i"]
    doc = task.test_docs()[0]
    assert task.doc_to_text(doc) == f"Question: {doc['query']}\nAnswer:"
    assert task.doc_to_target(doc) == doc["answers"][0]
    assert task.config.generation_kwargs["until"] == ["\n"] and task.config.generation_kwargs["max_gen_toks"] == 32
    assert task.VERSION == VERSION  # so that a report names the data's version


def test_worked_examples_come_from_the_generators_training_set(loaded: dict[str, Any], cache: Path) -> None:
    task = loaded["ruleqa_i"]
    shown = {doc["query"] for doc in task.fewshot_docs()}
    asked = {doc["query"] for doc in task.test_docs()}
    folder = cache / task.test_docs()[0]["corpus"]
    assert shown == set(pl.read_parquet(folder / "generator_train.parquet")["text"])
    assert not shown & asked
    context = task.fewshot_context(task.test_docs()[0], num_fewshot=2)
    questions = [line.removeprefix("Question: ") for line in str(context).split("\n") if line.startswith("Question: ")]
    assert len(questions) == 3 and set(questions[:2]) <= shown and questions[2] == task.test_docs()[0]["query"]


def test_another_corpus_by_dataset_kwargs(mirror: Path | None, tmp_path: Path, loaded: dict[str, Any]) -> None:
    from lm_eval.tasks import TaskManager

    (tmp_path / "mine.yaml").write_text(
        f"include: {FOLDER / 'ruleqa_i.yaml'}\ntask: ruleqa_i\ndataset_kwargs: {{corpus: train_valid}}\n"
    )
    task = TaskManager(include_defaults=False, include_path=str(tmp_path)).load(["ruleqa_i"])["tasks"]["ruleqa_i"]
    ids = [task.test_docs()[0]["corpus"] for task in (task, loaded["ruleqa_i"])]
    assert ids[0] != ids[1]
    assert len(task.test_docs()) == 1559


@pytest.mark.parametrize("name", sorted(NAMES))
def test_questions_are_clustered_by_subject_and_where_there_are_many_relations_by_relation(name: str) -> None:
    few = name.startswith(("ruleqa_y", "ruleqa_w"))
    assert ("FewRelationsTask" in (FOLDER / f"{name}.yaml").read_text()) == few
    assert RuleQATask.clusters == (("subject",), ("relation",)) and FewRelationsTask.clusters == (("subject",),)
