"""Running trials: a native library that does not fit this machine ends its process, here one line of the report."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

SECONDS = 120.0  # by the clock; a busy machine or a cold disk takes many times longer than the second of CPU


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a trial ended: what it says, and whether it worked."""

    works: bool
    text: str


def run_trials(names: Sequence[str], seconds: float = SECONDS) -> dict[str, Outcome]:
    """The outcomes by name, as many trials at a time as there are processors.

    Args:
        names: Of ``TRIALS``.
        seconds: After which a trial is ended and did not work.
    """
    with ThreadPoolExecutor(max_workers=max(2, os.cpu_count() or 1)) as pool:
        return dict(zip(names, pool.map(lambda name: run_trial(name, seconds), names), strict=True))


def run_trial(name: str, seconds: float = SECONDS) -> Outcome:
    """One trial in a process of its own."""
    return run_apart(f"from lm_eval_rag.doctor.trials import main; main({name!r})", seconds)


def run_apart(code: str, seconds: float) -> Outcome:
    """Python code in a process of its own; the last line that it writes is what it says."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "LM_EVAL_RAG_AUTOLOAD": "0",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    command, start = [sys.executable, "-P", "-c", code], time.monotonic()
    try:
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return Outcome(False, f"its trial did not end within {seconds:g} s; it hangs, or this machine is very busy")
    said, errors = (
        [line.strip() for line in text.splitlines() if line.strip()] for text in (ended.stdout, ended.stderr)
    )
    if ended.returncode == 0 and said:
        return Outcome(True, f"{said[-1]} ({time.monotonic() - start:.1f} s)")
    if ended.returncode < 0:
        return Outcome(False, f"its trial crashed ({signal.Signals(-ended.returncode).name})")
    return Outcome(False, errors[-1] if errors else f"its trial ended with status {ended.returncode} and said nothing")
