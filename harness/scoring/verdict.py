"""What became of one answer: which rule or judge decided, and how. It stands in the samples under ``_judge``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

VERDICT = "_judge"  # the key of a document under which the verdict lies
RULES = "rules"  # the judge that is no model


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one answer.

    Args:
        rule: What decided: ``missing``, ``exact``, ``both invalid``, ``one invalid`` or ``judge``.
        correct: Share of the judges that call it correct, in [0, 1]; 0 for a missing answer; None when a judge failed.
        kept: Number of characters of the prediction that were looked at.
        cut: Which tokenizer made that cut.
        crag: Whether CRAG's own rules were in force (the cut, and "invalid").
        judges: Names of the judges of the run, whether or not they were asked about this answer.
        said: Each judge's own verdict, 1 or 0, in their order; () when none was asked or one failed.
        why: What the judges said, or why one failed.
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
        """Whether no answer was given."""
        return self.rule == "missing"

    @property
    def by_models(self) -> bool:
        """Whether all judges of the run are language models."""
        return bool(self.judges) and RULES not in self.judges

    def record(self) -> dict[str, Any]:
        """JSON-able, for the samples file."""
        return {**asdict(self), "judges": list(self.judges), "said": list(self.said)}


def read_verdict(doc: Mapping[str, Any]) -> Verdict | None:
    """The verdict that a document holds, or None."""
    found = doc.get(VERDICT)
    if found is None:
        return None
    return Verdict(**{**found, "judges": tuple(found["judges"]), "said": tuple(found["said"])})
