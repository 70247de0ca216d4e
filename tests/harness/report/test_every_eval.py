"""Every Eval Ever 0.3.0: every field that its schema and its checks ask of a record and of its lines."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest

from lm_eval_rag.cli import main
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.report.every_eval import converted
from lm_eval_rag.harness.report.run_files import TaskRun, read_runs
from lm_eval_rag.harness.scoring import METRICS

Make = Callable[..., Path]
OF_RECORD = {"schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "model_info", "eval_library"}
OF_LINE = {"schema_version", "evaluation_id", "model_id", "evaluation_name", "sample_id", "interaction_type", "input"}
OF_LINE |= {"output", "answer_attribution", "evaluation"}
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
BOUNDED = {"crag_score": (-1.0, 1.0), "crag_human": (-1.0, 1.0), "pooled_documents": (0.0, "Infinity")}


@pytest.fixture
def run(make_run: Make, tmp_path: Path) -> TaskRun:
    make_run(tmp_path / "run")
    (run,) = read_runs([tmp_path / "run"])
    return of_method(run)


def of_method(run: TaskRun) -> TaskRun:
    """The run as one of a method of ours: the adapter of these tests leaves no note of itself."""
    note = {
        "method": "rulerag_icl",
        "generator": ["tiny", {}],
        "retriever": ["bm25", {}],
        "counts": {"Retrieve": 1},
        "parameters": {"k": 10},
        "fingerprint": "f" * 64,
        "corpus": None,
    }
    return replace(run, results={**run.results, "config": {**run.results["config"], "rag": note}})


def written(run: TaskRun, out: Path) -> tuple[Path, Any, list[Any]]:
    path = converted(run, "an organization").write(out)
    lines = path.with_name(f"{path.stem}_samples.jsonl").read_text(encoding="utf-8").splitlines()
    return path, json.loads(path.read_text(encoding="utf-8")), [json.loads(line) for line in lines]


def texts(values: dict[str, Any]) -> bool:
    """Details are texts alone."""
    return all(isinstance(value, str) for value in values.values())


def test_the_record_has_what_the_schema_asks_for(run: TaskRun, tmp_path: Path) -> None:
    path, record, lines = written(run, tmp_path / "data")
    assert set(record) >= OF_RECORD and record["schema_version"] == "0.3.0"
    assert record["retrieved_timestamp"].isdigit() and record["evaluation_timestamp"].isdigit()
    source = record["source_metadata"]
    assert source["source_type"] == "evaluation_run" and source["source_organization_name"] == "an organization"
    assert source["evaluator_relationship"] == "first_party"
    assert record["eval_library"]["name"] == "lm_eval" and record["eval_library"]["version"]
    model = record["model_info"]
    method = run.results["config"]["rag"]["method"]
    assert model["name"] == model["id"] == f"lm-eval-rag/{method}" and model["developer"] == "lm-eval-rag"
    assert model["additional_details"]["deployment_type"] in ("self_deployed", "externally_managed", "unknown")
    assert model["additional_details"]["model_availability"] in ("open_weights", "closed_weights", "unknown")
    assert texts(model["additional_details"]) and texts(record["eval_library"]["additional_details"])
    assert path.relative_to(tmp_path / "data").parts[:3] == (run.task, "lm-eval-rag", method)
    detail = record["detailed_evaluation_results"]
    assert re.fullmatch(rf"data/[^/]+/[^/]+/[^/]+/{UUID}_samples\.jsonl", detail["file_path"])
    assert detail["file_path"] == "data/" + str(path.relative_to(tmp_path / "data")).replace(".json", "_samples.jsonl")
    samples = path.with_name(f"{path.stem}_samples.jsonl").read_bytes()
    assert detail["checksum"] == hashlib.sha256(samples).hexdigest() and detail["hash_algorithm"] == "sha256"
    assert detail["total_rows"] == len(lines) and detail["format"] == "jsonl"


def test_every_metric_has_its_range_and_the_mean_of_the_questions(run: TaskRun, tmp_path: Path) -> None:
    _, record, _ = written(run, tmp_path)
    results = {one["metric_config"]["metric_name"]: one for one in record["evaluation_results"]}
    assert set(results) == set(run.scores)
    assert len({one["evaluation_result_id"] for one in results.values()}) == len(results)
    for name, one in results.items():
        metric, details, values = one["metric_config"], one["score_details"], list(run.scores[name].values())
        bounds = BOUNDED.get(name, (0.0, 1.0))
        assert (metric["min_score"], metric["max_score"], metric["score_type"]) == (*bounds, "continuous")
        assert metric["lower_is_better"] is not METRICS[name].higher_is_better
        assert details["score"] == pytest.approx(sum(values) / len(values))
        assert bounds[0] <= details["score"] <= (math.inf if bounds[1] == "Infinity" else bounds[1])
        uncertainty = details["uncertainty"]
        assert uncertainty["num_samples"] == len(values)
        assert uncertainty["standard_error"]["value"] == pytest.approx(stdev(values) / math.sqrt(len(values)))
        assert one["evaluation_name"] == run.task
        assert one["source_data"]["dataset_name"] == run.task and one["source_data"]["source_type"] == "other"


def test_every_line_keeps_tokens_and_retrieved_ids(run: TaskRun, tmp_path: Path) -> None:
    _, record, lines = written(run, tmp_path)
    assert {line["evaluation_id"] for line in lines} == {record["evaluation_id"]}
    assert {line["model_id"] for line in lines} == {record["model_info"]["id"]}
    assert {line["evaluation_result_id"] for line in lines} <= {
        one["evaluation_result_id"] for one in record["evaluation_results"]
    }
    assert [line["sample_id"] for line in lines] == list(run.questions)
    for line in lines:
        assert set(line) >= OF_LINE and line["interaction_type"] == "single_turn"
        sample = run.questions[line["sample_id"]]
        rag = sample["doc"]["_rag"]
        assert line["input"]["raw"] == sample["doc"]["query"] and line["input"]["reference"] == sample["doc"]["answers"]
        (answer,) = line["answer_attribution"]
        assert answer["extracted_value"] == sample["filtered_resps"][0] and answer["is_terminal"]
        assert line["evaluation"] == {"score": sample["em"], "is_correct": sample["em"] == 1.0}
        read, wrote = rag["prompt_tokens"], rag["completion_tokens"]
        assert line["token_usage"] == {"input_tokens": read, "output_tokens": wrote, "total_tokens": read + wrote}
        assert texts(line["metadata"])
        assert json.loads(line["metadata"]["retrieved"]) == [one["id"] for one in rag["passages"]]
        assert json.loads(line["metadata"]["scores"])["em"] == sample["em"]


def test_unscored_questions_have_no_line(make_run: Make, tmp_path: Path) -> None:
    make_run(tmp_path / "run", n=200, failing=0.1)
    (run,) = read_runs([tmp_path / "run"])
    _, record, lines = written(of_method(run), tmp_path)
    assert 0 < len(lines) < len(run.questions) and len(lines) == len(run.scores["em"])
    assert record["detailed_evaluation_results"]["total_rows"] == len(lines)


def test_a_stock_model_keeps_its_name(make_run: Make, tmp_path: Path) -> None:
    make_run(tmp_path / "run", stock=True)
    (run,) = read_runs([tmp_path / "run"])
    _, record, lines = written(run, tmp_path)
    assert record["model_info"]["developer"] and "/" in record["model_info"]["id"]
    assert not record["model_info"]["id"].startswith("lm-eval-rag/")
    assert lines[0]["token_usage"] is None and "retrieved" not in lines[0]["metadata"]


def test_the_command_writes_the_same_bytes_again(run: TaskRun, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "data"
    arguments = ["every-eval", str(tmp_path / "run"), "--out", str(out), "--organization", "o"]
    contents = []
    for _ in range(2):
        assert main(arguments) == 0
        contents.append({path: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()})
    assert contents[0] == contents[1] and len(contents[0]) == 2
    assert str(next(iter(contents[0]))) in capsys.readouterr().out


def test_a_task_of_others_is_refused(run: TaskRun) -> None:
    other = replace(run, samples=tuple({**line, "metrics": ["bleu"], "bleu": 0.5} for line in run.samples))
    with pytest.raises(UserError, match="none of our metrics"):
        converted(other, "o")
