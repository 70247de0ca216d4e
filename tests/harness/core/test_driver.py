"""The driver: order, batches, cheap asks first, failures, and asks that nothing serves."""

import asyncio
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.asks import Generate, Retrieve, generate, retrieve
from lm_eval_rag.harness.core.driver import Driver, Served
from lm_eval_rag.harness.core.types import Answer, Query, Step


class Echo:
    """Answers every ask with a text made of it, and keeps the batches it was given."""

    def __init__(self, batch, fails=()):
        self.batch, self.fails, self.batches = batch, fails, []

    def serve(self, asked):
        self.batches.append([query.id for query, _ in asked])
        return [self._one(query, ask) for query, ask in asked]

    def _one(self, query, ask):
        if query.id in self.fails:
            return CallError(f"{query.id} failed")
        name = type(ask).__name__
        value = (f"<{ask.prompt}>",) if isinstance(ask, Generate) else (ask.text,)
        return Served(value, Step(name, str(ask), str(value)))


class Streamed:
    """Answers every ask by itself after a while that differs, and keeps what was in flight at once."""

    def __init__(self, gather=0, fails=()):
        self.gather, self.echo, self.in_flight, self.most, self.closed = gather, Echo(1, fails), set(), set(), False
        self.random = random.Random(0)

    async def answer(self, query, ask):
        self.in_flight.add(query.id)
        self.most = max(self.most, set(self.in_flight), key=len)
        await asyncio.sleep(self.random.choice([0, 0.001, 0.003]))
        self.in_flight.remove(query.id)
        return self.echo.serve([(query, ask)])[0]

    async def close(self):
        self.closed = True


def hops(query):
    """Retrieves as often as the query's text says, then generates."""
    texts = []
    for i in range(int(query.text)):
        texts += yield from retrieve(f"{query.id}-{i}", 1)
    answer = yield from generate("+".join(texts))
    return Answer(answer)


def drive(queries, batch=3, fails=(), window=256, gather=0):
    backends = {Retrieve: Echo(batch), Generate: Streamed(gather, fails)}
    return Driver(hops, backends, window=window).run(queries), backends


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
    _, backends = drive(QUERIES, batch=100, gather=len(QUERIES))
    assert backends[Generate].most == {query.id for query in QUERIES}


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

    ((answer, trace),) = Driver(careful, {Generate: Streamed(fails={"q0"})}).run([Query("q0", "")])
    assert answer.abstained and trace.failure is None


def test_an_ask_that_nothing_serves_says_what_is_served():
    with pytest.raises(UserError, match=r"'q0' needs Generate.*Served: Retrieve"):
        Driver(hops, {Retrieve: Echo(1)}).run([Query("q0", "0")])


def test_no_questions_no_answers():
    assert drive([])[0] == []


@pytest.mark.parametrize("window", [1, 2, 3, 100])
def test_no_more_questions_are_in_flight_than_the_window_holds(window):
    started, finished = [], []

    def counting(query):
        started.append(query.id)
        assert len(started) - len(finished) <= window
        answer = yield from hops(query)
        finished.append(query.id)
        return answer

    backends = {Retrieve: Echo(3), Generate: Streamed()}
    results = Driver(counting, backends, window=window).run(QUERIES)
    assert [answer.text for answer, _ in results] == [expected(query) for query in QUERIES]
    assert started == [query.id for query in QUERIES] and backends[Generate].closed


def test_what_is_kept_is_made_when_a_question_ends():
    kept = Driver(hops, {Retrieve: Echo(1), Generate: Streamed()}).run(
        QUERIES, keep=lambda query, answer, trace: (query.id, answer.text, len(trace.steps))
    )
    assert kept == [(query.id, expected(query), int(query.text) + 1) for query in QUERIES]


def test_a_slow_reply_holds_up_its_question_alone():
    """The others are finished, and new ones started, while one reply of three takes its time."""
    ended = []

    class OneSlow(Streamed):
        async def answer(self, query, ask):
            if query.id == "q1":
                while len(ended) < len(QUERIES) - 1:  # never, if anybody waited for it
                    await asyncio.sleep(0.001)
            return await super().answer(query, ask)

    def keep(query, answer, trace):
        ended.append(query.id)
        return answer.text

    backends = {Retrieve: Echo(2), Generate: OneSlow()}
    assert Driver(hops, backends, window=3).run(QUERIES, keep) == [expected(query) for query in QUERIES]
    assert ended[-1] == "q1"


@pytest.mark.parametrize("kind", [Retrieve, Generate])
def test_a_backend_that_cannot_go_on_ends_the_run(kind):
    class Refused(Streamed):
        async def answer(self, query, ask):
            raise UserError("refused")

    class Broken(Echo):
        def serve(self, asked):
            raise UserError("broken")

    backends = {Retrieve: Broken(1) if kind is Retrieve else Echo(1), Generate: Refused()}
    with pytest.raises(UserError, match="broken" if kind is Retrieve else "refused"):
        Driver(hops, backends).run([query for query in QUERIES if query.text != "0"])
    assert backends[Generate].closed


def test_it_runs_where_a_loop_runs_already():
    """As in a notebook."""

    async def main():
        return drive(QUERIES)[0]

    assert [answer.text for answer, _ in asyncio.run(main())] == [expected(query) for query in QUERIES]


@given(
    chains=st.lists(st.lists(st.sampled_from(["retrieve", "generate"]), max_size=5), max_size=12),
    failing=st.sets(st.integers(0, 30)),
    window=st.integers(1, 8),
    batch=st.integers(1, 5),
    gather=st.integers(0, 4),
)
@settings(max_examples=60, deadline=None)
def test_any_methods_latencies_and_failures(chains, failing, window, batch, gather):
    """Every question ends once, and as it does when it is asked alone."""
    ended = Counter()

    def method(query):
        texts = []
        for i, kind in enumerate(chains[int(query.text)]):
            try:
                ask = retrieve(f"{query.id}-{i}", 1) if kind == "retrieve" else generate(f"{query.id}-{i}")
                texts.append(str((yield from ask)))
            except CallError as error:
                if i % 2:  # some handle a failure, others do not
                    raise
                texts.append(str(error))
        ended[query.id] += 1
        return Answer("+".join(texts))

    queries = [Query(f"q{i}", str(i)) for i in range(len(chains))]
    fails = {query.id for i, query in enumerate(queries) if i in failing}

    def run(some, window):
        backends = {Retrieve: Echo(batch, fails), Generate: Streamed(gather, fails)}
        return Driver(method, backends, window=window).run(some)

    together = run(queries, window)
    assert len(together) == len(queries) and set(ended.values()) <= {1}
    assert together == [run([query], 1)[0] for query in queries]
