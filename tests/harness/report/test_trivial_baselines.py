"""Trivial baselines come first in a report, and what others gain over the best of them is a sentence; ``--where``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.report.content import build
from lm_eval_rag.harness.report.document import document
from lm_eval_rag.harness.report.filtering import only_where
from lm_eval_rag.harness.report.report_cli import report_main
from lm_eval_rag.harness.report.run_files import read_runs
from lm_eval_rag.harness.report.trivial_baselines import TRIVIAL_BASELINES
from lm_eval_rag.leaderboards.board.families import FAMILIES, TRIVIAL

Make = Callable[..., Path]
HOW = "No trivial baseline is among these runs"


@pytest.fixture(scope="module")
def runs(make_run: Make, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A method, and after it two trivial baselines, on the same 120 questions."""
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "a", model="rulerag_icl", n=120, right=0.6, seed=2)
    make_run(folder / "b", model="copy_vote", n=120, right=0.0, seed=5)
    make_run(folder / "c", model="mode_of_subject", n=120, right=0.3, seed=1)
    return folder


def test_they_are_the_first_rows_of_every_table(runs: Path) -> None:
    whole = document(build(read_runs([runs])))
    (section,) = whole.sections
    by_run = [grid for grid in section.grids if grid.head[0] == "run"]
    assert len(by_run) >= 3
    for grid in by_run:
        rows = [row[0] for row in grid.rows]
        assert rows == [name for name in ("copy_vote", "mode_of_subject", "rulerag_icl") if name in rows], grid.title
    assert not any(HOW in text for text in section.missing)


def test_the_gain_over_the_best_is_said(runs: Path) -> None:
    reports = build(read_runs([runs]))
    (said,) = [text for text in document(reports).sections[0].verdicts if "best trivial baseline" in text]
    ems = {run.run: run.scores["em"].mean for run in reports[0].runs}
    gain = 100 * (ems["rulerag_icl"] - ems["mode_of_subject"])
    assert ems["mode_of_subject"] > ems["copy_vote"] and gain > 15
    assert said.startswith(f"em: the best trivial baseline is mode_of_subject, {100 * ems['mode_of_subject']:.1f} [")
    assert f". rulerag_icl +{gain:.1f} [" in said and said.endswith("], significant.")


def test_without_one_the_command_is_given(runs: Path, make_run: Make, tmp_path: Path) -> None:
    (section,) = document(build(read_runs([runs / "a"]))).sections
    (text,) = [one for one in section.missing if HOW in one]
    assert "lm_eval --tasks ruleqa_i --model link_vote " in text and all(name in text for name in TRIVIAL_BASELINES)
    make_run(tmp_path, model="hf", n=20, right=0.3, stock=True, task="reasoning_demo")
    assert not any(HOW in one for one in document(build(read_runs([tmp_path]))).sections[0].missing)


def test_the_board_has_the_same_ones() -> None:
    assert FAMILIES[TRIVIAL] == TRIVIAL_BASELINES


def test_where_keeps_the_questions_of_one_value(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file,) = (runs / "a").rglob("samples_*.jsonl")
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    wanted = [line["em"] for line in lines if line["doc"]["slice"] == "rule_required"]
    assert 0 < len(wanted) < len(lines)
    out = tmp_path / "report.json"
    assert report_main([str(runs), "--where", "slice=rule_required", "--json", str(out)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"ruleqa_i (version 1.0), {len(wanted)} questions where slice=rule_required" in text
    content = json.loads(out.read_text(encoding="utf-8"))
    (task,) = content["tasks"]
    own = next(run for run in task["runs"] if run["run"] == "rulerag_icl")
    assert own["questions"] == len(wanted) and own["scores"]["em"]["mean"] == pytest.approx(np.mean(wanted))
    assert {one["difference"]["interval"]["n"] for one in task["comparisons"]} == {len(wanted)}
    assert content["facts"]["Questions"] == "slice=rule_required"


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("slice", "give COLUMN=VALUE, such as slice=rule_required"),
        ("slices=direct", "Unknown column of the questions 'slices'. Did you mean 'slice'?"),
        ("slice=rule_requird", "Unknown value of slice 'rule_requird'. Did you mean 'rule_required'?"),
    ],
)
def test_where_refuses_what_no_question_has(runs: Path, condition: str, says: str) -> None:
    with pytest.raises(UserError, match=f"(?s).*{says.replace('?', '[?]')}"):
        only_where(read_runs([runs]), condition)
