"""Runs in the form of Every Eval Ever, schema 0.3.0 (evaleval/every_eval_ever): a record per task, a line per question.

Its own converter reads results of lm_eval too, but knows the range of a few metrics only, and takes neither tokens nor
passages from samples. Here every metric has its range, and each line its tokens, seconds and the ids of its passages.

Departures from its advice: the model is ``lm-eval-rag/METHOD``, since a method is more than its generator, which is
named in the details. There is one line per question and not one per metric: with the score of the task's first metric,
and all scores in its metadata.
"""

from __future__ import annotations

import hashlib
import json
import math
import statistics
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.report.run_files import TaskRun
from lm_eval_rag.harness.scoring import METRICS

SCHEMA = "0.3.0"
DEVELOPER = "lm-eval-rag"
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")  # of the evaluator to the model's developer
UNITS = {"share": "proportion"}


@dataclass(frozen=True, slots=True)
class Converted:
    """One task of one run.

    Args:
        path: Of the record below the output folder: ``TASK/lm-eval-rag/METHOD/UUID.json``.
        record: The aggregate record.
        lines: One for each question that was scored.
    """

    path: Path
    record: Mapping[str, Any]
    lines: Sequence[Mapping[str, Any]]

    def write(self, out: Path) -> Path:
        """Write the record, and its lines beside it; the record's path."""
        path = out / self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        _samples(path).write_bytes(_bytes(self.lines))
        path.write_text(json.dumps(self.record, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
        return path


def converted(run: TaskRun, organization: str, relationship: str = "first_party") -> Converted:
    """One task of one run as a record with its lines. The same run gives the same bytes.

    Args:
        organization: Who ran it.
        relationship: One of :data:`RELATIONSHIPS`.

    Raises:
        UserError: The task's metrics are not ours, or the results file has no date.
    """
    names = [name for name in METRICS if name in run.scores]
    if not names:
        raise UserError(f"{run.path}: {run.task} has none of our metrics. Give runs of tasks of lm-eval-rag.")
    if not isinstance(run.results.get("date"), (int, float)):
        raise UserError(f"{run.path} has no date. Give the results file as lm_eval wrote it.")
    time, model = str(int(run.results["date"])), _model(run)
    fingerprint = hashlib.sha256(json.dumps(run.results["config"], sort_keys=True, default=str).encode()).hexdigest()
    id = f"{run.task}/{model['id']}/{fingerprint[:16]}/{time}"
    main = next((name for name in run.headline if name in names), names[0])
    lines = list(_lines(run, id, model["id"], main))
    name = str(uuid.UUID(bytes=hashlib.sha256(id.encode()).digest()[:16], version=4))
    path = Path(run.task, DEVELOPER if model["id"].startswith(f"{DEVELOPER}/") else model["developer"])
    path = path / model["id"].partition("/")[2].replace("/", "_") / f"{name}.json"
    record = {
        "schema_version": SCHEMA,
        "evaluation_id": id,
        "evaluation_timestamp": time,
        "retrieved_timestamp": time,
        "source_metadata": {
            "source_name": "lm-evaluation-harness",
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": relationship,
        },
        "eval_library": {
            "name": "lm_eval",
            "version": run.versions.get("lm_eval", "unknown"),
            "additional_details": {name: text for name, text in run.versions.items() if name != "lm_eval"},
        },
        "model_info": model,
        "evaluation_results": [_result(run, name, id) for name in names],
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": f"data/{_samples(path).as_posix()}",
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(_bytes(lines)).hexdigest(),
            "total_rows": len(lines),
        },
    }
    return Converted(path, record, lines)


def _model(run: TaskRun) -> dict[str, Any]:
    """The method as a model, with its generator and retriever; a stock model under its own name."""
    record = run.results["config"].get("rag")
    if not record:
        name = run.arguments.get("pretrained") or run.arguments.get("model") or run.model
        developer = name.partition("/")[0] if "/" in name else run.model
        id = name if "/" in name else f"{developer}/{name}"
        return {"name": name, "id": id, "developer": developer, "additional_details": _deployment(None)}
    generator = record.get("generator")
    details = {
        "generator": json.dumps(generator[:2]) if generator else None,
        "retriever": json.dumps(record["retriever"]) if record.get("counts", {}).get("Retrieve") else None,
        "corpus": record.get("corpus"),
        "parameters": json.dumps(record["parameters"], sort_keys=True),
        "fingerprint": record["fingerprint"],
    }
    name = f"{DEVELOPER}/{record['method']}"
    return {
        "name": name,
        "id": name,
        "developer": DEVELOPER,
        "additional_details": {
            **_deployment(generator),
            **{key: str(value) for key, value in details.items() if value is not None},
        },
    }


def _deployment(generator: Sequence[Any] | None) -> dict[str, str]:
    """Who runs the model, and whether its weights are open, as far as the run says."""
    if generator is None:
        return {"deployment_type": "unknown", "model_availability": "unknown"}
    from lm_eval_rag.harness.generators.spec import ModelSpec

    name, options = generator[:2]
    external = ModelSpec(name, options).is_api
    return {
        "deployment_type": "unknown" if external else "self_deployed",  # an endpoint may be one's own
        "model_availability": "unknown" if external else "open_weights",
    }


def _result(run: TaskRun, name: str, id: str) -> dict[str, Any]:
    """One metric: its range, its mean, and the standard error of the mean."""
    metric, values = METRICS[name], list(run.scores[name].values())
    low, high = metric.bounds
    uncertainty: dict[str, Any] = {"num_samples": len(values)}
    if len(values) > 1:
        spread = statistics.stdev(values)
        error = {"value": spread / math.sqrt(len(values)), "method": "analytic"}
        uncertainty |= {"standard_error": error, "standard_deviation": spread}
    return {
        "evaluation_result_id": f"{id}/{name}",
        "evaluation_name": run.task,
        "source_data": {
            "dataset_name": run.task,
            "source_type": "other",
            "additional_details": {"version": run.version, "package": DEVELOPER},
        },
        "evaluation_timestamp": str(int(run.results["date"])),
        "metric_config": {
            "evaluation_description": name,
            "metric_id": f"{DEVELOPER}.{name}",
            "metric_name": name,
            "metric_unit": UNITS.get(metric.unit, metric.unit),
            "lower_is_better": not metric.higher_is_better,
            "score_type": "continuous",
            "min_score": low,
            "max_score": high if math.isfinite(high) else "Infinity",
        },
        "score_details": {"score": math.fsum(values) / len(values), "uncertainty": uncertainty},
    }


def _lines(run: TaskRun, id: str, model: str, main: str) -> Iterator[dict[str, Any]]:
    """One line per question that has the main metric: a question that could not be scored has no line, and no 0."""
    for question, sample in run.questions.items():
        if question not in run.scores[main]:
            continue
        record, doc = sample["doc"].get("_rag") or {}, sample["doc"]
        references, score = [str(answer) for answer in doc.get("answers") or ()], run.scores[main][question]
        text, answer = str(doc.get("query", "")), str(sample["filtered_resps"][0])
        yield {
            "schema_version": SCHEMA,
            "evaluation_id": id,
            "model_id": model,
            "evaluation_name": run.task,
            "evaluation_result_id": f"{id}/{main}",
            "sample_id": question,
            "sample_hash": hashlib.sha256("".join([text, *references]).encode()).hexdigest(),
            "interaction_type": "single_turn",
            "input": {"raw": text, "formatted": record.get("prompt"), "reference": references},
            "output": {"raw": [_response(sample)]},
            "answer_attribution": [
                {
                    "turn_idx": 0,
                    "source": "output.raw",
                    "extracted_value": answer,
                    "extraction_method": sample["filter"],
                    "is_terminal": True,
                }
            ],
            "evaluation": {"score": score, "is_correct": score == 1.0},
            "token_usage": _tokens(record),
            "performance": {"latency_ms": 1000 * record["seconds"]} if "seconds" in record else None,
            "metadata": _metadata(run, question, record),
        }


def _response(sample: Mapping[str, Any]) -> str:
    response = (sample.get("resps") or sample["filtered_resps"])[0]
    return str(response[0] if isinstance(response, list) and response else response)


def _tokens(record: Mapping[str, Any]) -> dict[str, int] | None:
    """Tokens of all calls of the question; None if the run does not say."""
    read, written = record.get("prompt_tokens"), record.get("completion_tokens")
    if read is None or written is None:
        return None
    return {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}


def _metadata(run: TaskRun, question: str, record: Mapping[str, Any]) -> dict[str, str]:
    """What the schema has no place for, as texts: retrieved ids, rules, calls, and all scores."""
    passages, rules = record.get("passages"), record.get("rules")
    values = {
        "retrieved": None if passages is None else [passage["id"] for passage in passages],
        "k": record.get("k"),
        "rules": None if rules is None else [[rule["head"], rule["body"]] for rule in rules],
        "abstained": record.get("abstained"),
        "calls": record.get("calls"),
        "cost": record.get("cost"),
        "scores": {name: scores[question] for name, scores in run.scores.items() if question in scores},
    }
    return {name: json.dumps(value, ensure_ascii=False) for name, value in values.items() if value is not None}


def _samples(path: Path) -> Path:
    return path.with_name(f"{path.stem}_samples.jsonl")


def _bytes(lines: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(line, ensure_ascii=False, allow_nan=False).encode() + b"\n" for line in lines)
