"""The retrievers and their options."""

from __future__ import annotations

import inspect
import sys
from dataclasses import replace

from lm_eval_rag.describe.description import Argument, Description
from lm_eval_rag.describe.docstrings import read_docstring
from lm_eval_rag.describe.signatures import arguments_of
from lm_eval_rag.harness.common.errors import unknown
from lm_eval_rag.harness.retrieval import PARTS, RETRIEVERS, reranked

PREFIX = "retriever_"


def retrievers() -> tuple[str, ...]:
    """The names of all retrievers."""
    return tuple(RETRIEVERS)


def retriever(name: str) -> Description:
    """A retriever by name.

    Raises:
        UserError: There is none.
    """
    if name not in RETRIEVERS:
        raise unknown("retriever", name, RETRIEVERS)
    function = RETRIEVERS[name]
    module = sys.modules[f"lm_eval_rag.harness.retrieval.{name}"]
    about = read_docstring(inspect.getdoc(module))
    own = [replace(one, name=PREFIX + one.name) for one in arguments_of(function)]
    parts = [
        Argument(f"{PREFIX}{part}_*", "any", "", f"An option of the retriever that {PREFIX}{part}= names.")
        for part in PARTS.get(name, ())
    ]
    return Description(
        kind="retriever",
        name=name,
        summary=about.summary,
        usage=f"lm_eval --tasks ruleqa_demo --model standard_rag --model_args retriever={name}",
        text=about.text,
        sources=about.papers,
        arguments=(*own, *parts),
        shared=tuple(replace(one, name=PREFIX + one.name) for one in arguments_of(reranked)),
    )
