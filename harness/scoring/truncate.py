"""Truncates predictions before scoring: CRAG scores the first 75 tokens (arXiv:2406.04744, KDD Cup 2024 rules).

Departure from the benchmark's kit, which decodes the first 75 token ids: here the result is a prefix of the text, so
that it can be checked from the samples. A character that the tokenizer splits into bytes stays whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from lm_eval_rag.harness.common.errors import UserError, at_least
from lm_eval_rag.harness.common.extras import install_line

LIMIT = 75
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Cut:
    """How predictions are truncated.

    Args:
        name: Tokenizer and number of tokens, as recorded: ``words 75``, ``tokenizer.json 8eea70c4 75``, ``whole``.
        kept: Number of characters of a text that are kept.
    """

    name: str
    kept: Callable[[str], int]

    def __call__(self, text: str) -> str:
        return text[: self.kept(text)]


WHOLE = Cut("whole", len)


def words_cut(limit: int = LIMIT) -> Cut:
    """The first ``limit`` words and punctuation marks."""
    at_least("limit", limit)

    def kept(text: str) -> int:
        ends = [match.end() for match, _ in zip(_WORD.finditer(text), range(limit + 1), strict=False)]
        return len(text) if len(ends) <= limit else ends[limit - 1]

    return Cut(f"words {limit}", kept)


def tokenizer_cut(file: Path, limit: int = LIMIT) -> Cut:
    """The first ``limit`` tokens of a tokenizer file (``tokenizer.json``), not counting special tokens.

    Raises:
        UserError: The file is missing or is not a tokenizer, or the package ``tokenizers`` is not installed.
    """
    at_least("limit", limit)
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise UserError(
            f"Truncating predictions to {limit} tokens of {file.name} needs the package tokenizers. Install it with "
            f"`{install_line('hf')}`."
        ) from None
    try:
        content = file.read_bytes()
        tokenizer = Tokenizer.from_str(content.decode())
    except OSError as error:
        raise UserError(f"The tokenizer {file} cannot be read: {error.strerror}.") from None
    except Exception as error:  # noqa: BLE001  (tokenizers raises nothing narrower)
        raise UserError(f"{file} is not a tokenizer.json: {error}.") from None

    def kept(text: str) -> int:
        ends = [end for _, end in tokenizer.encode(text, add_special_tokens=False).offsets]
        return len(text) if len(ends) <= limit else max(ends[:limit])

    return Cut(f"{file.name} {sha256(content).hexdigest()[:8]} {limit}", kept)
