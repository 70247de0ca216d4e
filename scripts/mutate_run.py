"""A pytest plugin for mutate.py: collects the tests once and forks for every mutant.

A mutant's process runs the tests that reach the changed function, the quickest first, until one fails. Which test
reaches what, and how long it takes, is measured first, in one run without a mutant; all tests must pass there. The
parent process itself runs no test, since some libraries (polars, torch) do not survive a fork once they have run.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

GRACE, TIMES = 5.0, 10.0  # a test may take 5 s and ten times as long as without a mutant
CAUGHT, MISSED = 1, 0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutants", type=Path, help="a file with one name per line")
    parser.addoption("--outcomes", type=Path, help="lines of an outcome and a name are appended to this file")
    parser.addoption("--processes", type=int, default=1)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    options = session.config.option
    names = options.mutants.read_text(encoding="utf-8").split()
    seconds, reached = _measure(session, options.outcomes.with_name("reached.jsonl"))
    by_name = {item.nodeid: item for item in session.items}
    running: dict[int, str] = {}
    with options.outcomes.open("a", encoding="utf-8") as outcomes:

        def wait() -> None:
            process, status = os.wait()
            with suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)  # what its tests may have left behind
            code = os.waitstatus_to_exitcode(status)
            outcome = {CAUGHT: "caught", MISSED: "missed"}.get(code, "timeout" if code == -signal.SIGALRM else "crash")
            outcomes.write(f"{outcome}\t{running.pop(process)}\n")
            outcomes.flush()

        for number, name in enumerate(names, start=1):
            tests = sorted(reached[name.partition("__mutmut_")[0]], key=seconds.__getitem__)
            items = [by_name[test] for test in tests]
            while len(running) >= options.processes:
                wait()
            running[_fork(partial(_caught, session, items, name, seconds))] = name
            sys.stderr.write(f"\r{number} of {len(names)} mutants")
        while running:
            wait()
    sys.stderr.write("\n")
    return True


def _measure(session: pytest.Session, file: Path) -> tuple[dict[str, float], dict[str, list[str]]]:
    """(seconds of each test, tests that reach each function), by a run of all tests without a mutant."""
    _, status = os.waitpid(_fork(partial(_record, session, file)), 0)
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    if os.waitstatus_to_exitcode(status) != 0:
        pytest.exit(f"without a mutant this test fails: {rows[-1][0] if rows else session.items[0].nodeid}", 2)
    reached = defaultdict(list)
    for test, _, functions in rows:
        for function in functions:
            reached[function].append(test)
    return {test: seconds for test, seconds, _ in rows}, reached


def _record(session: pytest.Session, file: Path) -> int:
    from mutmut.mutation.trampoline import set_mutant_under_test
    from mutmut.state import state

    set_mutant_under_test("stats")
    with file.open("w", encoding="utf-8") as rows:
        for item, following in _in_turn(session.items):
            began = time.perf_counter()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            rows.write(json.dumps([item.nodeid, time.perf_counter() - began, sorted(state()._stats)]) + "\n")
            state()._stats.clear()
            if session.testsfailed:
                return 1
    return 0


def _caught(session: pytest.Session, items: Sequence[pytest.Item], name: str, seconds: dict[str, float]) -> int:
    from mutmut.mutation.trampoline import set_mutant_under_test

    set_mutant_under_test(name)
    for item, following in _in_turn(items):
        signal.setitimer(signal.ITIMER_REAL, GRACE + TIMES * seconds[item.nodeid])
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return CAUGHT
    return MISSED


def _in_turn(items: Sequence[pytest.Item]) -> Iterable[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=True)


def _fork(task: Callable[[], int]) -> int:
    """The id of a process that exits with the task's result."""
    process = os.fork()
    if process:
        return process
    status = CAUGHT
    try:
        os.setsid()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        status = task()
    finally:
        os._exit(status)
