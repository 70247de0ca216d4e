"""The driver: order, batches, cheap asks first, failures, and asks that nothing serves."""

import asyncio
import gc
import random
import threading
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.asks import Generate, MatchRules, Retrieve, generate, match_rules, retrieve
from lm_eval_rag.harness.core.backend import Served
from lm_eval_rag.harness.core.driver import Driver
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


@pytest.mark.parametrize(
    ("backends", "served"), [({}, "nothing"), ({Retrieve: Echo(1), MatchRules: Echo(1)}, "MatchRules, Retrieve")]
)
def test_everything_that_is_served_is_listed(backends, served):
    with pytest.raises(UserError, match=rf"Served: {served}\. Give"):
        Driver(hops, backends).run([Query("q0", "0")])


@pytest.mark.parametrize(("texts", "order"), [("rrm", "rm"), ("mmr", "mr"), ("rm", "mr"), ("rrmm", "mr")])
def test_the_longest_queue_of_cheap_asks_is_served_first_then_by_name(texts, order):
    served = []

    class Noted(Echo):
        def serve(self, asked):
            served.extend("r" if isinstance(ask, Retrieve) else "m" for _, ask in asked)
            return [Served((), Step("", "", "")) for _ in asked]

    def asks(query):
        yield from (retrieve("x", 1) if query.text == "r" else match_rules("x", 1))
        return Answer("")

    Driver(asks, {Retrieve: Noted(9), MatchRules: Noted(9)}).run([Query(f"q{i}", text) for i, text in enumerate(texts)])
    assert "".join(served) == "".join(kind * texts.count(kind) for kind in order)


@pytest.mark.parametrize(("gather", "waits"), [(0, False), (2, False), (3, True)])
def test_as_many_generations_as_gather_do_not_wait_for_cheap_asks(gather, waits):
    started, seen = threading.Event(), []

    class Noted(Streamed):
        async def answer(self, query, ask):
            started.set()
            return await super().answer(query, ask)

    class Patient(Echo):
        def serve(self, asked):
            seen.append(started.wait(0.1 if waits else 5))
            return super().serve(asked)

    queries = [Query("q0", "0"), Query("q1", "0"), Query("q2", "1")]
    Driver(hops, {Retrieve: Patient(1), Generate: Noted(gather)}).run(queries)
    assert seen == [not waits]


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


class Told:
    """A progress that keeps everything it was told."""

    def __init__(self):
        self.updates = []

    def update(self, finished, waiting, steps):
        self.updates.append((finished, waiting, [step.ask for step in steps]))

    @property
    def served(self):
        """Without what it was told when calls began."""
        return [(finished, waiting, steps) for finished, waiting, steps in self.updates if finished or steps]


def test_progress_is_told_of_every_batch_reply_and_end():
    """Waiting are the calls under way, here one that takes its time, and those that are queued."""
    progress = Told()

    class Slow(Streamed):
        async def answer(self, query, ask):
            while query.id == "q0" and len(progress.served) < 3:
                await asyncio.sleep(0.001)
            return await super().answer(query, ask)

    queries = [Query("q0", "0"), *(Query(f"q{i}", "1") for i in range(1, 6))]
    Driver(hops, {Retrieve: Echo(2), Generate: Slow(gather=0)}, progress, window=6).run(queries)
    assert progress.served[0] == (0, 1 + 3, ["Retrieve"] * 2)
    retrieved = [steps for _, _, steps in progress.updates if "Retrieve" in steps]
    generated = [steps for _, _, steps in progress.updates if "Generate" in steps]
    ended = [(finished, steps) for finished, _, steps in progress.updates if finished]
    assert retrieved == [["Retrieve"] * 2, ["Retrieve"] * 2, ["Retrieve"]]
    assert generated == [["Generate"]] * 6 and ended == [(1, [])] * 6
    assert len(progress.served) == 3 + 6 + 6


def test_an_ended_call_is_no_longer_waited_for():
    progress = Told()
    Driver(hops, {Retrieve: Echo(1), Generate: Streamed()}, progress, window=1).run(QUERIES)
    assert {waiting for _, waiting, _ in progress.served} == {0}  # one question: nothing else is under way


