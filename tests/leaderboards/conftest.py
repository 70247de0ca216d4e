"""Submissions for ruleqa_demo, whose data are made in a second and need no network."""

from __future__ import annotations

import json

import pytest

from lm_eval_rag.leaderboards.submissions.answer_key import answer_key

TASK = "ruleqa_demo"


@pytest.fixture(scope="session")
def key():
    return answer_key(TASK)


def writer(key, folder):
    """Writes submissions into a folder: answers and fields by functions of (id, document), the card by name."""

    def write(
        name="An entry", answer=lambda id, doc: "x", folder=folder, fields=lambda id, doc: {}, place=None, **card
    ):
        path = folder / (place or name.lower().replace(" ", "-"))
        (path / "predictions").mkdir(parents=True)
        about = {"version": key.version, "data": key.data, "arguments": {}}
        whole = {"name": name, "team": "a team", "method": "a_method", "package": "0", "tasks": {TASK: about}, **card}
        (path / "submission.json").write_text(json.dumps(whole))
        lines = [{"id": id, "answer": answer(id, doc), **fields(id, doc)} for id, doc in key.questions.items()]
        (path / "predictions" / f"{TASK}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    return write


@pytest.fixture
def write(key, tmp_path):
    """:func:`writer` of the test's own folder; ``folder`` names the folder of the entry."""
    write_there = writer(key, tmp_path)
    return lambda *parts, folder=None, **named: write_there(*parts, place=folder, **named)


@pytest.fixture(scope="session")
def run_of_vote(tmp_path_factory):
    """A run of rule_vote on ruleqa_demo by lm_eval itself."""
    from lm_eval import simple_evaluate
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    from lm_eval_rag import tasks
    from lm_eval_rag._register import register

    register()
    folder = tmp_path_factory.mktemp("run")
    manager = TaskManager(include_path=tasks.__path__[0], include_defaults=False)
    results = simple_evaluate(model="rule_vote", model_args="journal=off", tasks=[TASK], task_manager=manager)
    samples = results.pop("samples")
    tracker = EvaluationTracker(output_path=str(folder))
    tracker.save_results_aggregated(results=results, samples=samples)
    tracker.save_results_samples(task_name=TASK, samples=samples[TASK])
    return folder
