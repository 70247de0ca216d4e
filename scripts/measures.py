"""What a benchmark writes as JSON, so that ``scripts/bench.py`` can set it beside its goal."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Measure:
    """One quantity, measured in several rounds.

    Args:
        name: What is measured; a goal names it.
        unit: What the numbers are, with the peer: ``x bm25s' time``, or ``CPU s``.
        values: One a round.
    """

    name: str
    unit: str
    values: Sequence[float]

    @property
    def spread(self) -> tuple[float, float, float]:
        """Minimum, median (of an even number the upper one) and maximum."""
        ordered = sorted(self.values)
        return ordered[0], ordered[len(ordered) // 2], ordered[-1]


def ratios(ours: Iterable[float], peer: Iterable[float]) -> list[float]:
    """Ours over the peer's, round by round."""
    return [a / b for a, b in zip(ours, peer, strict=True)]


def write(path: Path | None, measures: Sequence[Measure], about: Mapping[str, Any] | None = None) -> None:
    """Write measures with the machine and further facts; nothing without a path."""
    if path is not None:
        machine = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count()}
        rows = [asdict(measure) for measure in measures]
        path.write_text(json.dumps({"about": {**machine, **(about or {})}, "measures": rows}, indent=1, default=str))


def read(path: Path) -> list[Measure]:
    """The measures of a file; none if the benchmark wrote none."""
    rows = json.loads(path.read_text()).get("measures", []) if path.exists() else []
    return [Measure(**row) for row in rows]
