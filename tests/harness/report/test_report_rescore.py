"""``lm-eval-rag rescore``: it agrees with what lm_eval wrote, to the digit, and notices every kind of tampering."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.report.groups import rescore_groups
from lm_eval_rag.harness.report.rescore import mean, rescore, standard_error
from lm_eval_rag.harness.report.rescore_cli import rescore_main
from lm_eval_rag.harness.report.run_files import read_runs

Make = Callable[..., Path]
Line = dict[str, Any]


def edit_lines(folder: Path, edit: Callable[[list[Line]], None]) -> None:
    (file,) = folder.rglob("samples_*.jsonl")
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    edit(lines)
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")


def edit_results(folder: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    (file,) = folder.rglob("results_*.json")
    results = json.loads(file.read_text(encoding="utf-8"))
    edit(results)
    file.write_text(json.dumps(results), encoding="utf-8")


@pytest.mark.parametrize(
    "options",
    [
        {"n": 200, "failing": 0.1},
        {"stock": True},
        {"n": 1},
        {"num_fewshot": 3},
        {"bootstrap_iters": 0},
        {"limit": 10},
        {"samples": {"ruleqa_i": [3, 5, 8]}},
        {"predict_only": False, "gen_kwargs": {"temperature": 0.5}},
    ],
    ids=str,
)
def test_agrees_to_the_digit(make_run: Make, tmp_path: Path, options: dict[str, Any], capsys: Any) -> None:
    make_run(tmp_path, **options)
    (run,) = read_runs([tmp_path])
    found = rescore(run)
    assert found.agrees, found
    scored = [check for check in found.checks if check.reported == check.recomputed and check.reported is not None]
    assert len(scored) == len(found.checks) >= 6
    assert rescore_main([str(tmp_path)]) == 0
    assert "all scores agree" in capsys.readouterr().out


def without_em_contains(folder: Path) -> None:
    """A run from before the metric was there."""

    def edit(line: Line) -> None:
        line.pop("em_contains", None)
        line["metrics"] = [name for name in line["metrics"] if name != "em_contains"]

    edit_lines(folder, lambda lines: [edit(line) for line in lines] and None)


def test_a_metric_that_came_after_the_run_is_no_fault(make_run: Make, tmp_path: Path) -> None:
    """Its own list of metrics says which it was scored by; a metric on that list may not be missing."""

    def drop(results: dict[str, Any]) -> None:
        results["results"]["ruleqa_i"] = {
            key: value for key, value in results["results"]["ruleqa_i"].items() if not key.startswith("em_contains")
        }

    def unlist(results: dict[str, Any]) -> None:
        config = results["configs"]["ruleqa_i"]
        config["metric_list"] = [entry for entry in config["metric_list"] if entry["metric"] != "em_contains"]

    make_run(tmp_path, n=20)
    without_em_contains(tmp_path)
    edit_results(tmp_path, drop)
    (run,) = read_runs([tmp_path])
    assert not rescore(run).agrees and any("em_contains" in line for line in rescore(run).lines)
    edit_results(tmp_path, unlist)
    (run,) = read_runs([tmp_path])
    found = rescore(run)
    assert found.agrees and {"em,none", "token_f1,none"} <= {check.name for check in found.checks}
    assert not [check for check in found.checks if "em_contains" in check.name]


def test_formulas_are_lm_evals() -> None:
    from lm_eval.api.metrics import mean as their_mean
    from lm_eval.api.metrics import mean_stderr

    values = [0.1 * (i % 7) - 0.3 for i in range(50)]
    assert mean(values) == their_mean(values)
    assert standard_error(values) == mean_stderr(values)


def first_wrong(lines: list[Line]) -> Line:
    return next(line for line in lines if line.get("em") == 0.0)


def better_answer(lines: list[Line]) -> None:
    line = first_wrong(lines)
    line["filtered_resps"][0] = line["doc"]["answers"][0]


def better_score(lines: list[Line]) -> None:
    first_wrong(lines)["em"] = 1.0


def easier_gold(lines: list[Line]) -> None:
    line = first_wrong(lines)
    line["doc"]["answers"].append(line["filtered_resps"][0] or "x")


def other_passages(lines: list[Line]) -> None:
    line = next(line for line in lines if line["recall@1"] == 0.0)
    line["doc"]["_rag"]["passages"][0]["object"] = line["doc"]["answers"][0]


def fail_wrong_ones(lines: list[Line]) -> None:
    first_wrong(lines)["doc"]["_rag"]["failure"] = "time-out"


def hide_a_score(lines: list[Line]) -> None:
    line = first_wrong(lines)
    line["metrics"].remove("em")
    del line["em"]


def swap(lines: list[Line]) -> None:
    lines[0], lines[1] = lines[1], lines[0]


def other_question(lines: list[Line]) -> None:
    lines[0]["doc"]["query"] += "?"


def other_prompt(lines: list[Line]) -> None:
    lines[0]["arguments"]["gen_args_0"]["arg_0"] += "?"


def other_target(lines: list[Line]) -> None:
    lines[0]["target"] += "?"


def added_line(lines: list[Line]) -> None:
    lines.append(json.loads(json.dumps(lines[0])))
    lines[-1]["doc"]["id"] = "q9999"


def no_answers(lines: list[Line]) -> None:
    del lines[0]["doc"]["answers"]


TAMPERING = [
    (better_answer, "em is reported as 0.0, recomputed 1.0"),
    (better_score, "em is reported as 1.0, recomputed 0.0"),
    (easier_gold, "doc_hash"),
    (other_passages, "recall@1 is reported as 0.0, recomputed 1.0"),
    (fail_wrong_ones, "recomputed None"),
    (hide_a_score, "em is reported as None, recomputed 0.0"),
    (swap, "task_hashes"),
    (other_question, "doc_hash"),
    (other_prompt, "prompt_hash"),
    (other_target, "target_hash"),
    (added_line, "task_hashes"),
    (no_answers, "cannot be scored"),
]


@pytest.mark.parametrize(("tamper", "says"), TAMPERING, ids=lambda value: getattr(value, "__name__", ""))
def test_tampered_samples(
    make_run: Make, tmp_path: Path, tamper: Callable[[list[Line]], None], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path, n=30)
    edit_lines(tmp_path, tamper)
    assert rescore_main([str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert says in out and "scores DIFFER from the samples" in out


@pytest.mark.parametrize(
    "change",
    [
        {"em,none": 0.99},
        {"em_stderr,none": 1e-6},
        {"recall@10,none": 0.9999999},
        {"acc_lm,none": 0.8},
        {"recall@50,none": 0.8},
    ],
    ids=str,
)
def test_tampered_results(make_run: Make, tmp_path: Path, change: dict[str, float], capsys: Any) -> None:
    make_run(tmp_path, n=30)
    edit_results(tmp_path, lambda results: results["results"]["ruleqa_i"].update(change))
    assert rescore_main([str(tmp_path)]) == 1
    out = capsys.readouterr().out
    (name,) = (key.replace("_stderr", "") for key in change)
    assert any(line.startswith(name) and line.endswith("DIFFERS") for line in out.splitlines())


def test_dropped_score_in_results(make_run: Make, tmp_path: Path) -> None:
    make_run(tmp_path, n=30)
    edit_results(tmp_path, lambda results: results["results"]["ruleqa_i"].pop("crag_hallucination,none"))
    assert rescore_main([str(tmp_path)]) == 1


def test_change_in_the_last_bit_only_is_the_same(make_run: Make, tmp_path: Path) -> None:
    """Python 3.12 adds floats with compensation, 3.11 does not."""
    make_run(tmp_path, n=30)

    def nudge(results: dict[str, Any]) -> None:
        results["results"]["ruleqa_i"]["token_f1,none"] *= 1 + 3e-16

    edit_results(tmp_path, nudge)
    assert rescore_main([str(tmp_path)]) == 0


def test_tasks_of_others_are_left_alone(make_run: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path, n=8)

    def rename(results: dict[str, Any]) -> None:
        results["results"]["ruleqa_i"] = {"exact_match,none": 0.5}

    edit_results(tmp_path, rename)
    assert rescore_main([str(tmp_path)]) == 2
    assert "contain none of our scores" in capsys.readouterr().err


def test_nothing_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rescore_main([str(tmp_path)]) == 2
    assert "--log_samples" in capsys.readouterr().err


@pytest.mark.parametrize("weighted", [True, False])
def test_groups(weighted: bool) -> None:
    """Against lm_eval's own aggregation, then with a changed number."""
    from lm_eval.api.metrics import aggregate_subtask_metrics, pooled_sample_stderr, unweighted_mean_stderr

    means, errors, sizes = [0.2, 0.5, 0.35], [0.01, 0.03, 0.02], [100, 40, 77]
    tasks = {
        f"t{i}": {"em,none": m, "em_stderr,none": e, "sample_len": n}
        for i, (m, e, n) in enumerate(zip(means, errors, sizes, strict=True))
    }
    pooled = pooled_sample_stderr(errors, sizes) if weighted else unweighted_mean_stderr(errors)
    given = {"em,none": aggregate_subtask_metrics(means, sizes, weighted), "em_stderr,none": float(pooled)}
    members = {"all": ["some", "t2"], "some": ["t0", "t1"]}
    results = {"results": tasks, "groups": {"all": given}, "group_subtasks": members}
    (found,) = rescore_groups("run", results)
    assert found.agrees and len(found.checks) == 2
    for key in given:
        changed = {**results, "groups": {"all": {**given, key: given[key] + 1e-6}}}
        assert not next(iter(rescore_groups("run", changed))).agrees
