"""How probable a model finds its own answer: ``--model_args perplexity=True``, at most one more call a question.

The score ``perplexity`` (CRP-RAG, section 5.3 and Table 3) needs it. What is scored is the last reply that contains the
answer, after its prompt: by what came with the reply (``gen_logprobs=True``), else by a call. A generator without
log-probabilities leaves the score out, and so does an answer that stands in no reply, such as an abstention.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.asks import Generate, log_probabilities, loglikelihood
from lm_eval_rag.harness.core.contract import function_of
from lm_eval_rag.harness.core.prompts import Prompt
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.harness.core.watching import watched
from lm_eval_rag.harness.core.written import Written
from lm_eval_rag.harness.scoring.normalise import count_words

FAILED = "answer without log-probability"  # note: the call for it failed, or the server tells none of a token


def with_likelihood(method: Callable[..., Plan[Answer]]) -> Callable[..., Plan[Answer]]:
    """A method that also asks for the log-probability of its answer, and returns it in ``Answer.likelihood``."""

    @wraps(function_of(method))
    def measured(query: Query) -> Plan[Answer]:
        watch = _Watch()
        answer: Answer = yield from watched(method(query), after=watch.keep)
        found = None if answer.abstained else watch.last_with(answer.text)
        if found is None:
            return answer
        prompt, written = found
        reply = written.strip()
        if isinstance(written, Written):
            if not written.told:
                return replace(answer, notes=(*answer.notes, FAILED))
            return replace(answer, likelihood=(written.log(), count_words(reply)))
        given = yield from log_probabilities()
        if given != "texts":
            return replace(answer, notes=(*answer.notes, FAILED)) if given else answer
        try:
            log = yield from loglikelihood(prompt, f" {reply}")
        except CallError:
            return replace(answer, notes=(*answer.notes, FAILED))
        return replace(answer, likelihood=(log, count_words(reply)))

    return measured


@dataclass(slots=True)
class _Watch:
    """The (prompt, reply) pairs of one question, in order."""

    replies: list[tuple[Prompt | str, str]] = field(default_factory=list)

    def keep(self, ask: Any, reply: Sequence[str]) -> None:
        """Keep what was generated."""
        if isinstance(ask, Generate) and not ask.alternatives:  # with them it is a judgement, no answer
            self.replies += [(ask.prompt, text) for text in reply]

    def last_with(self, text: str) -> tuple[Prompt | str, str] | None:
        """The last reply that contains a text, with its prompt."""
        return next((pair for pair in reversed(self.replies) if text and text in pair[1].strip()), None)
