"""The driver: order, batches, cheap asks first, failures, and asks that nothing serves."""

import pytest

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.asks import Generate, Retrieve, generate, retrieve
from lm_eval_rag.harness.core.driver import Driver, Served
from lm_eval_rag.harness.core.types import Answer, Query, Step


class Echo:
    """Answers every ask with a text made of it, and keeps the batches it was given."""

    def __init__(self, batch, costly, fails=()):
        self.batch, self.costly, self.fails, self.batches = batch, costly, fails, []

    def serve(self, asked):
        self.batches.append([query.id for query, _ in asked])
        return [self._one(query, ask) for query, ask in asked]

    def _one(self, query, ask):
        if query.id in self.fails:
            return CallError(f"{query.id} failed")
        name = type(ask).__name__
        value = (f"<{ask.prompt}>",) if isinstance(ask, Generate) else (ask.text,)
        return Served(value, Step(name, str(ask), str(value)))


def hops(query):
    """Retrieves as often as the query's text says, then generates."""
    texts = []
    for i in range(int(query.text)):
        texts += yield from retrieve(f"{query.id}-{i}", 1)
    answer = yield from generate("+".join(texts))
    return Answer(answer)


def drive(queries, batch=3, fails=()):
    backends = {Retrieve: Echo(batch, False), Generate: Echo(batch, True, fails)}
    return Driver(hops, backends).run(queries), backends


QUERIES = [Query(f"q{i}", str(count)) for i, count in enumerate([2, 0, 5, 1, 3, 0, 4])]


def expected(query):
    return "<" + "+".join(f"{query.id}-{i}" for i in range(int(query.text))) + ">"


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_every_question_gets_its_own_answer_in_order(batch):
    results, _ = drive(QUERIES, batch)
    assert [answer.text for answer, _ in results] == [expected(query) for query in QUERIES]


def test_alone_or_together_is_the_same():
    together, _ = drive(QUERIES)
    for i, query in enumerate(QUERIES):
        alone, _ = drive([query])
        assert alone == [together[i]]


def test_questions_with_unlike_numbers_of_cheap_steps_meet_in_one_generation_batch():
    _, backends = drive(QUERIES, batch=100)
    assert [sorted(batch) for batch in backends[Generate].batches] == [[query.id for query in QUERIES]]


def test_no_ask_is_lost():
    results, backends = drive(QUERIES)
    assert sum(map(len, backends[Retrieve].batches)) == sum(int(query.text) for query in QUERIES)
    assert [trace.count("Retrieve") for _, trace in results] == [int(query.text) for query in QUERIES]
    assert max(map(len, backends[Retrieve].batches)) <= 3


def test_a_failed_ask_fails_its_question_alone():
    results, _ = drive(QUERIES, fails={"q2", "q5"})
    failed = {query.id: trace.failure for query, (_, trace) in zip(QUERIES, results, strict=True) if trace.failure}
    assert failed == {"q2": "q2 failed", "q5": "q5 failed"}
    assert [a.text for a, t in results if not t.failure] == [expected(q) for q in QUERIES if q.id not in failed]


def test_a_method_may_handle_a_failure():
    def careful(query):
        try:
            return Answer((yield from generate("?")))
        except CallError:
            return Answer("", abstained=True)

    ((answer, trace),) = Driver(careful, {Generate: Echo(1, True, {"q0"})}).run([Query("q0", "")])
    assert answer.abstained and trace.failure is None


def test_an_ask_that_nothing_serves_says_what_is_served():
    with pytest.raises(UserError, match=r"'q0' needs Generate.*Served: Retrieve"):
        Driver(hops, {Retrieve: Echo(1, False)}).run([Query("q0", "0")])


def test_no_questions_no_answers():
    assert drive([])[0] == []
