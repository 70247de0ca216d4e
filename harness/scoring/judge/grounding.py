"""Verdicts on rationales: whether judges find them in the retrieved passages (CRP-RAG, Table 4)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.scoring.judge import Item, Opinion
from lm_eval_rag.harness.scoring.judge.llm import ModelJudge

log = logging.getLogger(__name__)


def rationale_item(doc: Mapping[str, Any], record: Mapping[str, Any]) -> Item | None:
    """What judges read of one answer; None if it failed, has no rationale, or nothing was retrieved."""
    passages, rationale = record.get("passages"), (record.get("rationale") or "").strip()
    if record.get("failure") or record.get("abstained") or not passages or not rationale:
        return None
    return Item(doc["query"], tuple(passage["text"] for passage in passages), rationale)


def groundings(judges: Sequence[ModelJudge], items: Iterable[Item]) -> dict[Item, dict[str, Any]]:
    """The verdict on each rationale, for the samples file.

    ``grounded`` is the mean of the opinions in [0, 1], or None if a judge failed; ``judges`` are their names, ``said``
    their opinions, ``why`` their reasons. Equal rationales are judged once, and each judge gets all in one call.
    """
    distinct = list(dict.fromkeys(items))
    by_judge = [judge.opinions(distinct) for judge in judges] if distinct else []
    verdicts = {
        item: _verdict(judges, opinions) for item, opinions in zip(distinct, zip(*by_judge, strict=True), strict=True)
    }
    failed = [verdict["why"] for verdict in verdicts.values() if verdict["grounded"] is None]
    if failed:
        log.warning("%d rationales are unscored because a judge failed on them: %s", len(failed), failed[0])
    return verdicts


def _verdict(judges: Sequence[ModelJudge], opinions: Sequence[Opinion | CallError]) -> dict[str, Any]:
    said = [opinion.correct for opinion in opinions if isinstance(opinion, Opinion)]
    return {
        "grounded": fmean(said) if len(said) == len(opinions) else None,
        "judges": [judge.name for judge in judges],
        "said": said,
        "why": "; ".join(str(one) if isinstance(one, CallError) else one.why for one in opinions),
    }
