"""Your own RAG system, whole: a function of Python or an HTTP endpoint that answers questions.

It is scored as any method: answers by all scores of the task, and retrieval where it names passages, by their ids in
the task's corpus or by their texts. Replies are kept by the journal: a second run asks only what is missing.
docs/your_system.md has the format of requests and replies.
"""

from __future__ import annotations

from typing import Annotated

from lm_eval_rag.harness.core.asks import System, ask_system
from lm_eval_rag.harness.core.parameters import HOW, Positive, Seconds
from lm_eval_rag.harness.core.types import Answer, Plan, Query


def external(
    query: Query,
    *,
    function: str | None = None,
    url: str | None = None,
    model: str = "",
    key_env: str | None = None,
    batch: Positive = 1,
    concurrency: Annotated[Positive, HOW] = 8,
    timeout: Annotated[Seconds, HOW] = 300.0,
    tries: Annotated[Positive, HOW] = 5,
) -> Plan[Answer]:
    """Answer as the system does.

    Args:
        function: ``FILE.py:NAME`` or ``PACKAGE.MODULE:NAME``: a function of a question's text (or of a Query, if its
            parameter is annotated so), plain or async. It returns a text, or a dictionary of the documented form.
        url: An endpoint, in place of a function; one that ends with ``/chat/completions`` is asked as a chat.
        model: The model's name for such a chat.
        key_env: Name of the environment variable that holds the endpoint's key.
        batch: Questions that the function takes at once, as a list; it returns a list of replies.
        concurrency: Calls at once, each in a thread of its own.
        timeout: Seconds after which a call has failed.
        tries: How often a request to an endpoint is made, at most.
    """
    system = System(function, url, model, key_env, batch, concurrency, timeout, tries)
    return (yield from ask_system(system))
