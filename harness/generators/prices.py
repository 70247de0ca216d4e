"""What tokens cost: ``gen_price_in`` and ``gen_price_out``, or a table by model (``gen_prices=FILE``).

The table is TOML or JSON, in US dollars per million tokens:

    ["gpt-4o-mini"]
    in = 0.15
    out = 0.6
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.common.paths import read_text

PRICES = ("price_in", "price_out")
SIDES = ("in", "out")
READERS: dict[str, Callable[[str], Any]] = {".toml": tomllib.loads, ".json": json.loads}
FORM = 'of the form {"MODEL": {"in": 0.15, "out": 0.6}}, in US dollars per million tokens, as TOML or JSON'


def read_prices(arguments: Mapping[str, Any], model: str) -> tuple[float, float] | None:
    """US dollars per million prompt tokens and completion tokens; None if the arguments name no price.

    Args:
        arguments: Those of a generator: ``price_in`` and ``price_out`` win over the table ``prices``.
        model: Its name in the table.

    Raises:
        UserError: A price is no number of 0 or more, or the table cannot be read or lacks the model.
    """
    given = [arguments.get(name) for name in PRICES]
    for name, value in zip(PRICES, given, strict=True):
        if value is not None and not _is_price(value):
            raise UserError(f"gen_{name}={value!r} is not allowed: give US dollars per million tokens, 0 or more.")
    path = arguments.get("prices")
    if path is not None and None in given:
        table = _read_table(path)
        if model not in table:
            raise unknown("model in gen_prices=", model, table, hint=f"Add it to {path}, {FORM}.")
        given = [table[model][side] if value is None else value for side, value in zip(SIDES, given, strict=True)]
    return None if given == [None, None] else (float(given[0] or 0), float(given[1] or 0))


def _is_price(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and 0 <= value < math.inf


def _read_table(given: Any) -> Mapping[str, Mapping[str, float]]:
    path = Path(str(given)).expanduser()
    if path.suffix.lower() not in READERS:
        raise UserError(f"gen_prices={given} is not a file of prices: give one {FORM} (.toml, .json).")
    text = read_text(path, f"Give gen_prices= a file {FORM}.")
    try:
        table = READERS[path.suffix.lower()](text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"gen_prices={given} cannot be read: {error}. Give a file {FORM}.") from None
    if not isinstance(table, dict):
        raise UserError(f"gen_prices={given} is not a table of models: give a file {FORM}.")
    for model, prices in table.items():
        if not isinstance(prices, dict) or set(prices) != set(SIDES) or not all(map(_is_price, prices.values())):
            raise UserError(f"gen_prices={given}, model {model!r}: found {prices!r}. Needed: a file {FORM}.")
    return table
