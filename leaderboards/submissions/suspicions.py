"""What a maintainer should look at: patterns of answers that have misled boards. A flag refuses nothing.

An entry with a flag is shown with it and is not ranked until a maintainer has looked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lm_eval_rag.harness.scoring.normalise import normalise
from lm_eval_rag.leaderboards.submissions.answer_key import AnswerKey
from lm_eval_rag.leaderboards.submissions.form import Prediction

ENOUGH = 30  # questions below which no share is looked at
PERFECT = 0.995  # share of exact answers above which the golds may have been copied
LONG, MOSTLY = 30, 0.2  # words of a long answer; share of long answers that is a pattern
LISTED = 3  # names of other questions' golds in one answer, besides its own
ALIKE = 0.9  # share of wrong answers that two entries have in common


def suspicions(
    key: AnswerKey, predictions: Mapping[str, Prediction], scores: Mapping[str, Mapping[str, float]]
) -> Iterator[str]:
    """The flags of one task, each a sentence."""
    n = len(predictions)
    if n < ENOUGH:
        return
    exact = scores.get("em", {})
    if exact and sum(exact.values()) / len(exact) >= PERFECT:
        yield f"{100 * sum(exact.values()) / len(exact):.1f} % of the answers equal a gold answer: were they copied?"
    long = sum(len(one.answer.split()) > LONG for one in predictions.values())
    if long > MOSTLY * n:
        yield f"{long} of {n} answers have more than {LONG} words: do they hold whole passages?"
    listing = sum(_lists_candidates(key, id, one.answer) for id, one in predictions.items())
    if listing > MOSTLY * n:
        yield f"{listing} of {n} answers name {LISTED} or more golds of other questions: do they list candidates?"


def _lists_candidates(key: AnswerKey, id: str, answer: str) -> bool:
    """Whether an answer is a list of at least as many names that are other questions' golds."""
    parts = [normalise(part) for part in answer.replace(";", ",").replace("|", ",").replace("\n", ",").split(",")]
    if len(parts) <= LISTED:
        return False
    own = {normalise(gold) for gold in key.questions[id]["answers"]}
    return len({part for part in parts if part and part in key.golds} - own) >= LISTED


def copy_flag(share: float, name: str) -> str:
    """The flag of a task whose wrong answers are those of the entry of that name."""
    return f"{100 * share:.0f} % of its wrong answers are those of {name!r}."


def alike(
    first: Mapping[str, Prediction],
    second: Mapping[str, Prediction],
    right: Mapping[str, float],
) -> float:
    """The share of the questions that ``first`` has wrong on which ``second`` gives the same answer, in [0, 1].

    Right answers agree anyway; wrong ones agree between a system and its copy.

    Args:
        right: Question id -> whether the first is right (1) or not (0).
    """
    wrong = [id for id, value in right.items() if not value and not first[id].abstained and id in second]
    if len(wrong) < ENOUGH:
        return 0.0
    return sum(normalise(first[id].answer) == normalise(second[id].answer) for id in wrong) / len(wrong)
