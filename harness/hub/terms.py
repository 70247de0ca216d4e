"""Which sources may be passed on: their licences as the Hub names them, and those that need the user's consent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.data.sources import Source

# how a manifest's licence begins -> the Hub's identifier; these let anyone pass the data on
OPEN = {"CC0": "cc0-1.0", "CC BY 4.0": "cc-by-4.0", "CC BY 2.5": "cc-by-2.5", "CC BY": "cc", "MIT": "mit",
        "Apache-2.0": "apache-2.0"}  # fmt: skip
OURS = "apache-2.0"  # of what has no source but this project


def identifier(source: Source) -> str | None:
    """The Hub's identifier of an open licence; None where the licence is another, is unknown, or terms restrict it."""
    if "only" in source.terms.lower():
        return None
    begins = (name for name in OPEN if re.match(rf"{re.escape(name)}(?![\w.-])", source.licence))
    return next((OPEN[name] for name in begins), None)


def restricted(sources: Iterable[Source]) -> list[Source]:
    """The sources whose licence or terms do not let everybody pass them on, in their order."""
    return [source for source in sources if identifier(source) is None]


def check(sets: Mapping[str, Iterable[Source]], *, accepted: bool) -> None:
    """Refuse sets of restricted sources unless the user accepted their terms.

    Raises:
        UserError: Names the sets and the terms.
    """
    held = {name: said for name, sources in sets.items() if (said := statements(restricted(sources)))}
    if held and not accepted:
        what = "; ".join(f"{name} ({', '.join(said)})" for name, said in held.items())
        raise UserError(
            f"The terms of these sets' sources do not let everybody pass them on: {what}. Leave them out, or, if you "
            "have read the terms and they allow what you plan, add --accept-terms; the card then says so. Consider "
            "--private."
        )


def statements(sources: Iterable[Source]) -> list[str]:
    """What the manifests say of the sources, each statement once: ``licence: terms``."""
    return list(dict.fromkeys(f"{source.licence}: {source.terms}" for source in sources))


def licence(sources: Iterable[Source]) -> dict[str, Any]:
    """The licence keys of a dataset card's front matter."""
    sources = list(sources)
    if held := restricted(sources):
        research = any("research" in source.terms for source in held)
        name = "research-only" if research else "not-stated"
        return {"license": "other", "license_name": name, "license_link": "README.md"}
    found = sorted({found for source in sources if (found := identifier(source))}) or [OURS]
    return {"license": found[0] if len(found) == 1 else found}
