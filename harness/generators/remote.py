"""One request to a model behind an API: what is sent, and what the reply says."""

from __future__ import annotations

import copy
from typing import Any

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.generators.base import cut


def with_ids(lm: Any) -> Any:
    """The same model behind the same API, sending token ids: log-probabilities need the exact tokens."""
    twin = copy.copy(lm)
    twin.tokenized_requests = True
    return twin


def continuation(lm: Any, request: tuple[Any, dict[str, Any]]) -> str:
    """One prompt over the network, and the text of its reply.

    Raises:
        CallError: The reply holds no text.
    """
    prompt, options = request
    message = lm.tok_encode(prompt) if lm.tokenized_requests else prompt
    reply = lm.model_call(messages=[message], generate=True, gen_kwargs=options)
    return cut(text_of(lm, reply), options["until"])


def log_probability(lm: Any, request: tuple[str, str]) -> float:
    """One prompt and its continuation over the network, and the log-probability that the server gives.

    Raises:
        CallError: The reply holds none.
    """
    encoded = lm._encode_pair(*request)
    inputs, lengths, _ = lm.batch_loglikelihood_requests([[(request, *encoded)]])
    reply = lm.model_call(messages=inputs, generate=False)
    try:
        return float(lm.parse_logprobs(outputs=reply, tokens=inputs, ctxlens=lengths)[0][0])
    except (KeyError, IndexError, TypeError):
        raise CallError(f"the reply holds no log-probabilities: {str(reply)[:200]}") from None


def text_of(lm: Any, reply: Any) -> str:
    """The text of a reply to a generation request.

    Raises:
        CallError: There is none: lm_eval would read that as an empty answer, or end the run.
    """
    from lm_eval.models.openai_completions import LocalChatCompletion

    try:
        if isinstance(lm, LocalChatCompletion) or "choices" in reply:
            choice = reply["choices"][0]
            if not isinstance(choice["message"]["content"] if "message" in choice else choice["text"], str):
                raise TypeError("no text")
            reply = {**reply, "choices": [{**choice, "index": 0}]}
        text: str = lm.parse_generations(outputs=reply)[0]
        return text.encode("utf-8", "replace").decode()  # half of a surrogate pair cannot be stored
    except (KeyError, IndexError, TypeError, AttributeError):
        raise CallError(f"the reply holds no text: {str(reply)[:200]}") from None
