"""What one line of the report holds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; ``wrong`` says what to do when something is not as it should be."""

    title: str
    text: str
    wrong: str = ""
