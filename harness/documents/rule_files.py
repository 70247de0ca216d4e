"""Rules from a file, or mined from facts: those of the documents (``mine``), or of a file of facts.

A rule is a row with ``head`` and ``body``, and optionally ``confidence`` (1 if it is missing), ``support`` and
``body_support`` (1) and ``repeat`` (whether head and body are the same). A fact is a row with ``subject``, ``relation``
and ``object``, and optionally ``time``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, at_least
from lm_eval_rag.harness.core.types import Passage, Rule
from lm_eval_rag.harness.documents.intake import FACT, fact_of
from lm_eval_rag.harness.documents.records import Record, records

MINE = "mine"
MIN_SUPPORT = 2
Fact = tuple[str, str, str, str | None]  # subject, relation, object, time


def read_rules(source: Any, passages: Sequence[Passage] = (), *, min_support: int = MIN_SUPPORT) -> tuple[Rule, ...]:
    """The rule bank that the user wants, best first if it is mined.

    Args:
        source: None for no rules; ``mine`` for those of the passages' facts; a table of rules or of facts, as
            :func:`lm_eval_rag.harness.documents.records.records` reads it; or rules.
        passages: The documents.
        min_support: Number of facts that a mined rule must hold for at least.

    Raises:
        UserError: There are no facts or no rules, or a row is neither rule nor fact.
    """
    at_least("min_support", min_support)
    if source is None:
        return ()
    if isinstance(source, str) and source == MINE:
        facts = [(*passage.fact, passage.time) for passage in passages if passage.fact]
        if not facts:
            raise UserError(
                f"rules=mine finds nothing: none of the {len(passages)} passages states a fact. Give documents with "
                f"the columns {', '.join(FACT)}, or a file of rules or facts."
            )
        return mined(facts, min_support)
    if isinstance(source, Iterator):
        source = tuple(source)
    if isinstance(source, (list, tuple)) and all(isinstance(rule, Rule) for rule in source):
        return tuple(source)
    rows = list(records(source, "rules"))
    if not rows:
        raise UserError(f"There are no rules in {str(source)[:80]!r}. Leave it out, or give rows with head and body.")
    if set(FACT) <= rows[0].fields.keys():
        return mined([_fact(row) for row in rows], min_support)
    return tuple(_rule(row) for row in rows)


def mined(facts: Iterable[Fact], min_support: int = MIN_SUPPORT) -> tuple[Rule, ...]:
    """The rules of some facts (:mod:`lm_eval_rag.harness.rules.mining`), best first; temporal if every fact has a time.

    Raises:
        UserError: No rule holds for so many facts.
    """
    import polars as pl

    from lm_eval_rag.harness.rules.mining import best_first, mine_static, mine_temporal

    table = pl.DataFrame(list(facts), schema=[*FACT, "time"], orient="row", infer_schema_length=None)
    dated = table["time"].null_count() == 0
    rules = mine_temporal(table) if dated else mine_static(table)
    kept = best_first(rules.filter(pl.col("support") >= min_support))
    if not kept.height:
        raise UserError(
            f"{table.height} facts with {table['relation'].n_unique()} relations hold no rule with a support of "
            f"{min_support} or more. Give more facts, a file of rules, or --min_support 1."
        )
    names = ("head", "body", "support", "body_support", "confidence")
    return tuple(Rule(**row, repeat=row["head"] == row["body"]) for row in kept.select(names).iter_rows(named=True))


def _fact(row: Record) -> Fact:
    fact = fact_of(row)
    if fact is None:
        raise row.wrong(f"there is no fact. Give {', '.join(FACT)}.")
    return (*fact, row.text("time"))


def _rule(row: Record) -> Rule:
    head, body = row.text("head"), row.text("body")
    if not head or not body:
        columns = ", ".join(row.fields) or "none"
        raise row.wrong(f"no rule without head and body (columns: {columns}). Give both, or {', '.join(FACT)}.")
    confidence = _number(row, "confidence", 1.0)
    if not 0 <= confidence <= 1:
        raise row.wrong(f"confidence={confidence:g} is not allowed: give a share from 0 to 1.")
    support, body_support = (int(_number(row, name, 1)) for name in ("support", "body_support"))
    return Rule(head, body, support, body_support, confidence, repeat=head == body)


def _number(row: Record, name: str, missing: float) -> float:
    value = row.fields.get(name)
    try:
        return missing if value is None else float(value)
    except (TypeError, ValueError):
        raise row.wrong(f"{name}={value!r} is no number. Give one, or leave the cell empty.") from None
