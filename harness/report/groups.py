"""Recomputes the scores of groups in lm_eval's results from the scores of their tasks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lm_eval_rag.harness.report.rescore import Check, Rescored, number, same


def rescore_groups(label: str, results: Mapping[str, Any]) -> Iterator[Rescored]:
    """One result per group of a results file that has its own scores.

    A group's score is the mean over its tasks, weighted by size or not, depending on its YAML. The results file does
    not say which, so both are accepted.
    """
    for group, reported in results.get("groups", {}).items():
        tasks = [results["results"][task] for task in _leaves(group, results["group_subtasks"])]
        keys = [key for key in reported if "," in key and "_stderr," not in key]
        yield Rescored(
            label, f"group {group}", 0, tuple(c for key in keys for c in _checks(key, reported, tasks)), (), ()
        )


def _leaves(group: str, members: Mapping[str, Sequence[str]]) -> list[str]:
    """The tasks of a group and of the groups in it."""
    return [leaf for name in members[group] for leaf in (_leaves(name, members) if name in members else [name])]


def _checks(key: str, reported: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]]) -> Iterator[Check]:
    name, _, kind = key.partition(",")
    error = f"{name}_stderr,{kind}"
    having = [task for task in tasks if key in task]
    sizes, means = [task["sample_len"] for task in having], [task[key] for task in having]
    yield _nearest(key, number(reported[key]), [_weighted(means, sizes), _weighted(means, [1] * len(means))])
    errors = [number(task.get(error)) for task in having]
    if number(reported.get(error)) is not None:
        known = [value for value in errors if value is not None]
        ways = [_pooled(known, sizes), math.hypot(*known) / len(known)] if known and len(known) == len(errors) else []
        yield _nearest(error, number(reported[error]), ways)


def _nearest(name: str, reported: float | None, ways: Sequence[float | None]) -> Check:
    """A check against the first way of computing that agrees, else against the first way."""
    return Check(name, reported, next((way for way in ways if same(reported, way)), ways[0] if ways else None))


def _weighted(means: Sequence[float], sizes: Sequence[int]) -> float | None:
    return sum(mean * size for mean, size in zip(means, sizes, strict=True)) / sum(sizes) if sum(sizes) else None


def _pooled(errors: Sequence[float], sizes: Sequence[int]) -> float | None:
    """lm_eval's ``pooled_sample_stderr``."""
    free, total = sum(sizes) - len(sizes), sum(sizes)
    variance = sum((size - 1) * error**2 * size for error, size in zip(errors, sizes, strict=True))
    return math.sqrt(variance / free / total) if free else None
