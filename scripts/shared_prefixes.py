"""How much of a run's prompts is the beginning of an earlier prompt, which a prefix cache (vLLM's, a server's) can hold.

    lm_eval --tasks reasoning_demo --model ircot --model_args generator=tiny_steps --limit 20 --output_path runs/ircot --log_samples
    python scripts/shared_prefixes.py runs/* --cache 40000

For each run: prompts, and the share of their characters that the longest common beginning with any earlier prompt has,
in the order of the trace; *own* counts earlier prompts of the same question alone. A cache holds whole blocks of
tokens and forgets, so that this is the most that it can save. The last columns have the share that a cache
of so many characters finds, if it forgets what was not used for longest: when all questions take turns, and when eight
run at once and the next begins as one ends (:mod:`lm_eval_rag.harness.core.turn`). A question asks one prompt at a
time there, also where a method asks several.
"""  # noqa: E501 - a command is one line

from __future__ import annotations

import argparse
from bisect import bisect
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from markdown_table import table

from lm_eval_rag.harness.plugin.trace_file import read_trace

PROMPTED = ("Generate", "Loglikelihood")
BLOCK = 64  # characters: the 16 tokens of vLLM's blocks
AT_ONCE = 8  # gen_num_concurrent's default


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


def by_question(asked: Iterable[tuple[str, str]]) -> list[list[str]]:
    """The prompts of each question."""
    prompts = defaultdict[str, list[str]](list)
    for question, prompt in asked:
        prompts[question].append(prompt)
    return list(prompts.values())


def shares(asked: Sequence[tuple[str, str]]) -> tuple[float, float]:
    """The share of all characters that is shared with any earlier prompt, and with one of the same question.

    Args:
        asked: (question, prompt) in order.
    """
    total = sum(len(prompt) for _, prompt in asked)
    own = sum(sum(shared(prompts)) for prompts in by_question(asked))
    return sum(shared(prompt for _, prompt in asked)) / total, own / total


def in_turns(questions: Sequence[Sequence[str]], at_once: int) -> list[str]:
    """The prompts in order: each question under way asks one, then the first again; an ended one is replaced."""
    order, under_way, coming = [], deque[deque[str]](), deque(map(deque, questions))
    while under_way or coming:
        while coming and len(under_way) < at_once:
            under_way.append(coming.popleft())
        question = under_way.popleft()
        order.append(question.popleft())
        if question:
            under_way.append(question)
    return order


def cached(prompts: Iterable[str], capacity: int) -> float:
    """The share of all characters found in a cache of ``capacity`` characters, which forgets what is unused longest."""
    kept, found, total = OrderedDict[int, None](), 0, 0
    for prompt in prompts:
        blocks = [hash(prompt[:end]) for end in range(BLOCK, len(prompt) + 1, BLOCK)]
        found += BLOCK * next((i for i, block in enumerate(blocks) if block not in kept), len(blocks))
        total += len(prompt)
        for block in blocks:
            kept[block] = None
            kept.move_to_end(block)
        while len(kept) > capacity // BLOCK:
            kept.popitem(last=False)
    return found / total


def main() -> None:
    """Print one line for each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("runs", type=Path, nargs="+", help="folders that lm_eval wrote with --log_samples")
    parser.add_argument("--cache", type=int, metavar="N", help="characters that a cache holds")
    options, rows = parser.parse_args(), []
    columns = ["run", "prompts", "shared with any earlier", "with one of the same question"]
    columns += ["in the cache, all in turns", f"{AT_ONCE} questions at once"] if options.cache else []
    for folder in options.runs:
        lines: list[Any] = [line for file in sorted(folder.rglob("trace_*.jsonl.gz")) for line in read_trace(file)]
        asked = [(line["id"], step["request"]) for line in lines for step in line["steps"] if step["ask"] in PROMPTED]
        if asked:
            every, own = shares(asked)
            rows.append([folder.name, f"{len(asked):,}", percent(every), percent(own)])
        if asked and options.cache:
            questions = by_question(asked)
            orders = [in_turns(questions, at_once) for at_once in (len(questions), AT_ONCE)]
            rows[-1] += [percent(cached(order, options.cache)) for order in orders]
    print(table(columns, rows))


def percent(share: float) -> str:
    """For the table."""
    return f"{100 * share:.0f} %"


if __name__ == "__main__":
    main()
