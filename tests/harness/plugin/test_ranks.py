"""Several processes share the questions: each is asked once, one of them writes, and the scores are those of one."""

import json
import os
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest

from lm_eval_rag._register import tasks_folder
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.record import RagText, record
from lm_eval_rag.harness.core.types import Answer, Step, Trace
from lm_eval_rag.harness.plugin.model import model_class
from lm_eval_rag.harness.plugin.ranks import Alone, ranks
from lm_eval_rag.harness.plugin.unscored import listening

LM_EVAL = """
import atexit
import torch.distributed
import lm_eval_rag._autoload as autoload; autoload.install()
from lm_eval.__main__ import cli_evaluate

def last():
    print("still in the process group:", torch.distributed.is_initialized())

if __name__ == "__main__":
    atexit.register(last)
    cli_evaluate()
"""


def quiet(query):
    """A method that asks nothing."""
    yield from ()
    return Answer("")


def test_a_process_alone(monkeypatch):
    for given in (None, "1"):
        monkeypatch.delenv("WORLD_SIZE", raising=False) if given is None else monkeypatch.setenv("WORLD_SIZE", given)
        alone = ranks(tensor_parallel=True)
        assert isinstance(alone, Alone) and (alone.rank, alone.world_size, alone.device) == (0, 1, None)
    assert alone.gather_object("x") == alone.share("x") == ["x"] and alone.all_gather(3) == 3
    alone.barrier()


@pytest.mark.parametrize("name", ["ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED", "gen_tp_plan"])
def test_a_model_over_several_processes_is_refused(name, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    if name != "gen_tp_plan":
        monkeypatch.setenv(name, "true")
    with pytest.raises(UserError, match=rf"{name}.* spreads one model over the processes.*gen_parallelize=True"):
        ranks(tensor_parallel=name == "gen_tp_plan")


def test_several_processes_without_accelerate_say_what_to_install(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(UserError, match=r'WORLD_SIZE=2.*accelerate.*pip install -e ".*\[hf\]"'):
        ranks()


def test_the_model_asks_for_its_ranks_only_when_it_is_asked(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    model = model_class("quiet", quiet)(generator="hf", gen_pretrained="x", gen_tp_plan="auto")
    with pytest.raises(UserError, match="gen_tp_plan"):
        model.rank  # noqa: B018 - reading it is what is tested


@pytest.mark.parametrize("rank", [0, 1])
def test_rank_0_alone_counts_and_names_what_all_ranks_did(rank):
    """Another rank that ended with status 3 would have rank 0 killed before it has written the results."""
    model = model_class("quiet", quiet)(journal="off")
    other = ({"questions": 4, "unscored": 1, "calls": 0, "Retrieve": 7}, ["q1"])
    gathered = (lambda obj: [obj, other]) if rank == 0 else (lambda obj: None)
    model.__dict__["ranks"] = SimpleNamespace(gather_object=gathered)
    steps = (Step("Retrieve", "a", "b", journalled=True), Step("Generate", "a", "b"))
    with listening() as unscored:
        records = [record(Answer("x"), Trace(steps)), record(Answer(""), Trace(steps[:1], failure="lost"))]
        model._count(list(zip(("q0", "q2"), records, strict=True)))
    own = {"questions": 2, "unscored": 1, "calls": 1, "journalled": 2, "Retrieve": 2, "Generate": 1}
    both = {"questions": 6, "unscored": 2, "calls": 1, "journalled": 2, "Retrieve": 9, "Generate": 1}
    assert model.counts == (both if rank == 0 else own)
    assert model.unscored == unscored == (["q2", "q1"] if rank == 0 else [])


def test_all_ranks_score_alike():
    """A rank that met only short lists scores them at the k of the others; one without evidence scores it as theirs."""
    model = model_class("quiet", quiet)(journal="off")
    told, theirs = [], {"a": (8, frozenset({"evidence"})), "c": (1, frozenset())}
    model.__dict__["ranks"] = SimpleNamespace(share=lambda obj: told.append(obj) or [obj, theirs])
    requests = [SimpleNamespace(task_name=name) for name in "aabb"]
    records = [{"passages": [], "failure": None, "k": k} for k in (2, 6, 3, 9)]
    model._score_alike(requests, {i: RagText("x", record) for i, record in enumerate(records)})
    assert told == [{"a": (6, frozenset()), "b": (9, frozenset())}]
    assert [record["k"] for record in records] == [8, 8, 9, 9]
    assert [record.get("evidence") for record in records] == [[], [], None, None]


def test_two_launched_processes_score_as_one(tmp_path, undescribed):
    """``accelerate launch`` with two processes on the CPU: the same answers and scores, and one results file."""
    pytest.importorskip("accelerate")
    script = tmp_path / "evaluate.py"
    script.write_text(LM_EVAL)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launch = ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1"]
    launch += ["--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", str(port), str(script)]
    asked = ["--tasks", "ruleqa_demo", "--model", "rule_vote", "--model_args", "journal=off", "--limit", "9"]
    environment = {**os.environ, "ACCELERATE_USE_CPU": "true", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, *launch, *asked, "--output_path", str(tmp_path / "two"), "--log_samples"],
        capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("still in the process group: False") == 2  # its threads may abort a process that exits
    (file,) = (tmp_path / "two").rglob("results_*.json")
    two = json.loads(file.read_text())
    (file,) = (tmp_path / "two").rglob("samples_*.jsonl")
    samples = [json.loads(line) for line in file.read_text().splitlines()]

    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    one = simple_evaluate(
        model="rule_vote", model_args={"journal": "off"}, tasks=["ruleqa_demo"], limit=9,
        task_manager=TaskManager(include_defaults=False, include_path=str(tasks_folder())),
    )  # fmt: skip
    told, expected = two["results"]["ruleqa_demo"], one["results"]["ruleqa_demo"]
    numbers = {name: value for name, value in expected.items() if isinstance(value, float)}
    assert len(numbers) > 20 and {name: told[name] for name in numbers} == pytest.approx(numbers)
    assert two["config"]["rag"]["counts"] == one["config"]["rag"]["counts"]
    assert two["config"]["rag"]["fingerprint"] == one["config"]["rag"]["fingerprint"]

    def answers(samples):
        return {sample["doc"]["id"]: (sample["filtered_resps"], sample["doc"]["_rag"]["rules"]) for sample in samples}

    assert len(samples) == 9 and answers(samples) == answers(one["samples"]["ruleqa_demo"])
