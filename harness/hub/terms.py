"""Which sources may be redistributed: open licences by the Hub's identifiers; all others need the user's consent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.data.sources import Source

# start of a manifest's licence -> the Hub's identifier; these licences allow redistribution
OPEN = {"CC0": "cc0-1.0", "CC BY 4.0": "cc-by-4.0", "CC BY 2.5": "cc-by-2.5", "CC BY": "cc", "MIT": "mit",
        "Apache-2.0": "apache-2.0"}  # fmt: skip
OURS = "apache-2.0"  # licence of data that this project created
OTHER = "other"  # the Hub's identifier of terms that are stated in the card


def identifier(source: Source) -> str | None:
    """The Hub's identifier of an open licence; None for other or unknown licences, and if terms restrict the use."""
    if "only" in source.terms.lower():
        return None
    begins = (name for name in OPEN if re.match(rf"{re.escape(name)}(?![\w.-])", source.licence))
    return next((OPEN[name] for name in begins), None)


def restricted(sources: Iterable[Source]) -> list[Source]:
    """The sources whose licence or terms restrict redistribution, in input order."""
    return [source for source in sources if identifier(source) is None]


def check(sets: Mapping[str, Iterable[Source]], *, accepted: bool, trained: bool = False) -> None:
    """Refuse sets with restricted sources, or a model of them, unless the user accepted their terms.

    Args:
        trained: Whether a model that was trained on the sets is published, not the sets.

    Raises:
        UserError: Terms were not accepted; the message has the sets and their terms.
    """
    by_set = {name: texts for name, sources in sets.items() if (texts := statements(restricted(sources)))}
    if by_set and not accepted:
        listed = "; ".join(f"{name} ({', '.join(texts)})" for name, texts in by_set.items())
        first = "The model was trained on sets whose terms" if trained else "The terms of these sets' sources"
        advice = "Train without these sets" if trained else "Leave these sets out"
        raise UserError(
            f"{first} restrict redistribution: {listed}. {advice}. Or read the terms and, if they "
            "allow what you plan, add --accept-terms; the card then has a warning. Consider --private."
        )


def check_licence(licence: str, where: str, sets: Mapping[str, Iterable[Source]]) -> None:
    """Refuse a licence that would allow more than the terms of a model's training data, as datasets of them have none.

    Args:
        licence: The Hub's identifier.
        where: What gives it: an option, or a file.
        sets: The sets that the model was trained on.

    Raises:
        UserError: A set has restricted sources, and the licence is another than ``other``.
    """
    by_set = {name: texts for name, sources in sets.items() if (texts := statements(restricted(sources)))}
    if by_set and licence != OTHER:
        listed = "; ".join(f"{name} ({', '.join(texts)})" for name, texts in by_set.items())
        raise UserError(
            f"{where} {licence} would allow more than the terms of the training data: {listed}. Give --licence "
            f"{OTHER}; the card then states these terms."
        )


def statements(sources: Iterable[Source]) -> list[str]:
    """``licence: terms`` of the sources, without duplicates."""
    return list(dict.fromkeys(f"{source.licence}: {source.terms}" for source in sources))


def licence(sources: Iterable[Source]) -> dict[str, Any]:
    """The licence keys for a dataset card's front matter."""
    sources = list(sources)
    if closed := restricted(sources):
        research = any("research" in source.terms for source in closed)
        name = "research-only" if research else "not-stated"
        return {"license": OTHER, "license_name": name, "license_link": "README.md"}
    identifiers = sorted({id_ for source in sources if (id_ := identifier(source))}) or [OURS]
    return {"license": identifiers[0] if len(identifiers) == 1 else identifiers}
