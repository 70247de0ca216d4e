"""The hybrid system on crag_demo in lm_eval, with the embedded generator: a run to its results, as a user has it."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.plugin.model import model_class
from lm_eval_rag.methods.crag_hybrid import crag_hybrid

pytest.importorskip("torch")
pytest.importorskip("blingfire")
pytest.importorskip("resiliparse")


def shorten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator writes 16 tokens where it is asked for up to 512: what it writes is not looked at here."""
    from lm_eval_rag.harness.generators import local

    def short(model: Any, prompts: Any, decoding: Decoding, *rest: Any) -> Any:
        return continue_batch(model, prompts, replace(decoding, max_tokens=16), *rest)

    continue_batch = local.continue_batch
    monkeypatch.setattr(local, "continue_batch", short)


def test_crag_hybrid_on_crag_demo(undescribed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import lm_eval
    from lm_eval.tasks import TaskManager

    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    model = model_class("crag_hybrid", crag_hybrid)(generator="tiny", journal="off", dynamic="answer", samples=2)
    manager = TaskManager(include_defaults=False, include_path=str(files("lm_eval_rag.tasks")))
    shorten(monkeypatch)
    results = lm_eval.simple_evaluate(model, tasks=["crag_demo"], task_manager=manager, limit=2, bootstrap_iters=0)
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
