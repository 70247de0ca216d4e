"""Warnings at the end of a run: replies and passages that were cut short, and what is so of all questions."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

log = logging.getLogger(__name__)
NAMED = 10  # at most so many questions are named in a warning
FEW = 5  # questions; what is so of all of fewer says little
CUT_SHORT = {  # count or note in a record -> what is so, and what to say of it
    "truncated": (
        "Replies truncated",
        "They ended at a token limit: that of the task (--gen_kwargs max_gen_toks=N) or of a step (*_tokens=N).",
    ),
    "filtered": ("Replies filtered", "The server's content filter ended them."),
    "max_calls reached": ("max_calls reached", "They abstain; max_calls=N sets the limit of a question."),
    "cut_passages": ("Passages cut", "They are longer than a whole prompt may be; only their beginnings were shown."),
}
Records = Sequence[tuple[str, Mapping[str, Any]]]  # id of a question, record of its answer


def warn_of_cuts(records: Records) -> None:
    """One warning for each way in which replies or passages were cut short, with the questions."""
    for name, (what, advice) in CUT_SHORT.items():
        ids = [id for id, aux in records if aux.get(name) or name in aux["notes"]]
        if ids:
            more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
            log.warning("%s in %d questions (%s%s). %s", what, len(ids), ", ".join(ids[:NAMED]), more, advice)


def warn_of_fallbacks(records: Records) -> None:
    """One warning if queries were not in the retrieval run, so that its fallback served them."""
    sources = sum((Counter(aux.get("retrieved_by", {})) for _, aux in records), Counter[str]())
    others = ", ".join(f"{name} {n:,}" for name, n in sorted(sources.items()) if name != "run")
    if others:
        log.warning(
            "The retrieval run held %d of %d queries; for the others: %s.", sources["run"], sources.total(), others
        )


def warn_of_kept(held: int, journalled: int) -> None:
    """One warning if replies of an earlier run served one that asks a server, whose model may be another by now.

    Args:
        held: Calls in the journal before the run.
        journalled: Calls of the run that the journal served; some may be repeated ones of the run itself.
    """
    if held and journalled:
        log.warning(
            "%d replies and retrievals are from the journal, which held %d of an earlier run with the same address and "
            "model name. If the server has loaded another model since, give journal=off.",
            journalled,
            held,
        )


def warn_of_all(name: str, records: Records) -> None:
    """One warning if a method abstained on every question that it finished, and one for each note that all have."""
    finished = [aux for _, aux in records if not aux["failure"]]
    if len(finished) < FEW:
        return
    if all(aux["abstained"] for aux in finished):
        log.warning("%s abstained on all %d questions.", name, len(finished))
    for note in sorted(set.intersection(*(set(aux["notes"]) for aux in finished))):
        log.warning("%s: each of the %d questions has the note %r.", name, len(finished), note)
