"""What is sent to a system and what comes back, as dataclasses; their JSON Schemas are the documented format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import isfinite
from typing import Any

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.types import Query

SHOWN = 300  # characters of a reply in a message


@dataclass(frozen=True)
class Question:
    """What is sent.

    Args:
        id: Of the question, unique within its task.
        question: Its text.
        time: ISO date or year that it is about or was asked at, or None.
    """

    id: str
    question: str
    time: str | None = None

    @classmethod
    def of(cls, query: Query) -> Question:
        """The question of a query."""
        return cls(query.id, query.text, query.time)


@dataclass(frozen=True)
class Retrieved:
    """One retrieved passage: by its id in the task's corpus, by its text, or both.

    Args:
        id: Its id; found by the text if it is missing.
        text: Its text; that of the corpus if it is missing.
        score: Higher is better.
    """

    id: str | None = None
    text: str | None = None
    score: float = 0.0


@dataclass(frozen=True)
class Usage:
    """What the answer took.

    Args:
        prompt_tokens: Tokens read.
        completion_tokens: Tokens written.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True)
class Reply:
    """What comes back; a system may also return the answer alone, as a text.

    Args:
        answer: The answer; "" for none.
        passages: What was retrieved, best first; None if the system does not say, and then retrieval is not scored.
        usage: Tokens.
        abstained: Whether it declined to answer.
        confidence: How sure it is: any finite scale on which more is surer; None if the system does not say.
    """

    answer: str
    passages: list[Retrieved] | None = None
    usage: Usage = Usage()
    abstained: bool = False
    confidence: float | None = None


def read_reply(value: Any) -> Reply:
    """A reply from what a system returned.

    Raises:
        CallError: It is neither a text nor of the documented form.
    """
    from pydantic import TypeAdapter, ValidationError

    if isinstance(value, str):
        return Reply(value)
    try:
        reply = TypeAdapter(Reply).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the reply"
        raise CallError(
            f"the system returned {str(value)[:SHOWN]!r}: {where}: {first['msg']}. It must be a text, or "
            '{"answer": "...", "passages": [{"id": "...", "text": "..."}]}'
        ) from None
    if reply.confidence is not None and not isfinite(reply.confidence):
        raise CallError(
            f"the system returned the confidence {reply.confidence}. Give a finite number, or leave it out."
        )
    return reply


def unread_keys(value: Any) -> list[str]:
    """The keys of a system's reply that mean nothing, such as ``Passages``."""
    known = {field.name for field in fields(Reply)}
    return [str(key) for key in value if key not in known] if isinstance(value, Mapping) else []


def schema(kind: type[Question] | type[Reply]) -> Any:
    """The JSON Schema of what is sent, or of what comes back."""
    from pydantic import TypeAdapter

    return _bare(TypeAdapter(kind).json_schema())


def _bare(part: Any) -> Any:
    """A schema without titles and descriptions."""
    if isinstance(part, dict):
        return {name: _bare(value) for name, value in part.items() if name not in ("title", "description")}
    return [_bare(value) for value in part] if isinstance(part, list) else part
