"""Running a table on the embedded set: resuming after a kill, draws, limits, training, and what a row fails by."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.data.corpus import open_corpus
from lm_eval_rag.harness.report.report_cli import report_main
from lm_eval_rag.harness.report.rescore import rescore
from lm_eval_rag.harness.report.run_files import read_runs
from lm_eval_rag.harness.reproduce.banks import parts, restricted
from lm_eval_rag.harness.reproduce.matrix import Train
from lm_eval_rag.harness.reproduce.reproduce_cli import reproduce_main
from lm_eval_rag.harness.reproduce.running import Runner
from lm_eval_rag.harness.reproduce.training import Trainer
from lm_eval_rag.tasks.ruleqa_demo.build import build

PUBLISHED = Path(__file__).parents[3] / "leaderboards" / "published"
TABLE = """
title = "On the embedded set"
tasks = ["ruleqa_demo"]
metrics = ["recall@10", "em"]

[[row]]
name = "drawn"
model = "standard_rag"
arguments = { generator = "dummy", k = 10 }
sample = { ruleqa_demo = 25 }

[[row]]
name = "vote"
model = "rule_vote"

[[row]]
name = "random"
model = "rule_vote"
arguments = { rules = "random" }

[[row]]
name = "large"
model = "rule_vote"
arguments = { k = 20 }
needs = "a GPU"

[[claim]]
text = "Selected rules answer better than random ones"
better = ["vote"]
worse = ["random"]
metrics = ["em"]
"""


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "made_up.toml").write_text(TABLE, encoding="utf-8")
    return folder


@pytest.fixture
def reproduce(tables: Path, tmp_path: Path) -> Callable[..., int]:
    def run(*argv: str) -> int:
        given = ["made_up", "--out", str(tmp_path / "out"), *argv]
        return reproduce_main(given, tables=tables, published=PUBLISHED, build=lambda task: build())

    return run


@pytest.fixture
def evaluated(undescribed: None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the rows that were evaluated, in order."""
    names: list[str] = []
    stock = Runner._evaluate

    def evaluate(self: Runner, job: Any, *rest: Any) -> None:
        names.append(job.row.name)
        stock(self, job, *rest)

    monkeypatch.setattr(Runner, "_evaluate", evaluate)
    return names


