"""Means of our scores over pairs of an answer and its gold answers, for the metrics in ``metrics/``."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Any

from lm_eval_rag.harness.scoring import score
from lm_eval_rag.harness.scoring.crag import settle
from lm_eval_rag.harness.scoring.verdict import VERDICT, Verdict

JUDGE = "a language model"  # whoever gives verdicts to acc_lm says which


def mean_of(
    metric: str,
    predictions: Sequence[str],
    references: Sequence[str | Sequence[str]],
    verdicts: Sequence[float | None] | None = None,
) -> dict[str, Any]:
    """The mean of one of our scores.

    Args:
        metric: Its name.
        predictions: The answers.
        references: For each, its gold answer or gold answers.
        verdicts: For each, whether a language model calls it correct, in [0, 1]; None where it failed. An answer that
            needs no judge (missing, or equal to a gold answer) is settled without.

    Returns:
        The mean, None if nothing could be scored, and the number of answers that could not be scored: they are not 0.

    Raises:
        ValueError: The lists differ in length, or a verdict lies outside [0, 1].
    """
    if len(references) != len(predictions) or (verdicts is not None and len(verdicts) != len(predictions)):
        raise ValueError("predictions, references and verdicts need one value for each answer")
    values = []
    for i, (prediction, gold) in enumerate(zip(predictions, references, strict=True)):
        golds = [gold] if isinstance(gold, str) else list(gold)
        doc: dict[str, Any] = {"answers": golds}
        if verdicts is not None and golds:
            doc[VERDICT] = _verdict(golds, prediction, verdicts[i]).record()
        values.append(score(doc, prediction, None).get(metric))
    scored = [value for value in values if value is not None]
    return {metric: fsum(scored) / len(scored) if scored else None, "unscored": len(values) - len(scored)}


def _verdict(golds: Sequence[str], prediction: str, correct: float | None) -> Verdict:
    """The verdict on one answer, as a run of a task without CRAG's rule about "invalid" has it."""
    if correct is not None and not 0 <= correct <= 1:
        raise ValueError(f"the verdict {correct} is not allowed: give 0 to 1, or None where the judge failed")
    settled = settle(golds, prediction, crag=False)
    rule, share = ("judge", correct) if settled is None else (settled.rule, settled.correct)
    return Verdict(rule, share, kept=len(prediction), crag=False, judges=(JUDGE,))


def metric_info(description: str, source: str, *, verdicts: bool = False) -> Any:
    """What the library evaluate is told of a metric: predictions are texts, references a text or a list of texts.

    Args:
        source: Address of the paper that defines it.
        verdicts: Whether it takes verdicts of a language model.
    """
    import datasets
    import evaluate

    text = datasets.Value("string")
    inputs = "predictions: answers; references: the gold answers of each"
    inputs += "; verdicts: see the card." if verdicts else "."
    return evaluate.MetricInfo(
        description=description,
        citation=source,
        inputs_description=inputs,
        features=[
            datasets.Features(predictions=text, references=datasets.Sequence(text)),
            datasets.Features(predictions=text, references=text),
        ],
        reference_urls=[source],
    )
