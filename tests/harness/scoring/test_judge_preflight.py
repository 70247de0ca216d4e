"""A judge is asked one easy item before the first answer is generated, and a run whose judge fails generates none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.record import RagText
from lm_eval_rag.harness.plugin import task as task_module
from lm_eval_rag.harness.plugin.task import RagTask
from lm_eval_rag.harness.scoring.judge import RulesJudge
from lm_eval_rag.harness.scoring.judge.llm import ModelJudge
from lm_eval_rag.harness.scoring.judge.preflight import EASY, preflight
from tests.harness.scoring.test_judge_llm import Scripted, honest, told, verdict


def gone(text: str) -> str | CallError:
    raise UserError("The generator's server refused (HTTP 404): the model `m` does not exist. Change gen_model=.")


def test_the_verdict_is_asked_once_and_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = Scripted(verdict(True))
    preflight((RulesJudge(), ModelJudge("m", first, tmp_path / "j.sqlite")))
    assert [told(prompt)[0] for prompt in first.prompts] == [
        {"question": EASY.question, "reference_answers": list(EASY.answers), "response": EASY.prediction}
    ]
    preflight((ModelJudge("m", Scripted(lambda text: pytest.fail("asked again")), tmp_path / "j.sqlite"),))
    assert not caplog.records
    preflight((ModelJudge("strict", Scripted(verdict(False), "other")),))
    assert ["strict" in record.getMessage() for record in caplog.records] == [True]


def test_a_journal_with_all_verdicts_loads_no_model(tmp_path: Path) -> None:
    """Neither for the easy item nor for the answers."""
    preflight((ModelJudge("m", Scripted(honest), tmp_path / "j.sqlite"),))

    class Unloaded(Scripted):
        def stream(self) -> Any:
            raise AssertionError("loaded")

    judge = ModelJudge("m", Unloaded(honest), tmp_path / "j.sqlite")
    preflight((judge,))
    assert len(judge.opinions([EASY])) == 1


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (gone, "judge's server refused (HTTP 404): the model `m` does not exist. Change judge_model="),
        (lambda text: CallError("HTTP 500"), "HTTP 500"),
        (lambda text: "Yes, that is right.", "contains no verdict"),
    ],
)
def test_a_judge_that_fails_ends_the_run(reply: Callable[[str], Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=re.escape(says)) as error:
        preflight((ModelJudge("m", Scripted(reply), tmp_path / "j.sqlite"),))
    assert "The judge m gave no verdict" in str(error.value) and "judge=rules" in str(error.value)
    again = Scripted(honest)
    preflight((ModelJudge("m", again, tmp_path / "j.sqlite"),))  # a failure is not kept
    assert len(again.prompts) == 1


def test_a_judge_on_a_gpu_makes_room_and_takes_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[str] = []
    judge = ModelJudge("m", Scripted(honest))
    module = "lm_eval_rag.harness.scoring.judge"
    monkeypatch.setattr(f"{module}.llm.make_room", lambda generator: turns.append("judge comes"))
    monkeypatch.setattr(f"{module}.preflight.release", lambda generator: turns.append("judge goes"))
    preflight((judge,))
    assert turns == ["judge comes", "judge goes"]
    judge.opinions([EASY])
    assert turns[2:] == ["judge comes"]


class Model(LM):  # type: ignore[misc]
    """Counts what it generates."""

    generated = 0

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        Model.generated += len(requests)
        return [RagText("It is Teth", {}) for _ in requests]

    def loglikelihood(self, requests: list[Any]) -> Any:
        raise AssertionError

    loglikelihood_rolling = loglikelihood


@pytest.fixture
def run(undescribed: None, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """``run(generator, **options)`` of lm_eval, with that generator as the judge; what it generated is counted."""
    monkeypatch.setattr(Model, "generated", 0)
    rows = [{"id": f"q{i}", "query": f"question {i}?", "answers": ["Teth"], "corpus": None} for i in range(4)]

    class Task(RagTask):
        def download(self, *args: Any, **kwargs: Any) -> None:
            self.dataset = {"test": Dataset.from_list(rows)}

    def evaluate(generator: Any, **options: Any) -> Any:
        judges = (ModelJudge("m", generator),) if generator else (RulesJudge(),)
        monkeypatch.setattr(task_module, "judges_of", lambda *given: judges)
        config = {
            "task": "like_ruleqa", "test_split": "test", "doc_to_text": "{{query}}", "doc_to_target": "{{answers[0]}}",
            "output_type": "generate_until", "generation_kwargs": {"until": ["\n"], "max_gen_toks": 8},
        }  # fmt: skip
        manager = TaskManager(include_defaults=False)
        return simple_evaluate(
            model=Model(), tasks=[Task(config=config)], task_manager=manager, bootstrap_iters=0, **options
        )

    return evaluate


def test_no_answer_is_generated_for_a_judge_that_is_gone(run: Callable[..., Any]) -> None:
    with pytest.raises(UserError, match="gave no verdict on an easy item"):
        run(Scripted(gone))
    assert Model.generated == 0


def test_the_easy_item_comes_first_and_counts_for_nothing(run: Callable[..., Any]) -> None:
    seen: list[int] = []

    def reply(text: str) -> str:
        seen.append(Model.generated)
        return json.dumps({"check": told(text)[1], "correct": True})

    scores = run(Scripted(reply))["results"]["like_ruleqa"]
    assert seen == [0, 4, 4, 4, 4] and scores["acc_lm,none"] == 1.0


def test_rules_and_answers_that_are_not_judged_ask_nothing(run: Callable[..., Any]) -> None:
    run(None)
    run(Scripted(gone), predict_only=True)
    assert Model.generated == 8
