"""How much of a run's prompts is the beginning of an earlier prompt, which a prefix cache (vLLM's, a server's) can hold.

    lm_eval --tasks reasoning_demo --model ircot --model_args generator=tiny_steps --limit 20 --output_path runs/ircot --log_samples
    python scripts/shared_prefixes.py runs/*

For each run: prompts, and the share of their characters that the longest common beginning with any earlier prompt has,
in the order of the trace; *own* counts earlier prompts of the same question alone. A cache holds whole blocks of
tokens and forgets, so that this is the most that it can save.
"""  # noqa: E501 - a command is one line

from __future__ import annotations

import argparse
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from markdown_table import table

from lm_eval_rag.harness.plugin.trace_file import read_trace

PROMPTED = ("Generate", "Loglikelihood")


def common_length(one: str, other: str) -> int:
    """Of the longest common beginning, by halves."""
    known, most = 0, min(len(one), len(other))
    while known < most:
        middle = (known + most + 1) // 2
        if one[known:middle] == other[known:middle]:
            known = middle
        else:
            most = middle - 1
    return known


def shared(prompts: Iterable[str]) -> list[int]:
    """The length of each prompt's longest common beginning with an earlier one."""
    earlier: list[str] = []
    lengths = []
    for prompt in prompts:
        place = bisect(earlier, prompt)  # of all, a neighbour in alphabetical order has most in common
        neighbours = earlier[max(0, place - 1) : place + 1]
        lengths.append(max((common_length(prompt, one) for one in neighbours), default=0))
        earlier.insert(place, prompt)
    return lengths


def shares(asked: Sequence[tuple[str, str]]) -> tuple[float, float]:
    """The share of all characters that is shared with any earlier prompt, and with one of the same question.

    Args:
        asked: (question, prompt) in order.
    """
    total = sum(len(prompt) for _, prompt in asked)
    of_question = defaultdict[str, list[str]](list)
    for question, prompt in asked:
        of_question[question].append(prompt)
    own = sum(sum(shared(prompts)) for prompts in of_question.values())
    return sum(shared(prompt for _, prompt in asked)) / total, own / total


def main() -> None:
    """Print one line for each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("runs", type=Path, nargs="+", help="folders that lm_eval wrote with --log_samples")
    rows = []
    for folder in parser.parse_args().runs:
        lines: list[Any] = [line for file in sorted(folder.rglob("trace_*.jsonl.gz")) for line in read_trace(file)]
        asked = [(line["id"], step["request"]) for line in lines for step in line["steps"] if step["ask"] in PROMPTED]
        if asked:
            every, own = shares(asked)
            rows.append([folder.name, f"{len(asked):,}", f"{100 * every:.0f} %", f"{100 * own:.0f} %"])
    print(table(["run", "prompts", "shared with any earlier", "with one of the same question"], rows))


if __name__ == "__main__":
    main()
