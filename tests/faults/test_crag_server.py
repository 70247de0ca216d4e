"""crag_demo by crag_hybrid against a real OpenAI-compatible server."""

from importlib.resources import files

import pytest

from lm_eval_rag.harness.plugin.model import model_class
from lm_eval_rag.methods.crag_hybrid import crag_hybrid

pytest.importorskip("blingfire")
pytest.importorskip("resiliparse")


def test_crag_hybrid_runs_against_a_real_server(served, little_llama, undescribed, tmp_path, monkeypatch):
    import lm_eval
    from lm_eval.tasks import TaskManager

    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    model = model_class("crag_hybrid", crag_hybrid)(
        generator="local-chat-completions", gen_base_url=f"{served}/chat/completions", gen_model=str(little_llama),
        gen_num_concurrent=2, gen_timeout=600, journal="off", dynamic="answer", samples=2, reasoning_tokens=32,
        max_prompt_tokens=1500,
    )  # fmt: skip
    manager = TaskManager(include_defaults=False, include_path=str(files("lm_eval_rag.tasks")))
    results = lm_eval.simple_evaluate(model, tasks=["crag_demo"], task_manager=manager, limit=2, bootstrap_iters=0)
    for sample in results["samples"]["crag_demo"]:
        record = sample["doc"]["_rag"]
        assert record["failure"] is None and record["calls"]["Generate"] >= 5
