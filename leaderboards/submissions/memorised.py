"""Memorised answers: a task beside its ``_fresh`` twin, the same questions about entities with invented names.

A name is replaced word by word and everywhere, so a system that reads answers from documents and rules answers both
alike: ``rule_vote`` is right on at most 0.5 % more of the questions of a set than of its twin (data version 4). A
system that knows the test set, or the world that it is drawn from, does not. The rule compares the two tasks question
by question:

- a memory win: right on the original and wrong on its twin;
- a memory loss: wrong on the original and right on its twin;
- retrieval explains a win, and it does not count, if the original's passages state a gold answer and the twin's do
  not; it explains a loss the other way round. Without retrieved passages it explains nothing.

Flagged if wins minus losses are at least :data:`EXCESS` of the questions and the exact sign test of the two counts
has p < :data:`ALPHA`. The excess lies above what a baseline reaches that gives one constant to both tasks: the most
common gold answer of a RuleQA set is right on at most 8.7 % (version 4), and is wrong on all of the twin's. The
strict p guards small sets, where ten percent are a few questions.

A flag says that documents do not explain the score; whether a test set or knowledge of the world does, a maintainer
decides with the declared training data. A submitter who invents ids of passages for the original alone evades it, and
shows a recall that differs as much between the twins.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import comb

EXCESS = 0.10  # share of the questions
ALPHA = 0.001
ENOUGH = 30  # pairs below which no share is looked at
RIGHT, REACHED = "em", "mrr"

Scores = Mapping[str, Mapping[str, float]]  # metric -> question id -> score


def memorised(original: Scores, fresh: Scores) -> str | None:
    """The flag, as a sentence; None if there is nothing to look at.

    Args:
        original: Scores of the task; ``mrr`` is above 0 where a retrieved passage states a gold answer.
        fresh: Scores of its twin, under the same question ids.
    """
    right, again = original.get(RIGHT, {}), fresh.get(RIGHT, {})
    pairs = [id for id in right if id in again]
    if len(pairs) < ENOUGH:
        return None
    reached, reached_again = (scores.get(REACHED, {}) for scores in (original, fresh))
    wins = losses = 0
    for id in pairs:
        first, second = bool(reached.get(id)), bool(reached_again.get(id))
        wins += bool(right[id] > again[id] and not (first and not second))
        losses += bool(right[id] < again[id] and not (second and not first))
    excess = (wins - losses) / len(pairs)
    if excess < EXCESS or sign_test(wins, losses) >= ALPHA:
        return None
    means = [100 * sum(scores[id] for id in pairs) / len(pairs) for scores in (right, again)]
    return (
        f"{means[0]:.1f} % right here and {means[1]:.1f} % on the same questions with invented names. On {wins} "
        "of them only the known names are answered, and retrieval does not explain it: were the answers memorised?"
    )


def sign_test(wins: int, losses: int) -> float:
    """One-sided exact p value of at least ``wins`` among ``wins + losses`` fair coins; 1 for no coin."""
    n = wins + losses
    return float(sum(comb(n, i) for i in range(wins, n + 1)) / 2**n)
