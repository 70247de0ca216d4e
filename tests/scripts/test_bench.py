"""``make bench``: its scripts exist, and its table sets measures beside their goals."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import bench  # noqa: E402
from measures import Measure, ratios, read, write  # noqa: E402

READING = Measure("search, 100,000 x 384 float16, 100 queries", "x the time of reading the files", [9.0, 1.0, 2.0])


def test_every_script_is_there_and_writes_what_the_table_reads() -> None:
    for script, *_ in bench.FULL.values():
        text = (ROOT / "scripts" / script).read_text(encoding="utf-8")
        assert "--json" in text and "write(" in text, script
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.findall(r"scripts/bench\.py (.+)", made) == ["--out bench", "--out bench --quick"]
    assert bench.QUICK.items() <= bench.FULL.items()


@pytest.mark.parametrize("goal", bench.GOALS, ids=lambda goal: f"{goal.name}, {goal.unit}")
def test_every_goal_is_of_a_measure_that_some_script_names(goal: bench.Goal) -> None:
    assert (goal.most is None) != (goal.least is None)
    scripts = {script for script, *_ in bench.FULL.values()}
    text = "\n".join((ROOT / "scripts" / script).read_text(encoding="utf-8") for script in scripts)
    assert re.split("[ ,]", goal.name)[0] in text and f'"{goal.unit}"' in text


def test_a_goal_is_met_by_the_median(tmp_path: Path) -> None:
    met = Measure("rules of lengths 1, 2, 3, ruleqa_i, temporal", "CPU s", [61.0, 59.0, 58.0])
    without = Measure("a new measure", "CPU s", [1.0])
    slow = Measure("documents encoded, ours, bfloat16", "x sentence-transformers' rate", [1.8, 1.5, 1.69])
    write(tmp_path / "all.json", [READING, met, without, slow], {"rounds": 3})
    rows = bench.table(read(tmp_path / "all.json")).splitlines()[2:]
    assert rows == [
        f"| {READING.name} | {READING.unit} | 1 | 2 | 9 | at most 1.5 | missed: {bench.PRODUCTS} |",
        f"| {met.name} | CPU s | 58 | 59 | 61 | at most 60 | met |",
        "| a new measure | CPU s | 1 | 1 | 1 |  |  |",
        f"| {slow.name} | {slow.unit} | 1.5 | 1.69 | 1.8 | at least 1.7 | missed: bfloat16 of the CPU |",
    ]
    assert read(tmp_path / "missing.json") == []


def test_ratios_are_of_the_same_round() -> None:
    assert ratios([2.0, 9.0], [1.0, 3.0]) == [2.0, 3.0]
    with pytest.raises(ValueError):
        ratios([1.0], [1.0, 2.0])


def test_a_benchmark_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "breaks.py").write_text("raise SystemExit(3)")
    measures = '{"measures": [{"name": "n", "unit": "u", "values": [1]}]}'
    good = f"import sys; open(sys.argv[-1], 'w').write({measures!r})"
    (tmp_path / "scripts" / "works.py").write_text(good)
    monkeypatch.setattr(bench, "SCRIPTS", tmp_path / "scripts")
    monkeypatch.setattr(bench, "QUICK", {"one": ("breaks.py",), "two": ("works.py",)})
    monkeypatch.setattr(sys, "argv", ["bench.py", "--quick", "--out", str(tmp_path / "out")])
    assert bench.main() == 1
    text = capsys.readouterr().out
    assert "| n | u | 1 | 1 | 1 |  |  |" in text and "failed, so without lines in the table: one" in text
