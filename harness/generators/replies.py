"""Reading a reply: the text, how it ended, what the model thought before, and the tokens that a server counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.generators.base import Completion, Decoding, cut
from lm_eval_rag.harness.generators.reply_logs import logs_of
from lm_eval_rag.harness.generators.thinking import THOUGHT_END, split_thinking

FINISHES = {  # as servers name it -> as recorded
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}
SHOWN = 200  # characters of a reply that a message repeats


def completion_of(
    lm: Any, reply: Any, decoding: Decoding, seconds: float, logs: bool = False, thinks: bool = False
) -> Completion:
    """The completion in a reply to a generation request.

    Args:
        lm: The lm_eval model that made the request; it reads forms of reply that are not OpenAI's.
        reply: The JSON of the reply.
        decoding: Its stop strings cut the text: some servers do not know ``stop``, chat APIs take four at most.
        logs: Whether the log-probabilities that come with it are kept.
        thinks: Whether the model thinks before it answers.

    Raises:
        CallError: There is no text, and no reason for that.
    """
    try:
        choice = reply["choices"][0] if _is_openais(lm) or "choices" in reply else {}
        message = choice.get("message") or {}
        finish = FINISHES.get(str(choice.get("finish_reason") or reply.get("stop_reason")), "")
        text = _text(lm, reply, choice)
        if text is None and finish not in ("length", "content_filter"):
            raise TypeError("no text")
        thinking = message.get("reasoning_content") or message.get("reasoning") or ""
        usage = reply.get("usage") or {}
    except (KeyError, IndexError, TypeError, AttributeError):
        raise CallError(f"the reply holds no text: {str(reply)[:SHOWN]}") from None
    end = getattr(lm, "think_end_token", None) or THOUGHT_END
    cut_off = thinks and finish == "length" and not thinking
    thoughts, text = ("", text or "") if decoding.thinking else split_thinking(text or "", end, cut_off)
    content, text = storable(text), storable(cut(text, decoding))
    tokens, first = logs_of(choice, content, text, decoding.stop) if logs and text.strip() else ((), ())
    return Completion(
        text,
        finish if text == content else "stop",  # what stands behind a stop string may be cut off, the reply is not
        storable(str(thinking) or thoughts),
        _count(usage, "prompt_tokens", "input_tokens"),
        _count(usage, "completion_tokens", "output_tokens"),
        seconds,
        tokens,
        first,
    )


def local_completion(text: str, decoding: Decoding, finish: str = "", tokens: int | None = None) -> Completion:
    """The completion of a text that a local model wrote, ``tokens`` long."""
    thinking, answer = ("", text) if decoding.thinking else split_thinking(text)
    return Completion(answer, finish, thinking, completion_tokens=tokens)


def _is_openais(lm: Any) -> bool:
    """Whether the model's replies have OpenAI's form; of these lm_eval reads one without choices as an empty text."""
    from lm_eval.models.openai_completions import LocalChatCompletion

    return isinstance(lm, LocalChatCompletion)


def _text(lm: Any, reply: Mapping[str, Any], choice: Mapping[str, Any]) -> str | None:
    if not choice:
        text: str | None = lm.parse_generations(outputs=reply)[0]
        return text
    text = choice["message"]["content"] if "message" in choice else choice["text"]
    if text is not None and not isinstance(text, str):
        raise TypeError("no text")
    return text


def _count(usage: Mapping[str, Any], *names: str) -> int | None:
    counts = [usage[name] for name in names if isinstance(usage.get(name), int)]
    return counts[0] if counts else None


def storable(text: str) -> str:
    """The text without halves of surrogate pairs, which cannot be stored."""
    return text.encode("utf-8", "replace").decode()
