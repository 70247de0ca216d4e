"""Checks of a checkpoint's tokenizer: where a folder has none, transformers makes an empty one for many models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError

FILES = ("*token*", "*vocab*", "*.model", "*.tiktoken", "tekken.json")  # one of them is in any folder with a tokenizer


def need_tokenizer_files(name: str | Path) -> None:
    """Raise a UserError for a local folder without any file of a tokenizer."""
    folder = Path(name).expanduser()
    if folder.is_dir() and not any(next(folder.rglob(pattern), None) for pattern in FILES):
        raise UserError(
            f"{folder} has no tokenizer, so its model cannot read a text. Save that of the model there "
            "(AutoTokenizer.from_pretrained(...).save_pretrained(...)), or give another folder or a Hub id."
        )


def need_words(tokenizer: Any, name: str | Path, text: str) -> None:
    """Raise a UserError if the tokenizer reads nothing of a text: no token, or only special and unknown ones.

    Args:
        name: The checkpoint, for the error.
        text: One that the model must read, such as a question.
    """
    ids = tokenizer.encode(text, add_special_tokens=False)
    if not tokenizer.decode(ids, skip_special_tokens=True).strip():
        raise UserError(
            f"The tokenizer of {name} reads nothing of {text!r}: all of its {len(ids)} tokens are unknown or special. "
            f"Its vocabulary has {len(tokenizer)} entries. Give a model with its own tokenizer."
        )


def need_room(tokenizer: Any, network: Any) -> None:
    """Raise a ValueError if the tokenizer has more tokens than the network has embeddings."""
    try:
        rows = getattr(network.get_input_embeddings(), "num_embeddings", None)
    except (AttributeError, NotImplementedError):  # an architecture without a table of embeddings
        return
    if rows is not None and len(tokenizer) > rows:
        raise ValueError(
            f"its tokenizer has {len(tokenizer)} tokens and its network embeddings of {rows}; resize them "
            "(model.resize_token_embeddings(len(tokenizer))) or take the tokenizer of the model"
        )
