"""Scores of answers without a model on crag_demo: what a system has to beat there.

    python scripts/crag_demo_baselines.py [--seed 0]

Each line: the baseline, crag_score in per cent with a bootstrap interval over questions, and the numbers of correct,
missing and wrong answers by the rules judge.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

from lm_eval_rag.harness.scoring.judge import RulesJudge
from lm_eval_rag.harness.scoring.judge.panel import Panel, Response
from lm_eval_rag.harness.scoring.truncate import words_cut
from lm_eval_rag.tasks.crag.schema import parse
from lm_eval_rag.tasks.crag_demo.build import lines

DRAWS = 2_000
DONT_KNOW = "I don't know"
OPTION = re.compile(r", (?:the )?([^,]+) or [^,]+\?$")


def _first_option(row: dict[str, Any]) -> str:
    match = OPTION.search(row["query"])
    return match[1] if match else DONT_KNOW


BASELINES: dict[str, Callable[[dict[str, Any]], str]] = {
    'always "I don\'t know"': lambda row: DONT_KNOW,
    'always "invalid question"': lambda row: "invalid question",
    'the first option of "A or B?", else "I don\'t know"': _first_option,
    "the name of the first page": lambda row: str(row["search_results"][0]["page_name"]),
    "the snippet of the first page": lambda row: str(row["search_results"][0]["page_snippet"]),
}


def scores(baseline: Callable[[dict[str, Any]], str], seed: int = 0) -> list[int]:
    """1, 0 or -1 for each question of a world."""
    panel, points = Panel((RulesJudge(),), words_cut(), True), []
    for number, line in enumerate(lines(seed)):
        row = json.loads(line)
        response = Response(row["query"], tuple(parse(line, f"question {number}").answers), baseline(row))
        verdict = panel.verdicts([response])[response]
        points.append(0 if verdict.missing else 1 if verdict.correct == 1 else -1)
    return points


def interval(points: Sequence[int]) -> tuple[float, float]:
    """95 % bootstrap interval of the mean over questions."""
    rng, n = random.Random(0), len(points)
    means = sorted(sum(rng.choices(points, k=n)) / n for _ in range(DRAWS))
    return means[DRAWS // 40], means[-DRAWS // 40 - 1]


def main() -> None:
    """Print one line for each baseline."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the world (default: 0)")
    seed = parser.parse_args().seed
    for name, baseline in BASELINES.items():
        points = scores(baseline, seed)
        low, high = interval(points)
        print(
            f"{name}: {100 * sum(points) / len(points):.1f} [{100 * low:.1f}, {100 * high:.1f}], "
            f"correct {points.count(1)}, missing {points.count(0)}, wrong {points.count(-1)}"
        )


if __name__ == "__main__":
    main()
