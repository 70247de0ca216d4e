"""``lm-eval-rag new``: what it writes runs as it says, and nothing is overwritten."""

import runpy
from pathlib import Path
from typing import Any

import pytest

import lm_eval_rag
from lm_eval_rag import cli

WITHOUT_GENERATOR = """
from lm_eval_rag import Answer, Query, retrieve


def last_word(query: Query):
    passages = yield from retrieve(query.text, 1)
    return Answer(passages[0].text.split()[-1].strip("."), passages)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_method_and_its_test_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new", "method", "ponder"]) == 0
    said = capsys.readouterr().out
    assert "--model rag --model_args method=ponder.py:ponder" in said and "pytest test_ponder.py" in said
    names = runpy.run_path(str(folder / "test_ponder.py"))
    tests = [name for name in names if name.startswith("test_")]
    assert len(tests) == 2
    for name in tests:
        names[name]()


def test_the_prompts_of_a_method_are_those_of_its_file(folder: Path) -> None:
    assert cli.main(["new", "method", "ponder"]) == 0
    says_vale = runpy.run_path(str(folder / "test_ponder.py"))["SaysVale"]()
    file = folder / "ponder.toml"
    file.write_text(file.read_text(encoding="utf-8").replace("in as few words", "in rhymes"), encoding="utf-8")
    ((_, trace),) = lm_eval_rag.run("ponder.py:ponder", ["Where is Vale?"], corpus=["Vale is."], generator=says_vale)
    assert "in rhymes" in trace.steps[1].request and "{" not in trace.steps[1].request


def test_a_method_is_described(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new", "method", "ponder", "--out", "mine"]) == 0
    assert "lm-eval-rag describe mine/ponder.py:ponder\n" in capsys.readouterr().out
    assert cli.main(["describe", "mine/ponder.py:ponder"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("ponder (model)") and "Passages of the retrieval." in said


@pytest.mark.parametrize("place", ["", "mine/sets/"])
def test_a_task_runs_as_the_command_says(place: str, folder: Path, capsys: Any, undescribed: None) -> None:
    lm_eval = pytest.importorskip("lm_eval")
    from lm_eval.tasks import TaskManager

    lm_eval_rag.register()
    assert cli.main(["new", "task", "moss", *(["--out", place] if place else [])]) == 0
    said = capsys.readouterr().out
    assert f"--include_path {place}moss --tasks moss" in said and f"corpus={place}moss/corpus.jsonl" in said
    (folder / "my.py").write_text(WITHOUT_GENERATOR, encoding="utf-8")
    results = lm_eval.simple_evaluate(
        model="rag",
        model_args=f"method=my.py:last_word,corpus={place}moss/corpus.jsonl,journal=off",
        tasks=["moss"],
        task_manager=TaskManager(include_path=f"{place}moss", include_defaults=False),
        bootstrap_iters=0,
    )
    scores = results["results"]["moss"]
    assert scores["em,none"] == pytest.approx(1 / 3)  # "born in Vale", but "capital of Norn" and "by Ada Moss"
    assert scores["recall@1,none"] == 1.0
    assert results["n-samples"]["moss"]["effective"] == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["metod", "x"], "Did you mean 'method'"),
        (["method", "My-Method"], "small letters"),
        (["method", "ircot"], "There is a method 'ircot' already"),
        (["task", "ruleqa_i"], "There is a task 'ruleqa_i' already"),
        (["task", "9lives"], "beginning with a letter"),
    ],
)
def test_bad_input(arguments: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not list(folder.iterdir())


def test_nothing_is_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "test_ponder.py").write_text("mine", encoding="utf-8")
    assert cli.main(["new", "method", "ponder"]) == 2
    assert "There is test_ponder.py already" in capsys.readouterr().err
    assert (folder / "test_ponder.py").read_text(encoding="utf-8") == "mine" and not (folder / "ponder.py").exists()
