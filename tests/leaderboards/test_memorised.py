"""Scores beside those on the same questions with invented names; trivial baselines are not flagged."""

from __future__ import annotations

from collections import Counter
from math import comb

import pytest

from lm_eval_rag.leaderboards.submissions import answer_key, verifying
from lm_eval_rag.leaderboards.submissions.answer_key import AnswerKey
from lm_eval_rag.leaderboards.submissions.form import Prediction
from lm_eval_rag.leaderboards.submissions.memorised import EXCESS, memorised, sign_test
from lm_eval_rag.leaderboards.submissions.verifying import scored, verify
from tests.leaderboards.conftest import TASK


def scores(right, reached=()):
    """``right`` and ``reached``: which of 200 questions."""
    return {
        "em": {str(i): float(i in right) for i in range(200)},
        "mrr": {str(i): float(i in reached) for i in range(200)},
    }


def test_a_score_that_documents_do_not_explain_is_flagged():
    flag = memorised(scores(range(150)), scores(range(20)))
    assert flag is not None
    assert flag.startswith("75.0 % right here and 10.0 %") and "invented names" in flag


@pytest.mark.parametrize(
    ("name", "original", "fresh"),
    [
        ("equal", scores(range(100)), scores(range(100))),
        ("better on the twin", scores(range(20)), scores(range(150))),
        ("just below the excess", scores(range(100)), scores(range(int(200 * EXCESS) - 1, 100))),
        ("as many losses as wins", scores(range(100)), scores(range(100, 200))),
        ("retrieval reached only the original", scores(range(150), range(150)), scores(range(20), range(20))),
        ("too few pairs", {"em": {str(i): 1.0 for i in range(29)}}, {"em": {str(i): 0.0 for i in range(29)}}),
        ("no scores", {}, {}),
    ],
)
def test_what_is_not_flagged(name, original, fresh):
    assert memorised(original, fresh) is None, name


def test_retrieval_that_is_as_good_on_both_explains_nothing():
    """The passages state the answer in both, and only the known names are answered."""
    assert memorised(scores(range(150), range(200)), scores(range(20), range(200)))
    assert memorised(scores(range(150), range(10)), scores(range(20), range(10)))


def test_the_sign_test_is_the_tail_of_fair_coins():
    assert sign_test(0, 0) == 1.0
    assert sign_test(10, 0) == pytest.approx(0.5**10)
    assert sign_test(7, 3) == pytest.approx(sum(comb(10, i) for i in (7, 8, 9, 10)) / 1024)


class Renamed:
    """ruleqa_demo's task under invented names: each gold answer is written backwards."""

    VERSION = 1

    def __init__(self, task):
        self.eval_docs = [{**doc, "answers": [gold[::-1] for gold in doc["answers"]]} for doc in task.eval_docs]
        self.process_results = task.process_results


@pytest.fixture
def twin(key, monkeypatch):
    """Verification knows a twin of ruleqa_demo."""
    fresh = AnswerKey(f"{TASK}_fresh", Renamed(key.task))
    keys = {TASK: key, fresh.name: fresh}
    monkeypatch.setattr(answer_key, "answer_key", keys.__getitem__)
    monkeypatch.setattr(verifying, "question_sheet", lambda name: keys[name].sheet)
    monkeypatch.setattr(verifying, "own_tasks", lambda: frozenset(keys))
    return fresh


def both(key, twin, answer):
    """The flags of an entry that answers both tasks by a function of (name of the task, id, document)."""
    from lm_eval_rag.leaderboards.submissions.form import Card, RunOf
    from lm_eval_rag.leaderboards.submissions.reading import Submission

    about = {one.name: RunOf(version="1", data=one.data, arguments={}) for one in (key, twin)}
    lines = {
        one.name: {id: Prediction(id=id, answer=answer(one, id, doc)) for id, doc in one.questions.items()}
        for one in (key, twin)
    }
    card = Card(name="x", team="y", method="z", package="0", tasks=about)
    result = scored(Submission(card, lines))
    assert result.tasks[twin.name].flags == ()
    return result.tasks[TASK].flags


def test_a_memorised_set_shows(key, twin):
    """It answers nine of ten questions of the original from memory, and has no idea of the twin's names."""
    known = {id: doc["answers"][0] for id, doc in key.questions.items()}
    memory = lambda one, id, doc: known[id] if int(id[1:]) % 10 else "nobody"  # noqa: E731
    (flag,) = both(key, twin, memory)
    assert "were the answers memorised" in flag and "90.0 % right here and 0.0 %" in flag


def test_baselines_are_not_flagged(key, twin):
    common = Counter(doc["answers"][0] for doc in key.questions.values()).most_common(1)[0][0]
    assert both(key, twin, lambda one, id, doc: common) == ()
    assert both(key, twin, lambda one, id, doc: "I don't know") == ()
    reader = lambda one, id, doc: doc["answers"][0] if int(id[1:]) % 3 else "nobody"  # noqa: E731
    assert both(key, twin, reader) == (), "what reads documents answers both alike"


def test_without_the_twin_there_is_nothing_to_compare(write):
    flags = verify(write(answer=lambda id, doc: doc["answers"][0] if int(id[1:]) % 2 else "nobody")).tasks[TASK].flags
    assert flags == ()


def test_every_ruleqa_set_has_a_twin_of_the_suffix():
    from lm_eval_rag.leaderboards.submissions.question_sheet import own_tasks
    from lm_eval_rag.tasks.ruleqa.specs import FRESH, SPECS

    assert verifying.FRESH == FRESH
    assert {task + FRESH for task in SPECS} <= own_tasks()
