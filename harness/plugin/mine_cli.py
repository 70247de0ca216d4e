"""``lm-eval-rag mine``: rules from a file of facts, written as a file that ``evaluate --rules`` and ``rules=`` read.

Rules of length 2 can be mined by the workers of Ray (``--engine ray``), by blocks of relations; the file is the same.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from lm_eval_rag.harness.common.errors import UserError, at_least
from lm_eval_rag.harness.common.paths import output_folder, storing
from lm_eval_rag.harness.common.ray_engine import add_engine, engine_of
from lm_eval_rag.harness.core.types import Rule
from lm_eval_rag.harness.documents.rule_files import LONGEST, MIN_SUPPORT, mined, read_facts
from lm_eval_rag.harness.rules.mining_on_ray import mine_on_ray

ENDING = ".jsonl"


def mine_main(argv: Sequence[str]) -> int:
    """Run the command; returns 0.

    Raises:
        UserError: Bad arguments, rows that are no facts, or facts without any rule.
        MachineError: The file or the cache cannot be written.
    """
    chosen = _parser().parse_args(list(argv))
    engine = engine_of(chosen)
    if engine is not None and chosen.rule_length == 1:
        raise UserError("Rules of length 1 are not divided into blocks: leave --engine out, or give --rule-length 2.")
    at_least("--min-support", chosen.min_support)
    if chosen.out.suffix != ENDING:
        raise UserError(f"--out {chosen.out} is not allowed: give a name that ends with {ENDING}.")
    output_folder(chosen.out.parent)
    facts = read_facts(chosen.facts)
    length2 = None if engine is None else partial(mine_on_ray, engine)
    rules = mined(facts, chosen.min_support, chosen.rule_length, length2)
    with storing(chosen.out, "Free space, or give another --out."):
        write_rules(chosen.out, rules)
    sys.stdout.write(f"{len(rules):,} rules of {len(facts):,} facts: {chosen.out}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lm-eval-rag mine", description="Mine rules from facts.")
    parser.add_argument(
        "facts", metavar="FACTS", help="a table: subject, relation, object, and time in all rows or none"
    )
    parser.add_argument("--out", required=True, type=Path, metavar=f"FILE{ENDING}")
    parser.add_argument(
        "--rule-length",
        type=int,
        default=1,
        choices=range(1, LONGEST + 1),
        help="of the body at most (default: 1)",
    )
    parser.add_argument(
        "--min-support",
        type=int,
        default=MIN_SUPPORT,
        metavar="N",
        help=f"at least (default: {MIN_SUPPORT})",
    )
    add_engine(parser)
    return parser


def write_rules(path: Path, rules: Iterable[Rule]) -> None:
    """Write rules, one JSON object a line, as :mod:`lm_eval_rag.harness.documents.rule_files` reads them."""
    beside = path.with_suffix(".new")
    with beside.open("w", encoding="utf-8") as file:
        for rule in rules:
            body = {"path": list(rule.path)} if rule.path else {"body": rule.body}
            counts = {"support": rule.support, "body_support": rule.body_support, "confidence": rule.confidence}
            file.write(json.dumps({"head": rule.head, **body, **counts}, ensure_ascii=False) + "\n")
    beside.replace(path)
