"""Batches of reading exercises: each row has documents, then questions that attend to them but not to each other."""

from __future__ import annotations

import bisect
import itertools
from typing import Any

import torch
from tiny_prompts import Exercise, Sampler, short_exercise
from tokenizers import Tokenizer

from lm_eval_rag.harness.core.prompts import Template

COPIED, FIRST, REST = 0.1, 2.0, 0.5  # loss weights: copied tokens, first token of an answer, its other tokens


def batch(kind: str, seed: int, template: Template, tokenizer: Tokenizer, tokens: int) -> list[dict[str, torch.Tensor]]:
    """The exercises of one step with about ``tokens`` tokens, in two halves with similar numbers of tokens.

    Args:
        kind: ``short`` or ``full``.
        seed: Seed of all random numbers.
    """
    sampler = Sampler(seed)
    rows: list[Row] = []
    while sum(len(row.ids) for row in rows) < tokens:
        if kind == "short":
            exercise = short_exercise(sampler.rng)
        else:
            docs = sampler.rng.randint(2, 10) if sampler.rng.random() > 0.02 else 0
            exercise = sampler.exercise(docs=docs)
        rows.append(encode(exercise, template, tokenizer))
    rows.sort(key=lambda row: len(row.ids))
    half = max(1, tokens_before(rows, 0.5))
    return [collate(part) for part in (rows[:half], rows[half:]) if part]


def tokens_before(rows: list[Row], share: float) -> int:
    """Number of rows that have ``share`` of all tokens."""
    ends = list(itertools.accumulate(len(row.ids) for row in rows))
    return bisect.bisect_left(ends, share * ends[-1]) if share < 1 else len(rows)


class Row:
    """One exercise in tokens: ``group`` is 0 for shared tokens and n for question n; ``weight`` is the loss weight."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.places: list[int] = []
        self.group: list[int] = []
        self.weight: list[float] = []

    def add(self, ids: list[int], group: int, first_place: int, weight: list[float]) -> None:
        self.ids += ids
        self.places += range(first_place, first_place + len(ids))
        self.group += [group] * len(ids)
        self.weight += weight


def encode(exercise: Exercise, template: Template, tokenizer: Tokenizer) -> Row:
    """The documents, then each question with its answer."""
    texts = [exercise.shared(template)]
    for asked in exercise.asked:
        texts += [exercise.own(template, asked), f" {asked.answer}"]
    shared, *rest = (piece.ids for piece in tokenizer.encode_batch_fast(texts))
    row, seen = Row(), set[tuple[int, int]]()
    row.add(shared, 0, 0, copied(shared, seen))
    for number, (question, answer) in enumerate(zip(rest[::2], rest[1::2], strict=True), 1):
        answer = [*answer, 0]
        weight = copied([shared[-1], *question], set(seen))[1:]
        row.add(question + answer, number, len(shared), [*weight, FIRST, *[REST] * (len(answer) - 1)])
    return row


def copied(ids: list[int], seen: set[tuple[int, int]]) -> list[float]:
    """Loss weight of each token: ``COPIED`` if its pair with the previous token is in ``seen``, which grows."""
    weight = [0.0] * len(ids)
    for place in range(1, len(ids)):
        pair = (ids[place - 1], ids[place])
        weight[place] = COPIED if pair in seen else 0.0
        seen.add(pair)
    return weight


def collate(rows: list[Row]) -> dict[str, torch.Tensor]:
    """Padded tensors; ``mask`` [row, 1, to, from] is True if a token attends to another."""
    widest = max(len(row.ids) for row in rows)

    def padded(lists: list[list[Any]], fill: float) -> torch.Tensor:
        return torch.tensor([values + [fill] * (widest - len(values)) for values in lists])

    group = padded([row.group for row in rows], -1)
    sees = (group[:, None, :] == 0) | (group[:, None, :] == group[:, :, None])
    mask = sees & torch.ones(widest, widest, dtype=torch.bool).tril()
    return {
        "ids": padded([row.ids for row in rows], 0),
        "places": padded([row.places for row in rows], 0),
        "weight": padded([row.weight for row in rows], 0.0),
        "group": group,
        "mask": mask[:, None],
    }
