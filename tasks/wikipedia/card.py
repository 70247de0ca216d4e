"""The cards of built corpora and question sets: contents, counts, corrections, licences and terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lm_eval_rag.harness.common.card_table import card_table
from lm_eval_rag.harness.data.leaks import WORDS

CORPUS = (
    "The text of a passage is its title, a line break, and its sentences. Its id is the source's own id, or else its "
    'title; a further passage of the same name gets "#2" and so on. Repeated and empty passages are left out.'
)
GOLD = (
    "`gold` are the ids of all passages that an answer needs, as the dataset says; it is null if the dataset does not "
    "say it or if the corpus lacks one of them. Then evidence_recall is not scored for the question."
)
LEAKS = (
    "Passages were searched for questions word for word, for ids of questions, and for records of datasets. What may "
    f"stand in any text was not searched for: questions of fewer than {WORDS} words, and ids that are numbers alone or "
    "have fewer than 8 characters. A claim of FEVER may be a sentence of Wikipedia."
)
UNSEARCHED = "The passages were not searched, because the corpus was not built when these questions were."


def corpus_text(meta: Mapping[str, Any]) -> str:
    """The card of a corpus in Markdown, from the content of ``meta.json``."""
    parts = [
        f"# {meta['corpus']}",
        f"A corpus: {meta['about']}. {meta['counts']['passages']} passages; code version {meta['version']}.",
        CORPUS,
        _section("Corrections", meta["notes"]),
        _sources(meta["sources"]),
    ]
    return "\n\n".join(parts) + "\n"


def questions_text(meta: Mapping[str, Any]) -> str:
    """The card of a set of questions in Markdown, from the content of ``meta.json``."""
    parts = [
        f"# {meta['task']} over {meta['choice']}",
        f"{meta['about']}. Corpus `{meta['corpus']}`; code version {meta['version']}.",
        *([f"The questions lack {meta['lacks']}."] if meta["lacks"] else []),
        GOLD,
        _section("Counts", meta["counts"]),
        _section("Corrections", meta["notes"]),
        f"{_section('Gold leaks', meta['leaks'])}\n\n{LEAKS}" if meta["leaks"] else f"## Gold leaks\n\n{UNSEARCHED}",
        _sources(meta["sources"]),
    ]
    return "\n\n".join(parts) + "\n"


def _section(title: str, counts: Mapping[str, int]) -> str:
    return f"## {title}\n\n" + ("\n".join(f"- {name}: {count}" for name, count in counts.items()) or "None.")


def _sources(sources: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [
        (
            f"[{name}]({about['url']})",
            about["licence"],
            about["terms"],
            about["sha256"] + ("" if about["verified"] else " (UNVERIFIED)"),
        )
        for name, about in sources.items()
    ]
    head = "## Sources, licences and terms\n\nThe data are subject to the terms of their sources.\n\n"
    return head + card_table(("file", "licence", "terms", "sha256"), rows)
