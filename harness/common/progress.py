"""How far long work is, on standard error: a bar on a terminal, elsewhere a plain line every 30 seconds."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from tqdm import tqdm

from lm_eval_rag.harness.common.quiet import console

EVERY = 30.0  # seconds between two lines where there is no terminal; shorter work says nothing
TICK = 1.0  # seconds after which a bar shows the time again, although nothing was done
MININTERVAL = 0.1  # seconds between two changes of a bar
RECENT = 256  # updates from which the time left is computed: what a journal served at once says nothing of the rest
EARLY, ANSWERS = 0.05, 20  # what has to be done before the time left is shown: this share, or so many
BAR = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"
CLOCK = "{desc}: {n_fmt} [{elapsed}{postfix}]"  # where the end is not known


class Meter:
    """Counts what is done and shows it; used as a context.

    Args:
        name: What is done, such as ``download of icews14/train.txt``.
        total: How much there is; None where that is not known.
        unit: What is counted, in the plural; ``bytes`` are shown in megabytes, and an empty unit is not shown.
        start: What an earlier run has done.
        beside: What else to show, asked each time; an empty text shows nothing.
        leave: Whether the bar stays on the terminal at the end.
        file: Where it is written; standard error by default.
    """

    def __init__(
        self,
        name: str,
        total: int | None = None,
        unit: str = "",
        *,
        start: int = 0,
        beside: Callable[[], str] = lambda: "",
        leave: bool = False,
        file: TextIO | None = None,
    ) -> None:
        self.name, self.total, self.unit, self.done, self.beside = name, total, unit, start, beside
        self.start = start
        self.file = console() if file is None else file
        self.began = time.monotonic()
        self._lines = 0
        self._recent = deque([(self.began, start)], maxlen=RECENT)
        self._bar = self._new_bar(leave) if self.file.isatty() else None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="lm-eval-rag progress", daemon=True)
        self._thread.start()

    def _new_bar(self, leave: bool) -> tqdm[None]:
        return tqdm(
            total=self.total,
            initial=self.done,
            desc=self.name,
            unit=self.unit,
            unit_scale=self.unit == "bytes",
            bar_format=CLOCK if self.total is None else BAR,
            dynamic_ncols=True,
            mininterval=MININTERVAL,
            miniters=1,
            leave=leave,
            file=self.file,
        )

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close()

    def update(self, count: int = 1) -> None:
        """``count`` more are done."""
        if count:
            self.done += count
            self._recent.append((time.monotonic(), self.done))
        if self._bar is not None:
            self._bar.set_postfix_str(", ".join(self._texts()), refresh=False)
            self._bar.update(count)

    def line(self) -> str:
        """The state as text."""
        counts = [self._counts()] if self._counts() else []
        seconds = [] if self.total is not None else [f"{time.monotonic() - self.began:.0f} s so far"]
        return f"{self.name}: {', '.join([*counts, *self._texts(), *seconds])}"

    def _counts(self) -> str:
        if self.unit == "bytes":
            of = "" if self.total is None else f" of {self.total / 1e6:,.1f}"
            return f"{self.done / 1e6:,.1f}{of} MB"
        of = "" if self.total is None else f"/{self.total}"
        return f"{self.done}{of} {self.unit}" if self.unit else ""

    def _texts(self) -> list[str]:
        left = [] if self.total is None else [self._left()]
        return [text for text in (self.beside(), *left) if text]

    def _left(self) -> str:
        """The time left at the rate of the recent updates; a few do not tell it."""
        (since, before), now = self._recent[0], time.monotonic()
        early = self.total is None or self.done - self.start < min(ANSWERS, EARLY * self.total)
        if early or self.done == before or self.total is None:
            return "time left unknown"
        seconds = max(0.0, (now - since) / (self.done - before) * (self.total - self.done))
        return f"about {seconds:.0f} s left" if seconds < 180 else f"about {seconds / 60:.0f} min left"

    def _tick(self) -> None:
        while not self._ended.wait(EVERY if self._bar is None else TICK):
            if self._bar is None:
                self._write()
            else:
                self._bar.set_postfix_str(", ".join(self._texts()))

    def _write(self) -> None:
        self._lines += 1
        self.file.write(self.line() + "\n")
        self.file.flush()

    def close(self) -> None:
        """End it; the last state of work that was interrupted, or had a line before, stays to be read."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._thread.join()
        if self._bar is not None:
            self._bar.close()
        elif self._lines or (self.total is not None and self.unit != "bytes" and self.done < self.total):
            self._write()


def written(path: Path) -> Callable[[], str]:
    """Says how much of a file, or in a folder, is written so far; for ``beside`` of a :class:`Meter`."""

    def text() -> str:
        try:
            files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
            return f"{sum(file.stat().st_size for file in files) / 1e6:,.1f} MB written"
        except OSError:  # a file that was moved or removed meanwhile
            return ""

    return text


def counting(meter: Meter) -> type[tqdm[None]]:
    """A class for libraries that take a tqdm class: shows nothing, and has ``meter`` follow their bars of bytes."""

    class Counting(tqdm):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **{**options, "disable": True})
            self.bytes = options.get("initial") or 0 if options.get("unit") == "B" else None

        def update(self, n: float | None = 1) -> None:
            if self.bytes is not None:
                self.bytes += int(n or 0)
                meter.total = int(self.total) if self.total else None
                meter.update(max(0, self.bytes - meter.done))

    return Counting
