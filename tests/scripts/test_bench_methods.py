"""The table of methods: trivial answers, and the best setting of the same cost."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest


@pytest.fixture(scope="module")
def bench() -> Any:
    path = Path(__file__).parents[2] / "scripts" / "bench_methods.py"
    spec = importlib.util.spec_from_file_location("bench_methods", path)
    assert spec and spec.loader
    module = sys.modules["bench_methods"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def doc(kind: str, answers: list[str], title: str) -> dict[str, Any]:
    return {"doc": {"type": kind, "answers": answers, "_rag": {"passages": [{"text": f"{title}\nA text."}]}}}


def row(bench: Any, name: str, calls: int, scores: list[float], samples: tuple[Any, ...] = ()) -> Any:
    """One run whose questions took ``calls`` calls and one passage each."""
    step = {"ask": "Generate", "prompt_tokens": 1, "finishes": ["stop"], "seconds": 0.5}
    steps = [{"ask": "Retrieve", "found": 1}, *[step] * calls]
    run = SimpleNamespace(scores={"em": {f"q{i}": value for i, value in enumerate(scores)}}, samples=samples)
    prepared = {"task": "preparation", "steps": [step] * 50}
    return bench.Row(name, run, [prepared, *({"task": "t", "steps": steps} for _ in scores)], 1.0)


def shares(text: str) -> dict[str, float]:
    """The first score of each line of a table, by its name."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:]]
    return {name: float(share.split()[0]) for name, share, *_ in cells}


def test_trivial_answers(bench: Any) -> None:
    docs = (
        doc("claim", ["SUPPORTS"], "Ada"),
        doc("claim", ["SUPPORTS"], "Bob"),
        doc("bridge", ["Ada Moss", "A. Moss"], "The Ada Moss"),
        doc("bridge", ["Rome"], "Rome"),
    )
    rows = [row(bench, "a", 1, [0.0], docs)]
    constants = {"best constant": 50.0, "best constant of the type": 75.0, "title of the first passage": 50.0}
    copied = {"the first passage": 0.0, "all passages": 0.0}
    assert shares(bench.trivial(rows, SimpleNamespace(metric="em"))) == constants | copied
    copied = {"the first passage": 50.0, "all passages": 50.0}  # whose texts begin with their titles
    assert shares(bench.trivial(rows, SimpleNamespace(metric="em_contains"))) == constants | copied


def test_without_passages_there_are_no_trivial_answers(bench: Any) -> None:
    docs = (doc("claim", ["SUPPORTS"], "Ada"), {"doc": {"answers": ["Rome"], "_rag": {"passages": []}}})
    rows = [row(bench, "graphrag", 0, [0.0, 0.0], docs)]
    assert bench.trivial(rows, SimpleNamespace(metric="em")).startswith("No trivial answers")


def test_a_method_is_compared_with_the_best_setting_that_costs_no_more(bench: Any) -> None:
    cheap, good = row(bench, "k=1", 1, [1.0, 0.0, 0.0, 0.0]), row(bench, "k=9", 3, [1.0, 1.0, 1.0, 1.0])
    text = bench.compared([row(bench, "method", 2, [1.0, 1.0, 0.0, 0.0])], [cheap, good], "em")
    calls, tokens, passages = text.splitlines()[2].split(" | ")[1:]
    assert calls.startswith("+25.0") and "(k=1)" in calls and "(k=1)" in tokens
    assert passages.startswith("-50.0") and "(k=9)" in passages
    assert (bench.setting("2x5"), bench.setting("5x1cot")) == ((2, 5, "free"), (5, 1, "cot"))
    assert bench.asked(2, 5, "free") == ("k=2, 5 samples", "standard_rag", "k=2,documents=2,samples=5")
    assert bench.asked(5, 1, "cot")[2] == "k=5,documents=5,samples=1,answer_style=cot"


def test_questions_that_one_of_two_left_unscored_are_not_compared(bench: Any) -> None:
    whole, part = row(bench, "whole", 1, [1.0, 0.0, 1.0, 0.0]), row(bench, "part", 1, [1.0, 0.0, 1.0, 0.0])
    del part.run.scores["em"][sorted(part.run.scores["em"])[1]]
    text = bench.compared([part], [whole], "em")
    assert text.count("+0.0") == 3 and text.count(", 3 questions") == 3


def test_a_preparation_takes_time_but_is_no_question(bench: Any) -> None:
    made = row(bench, "raptor", 2, [1.0, 0.0, 1.0, 0.0])
    assert len(made.questions) == 4 and made.cost["calls"] == 2
    assert made.busy == (50 + 4 * 2) * 0.5
    made.trace[0]["steps"][0] = {**made.trace[0]["steps"][0], "journalled": True}  # of an earlier run
    again = bench.Row("raptor", made.run, made.trace, 1.0)
    assert again.busy == (49 + 4 * 2) * 0.5
