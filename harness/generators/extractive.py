"""Extractive decoding (``gen_extractive=True``): a continuation is a span of one document of the prompt, or empty.

A small model garbles names that it copies token by token. Here the tokens of the spans are a trie, each new token must
follow an edge of it, and the text may end only where a span ends; the model still chooses the span. The spans of a
document that states a fact are the names of its subject and object, as they stand in its text; those of another
document are all runs of whole words. The text is read from the document, not from the tokens, so it is a span with any
tokenizer. Spans longer than the limit of the answer, or with a stop string, are not among them.

A prompt that is a plain text, as steps of some methods are, has no documents that we know of; it is not restricted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Passage

TAIL = 20  # characters of a prompt before which its tokens do not depend on what follows
WORD = re.compile(r"\S+")
EDGES = "\"'`.,;:!?()[]{}«»“”‘’"  # marks around a word that are none of it


@dataclass(frozen=True, slots=True)
class Sources:
    """What a continuation may be.

    Args:
        names: Each of them as a whole.
        texts: Every run of whole words of each.
    """

    names: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    @classmethod
    def of(cls, passages: Iterable[Passage]) -> Sources:
        """The names in passages that state a fact, and the texts of the others."""
        names, texts = dict[str, None](), dict[str, None]()
        for passage in passages:
            stated = [name for name in passage.fact[::2] if name and name in passage.text] if passage.fact else []
            (names if stated else texts).update(dict.fromkeys(stated or [passage.text]))
        return cls(tuple(names), tuple(texts))


class Grounded(str):
    """A prompt that brings what its continuation may be."""

    __slots__ = ("prompt", "sources")
    prompt: str
    sources: Sources

    def __new__(cls, prompt: str, sources: Sources) -> Grounded:
        """The same text, beside its sources."""
        text = super().__new__(cls, prompt)
        text.prompt, text.sources = prompt, sources
        return text


@dataclass(slots=True)
class Spans:
    """A trie of token ids; node 0 is its root.

    Args:
        edges: For each node, token id -> the next node.
        texts: Node -> the span that ends there.
    """

    edges: list[dict[int, int]] = field(default_factory=lambda: [{}])
    texts: dict[int, str] = field(default_factory=dict)

    def add(self, ids: Sequence[int], text: str) -> None:
        """Add a span with its tokens; of two spans with the same tokens the first stays."""
        node = 0
        for id_ in ids:
            if id_ not in self.edges[node]:
                self.edges[node][id_] = len(self.edges)
                self.edges.append({})
            node = self.edges[node][id_]
        self.texts.setdefault(node, text)

    def follow(self, ids: Iterable[int]) -> int:
        """The node after these tokens; tokens beyond the trie are ignored."""
        node = 0
        for id_ in ids:
            if id_ not in self.edges[node]:
                break
            node = self.edges[node][id_]
        return node


def spans_of(tokenizer: Any, sources: Sources, prompt: str, max_tokens: int, stops: Sequence[str]) -> Spans:
    """The spans of at most ``max_tokens`` tokens that may follow a prompt.

    Args:
        prompt: As the model reads it; a space stands before the span, unless it ends in white space.

    Raises:
        UserError: A text has no names, and the tokenizer does not say where its tokens stand.
    """
    tail, lead = prompt[-TAIL:], "" if prompt[-1:].isspace() or not prompt else " "
    read, spans = _reader(tokenizer), Spans()
    for name in sources.names:
        _add(spans, read(tail, lead, name, False), max_tokens, stops)
    for text in sources.texts:
        for start in _starts(text):
            _add(spans, read(tail, lead, text[start:], True), max_tokens, stops)
    return spans


def _starts(text: str) -> Iterator[int]:
    """Where words begin, without the marks before them."""
    for match in WORD.finditer(text):
        inner = match.group().lstrip(EDGES)
        if inner:
            yield match.end() - len(inner)


Read = Callable[[str, str, str, bool], tuple[list[int], list[tuple[int, str]]]]


def _add(spans: Spans, read: tuple[list[int], list[tuple[int, str]]], max_tokens: int, stops: Sequence[str]) -> None:
    ids, ends = read
    for length, text in ends:
        if length > max_tokens or any(stop and stop in text for stop in stops):
            return
        spans.add(ids[:length], text)


@lru_cache(maxsize=8)
def _reader(tokenizer: Any) -> Read:
    """Reads a text as token ids after the end of a prompt, with its spans: their numbers of tokens and their texts."""

    def ids_of(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False))

    @lru_cache(maxsize=1 << 14)
    def read(tail: str, lead: str, text: str, parts: bool) -> tuple[list[int], list[tuple[int, str]]]:
        before = ids_of(tail)
        whole = ids_of(f"{tail}{lead}{text}")
        continues = whole[: len(before)] == before
        ids = whole[len(before) :] if continues else ids_of(f"{lead}{text}")
        if not parts:
            return ids, [(len(ids), text)]
        shown = f"{tail}{lead}{text}" if continues else f"{lead}{text}"
        begin = len(shown) - len(text)
        ends = [end - begin for _, end in _offsets(tokenizer, shown)[-len(ids) :]] if ids else []
        words = {match.start() + len(match.group().rstrip(EDGES)) for match in WORD.finditer(text)}
        return ids, [(n, text[:end]) for n, end in enumerate(ends, start=1) if end in words and end > 0]

    return read


def _offsets(tokenizer: Any, text: str) -> list[tuple[int, int]]:
    if not getattr(tokenizer, "is_fast", False):
        raise UserError(
            "gen_extractive=True needs a fast tokenizer, which says where its tokens stand in a text, for documents "
            "that state no facts. Give another model, or leave gen_extractive out."
        )
    found: list[tuple[int, int]] = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)[
        "offset_mapping"
    ]
    return found


def extracting(rows: Sequence[Spans | None], start: int, ends: Sequence[int]) -> Any:
    """A logits processor that leaves each row the tokens that continue or end one of its spans.

    Args:
        rows: The spans of each row; a row with None is not restricted, one without spans writes nothing.
        start: Position of the first new token.
        ends: Ids of the tokens that end a text.
    """
    import torch
    from transformers import LogitsProcessor

    last = set(ends)

    class Extracting(LogitsProcessor):  # type: ignore[misc]
        def __call__(self, input_ids: Any, scores: Any) -> Any:
            left = scores.clone()
            for row, (spans, ids) in enumerate(zip(rows, input_ids[:, start:].tolist(), strict=True)):
                if spans is None or last.intersection(ids):  # not restricted, or finished
                    continue
                node = spans.follow(ids)
                allowed = set(spans.edges[node])
                if node in spans.texts or not allowed:
                    allowed |= last
                kept = torch.tensor(sorted(allowed), device=scores.device)
                left[row] = float("-inf")
                left[row, kept] = scores[row, kept]
            return left

    return Extracting()
