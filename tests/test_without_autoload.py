"""What works with ``LM_EVAL_RAG_AUTOLOAD=0``: our tasks by ``--include_path``, and in Python our models too."""

import json
import os
import subprocess
import sys
from pathlib import Path

from lm_eval_rag._register import MODELS, tasks_folder

QUICK = """
import lm_eval.tasks.manager as manager
from lm_eval.tasks._index import TaskIndex
find = TaskIndex._iter_yaml_files  # lm_eval's own 14,000 files take 10 s and are of no interest here
own = manager.Path(manager.__file__).parent
TaskIndex._iter_yaml_files = staticmethod(lambda root: [] if root == own else find(root))
import lm_eval.evaluator
lm_eval.evaluator.add_env_info = lambda results: None  # loads torch and asks pip, for seconds
lm_eval.evaluator.add_tokenizer_info = lambda results, model: None  # loads transformers
"""
COMMAND = f"""
import lm_eval_rag._autoload as autoload
autoload.install()
{QUICK}
from lm_eval.__main__ import cli_evaluate
cli_evaluate()
"""
IN_PYTHON = f"""
import json, lm_eval_rag, lm_eval_rag._autoload as autoload
autoload.install()
lm_eval_rag.register()
lm_eval_rag.register()
import lm_eval
{QUICK}
from lm_eval.api.registry import get_model, model_registry
results = lm_eval.simple_evaluate(model="rule_vote", model_args="journal=off", tasks=["ruleqa_demo"], limit=3,
    bootstrap_iters=0, torch_random_seed=None)
lm_eval_rag.register()
print(json.dumps({{
    "hook": autoload.installed(),
    "ours": [name for name in model_registry if "lm_eval_rag" in str(model_registry._objs[name])],
    "built in": get_model("dummy").__name__,
    "counts": results["config"]["rag"]["counts"],
    "scores": sorted(name for name in results["results"]["ruleqa_demo"] if "," in name),
}}))
"""


def python(code: str, *arguments: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh Python with the autoload switched off."""
    environment = {**os.environ, "LM_EVAL_RAG_AUTOLOAD": "0", "LM_EVAL_RAG_CACHE": str(cache), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cache, timeout=280)


def test_the_stock_command_runs_our_tasks_by_include_path(tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = ("--include_path", str(tasks_folder()), "--tasks", "ruleqa_demo", "--model", "dummy", "--limit", "2")
    asked += ("--seed", "0,1234,None,1234", "--output_path", str(out), "--log_samples")  # None: torch is not loaded
    done = python(COMMAND, *asked, cache=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    (file,) = out.rglob("results_*.json")
    scores = json.loads(file.read_text(encoding="utf-8"))["results"]["ruleqa_demo"]
    assert scores["em,none"] == 0.0 and scores["crag_score,none"] == -1.0  # it says "lol"
    (samples,) = out.rglob("samples_*.jsonl")
    assert len(samples.read_text(encoding="utf-8").splitlines()) == 2


def test_register_shows_models_and_tasks_to_a_program(tmp_path: Path) -> None:
    done = python(IN_PYTHON, cache=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    known = json.loads(done.stdout.splitlines()[-1])
    assert "already registered" not in done.stderr  # by the calls after the first
    assert known["hook"] is False and known["built in"] == "DummyLM"
    assert sorted(known["ours"]) == sorted(MODELS)
    assert known["counts"]["questions"] == 3 and {"em,none", "recall@10,none"} <= set(known["scores"])
