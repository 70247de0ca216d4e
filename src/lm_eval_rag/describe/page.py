"""A description as lines for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from textwrap import wrap

from lm_eval_rag.describe.description import Argument, Description

WIDTH = 100
HOW = {  # kind -> how its arguments are given
    "model": "--model_args NAME=VALUE,NAME=VALUE",
    "retriever": "--model_args retriever={name},NAME=VALUE",
    "task": "--metadata '{{\"NAME\": VALUE}}'",
    "metric": "",
}


def page(about: Description) -> str:
    """The whole description."""
    return "\n".join(_lines(about)) + "\n"


def _lines(about: Description) -> Iterator[str]:
    yield f"{about.name} ({about.kind})"
    yield from ("", *_wrapped(about.summary))
    for paragraph in about.text:
        yield from ("", *_wrapped(paragraph))
    yield from ("", f"usage: {about.usage}", f"source: {', '.join(about.sources) or 'this project'}")
    for title, text in about.notes:
        yield from _wrapped(f"{title}: {text}")
    if about.departures:
        yield from ("", "departures from the source:")
        for departure in about.departures:
            yield from (f"  {line}" for line in _wrapped(f"- {departure}", WIDTH - 2))
    if about.arguments:
        yield from ("", f"arguments ({HOW[about.kind].format(name=about.name)}):", *_table(about.arguments))
    if about.shared:
        yield from ("", f"arguments of every {about.kind}:", *_table(about.shared))


def _table(arguments: Sequence[Argument]) -> Iterator[str]:
    for one in arguments:
        default = f" [{one.default}]" if one.default else ""
        yield f"  {one.name}{default}: {one.type}"
        yield from (f"      {line}" for line in _wrapped(one.meaning, WIDTH - 6))


def _wrapped(text: str, width: int = WIDTH) -> list[str]:
    """Lines of a paragraph; those of a formula or list stay."""
    if "\n" in text:
        return text.splitlines()
    return wrap(re.sub(r"\s+", " ", text), width, break_long_words=False, break_on_hyphens=False)
