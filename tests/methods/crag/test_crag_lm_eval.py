"""The hybrid system on crag_demo in lm_eval, with the embedded generator: a run to its results, as a user has it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from lm_eval_rag.harness.plugin.model import model_class
from lm_eval_rag.methods.crag_hybrid import crag_hybrid

pytest.importorskip("torch")
pytest.importorskip("blingfire")
pytest.importorskip("resiliparse")


def test_crag_hybrid_on_crag_demo(undescribed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import lm_eval
    from lm_eval.tasks import TaskManager

    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    model = model_class("crag_hybrid", crag_hybrid)(generator="tiny", journal="off", dynamic="answer", samples=2)
    manager = TaskManager(include_defaults=False, include_path=str(files("lm_eval_rag.tasks")))
    short = {"tasks": ["crag_demo"], "limit": 2, "gen_kwargs": "max_gen_toks=8", "bootstrap_iters": 0}
    results = lm_eval.simple_evaluate(model, task_manager=manager, **short)
    assert results is not None
    told = results["results"]["crag_demo"]
    assert told["sample_len"] == 2
    shares = [told[f"crag_{name},none"] for name in ("correct", "missing", "hallucination")]
    assert sum(shares) == pytest.approx(1) and told["crag_score,none"] == pytest.approx(shares[0] - shares[2])
    for sample in results["samples"]["crag_demo"]:
        record = sample["doc"]["_rag"]
        assert record["failure"] is None and record["k"] == 10 and record["passages"]
        assert record["calls"]["Generate"] >= 5  # attribute, graph, calculator, knowledge, reasoning
        assert record["calls"]["HasGraph"] == record["calls"]["Retrieve"] == 1
