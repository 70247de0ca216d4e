"""The model of docs/scale.md for work on several machines, beside a simulation of the engine in virtual time.

The engine gives its jobs to a double of Ray whose workers need simulated seconds: back-pressure and the order of jobs
are the engine's own.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common import ray_engine
from lm_eval_rag.harness.common.ray_engine import AHEAD, RayEngine

SHARD, START = 65_536, 30.0  # documents of a shard; seconds in which a worker starts and loads its model
DOCUMENTS, RATE = 21_015_324, 1000.0  # of Wikipedia as DPR cut it; documents a second and worker


@dataclass
class VirtualRay:
    """Workers that take jobs in order; the clock jumps to the end of the next job."""

    workers: int
    seconds: Callable[[int], float]
    now: float = 0.0
    most: int = 0  # jobs that were in flight
    free: list[float] = field(default_factory=list)  # when each worker is free: a heap

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": float(self.workers)}

    def put(self, value: Any) -> Any:
        return value

    def options(self, **_: Any) -> VirtualRay:
        return self

    def remote(self, *given: Any) -> Any:
        if len(given) == 1:  # the function
            return self
        number = given[1]
        idle = bool(self.free) and self.free[0] <= self.now
        new = len(self.free) < self.workers and not idle
        ends = (self.now + START if new else max(self.now, heappop(self.free))) + self.seconds(number)
        heappush(self.free, ends)
        return (ends, number)

    def wait(self, references: list[tuple[float, int]]) -> tuple[list[tuple[float, int]], list[Any]]:
        self.most = max(self.most, len(references))
        first = min(references)
        self.now = first[0]
        return [first], []

    def get(self, reference: tuple[float, int]) -> int:
        return min(SHARD, DOCUMENTS - reference[1] * SHARD)

    class exceptions:  # noqa: N801
        RayTaskError = WorkerCrashedError = OutOfMemoryError = RayError = KeyError


def simulated(workers: int, seconds: Callable[[int], float], monkeypatch: pytest.MonkeyPatch) -> VirtualRay:
    """All shards of Wikipedia, encoded by so many workers."""
    virtual = VirtualRay(workers, seconds)

    @contextmanager
    def connected(address: str) -> Iterator[VirtualRay]:
        yield virtual

    monkeypatch.setattr(ray_engine, "connected", connected)
    shards = math.ceil(DOCUMENTS / SHARD)
    sizes = [min(SHARD, DOCUMENTS - number * SHARD) for number in range(shards)]
    RayEngine().run("encoding", lambda number: 0, list(range(shards)), sizes, "documents")
    return virtual


def model(workers: int) -> float:
    """As docs/scale.md has it: whole shards, in rounds."""
    return START + math.ceil(math.ceil(DOCUMENTS / SHARD) / workers) * SHARD / RATE


@pytest.mark.parametrize("workers", [1, 8, 64, 321, 1000])
def test_the_model_is_the_time_of_the_engine(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    virtual = simulated(workers, lambda number: SHARD / RATE, monkeypatch)
    assert virtual.now == pytest.approx(model(workers)) and virtual.most <= AHEAD * workers
    text = (Path(__file__).parents[3] / "docs" / "scale.md").read_text(encoding="utf-8")
    rows = {int(n.replace(",", "")): (float(t.replace(",", "")), int(s)) for n, t, s in re.findall(ROW, text)}
    minutes, share = rows[workers]
    assert minutes == pytest.approx(virtual.now / 60, rel=0.005)
    assert share == round(100 * DOCUMENTS / RATE / workers / virtual.now)


ROW = r"\| ([\d,]+) \| ([\d,.]+) min \| (\d+) % \|"


@pytest.mark.parametrize("workers", [8, 64])
def test_shards_of_unequal_times_and_killed_workers_cost_one_shard_at_most(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(0)
    times = [SHARD / RATE * draw.uniform(0.7, 1.3) + (START + 10 if draw.random() < 0.05 else 0) for _ in range(321)]
    virtual = simulated(workers, times.__getitem__, monkeypatch)
    assert sum(times) / workers < virtual.now < START + sum(times) / workers + max(times)
