"""How a run goes, where there is no terminal: what its lines say of what was paid."""

import io

import pytest

from lm_eval_rag.harness.common import progress
from lm_eval_rag.harness.core.progress import Bar, cost_of
from lm_eval_rag.harness.core.types import Step


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def step(journalled=False):
    return Step("Generate", "p", "r", prompt_tokens=3000, completion_tokens=500, journalled=journalled)


def test_a_line_says_what_was_asked_and_paid(clock):
    file = io.StringIO()
    bar = Bar(10, "demo", places=4, prices=(2.0, 10.0), file=file)
    clock[0] += 10
    bar.update(2, 8, [step(), step(journalled=True)])
    clock[0] += 20
    bar.update(1, 7, [step()])
    # two new calls of 3,000 and 500 tokens at $2 and $10 per million; 3 of 10 questions in 30 s leave 70 s
    assert bar.meter.line() == (
        "demo: 3/10 questions, 4 calls in flight, 3 waiting, 1 from the journal, 10,500 tokens, $0.02, about 70 s left"
    )
    assert file.getvalue() == ""
    bar.close()  # interrupted
    assert file.getvalue() == bar.meter.line() + "\n"


def test_a_short_run_that_ends_says_nothing():
    file = io.StringIO()
    bar = Bar(2, "demo", file=file)
    bar.update(2, 0, [step()])
    bar.close()
    assert file.getvalue() == ""


def test_the_cost_of_a_step():
    assert cost_of(step(), (2.0, 10.0)) == pytest.approx((3000 * 2 + 500 * 10) / 1_000_000)
