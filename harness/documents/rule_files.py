"""Rules from a file, or mined from facts: those of the documents (``mine``), or of a file of facts.

A rule is a row with ``head`` and ``body``, and optionally ``confidence`` (1 if it is missing), ``support`` and
``body_support`` (1) and ``repeat`` (whether head and body are the same). A longer rule has ``path`` in place of
``body``: a list of relations, ``^`` before one that is followed from object to subject. A fact is a row with
``subject``, ``relation`` and ``object``, and optionally ``time``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, at_least
from lm_eval_rag.harness.core.types import Passage, Rule
from lm_eval_rag.harness.documents.intake import FACT, fact_of
from lm_eval_rag.harness.documents.records import Record, records

MINE = "mine"
MIN_SUPPORT = 2
LONGEST = 3  # body of a mined rule
KEPT = 100  # longer rules for one head
Fact = tuple[str, str, str, str | None]  # subject, relation, object, time
Miner = Callable[..., Any]  # of facts (a polars table), temporal and min_support: a table of rules


def read_rules(
    source: Any, passages: Sequence[Passage] = (), *, min_support: int = MIN_SUPPORT, rule_length: int = 1
) -> tuple[Rule, ...]:
    """The rule bank that the user wants, best first if it is mined.

    Args:
        source: None for no rules; ``mine`` for those of the passages' facts; a table of rules or of facts, as
            :func:`lm_eval_rag.harness.documents.records.records` reads it; or rules.
        passages: The documents.
        min_support: Number of facts that a mined rule must hold for at least.
        rule_length: Relations in the body of a mined rule at most, from 1 to LONGEST.

    Raises:
        UserError: There are no facts or no rules, or a row is neither rule nor fact.
    """
    at_least("min_support", min_support)
    if rule_length not in range(1, LONGEST + 1):
        raise UserError(f"rule_length={rule_length!r} is not allowed: give a whole number from 1 to {LONGEST}.")
    if source is None:
        return ()
    if isinstance(source, str) and source == MINE:
        facts = [(*passage.fact, passage.time) for passage in passages if passage.fact]
        if not facts:
            raise UserError(
                f"rules=mine finds nothing: none of the {len(passages)} passages states a fact. Give documents with "
                f"the columns {', '.join(FACT)}, or a file of rules or facts."
            )
        return mined(facts, min_support, rule_length)
    if isinstance(source, Iterator):
        source = tuple(source)
    if isinstance(source, (list, tuple)) and all(isinstance(rule, Rule) for rule in source):
        return tuple(source)
    rows = list(records(source, "rules"))
    if not rows:
        raise UserError(f"There are no rules in {str(source)[:80]!r}. Leave it out, or give rows with head and body.")
    if set(FACT) <= rows[0].fields.keys():
        return mined([_fact(row) for row in rows], min_support, rule_length)
    return tuple(_rule(row) for row in rows)


def read_facts(source: Any) -> list[Fact]:
    """The facts of a table with subject, relation, object and optionally time.

    Raises:
        UserError: There is none, or a row is no fact.
    """
    facts = [_fact(row) for row in records(source, "facts")]
    if not facts:
        raise UserError(f"There are no facts in {str(source)[:80]!r}. Give rows with {', '.join(FACT)}.")
    return facts


def mined(
    facts: Iterable[Fact], min_support: int = MIN_SUPPORT, rule_length: int = 1, length2: Miner | None = None
) -> tuple[Rule, ...]:
    """The rules of some facts (:mod:`lm_eval_rag.harness.rules.mining`), best first; temporal if every fact has a time.

    Longer rules come after those of length 1, at most ``KEPT`` for each head and length.

    Args:
        length2: What mines the rules of length 2; None for :mod:`lm_eval_rag.harness.rules.mining_paths`.

    Raises:
        UserError: No rule holds for so many facts.
    """
    import polars as pl

    from lm_eval_rag.harness.rules.mining import best_first, mine_static, mine_temporal

    table = pl.DataFrame(list(facts), schema=[*FACT, "time"], orient="row", infer_schema_length=None)
    dated = table["time"].null_count() == 0
    rules = mine_temporal(table) if dated else mine_static(table)
    kept = best_first(rules.filter(pl.col("support") >= min_support))
    longer = [_longer(table, dated, min_support, length, length2) for length in range(2, rule_length + 1)]
    if not kept.height and not any(longer):
        raise UserError(
            f"{table.height} facts with {table['relation'].n_unique()} relations hold no rule with a support of "
            f"{min_support} or more. Give more facts, a file of rules, or --min_support 1."
        )
    names = ("head", "body", "support", "body_support", "confidence")
    short = (Rule(**row, repeat=row["head"] == row["body"]) for row in kept.select(names).iter_rows(named=True))
    return (*short, *chain.from_iterable(longer))


def _longer(facts: Any, dated: bool, min_support: int, length: int, length2: Miner | None) -> list[Rule]:
    """The best rules of length 2 or 3 for each head."""
    from lm_eval_rag.harness.rules.mining import best_first
    from lm_eval_rag.harness.rules.mining_paths import mine_length2
    from lm_eval_rag.harness.rules.mining_sampled import mine_length3

    miners: dict[int, Miner] = {2: length2 or mine_length2, 3: mine_length3}
    rules = miners[length](facts, temporal=dated, min_support=min_support)
    kept = best_first(rules, "path").group_by("head", maintain_order=True).head(KEPT)
    names = ("head", "path", "support", "body_support", "confidence")
    return [_of_path(**row) for row in best_first(kept, "path").select(names).iter_rows(named=True)]


def _of_path(head: str, path: Sequence[str], support: int, body_support: int, confidence: float) -> Rule:
    return Rule(head, " / ".join(path), support, body_support, confidence, path=tuple(path))


def _fact(row: Record) -> Fact:
    fact = fact_of(row)
    if fact is None:
        raise row.wrong(f"there is no fact. Give {', '.join(FACT)}.")
    return (*fact, row.text("time"))


def _rule(row: Record) -> Rule:
    path = _path(row)
    head, body = row.text("head"), " / ".join(path) or row.text("body")
    if not head or not body:
        columns = ", ".join(row.fields) or "none"
        raise row.wrong(f"no rule without head and body (columns: {columns}). Give both, or {', '.join(FACT)}.")
    confidence = _number(row, "confidence", 1.0)
    if not 0 <= confidence <= 1:
        raise row.wrong(f"confidence={confidence:g} is not allowed: give a share from 0 to 1.")
    support, body_support = (int(_number(row, name, 1)) for name in ("support", "body_support"))
    return Rule(head, body, support, body_support, confidence, repeat=head == body, path=path)


def _path(row: Record) -> tuple[str, ...]:
    """The steps of a longer rule, in CSV written as JSON; () if the row has none."""
    value = row.fields.get("path")
    try:
        steps = json.loads(value) if isinstance(value, str) and value else list(value or ())
    except (TypeError, ValueError):
        steps = None
    if not isinstance(steps, list) or not all(isinstance(step, str) and step for step in steps) or len(steps) == 1:
        raise row.wrong(f"path={value!r} is no list of two relations or more. Give one, or head and body.")
    return tuple(steps)


def _number(row: Record, name: str, missing: float) -> float:
    value = row.fields.get(name)
    try:
        return missing if value is None else float(value)
    except (TypeError, ValueError):
        raise row.wrong(f"{name}={value!r} is no number. Give one, or leave the cell empty.") from None
