"""The bar of long work: on a terminal, and as plain lines elsewhere."""

import io
import threading
import time

import pytest

from lm_eval_rag.harness.common import progress
from lm_eval_rag.harness.common.progress import Meter, counting, written


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def until(condition):
    end = time.perf_counter() + 5
    while not condition() and time.perf_counter() < end:
        time.sleep(0.005)
    assert condition()


@pytest.mark.parametrize(
    ("options", "done", "line"),
    [
        ({"total": 8, "unit": "documents"}, 2, "x: 2/8 documents, about 30 s left"),
        ({"total": 4_000_000, "unit": "bytes"}, 1_000_000, "x: 1.0 of 4.0 MB, about 30 s left"),
        ({"total": 1_000, "unit": "documents"}, 20, "x: 20/1000 documents, about 8 min left"),
        ({"total": 1_000, "unit": "documents"}, 19, "x: 19/1000 documents, time left unknown"),
        ({"total": 100, "unit": "documents"}, 5, "x: 5/100 documents, about 3 min left"),
        ({"total": 100, "unit": "documents"}, 4, "x: 4/100 documents, time left unknown"),
        ({"total": 100, "unit": "documents", "start": 90}, 4, "x: 94/100 documents, time left unknown"),
        ({"total": 10, "unit": "documents", "start": 6}, 2, "x: 8/10 documents, about 10 s left"),
        ({"total": 10, "unit": "documents"}, 0, "x: 0/10 documents, time left unknown"),
        ({"unit": "bytes"}, 2_500_000, "x: 2.5 MB, 10 s so far"),
        ({"beside": lambda: "3.0 MB written"}, 0, "x: 3.0 MB written, 10 s so far"),
    ],
)
def test_what_a_line_says(clock, options, done, line):
    with Meter("x", file=io.StringIO(), **options) as meter:
        clock[0] += 10
        meter.update(done)
        assert meter.line() == line


def test_time_left_is_that_of_the_recent_updates(clock):
    """1,000 answers from a journal at once, then one in ten seconds: 50 more take 500 seconds."""
    with Meter("x", 1_350, "questions", file=io.StringIO()) as meter:
        for _ in range(1_000):
            meter.update()
        for _ in range(300):
            clock[0] += 10
            meter.update()
        assert meter.line().endswith("about 8 min left")


def test_lines_come_by_time_and_not_by_updates(monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.01)
    file = io.StringIO()
    with Meter("x", 2, "calls", file=file) as meter:
        until(lambda: file.getvalue().count("\n") >= 2)
        meter.update(2)
    lines = file.getvalue().splitlines()
    assert lines[0] == "x: 0/2 calls, time left unknown" and lines[-1] == "x: 2/2 calls, about 0 s left"
    assert "lm-eval-rag progress" not in [thread.name for thread in threading.enumerate()]


def test_short_work_says_nothing():
    file = io.StringIO()
    with Meter("download", 10, "bytes", file=file) as meter:
        meter.update(5)
    with Meter("build", file=file):
        pass
    assert file.getvalue() == ""


def test_a_bar_on_a_terminal(monkeypatch):
    monkeypatch.setattr(progress, "TICK", 0.01)
    file, text = Terminal(), ["1 call"]
    with Meter("x", 4, "questions", beside=lambda: text[0], leave=True, file=file) as meter:
        meter.update(1)
        text[0] = "2 calls"
        until(lambda: "2 calls" in file.getvalue())
    assert "x:  25%|" in file.getvalue() and "1/4 [" in file.getvalue() and "\n" in file.getvalue()


def test_what_is_written(tmp_path):
    assert written(tmp_path / "nothing")() == "0.0 MB written"
    (tmp_path / "deep").mkdir()
    for name in ("a", "deep/b"):
        (tmp_path / name).write_bytes(b"x" * 600_000)
    assert written(tmp_path)() == "1.2 MB written" and written(tmp_path / "a")() == "0.6 MB written"


def test_bars_of_a_library_are_followed(capsys):
    with Meter("download of a/b", unit="bytes", file=io.StringIO()) as meter:
        class_ = counting(meter)
        with class_(total=0, unit="B", initial=0) as bytes_, class_(["a", "b"], total=2) as files:
            bytes_.total = 3_000_000  # as the Hub's client does when it comes to know of a file
            bytes_.refresh()
            bytes_.update(1_000_000)
            assert list(files) == ["a", "b"]
            files.update(1)
            assert (meter.done, meter.total) == (1_000_000, 3_000_000)
    assert capsys.readouterr().err == ""
