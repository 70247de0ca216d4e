"""Global search: an answer from each batch of reports, then one from the most helpful of these (section 3.1.6)."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lm_eval_rag.harness.scoring.normalise import count_words
from lm_eval_rag.methods.graphrag_parts.records import Index, Report

SCORE = re.compile(r"^\W*(?:helpfulness\W*)?(\d{1,3})\b(?:\s*/\s*100|\s*%)?[^\S\n]*[.:;,-]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Partial:
    """An answer from some of the reports, and how helpful the model thinks it is, from 1 to 100."""

    text: str
    helpfulness: int


def reports_at(index: Index, level: int) -> list[Report]:
    """The reports of a level, and those above it on communities that are divided no further."""
    return [one for one in index.reports.values() if one.level == level or (one.level < level and not one.parts)]


def batches(reports: Sequence[Report], tokens: int, seed: int) -> list[list[Report]]:
    """The reports, shuffled, in batches of at most ``tokens`` tokens; a longer report is a batch of its own."""
    mixed = random.Random(seed).sample(list(reports), len(reports))
    parts: list[list[Report]] = []
    size = 0
    for report in mixed:
        length = count_words(report.text)
        if not parts or size + length > tokens:
            parts.append([])
            size = 0
        parts[-1].append(report)
        size += length
    return parts


def partial_of(reply: str) -> Partial | None:
    """The score and the answer in a reply; None if it has no score, or no answer with a score above 0."""
    match = SCORE.match(reply)
    if match is None:
        return None
    return Partial(reply[match.end() :].strip(), min(100, int(match[1])))


def most_helpful(partials: Iterable[Partial], tokens: int) -> list[Partial]:
    """The partial answers that help, the most helpful first, as long as they fit; of equal ones the first."""
    ranked = sorted((one for one in partials if one.helpfulness > 0 and one.text), key=lambda one: -one.helpfulness)
    taken: list[Partial] = []
    for one in ranked:
        tokens -= count_words(one.text)
        if tokens < 0:
            break
        taken.append(one)
    return taken
