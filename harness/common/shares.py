"""The share of one of several processes or machines, as ``I/N`` on the command line."""

from __future__ import annotations

import re

from lm_eval_rag.harness.common.errors import UserError


def share_of(option: str, text: str) -> tuple[int, int]:
    """(I, N) of ``I/N``: the I-th of N, from 1.

    Args:
        option: The option's name, for the error.

    Raises:
        UserError: It is of another form, or I is not from 1 to N.
    """
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    share = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= share[0] <= share[1]:
        raise UserError(f"{option} {text!r} is not allowed: give I/N, the I-th of N, such as 1/4 or 4/4.")
    return share
