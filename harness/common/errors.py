"""Errors that say what was given, what is allowed and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """Bad input from the user; its message stands alone, no traceback is needed to act on it.

    Attributes:
        status: The exit status of a command that ends with it.
    """

    status = 2


class MachineError(UserError):
    """The input is right, but the machine cannot do it: a full disk, a folder without rights, a port in use."""

    status = 1


class CallError(RuntimeError):
    """A backend could not serve one ask; the question that made it stays unscored and is named."""


class PermanentError(CallError):
    """The ask fails however often it is made, such as one that a server's content filter refuses."""


class TooLongError(PermanentError):
    """A prompt has more tokens than the model takes; nothing was sent, and a method may ask again with less."""


def unknown(kind: str, given: str, allowed: Iterable[str], hint: str = "", *, listed: bool = True) -> UserError:
    """The error for a name that is not one of ``allowed``, with the nearest names.

    Args:
        hint: Where to read on.
        listed: Whether all names are given; if not, only the nearest, and the hint says where all are.
    """
    names = sorted(set(allowed))
    near = difflib.get_close_matches(given, names, n=2, cutoff=0.5)
    guess = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    every = f" Allowed: {', '.join(names) or 'none'}." if listed else ""
    return UserError(f"Unknown {kind} {given!r}.{guess}{every}{' ' + hint if hint else ''}")


def at_least(name: str, value: int, lowest: int = 1) -> int:
    """Return ``value`` or raise if it is below ``lowest`` or no whole number."""
    if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
        raise UserError(f"{name}={value!r} is not allowed: give a whole number of {lowest} or more.")
    return value
