"""Calls in a guarded process: what they return, each limit, crashes, and that nothing is left behind."""

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lm_eval_rag.harness.common.guarded import Guarded, GuardError

FACTORY = """
import ctypes
import os
import time

print("printed at import")

def loop():
    while True:
        pass

ACTIONS = {
    "loop": loop,
    "sleep": lambda: time.sleep(60),
    "memory": lambda: bytearray(1 << 40),
    "segfault": lambda: ctypes.string_at(0),
    "exit": lambda: os._exit(0),
}

def make(greeting):
    calls = []

    def function(request):
        calls.append(request)
        print("printed in a call")
        ACTIONS.get(request.decode(errors="replace"), int)()
        return greeting.encode() + request + b" call %d" % len(calls)

    return function

def broken(_):
    raise ImportError("No module named 'nowhere'")
"""


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Guarded]]:
    """``guarded(factory="make", **limits)``; all are closed at the end."""
    (tmp_path / "guarded_functions.py").write_text(FACTORY)
    monkeypatch.syspath_prepend(str(tmp_path))
    made: list[Guarded] = []

    def make(factory: str = "make", seconds: float = 30, wall: float = 60, **limits: int) -> Guarded:
        made.append(Guarded(f"guarded_functions:{factory}", "hello ", seconds=seconds, wall=wall, **limits))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_bytes_in_and_bytes_out(guarded: Callable[..., Guarded]) -> None:
    one = guarded()
    assert one.call(b"world") == b"hello world call 1"
    assert one.call(b"\x00\xff") == b"hello \x00\xff call 1"  # a fresh child: nothing of the last call is left
    large = os.urandom(1 << 22)
    assert one.call(large) == b"hello " + large + b" call 1"


@pytest.mark.parametrize(
    ("request_", "limits", "reason"),
    [
        (b"loop", {"seconds": 0.2}, "timed out"),
        (b"sleep", {"wall": 0.2}, "timed out"),
        (b"memory", {}, "crashed"),
        (b"segfault", {}, "crashed"),
    ],
)
def test_each_limit_ends_the_call_alone(
    guarded: Callable[..., Guarded], request_: bytes, limits: dict[str, float], reason: str
) -> None:
    one = guarded(**limits)
    assert one.call(b"x") == b"hello x call 1"
    began = time.perf_counter()
    with pytest.raises(GuardError) as stopped:
        one.call(request_)
    assert stopped.value.reason == reason and time.perf_counter() - began < 10
    assert one.call(b"y") == b"hello y call 1"


def test_memory_is_limited_as_told(guarded: Callable[..., Guarded]) -> None:
    with pytest.raises(GuardError, match="crashed"):
        guarded(memory=1 << 20).call(b"x" * (1 << 22))
    assert guarded(memory=1 << 31).call(b"x" * (1 << 22)).startswith(b"hello x")


def test_a_lost_process_is_replaced(guarded: Callable[..., Guarded]) -> None:
    one = guarded()
    one.call(b"x")
    assert one.process is not None
    os.kill(one.process.pid, signal.SIGKILL)
    with pytest.raises(GuardError, match="lost"):
        one.call(b"x")
    assert one.call(b"x") == b"hello x call 1"


@pytest.mark.parametrize("end", ["close", "collected"])
def test_no_process_is_left(guarded: Callable[..., Guarded], end: str) -> None:
    one = Guarded("guarded_functions:make", "", seconds=9, wall=9)
    one.call(b"x")
    process = one.process
    assert process is not None and process.returncode is None
    if end == "close":
        one.close()
        one.close()
        assert one.call(b"x") == b"x call 1"  # a call starts another
        one.close()
    del one
    gc.collect()
    assert process.returncode is not None


@pytest.mark.parametrize("factory", ["broken", "guarded_functions_that_are_nowhere:make"])
def test_a_function_that_cannot_be_imported_is_named(guarded: Callable[..., Guarded], factory: str) -> None:
    one = guarded(factory) if factory == "broken" else Guarded(factory, seconds=9, wall=9)
    with pytest.raises(ImportError, match="nowhere"):
        one.call(b"x")


def test_threads_share_it(guarded: Callable[..., Guarded]) -> None:
    one, replies = guarded(), dict[int, bytes]()
    threads = [
        threading.Thread(target=lambda n=n: replies.update({n: one.call(b"%d" % n)}))  # type: ignore[misc]
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies == {n: b"hello %d call 1" % n for n in range(8)}
