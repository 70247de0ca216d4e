"""``--model rag --model_args method=...``: a method from a file or another package, in lm_eval and in Python."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import lm_eval_rag
from lm_eval_rag import UserError, _models, _register
from lm_eval_rag._register import METHODS, find_method, method_of, tasks_folder
from lm_eval_rag.harness.core.journal import digest

FILE = '''
from lm_eval_rag import Answer, Plan, Positive, Query, retrieve

def last(query: Query, *, k: Positive = 2) -> Plan[Answer]:
    """Answers with the last word of the k-th passage."""
    passages = yield from retrieve(query.text, k)
    return Answer(passages[-1].text.split()[-1].rstrip(".") if passages else "", passages)

def no_method(query):
    return "x"
'''
DOCUMENTS = ["Ada was born in Vale.", "Ada likes Moor."]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my.py"
    path.write_text(FILE)
    return path


def test_in_python(file: Path) -> None:
    for k, word in ((1, "Moor"), (2, "Vale")):
        ((answer, _),) = lm_eval_rag.run(f"{file}:last", ["what does Ada likes ?"], corpus=DOCUMENTS, k=k)
        assert answer.text == word


def test_in_lm_eval(file: Path, undescribed: None) -> None:
    import lm_eval
    from lm_eval.tasks import TaskManager

    task_manager = TaskManager(include_defaults=False, include_path=str(tasks_folder()))

    model = _models.rag(method=f"{file}:last", k=1, journal="off")
    results = lm_eval.simple_evaluate(
        model, tasks=["ruleqa_demo"], limit=3, task_manager=task_manager, bootstrap_iters=0
    )
    assert results is not None
    records = [sample["doc"]["_rag"] for sample in results["samples"]["ruleqa_demo"]]
    assert len(records) == 3 and all(len(record["passages"]) == 1 for record in records)
    named = model.get_model_info()["rag"]["method"]
    assert re.fullmatch(r"last of my\.py \([0-9a-f]{16}\)", named)


def test_another_file_is_another_run(file: Path) -> None:
    def fingerprint() -> str:
        return str(_models.rag(method=f"{file}:last").setup.fingerprint)

    before = fingerprint()
    assert fingerprint() == before
    file.write_text(FILE.replace("rstrip", "strip"))
    assert fingerprint() != before


def test_a_method_of_ours_keeps_its_fingerprint(file: Path) -> None:
    ours = _models.rule_vote()
    assert _models.rag(method="rule_vote").setup.fingerprint == ours.setup.fingerprint == digest(ours.setup.identity())
    assert {name: find_method(name).function for name in METHODS} == {name: method_of(name) for name in METHODS}


def test_another_package_names_its_methods(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("theirs", f"{file}:last", "lm_eval_rag.methods")
    monkeypatch.setattr(_register, "entry_points", lambda group: [point] if group == "lm_eval_rag.methods" else [])
    ((answer, _),) = lm_eval_rag.run("theirs", ["what does Ada likes ?"], corpus=DOCUMENTS, k=1)
    assert answer.text == "Moor"
    with pytest.raises(UserError, match="Did you mean 'theirs'"):
        find_method("thiers")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs --model_args method=FILE.py:NAME"),
        ({"method": ""}, "needs --model_args method=FILE.py:NAME"),
        ({"method": 3}, "needs --model_args method=FILE.py:NAME"),
        ({"method": "two_step"}, "A method of your own is FILE.py:NAME"),
        ({"method": "{file}:lost"}, "Did you mean 'last'"),
        ({"method": "{file}:no_method"}, "is not a generator function"),
        ({"method": "{file}:last", "depth": 3}, "Unknown argument 'depth'"),
        ({"method": "{file}:last", "k": 0}, "k=0 is not allowed"),
        ({"method": "gone.py:last"}, "there is no file gone.py"),
    ],
)
def test_bad_input_is_one_line(file: Path, arguments: dict[str, Any], message: str) -> None:
    given = {
        key: value.replace("{file}", str(file)) if isinstance(value, str) else value for key, value in arguments.items()
    }
    with pytest.raises(UserError, match=re.escape(message)) as error:
        _models.rag(**given)
    assert "\n" not in str(error.value)
