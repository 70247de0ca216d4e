"""The verdict on one answer: which rule or judge decided, and how. The samples file has it under ``_judge``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

VERDICT = "_judge"  # key in a task document
RULES = "rules"  # name of the judge that uses no model
REFUSAL = "refusal"  # rule of a verdict: every judge finds that the answer refuses, in words that the benchmark lacks


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one answer.

    Args:
        rule: What decided: ``missing``, ``exact``, ``both invalid`` or ``one invalid`` of the specification, ``judge``,
            or ``refusal`` if the judges call the answer missing, or if it refuses to answer an invalid question.
        correct: Share of the judges that call it correct, in [0, 1]; 0 for a missing answer; None if a judge failed.
        kept: Number of characters of the prediction that were judged; the rest was truncated.
        cut: Name of the truncation.
        crag: Whether CRAG's own rules were applied (truncation, and the rule about "invalid").
        judges: Names of the run's judges, whether or not they judged this answer.
        said: Verdict of each judge, 1 or 0, in the order of ``judges``; () if none was asked or one failed.
        why: The judges' reasons, or why one failed.
    """

    rule: str
    correct: float | None
    kept: int = 0
    cut: str = ""
    crag: bool = True
    judges: tuple[str, ...] = ()
    said: tuple[float, ...] = ()
    why: str = ""

    @property
    def missing(self) -> bool:
        """Whether the answer is missing."""
        return self.rule in ("missing", REFUSAL)

    @property
    def by_models(self) -> bool:
        """Whether all judges of the run are language models."""
        return bool(self.judges) and RULES not in self.judges

    def record(self) -> dict[str, Any]:
        """As a JSON value, for the samples file."""
        return {**asdict(self), "judges": list(self.judges), "said": list(self.said)}


def read_verdict(doc: Mapping[str, Any]) -> Verdict | None:
    """The verdict in a task document, or None."""
    fields = doc.get(VERDICT)
    if fields is None:
        return None
    return Verdict(**{**fields, "judges": tuple(fields["judges"]), "said": tuple(fields["said"])})
