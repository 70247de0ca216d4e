"""Judges that are no judges: what they agree with by themselves stands in RESULTS beside the real ones."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from lm_eval_rag.harness.scoring.judge import Item
from lm_eval_rag.harness.scoring.judge.agreement import check
from lm_eval_rag.harness.scoring.judge.labels import read_labels
from lm_eval_rag.harness.scoring.judge.panel import Panel
from lm_eval_rag.harness.scoring.truncate import words_cut

ROOT = Path(__file__).parents[2]
PAIRS = ROOT / "tests" / "harness" / "scoring" / "judge_pairs_unseen2.jsonl"


@pytest.fixture(scope="module")
def trivial() -> ModuleType:
    spec = importlib.util.spec_from_file_location("trivial_judges", ROOT / "scripts" / "trivial_judges.py")
    assert spec and spec.loader
    module = sys.modules["trivial_judges"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("prediction", "accepted"),
    [
        ("Ada Moss", (1, 1, 1)),
        ("It was Ada Moss.", (1, 0, 1)),
        ("Not Ada Moss, but Bo Reed", (1, 0, 1)),
        ("Bo", (1, 0, 0)),
    ],
)
def test_what_each_accepts(trivial: ModuleType, prediction: str, accepted: tuple[int, int, int]) -> None:
    item = Item("Who?", ("Ada Moss",), prediction)
    assert tuple(judge(item) for judge in trivial.JUDGES.values()) == accepted


def test_the_figures_stand_in_the_results(trivial: ModuleType) -> None:
    labelled = read_labels(PAIRS)
    results = (ROOT / "RESULTS.md").read_text(encoding="utf-8")
    for name in trivial.JUDGES:
        found = check(labelled, Panel((trivial.TrivialJudge(name),), words_cut())).groups["all"]
        assert found.agreement is not None and found.kappa is not None
        share = f"{100 * found.agreement:.1f} [{100 * found.low:.1f}, {100 * found.high:.1f}]"
        assert f"| {name} | {found.n} | {share} | {found.kappa:.3f} |" in results.replace("`", "")
