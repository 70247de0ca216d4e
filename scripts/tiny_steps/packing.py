"""Rows with common beginnings as one tree of tokens, so that a passage is read once for all questions about it.

A token attends to its ancestors in the tree and to itself, and its position is its depth. So each row is computed
exactly as if it stood alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

Row = tuple[str, str, str]  # step, prompt, reply
END = 0  # token id of the end
# Steps whose first sentence counts: it does not end the reply, because after it the next prompt goes on.
SENTENCES = ("ircot.thought", "ircot")
LIMIT, LONGEST = 500, 1500  # tokens of a tree, and of a row


class Tree:
    """Tokens of rows in an order in which parents come first."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.parents: list[int] = []
        self.depth: list[int] = []
        self.weight: list[float] = []
        self._children: dict[tuple[int, int], int] = {}

    def add(self, prompt: Sequence[int], reply: Sequence[int], weight: float) -> None:
        """Add one row; ``weight`` is the loss weight of each token of the reply."""
        at = -1
        for place, token in enumerate([*prompt, *reply]):
            at = self._child(at, token)
            if place >= len(prompt):
                self.weight[at] = max(self.weight[at], weight)

    def _child(self, parent: int, token: int) -> int:
        node = self._children.get((parent, token))
        if node is None:
            node = self._children[parent, token] = len(self.ids)
            self.ids.append(token)
            self.parents.append(parent)
            self.depth.append(self.depth[parent] + 1 if parent >= 0 else 0)
            self.weight.append(0.0)
        return node

    def __len__(self) -> int:
        return len(self.ids)


def tree_of(
    rows: Sequence[Row],
    tokenizer: Tokenizer,
    weights: Mapping[str, float],
    limit: int = LIMIT,
    longest: int = LONGEST,
) -> Tree:
    """The tree of some rows.

    Args:
        weights: Of the tokens of a step's replies in the loss; 1 for steps that are not there.
        limit: About the most tokens of the tree; rows beyond them are left out.
        longest: Tokens of a row; longer ones are left out.
    """
    tree = Tree()
    texts = [text for _, prompt, reply in rows for text in (prompt, joined(prompt, reply))]
    ids = [encoding.ids for encoding in tokenizer.encode_batch_fast(texts)]
    for (step, _, text), prompt, reply in zip(rows, ids[::2], ids[1::2], strict=True):
        if len(tree) < limit and len(prompt) + len(reply) < longest:
            goes_on = step in SENTENCES and "answer is" not in text
            tree.add(prompt, reply if goes_on else [*reply, END], weights.get(step, 1.0))
    return tree


def joined(prompt: str, reply: str) -> str:
    """The reply with what stands between it and its prompt: a space, or in a transcript an empty line.

    So the text goes on as the method will write it into its next prompt.
    """
    return ("\n\n" if "\nResults:" in prompt and not prompt.endswith("Answer:") else " ") + reply


def collate(trees: Sequence[Tree]) -> dict[str, torch.Tensor]:
    """Padded tensors; ``mask`` [tree, 1, to, from] is True if a token attends to another."""
    widest = max(map(len, trees))
    sees = np.zeros((len(trees), 1, widest, widest), dtype=bool)
    for number, tree in enumerate(trees):
        mask = sees[number, 0]
        for node, parent in enumerate(tree.parents):
            if parent >= 0:
                mask[node, : parent + 1] = mask[parent, : parent + 1]
            mask[node, node] = True
        for node in range(len(tree), widest):
            mask[node, node] = True

    def padded(name: str, fill: float) -> Any:
        return torch.tensor([getattr(tree, name) + [fill] * (widest - len(tree)) for tree in trees])

    return {
        "ids": padded("ids", 0),
        "places": padded("depth", 0),
        "parents": padded("parents", -1),
        "weight": padded("weight", 0.0),
        "mask": torch.from_numpy(sees),
    }
