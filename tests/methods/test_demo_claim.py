"""The claim of RESULTS.md on ruleqa_demo: RuleRAG-FT answers better than Standard RAG, and than SSFT."""

from typing import Any

import pytest

from lm_eval_rag import _models
from lm_eval_rag._register import tasks_folder
from lm_eval_rag.harness.report.stats import paired

pytest.importorskip("transformers")
torch = pytest.importorskip("torch")
QUESTIONS = 100


def exact(model: Any) -> list[float]:
    """EM of the first questions."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_defaults=False, include_path=str(tasks_folder()))
    results = lm_eval.simple_evaluate(
        model, tasks=["ruleqa_demo"], limit=QUESTIONS, task_manager=manager, bootstrap_iters=0
    )
    assert results is not None
    return [sample["em"] for sample in results["samples"]["ruleqa_demo"]]


def test_rulerag_ft_beats_standard_rag_and_its_twin_without_rules_on_the_demo() -> None:
    torch.set_num_threads(1)
    guided = exact(_models.rulerag_ft(journal="off"))
    plain = exact(_models.standard_rag(journal="off"))
    untaught = exact(_models.rulerag_ft(journal="off", generator="tiny_ssft", retriever_adapter="ssft", n_rules=0))
    for other in (plain, untaught):
        difference = paired(guided, other)
        assert difference.interval.low is not None and difference.interval.low > 0 and difference.p < 0.05