def test_a_table_is_run_and_its_page_written(
    reproduce: Callable[..., int], evaluated: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce() == 0
    assert evaluated == ["drawn", "vote", "random"]  # and not what needs a GPU
    out = tmp_path / "out"
    told = json.loads((out / "page.json").read_text(encoding="utf-8"))["page"]
    lines = {line["name"]: line for line in told["lines"]}
    assert (
        lines["drawn"]["cells"]["ruleqa_demo"]["questions"] == 25 and "em" not in lines["drawn"]["cells"]["ruleqa_demo"]
    )
    assert lines["large"]["status"] == "not run: needs a GPU"
    ((_, (tested,)),) = told["claims"]
    assert tested["comparisons"][0]["verdict"] == "holds"
    (run,) = read_runs([out / "runs" / "vote"])
    assert rescore(run).agrees
    assert lines["vote"]["cells"]["ruleqa_demo"]["scores"]["em"]["ours"]["mean"] == pytest.approx(run.given["em,none"])
    assert "page.html" in capsys.readouterr().out
    assert report_main([str(out / "runs" / "vote"), "--errors"]) == 0
    wrong = sum(value == 0 for value in run.scores["em"].values())
    assert f"ruleqa_demo    rule_vote  {wrong}" in capsys.readouterr().out
    assert reproduce() == 0 and len(evaluated) == 3  # nothing is run twice
    assert reproduce("--only", "large") == 0 and evaluated[3:] == ["large"]


def test_a_killed_table_goes_on_where_it_was(
    reproduce: Callable[..., int], evaluated: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stock = Runner._evaluate

    def killed(self: Runner, job: Any, model: Any, given: Any, folder: Path) -> None:
        stock(self, job, model, given, folder)
        if job.row.name == "vote":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Runner, "_evaluate", killed)
        reproduce("--only", "drawn", "vote")
    assert evaluated == ["drawn", "vote"]
    assert reproduce("--only", "drawn", "vote") == 0
    assert evaluated[2:] == ["vote"]  # begun anew, since it was not finished
    (done,) = (tmp_path / "out" / "runs" / "vote").glob("*/done.json")
    counts = json.loads(done.read_text(encoding="utf-8"))["counts"]
    served = [call for call in ("Retrieve",) if counts[call]]
    assert served and counts["journalled"] == counts["Retrieve"]  # and no finished call was made again


def test_other_arguments_or_data_are_another_run(
    reproduce: Callable[..., int], evaluated: list[str], tables: Path, tmp_path: Path
) -> None:
    reproduce("--only", "vote")
    reproduce("--only", "vote", "--limit", "5")
    path = tables / "made_up.toml"
    path.write_text(TABLE.replace('model = "rule_vote"\n\n', 'model = "rule_vote"\narguments = { k = 4 }\n\n', 1))
    reproduce("--only", "vote")
    assert evaluated == ["vote"] * 3
    for done in (tmp_path / "out").rglob("done.json"):
        told = json.loads(done.read_text(encoding="utf-8"))
        done.write_text(json.dumps({**told, "fingerprint": "of other weights"}), encoding="utf-8")
    reproduce("--only", "vote")
    assert evaluated == ["vote"] * 4


def counts(out: Path, row: str) -> dict[str, int]:
    (done,) = (out / "runs" / row).glob("*/done.json")
    found: dict[str, int] = json.loads(done.read_text(encoding="utf-8"))["counts"]
    return found


SHARING = """
tasks = ["ruleqa_demo"]
share_calls = true

[[row]]
name = "first"
model = "standard_rag"
arguments = { generator = "dummy", k = 10 }

[[row]]
name = "shorter"
model = "standard_rag"
arguments = { generator = "dummy", k = 10, max_prompt_tokens = 90 }
"""


@pytest.mark.parametrize("shared", ["true", "false"])
def test_rows_take_over_each_others_calls_where_the_table_says_so(
    shared: str,
    reproduce: Callable[..., int],
    evaluated: list[str],
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    (tables / "made_up.toml").write_text(SHARING.replace("true", shared), encoding="utf-8")
    assert reproduce("--limit", "5") == 0
    first, shorter = (counts(tmp_path / "out", row) for row in ("first", "shorter"))
    assert first["journalled"] == 0 and first["Retrieve"] == first["Generate"] == 5
    assert shorter["journalled"] == (5 if shared == "true" else 0)  # its lists, but not its prompts
    assert (tmp_path / "out" / "calls.sqlite").exists() == (shared == "true")


def test_a_row_that_is_a_chat_says_so_to_its_model(
    reproduce: Callable[..., int], tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chats = []

    def evaluate(self: Runner, job: Any, model: Any, *rest: Any) -> None:
        chats.append(model.generator.chat)
        raise UserError("enough")

    monkeypatch.setattr(Runner, "_evaluate", evaluate)
    (tables / "made_up.toml").write_text(
        TABLE.replace('model = "standard_rag"\n', 'model = "standard_rag"\nchat = true\n', 1), encoding="utf-8"
    )
    assert reproduce() == 1
    assert chats == [True, False, False]


def test_a_dry_run_runs_nothing(
    reproduce: Callable[..., int], evaluated: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce("--dry-run", "--only", "*") == 0
    told = capsys.readouterr().out
    assert "# large: needs a GPU" in told and "lm_eval run --model rule_vote --tasks ruleqa_demo" in told
    assert not evaluated and not (tmp_path / "out").exists()


def test_what_a_row_fails_by_is_told_and_the_others_go_on(
    reproduce: Callable[..., int], evaluated: list[str], tables: Path, tmp_path: Path
) -> None:
    broken = TABLE.replace(
        'arguments = { rules = "random" }', 'arguments = { retriever = "static", retriever_adapter = "x/y" }'
    )
    (tables / "made_up.toml").write_text(broken, encoding="utf-8")
    assert reproduce("--only", "random", "vote", "--limit", "5") == 1
    assert evaluated == ["vote", "random"]
    assert "failed: The query tower" in (tmp_path / "out" / "page.txt").read_text(encoding="utf-8").replace("\n  ", " ")


def test_unknown_tables_and_rows_are_named(reproduce: Callable[..., int], tables: Path) -> None:
    with pytest.raises(UserError, match=r"Unknown row 'votes'\. Did you mean 'vote'"):
        reproduce("--only", "votes")
    with pytest.raises(UserError, match=r"Unknown table 'made_down'\. Did you mean 'made_up'"):
        reproduce_main(["made_down"], tables=tables, published=PUBLISHED, build=lambda task: build())
    with pytest.raises(UserError, match="--limit=0"):
        reproduce("--limit", "0")


def test_a_training_step_is_run_once_and_its_rules_are_a_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    monkeypatch.setattr("lm_eval_rag.harness.reproduce.training.cache_dir", lambda: tmp_path)
    trainer = Trainer(lambda task: build())
    options = (("dev", 10), ("epochs", 1), ("eval_every", 1), ("hard", 0), ("task", "ruleqa_demo"))
    first = trainer.checkpoint(Train("retriever", options))
    when = (first / "rulerag.json").stat().st_mtime_ns
    assert trainer.checkpoint(Train("retriever", options)) == first and trainer.made(Train("retriever", options))
    assert (first / "rulerag.json").stat().st_mtime_ns == when
    part = trainer.checkpoint(Train("retriever", options, bank="1/2"))
    assert part != first
    assert json.loads((part / "rulerag.json").read_text())["corpora"] == [f"{build()}-rules-1of2"]


def test_parts_of_the_rule_bank_are_disjoint_and_make_it_up() -> None:
    whole = open_corpus(build()).rules()
    dealt = parts(whole, 3)
    made = [open_corpus(restricted(build(), f"{i}/3")).rules() for i in (1, 2, 3)]
    assert sorted(rule.text for one in made for rule in one) == sorted(rule.text for rule in whole)
    for i, one in enumerate(made):
        assert {dealt[rule.head] for rule in one} == {f"{i + 1}/3"}
    largest = max(sum(rule.head == head for rule in whole) for head in dealt)
    assert max(map(len, made)) - min(map(len, made)) <= largest
    for wrong in ("4/3", "0/3", "x", "1"):
        with pytest.raises(UserError, match="is not allowed"):
            restricted(build(), wrong)
