"""Datasets on the Hugging Face Hub: ``hub:ORG/NAME``, ``hub:ORG/NAME/CONFIG@REVISION:SPLIT``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown

HUB = "hub:"
FORM = re.compile(
    r"hub:(?P<name>[\w.-]+/[\w.-]+)(?:/(?P<config>[\w.-]+))?(?:@(?P<revision>[\w./-]+))?(?::(?P<split>[\w.-]+))?"
)


def hub_rows(source: str) -> Iterable[Mapping[str, Any]]:
    """The rows of a dataset on the Hub; of several splits one must be named.

    Raises:
        UserError: The form is wrong, the dataset cannot be loaded, or it has several splits.
    """
    import datasets

    parts = FORM.fullmatch(source)
    if parts is None:
        raise UserError(f"{source!r} is not allowed: give hub:ORG/NAME, or hub:ORG/NAME/CONFIG@REVISION:SPLIT.")
    try:
        splits = datasets.load_dataset(parts["name"], parts["config"], revision=parts["revision"])
    except (OSError, ValueError, RuntimeError) as error:  # of datasets and the Hub's client, with their subclasses
        first = str(error).strip().splitlines() or [type(error).__name__]
        raise UserError(f"{source} cannot be loaded: {first[0]} Check the name and the network.") from None
    if parts["split"] is not None:
        if parts["split"] not in splits:
            raise unknown(f"split of {source}", parts["split"], splits)
        rows: Iterable[Mapping[str, Any]] = splits[parts["split"]]
        return rows
    if len(splits) > 1:
        raise UserError(f"{source} has the splits {', '.join(splits)}. Name one: {source}:{next(iter(splits))}.")
    (rows,) = splits.values()
    return rows
