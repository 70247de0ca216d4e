"""The paper's number beside each of ours."""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.report.published import COUNTERPARTS, PublishedRow
from lm_eval_rag.harness.reproduce.table_spec import Row

PAPER = "RuleRAG"  # where a row does not name another paper
POOLED = COUNTERPARTS["recall@10"]  # our counterpart of the paper's recall@k, for any k


def numbers_of(row: Row, task: str, source: str, published: Sequence[PublishedRow]) -> dict[str, PublishedRow]:
    """Our metric -> the paper's number for a row, found by table, task and ``row.published``.

    Raises:
        UserError: Two numbers fit one metric.
    """
    if not row.published:
        return {}
    wanted = {"paper": PAPER, "table": source, "task": task, **row.published}
    numbers: dict[str, PublishedRow] = {}
    for one in published:
        if any(getattr(one, key) != value for key, value in wanted.items()):
            continue
        metric = POOLED if one.metric.startswith("recall@") else one.counterpart
        if metric is None:
            continue
        if metric in numbers:
            raise UserError(
                f"published = {dict(row.published)} fits two numbers of {one.metric} on {task}. Name one of them by "
                "method, retriever, generator or note."
            )
        numbers[metric] = one
    return numbers
