"""The paper's number that stands beside one of ours."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.report.published import COUNTERPARTS, PublishedRow
from lm_eval_rag.harness.reproduce.matrix import Row

PAPER = "RuleRAG"
POOLED = COUNTERPARTS["recall@10"]  # ours that is the paper's recall at any k


def numbers_of(row: Row, task: str, source: str, published: Sequence[PublishedRow]) -> dict[str, PublishedRow]:
    """Metric of ours -> the paper's number of a row; found by table, task, and what ``row.published`` says.

    Raises:
        UserError: Two numbers fit one metric.
    """
    if not row.published:
        return {}
    wanted = {"paper": PAPER, "table": source, **row.published}
    found: dict[str, PublishedRow] = {}
    for one in published:
        if one.task != task or any(getattr(one, key) != value for key, value in wanted.items()):
            continue
        ours = POOLED if one.metric.startswith("recall@") else COUNTERPARTS.get(one.metric)
        if ours is None:
            continue
        if ours in found:
            raise UserError(f"{dict(row.published)} names two numbers of {one.metric} on {task}: say which.")
        found[ours] = one
    return found
