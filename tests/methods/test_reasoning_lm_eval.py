"""Methods of several steps on ruleqa_demo in lm_eval, with the embedded generator: runs to their results."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag._register import METHODS, method_of
from lm_eval_rag.harness.core.parameters import defaults
from lm_eval_rag.harness.core.preparing import preparation_of
from lm_eval_rag.harness.plugin.model import model_class

pytest.importorskip("torch")

SMALL: Mapping[str, dict[str, Any]] = {  # what makes a method cheap
    "iter_retgen": {"iterations": 2, "thought_tokens": 8},
    "ircot": {"sentences": 2, "thought_tokens": 8, "reader_tokens": 8},
    "tree_of_thoughts": {"steps": 1, "thoughts": 2, "votes": 1, "thought_tokens": 8},
    "think_then_act": {"threshold": 1.1, "answer_tokens": 8, "rewriting_tokens": 16},
    "self_rag": {"k": 2, "threshold": -1.0, "segment_tokens": 8},
    "verify_and_edit": {"variant": "official", "samples": 2, "thought_tokens": 12, "step_tokens": 8},
    "chain_of_knowledge": {"samples": 3, "sentences": 1, "thought_tokens": 12, "step_tokens": 8},
    "search_agent": {"max_searches": 2, "turn_tokens": 12},
    "raptor": {"leaf_tokens": 20, "summary_tokens": 8, "answer_tokens": 8},
    "graphrag": {"extraction_tokens": 32, "description_tokens": 8, "report_tokens": 8, "answer_tokens": 8},
    "crp_rag": {
        "samples": 2,
        "max_depth": 2,
        "max_nodes": 3,
        "max_paths": 1,
        "threshold": 1e9,
        "step_tokens": 8,
        "summary_tokens": 8,
    },
}
LEAST = {"search_agent": 1, "raptor": 1, "graphrag": 0}  # calls a question; others 2. Nothing extracted: none asked
FREE = {"tree_of_thoughts", "search_agent"}  # it retrieves nothing; the model decides, and the embedded one answers


def test_all_methods_of_several_steps_are_run() -> None:
    assert set(SMALL) == {name for name in METHODS if "max_calls" in defaults(method_of(name))}


@pytest.mark.parametrize("name", SMALL)
def test_ruleqa_demo(name: str, undescribed: None, task_manager: Any, few: str) -> None:
    import lm_eval

    given = {"corpus": few} if preparation_of(method_of(name)) else {}
    model = model_class(name, method_of(name))(generator="tiny", journal="off", **given, **SMALL[name])
    run = {"tasks": ["ruleqa_demo"], "limit": 3, "gen_kwargs": "max_gen_toks=8", "bootstrap_iters": 0}
    results = lm_eval.simple_evaluate(model, task_manager=task_manager, **run)
    assert results is not None and 0 <= results["results"]["ruleqa_demo"]["token_f1,none"] <= 1
    records = [sample["doc"]["_rag"] for sample in results["samples"]["ruleqa_demo"]]
    assert len(records) == 3 and all(record["failure"] is None and record["answer"] for record in records)
    assert all(record["calls"].get("Generate", 0) >= LEAST.get(name, 2) for record in records)
    assert all((record["passages"] is not None) == ("Retrieve" in record["calls"]) for record in records)
    assert name in FREE or all("Retrieve" in record["calls"] for record in records)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A corpus of 20 documents, for methods that read all of it before the first question."""
    path: Path = tmp_path_factory.mktemp("few") / "few.jsonl"
    rows = [{"id": f"d{i}", "text": f"Time 2014-05-{i + 1:02} Person{i} visited Town{i % 4} ."} for i in range(20)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


@pytest.fixture(scope="module")
def task_manager() -> Any:
    from lm_eval.tasks import TaskManager

    return TaskManager(include_defaults=False, include_path=str(files("lm_eval_rag.tasks")))


def test_the_page_names_them_all() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reasoning.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \(\[", page, re.MULTILINE) == [name for name in METHODS if name in SMALL]
