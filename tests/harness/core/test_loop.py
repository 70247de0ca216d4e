"""Coroutines from plain code, threads that nobody waits for, and interrupts that end both at once."""

import asyncio
import signal
import subprocess
import sys
import threading
import time

import pytest

from lm_eval_rag.harness.core.loop import Workers, run_async


def test_a_result_and_an_error_come_back():
    async def add(a, b):
        return a + b

    async def fail():
        raise KeyError("x")

    assert run_async(add(1, 2)) == 3
    with pytest.raises(KeyError, match="x"):
        run_async(fail())


def test_where_a_loop_runs_already_both_come_back_too():
    async def fail():
        raise KeyError("x")

    async def main():
        with pytest.raises(KeyError, match="x"):
            run_async(fail())
        return run_async(asyncio.sleep(0, "inner"))

    assert asyncio.run(main()) == "inner"


def test_workers_run_as_many_calls_at_once_as_they_are():
    inside, most, lock = [0], [0], threading.Lock()

    def call(i):
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        time.sleep(0.01)
        with lock:
            inside[0] -= 1
        if i == 7:
            raise ValueError("seven")
        return i * i

    async def main():
        workers = Workers(3)
        results = await asyncio.gather(*(workers.call(call, i) for i in range(12)), return_exceptions=True)
        workers.close()
        return results

    results = asyncio.run(main())
    assert [r for r in results if not isinstance(r, ValueError)] == [i * i for i in range(12) if i != 7]
    assert str(results[7]) == "seven" and most[0] == 3


PROGRAM = """
import sys, time
from lm_eval_rag.harness.core.asks import Generate, generate
from lm_eval_rag.harness.core.types import Answer
import lm_eval_rag
class Slow:
    fingerprint, batch = "slow", 1
    def generate(self, prompts, decoding, samples):
        print("asked", flush=True)
        time.sleep(60)
    def count_tokens(self, text): return None
    def room(self, max_tokens): return None
def method(query):
    return Answer((yield from generate(query.text)))
from lm_eval_rag.harness.plugin.engine import run
try:
    run(method, ["a", "b"], generator=Slow())
except KeyboardInterrupt:
    print("interrupted", flush=True)
    import os
    os._exit(130)
"""


def seconds_to_end(sent, status):
    """How long a run lives after a signal, in the middle of a call that takes a minute."""
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "asked\n"
    began = time.monotonic()
    process.send_signal(sent)
    assert process.wait(timeout=30) == status
    return time.monotonic() - began


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_ends_a_run_within_two_seconds(sent, status):
    """One time of three will do: the machine may be busy."""
    assert any(seconds_to_end(sent, status) < 2 for _ in range(3))
