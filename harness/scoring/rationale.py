"""Scores of CRP-RAG (doi:10.20944/preprints202411.1648.v1): perplexity of the answer, factual consistency.

They are those of its section 5.3, Tables 3 and 4; the paper prints no formulas. Perplexity is exp(-ln P / words) of the
reply that holds the answer, after its prompt; per word, not per token, so that models compare. Factual consistency is
the share of the answers "whose rationales originate from relevant knowledge": by a judge (``factual_consistency``), or
by words (``consistency_overlap``).
"""

from __future__ import annotations

import math

from lm_eval_rag.harness.scoring.case import Case
from lm_eval_rag.harness.scoring.judge.reading import content

COVERED = 0.8  # share of a rationale's own words that the passages must contain; ours, the paper has no such score
LARGEST = 700.0  # of the exponent, as a float holds no more


def perplexity(case: Case) -> float | None:
    """exp(-ln P / words) of the reply that holds the answer, 1 or more; unscored if the run did not ask for ln P."""
    if case.likelihood is None:
        return None
    log, words = case.likelihood
    return math.exp(min(-log / words, LARGEST))


def factual_consistency(case: Case) -> float | None:
    """1 if a judge finds the whole rationale in the retrieved passages, else 0; with two judges their mean.

    Unscored without a judge of rationales (``--metadata consistency=True``), without a rationale or passages, and if a
    judge failed.
    """
    return case.grounded


def consistency_overlap(case: Case) -> float | None:
    """1 if the retrieved passages contain at least 80 % of the rationale's own words, else 0.

    Our own score. Words are compared in normal form, each once, without stop words and without those of the question.
    Unscored without a rationale that adds a word to the question, and if nothing was retrieved from.
    """
    if case.rationale is None or case.documents is None or case.missing:
        return None
    own = content(case.rationale) - content(case.question)
    if not own:
        return None
    known = set().union(*(content(text) for text, _ in case.documents))
    return float(len(own & known) >= COVERED * len(own))