def test_calls_that_begin_are_told_although_none_has_ended():
    """A local model ends all calls of a batch at once, and those of the next are under way until it has."""
    progress, told = Told(), []

    class Watched(Streamed):
        async def answer(self, query, ask):
            told.append(progress.updates[-1][1])
            return await super().answer(query, ask)

    queries = [Query(f"q{i}", "1") for i in range(3)]
    Driver(hops, {Retrieve: Echo(3), Generate: Watched(gather=3)}, progress).run(queries)
    assert told == [3, 3, 3]


def test_progress_counts_a_failed_question_and_no_step_of_it():
    progress = Told()
    Driver(hops, {Retrieve: Echo(2), Generate: Streamed(fails={"q0"})}, progress).run([Query("q0", "0")])
    assert [(finished, steps) for finished, _, steps in progress.served] == [(1, [])]


@pytest.mark.parametrize(("window", "ended", "wanted"), [(4, 1, 5), (4, 2, 6), (8, 1, 8), (8, 2, 10)])
def test_the_window_is_filled_again_when_three_quarters_are_left(window, ended, wanted):
    """The first questions end at once, the others when no more questions start."""
    started = []

    class Held(Streamed):
        async def answer(self, query, ask):
            number = int(query.id[1:])
            if number >= ended:
                end = time.monotonic() + 10
                while len(started) < wanted and time.monotonic() < end:
                    await asyncio.sleep(0.001)
                await asyncio.sleep(0.05)  # in which no more may start
                counts.append(len(started))
            return await super().answer(query, ask)

    def counting(query):
        started.append(query.id)
        return Answer((yield from generate("?")))

    counts = []
    Driver(counting, {Generate: Held()}, window=window).run([Query(f"q{i}", "") for i in range(12)])
    assert counts[0] == wanted and len(started) == 12


def returns_text(query):
    yield from retrieve("x", 1)
    return "text"


def yields_text(query):
    yield "text"
    return Answer("x")


def takes_a_plan_for_its_reply(query):
    yield from retrieve("x", 1)
    return Answer(", ".join(passage.text for passage in retrieve("x", 1).passages))


def fails_by_itself(query):
    yield from retrieve("x", 1)
    return Answer(query.text + 1)


@pytest.mark.parametrize("method", [returns_text, yields_text, takes_a_plan_for_its_reply])
def test_a_method_that_breaks_its_contract_is_named(method):
    with pytest.raises(UserError, match=f"'{method.__name__}'"):
        Driver(method, {Retrieve: Echo(1)}).run([Query("q0", "1")])


def test_another_error_of_a_method_is_raised_as_it_is():
    with pytest.raises(TypeError, match="concatenate") as raised:
        Driver(fails_by_itself, {Retrieve: Echo(1)}).run([Query("q0", "1")])
    assert raised.value.__notes__ == ["The method was answering the question 'q0'."]
    assert raised.value.__context__ is None  # the traceback begins with the method's own error


def test_a_backend_that_returns_too_few_replies_ends_the_run():
    class Short(Echo):
        def serve(self, asked):
            return super().serve(asked)[1:]

    with pytest.raises(ValueError, match="shorter"):
        Driver(hops, {Retrieve: Short(9), Generate: Streamed()}).run(QUERIES)


@pytest.mark.parametrize("kind", [Retrieve, Generate])
def test_what_is_in_flight_when_a_run_breaks_is_cancelled_before_the_backends_close(kind, caplog):
    """Also where a loop runs already, which does not cancel what is left."""
    events, go = [], threading.Event()

    class Broken(Streamed):
        async def answer(self, query, ask):
            if query.id == "q0":
                await asyncio.sleep(0.02)
                raise UserError("broken")
            try:
                await asyncio.sleep(60)
            finally:
                events.append("cancelled")

        async def close(self):
            events.append("closed")

    class Hanging(Echo):
        def serve(self, asked):
            go.wait(5)
            return super().serve(asked)

    async def main():
        Driver(hops, {Retrieve: Hanging(9), Generate: Broken()}).run(
            [Query("q0", "0"), Query("q1", "0"), *([Query("q2", "1")] if kind is Retrieve else [])]
        )

    with pytest.raises(UserError, match="broken"):
        asyncio.run(main())
    go.set()
    gc.collect()
    assert events == ["cancelled", "closed"] and "pending" not in caplog.text
