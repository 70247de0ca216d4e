"""A world to ask a real server of a real (tiny, random) model about."""

import sys
from pathlib import Path

import pytest

from lm_eval_rag._register import tasks_folder

sys.path.insert(0, str(Path(__file__).parent))  # for proxy.py, which the tests here share


@pytest.fixture(scope="session")
def evaluate(undescribed):
    """``evaluate(model, url, ...)``: ruleqa_demo with a model behind a chat API; retries hardly wait."""
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_defaults=False, include_path=str(tasks_folder()))

    def evaluate(model, url, arguments=(), *, generator="local-chat-completions", limit=24, **options):
        given = {"generator": generator, "gen_base_url": url, "gen_model": "any", "journal": "off", **QUICK}
        return simple_evaluate(
            model=model,
            model_args={**given, **dict(arguments)},
            tasks=["ruleqa_demo"],
            task_manager=manager,
            limit=limit,
            **options,
        )

    return evaluate


QUICK = {"gen_timeout": 1, "gen_retry_wait": 0.01}
