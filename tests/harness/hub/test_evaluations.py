"""Files for the Hub's leaderboards, published to the double and read back by huggingface_hub's own readers."""

import json

import pytest
import yaml

from lm_eval_rag.harness.checkpoints.note import Note, write_note
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.hub.evaluations import results
from lm_eval_rag.harness.hub.measured import Measured

DATASET = "acme/ruleqa"
NOTE = Note(
    kind="retriever",
    mode="rgft",
    tasks=("ruleqa_y",),
    corpora=("ruleqa_y/a",),
    seed=0,
    settings={},
    results={},
    versions={},
)
ENTRY = "https://example.org/board/entry.html"


@pytest.fixture
def publish_model(publish, tmp_path):
    """``publish_model(repo, scores, *more)``: a published retriever that was measured on whole tasks."""

    def publish_model(repo, scores, *more, limit=None, tasks=("ruleqa_y",)):
        folder = tmp_path / repo.replace("/", "-")
        folder.mkdir()
        (folder / "query.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
        write_note(folder, NOTE)
        whole = {
            "results": {task: {f"{name},none": value for name, value in scores.items()} for task in tasks},
            "n-samples": {task: {"original": 200, "effective": limit or 200} for task in tasks},
            "config": {"model": "rulerag_ft", "model_args": {"retriever_adapter": str(folder)}},
            "configs": {task: {"metadata": {"headline": ["em", "recall@10"]}} for task in tasks},
        }
        file = tmp_path / f"results_{folder.name}.json"
        file.write_text(json.dumps(whole))
        arguments = ("--repo", repo, "--licence", "mit", "--results", str(file), "--benchmark", f"{DATASET}@v1")
        return publish("model", str(folder), *arguments, *more, "--upload")

    return publish_model


def test_a_dataset_is_a_benchmark_and_a_model_has_its_values(publish, publish_model, hub, client):
    from huggingface_hub import HfApi

    publish("dataset", "ruleqa_y", "--repo", DATASET, "--tag", "v1", "--upload")
    benchmark = yaml.safe_load(hub.repositories["datasets", DATASET].files["eval.yaml"])
    assert benchmark["evaluation_framework"] == "lm-eval-rag"
    assert benchmark["tasks"] == [{"id": "ruleqa_y", "config": "ruleqa_y", "split": "test"}]
    assert benchmark["name"] and benchmark["description"]

    publish_model("acme/low", {"em": 0.25, "recall@10": 0.9})
    publish_model("acme/high", {"em": 0.51234, "recall@10": 0.1}, "--entry", ENTRY)
    api = HfApi()
    board = api.get_dataset_leaderboard(DATASET)
    assert [(one.rank, one.model_id, one.value, one.verified) for one in board] == [
        (1, "acme/high", 51.23, False),
        (2, "acme/low", 25.0, False),
    ]
    assert board[0].filename == ".eval_results/ruleqa_y.yaml" and board[0].source["url"] == ENTRY
    assert board[1].source is None and board[1].notes == "em, percent"
    (value,) = api.model_info("acme/high", expand=["evalResults"]).eval_results
    assert (value.dataset_id, value.task_id, value.dataset_revision) == (DATASET, "ruleqa_y", "v1")
    assert (value.value, value.source_url) == (51.23, ENTRY)


def test_the_card_keeps_its_index_and_every_metric(publish_model, hub, client):
    publish_model("acme/tower", {"em": 0.25, "recall@10": 0.9})
    front = yaml.safe_load(hub.repositories["models", "acme/tower"].files["README.md"].decode().split("---\n")[1])
    (row,) = front["model-index"][0]["results"]
    assert {one["type"]: one["value"] for one in row["metrics"]} == {"em": 0.25, "recall@10": 0.9}


def test_one_file_a_task(publish_model, hub, client):
    publish_model("acme/tower", {"em": 0.25}, tasks=("ruleqa_y", "ruleqa_i"))
    files = [name for name in hub.repositories["models", "acme/tower"].files if name.startswith(".eval_results/")]
    assert sorted(files) == [".eval_results/ruleqa_i.yaml", ".eval_results/ruleqa_y.yaml"]


def test_a_part_of_a_task_is_no_value(publish_model, hub, client):
    with pytest.raises(UserError, match="whole task"):
        publish_model("acme/tower", {"em": 0.25}, limit=10)
    assert ("models", "acme/tower") not in hub.repositories


def test_an_entry_needs_its_benchmark():
    whole = Measured("ruleqa_y", "em", 0.5, asked=200, of=200, is_first=True)
    with pytest.raises(UserError, match="--benchmark"):
        results([whole], None, ENTRY)
    assert results([whole], None, None) == []
