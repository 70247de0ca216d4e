"""Initial weights that can already copy, so that a short training need not discover it.

From random weights, a transformer spends most of a short training on learning to copy (the two-layer induction circuit
of arXiv:2209.11895). So this circuit, and the step over a rule, are planted into the initial weights (in the spirit of
mimetic initialisation, arXiv:2305.09828). They are trained like all other weights:

- layer 0 stores at every token the previous token, the fourth token before it (at "Answer:" the last token of the
  question's relation, at the "]" after "Entity2" the last token of a rule's body or head), and the mean of the last 20;
- layer 1 moves a rule's body to its head: each "]" gets the note of the previous "]";
- layer 2 moves it to the question: "Answer:" attends to the rule whose head ends like the question's relation;
- layer 3 attends to the token that follows the question's relation, a rule's body, or an earlier copy of the current
  token, if the mean there is similar to the current one, and replaces the current token with it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

BASE = 1e7  # base of the rotary positions; more than half of a head's dimensions hardly rotate within a prompt
REACH = 900  # maximum distance in tokens for which attention by distance is fitted
NOTE = 40  # dimensions of a note
SLOTS = ("last", "fourth", "mix", "hop")
FULL = 12.0  # difference of the logits of a full match and of no match


@torch.no_grad()
def plant_reading(model: Any, bracket: int, seed: int) -> None:
    """Overwrite the initial weights of a Llama model with four layers, five heads and tied embeddings.

    Args:
        bracket: Token id of "]".
    """
    plant = Planter(model, seed)
    for head, (slot, span, gain) in enumerate((("last", (1, 1), 1.0), ("fourth", (4, 4), 1.0), ("mix", (0, 19), 4.0))):
        plant.by_distance(0, head, *attend(plant.size, *span))
        plant.move(0, head, plant.brief, plant.notes[slot], gain)
    plant.square = 5.0
    ends, always = torch.zeros(2, NOTE, plant.width)
    ends[0, 1 : plant.known] = model.model.embed_tokens.weight[bracket, 1 : plant.known]
    always[0, 0] = 1.0
    plant.by_distance(1, 0, *plant.avoid(3, falling=0.08))
    plant.by_match(1, 0, [(always, ends, FULL)])
    plant.move(1, 0, plant.notes["fourth"], plant.notes["hop"], 1.0)
    plant.square = 6.0
    plant.by_distance(2, 0, *plant.avoid(3))
    plant.by_match(2, 0, [(plant.notes["fourth"], plant.notes["fourth"], FULL), (always, ends, FULL / 2)])
    plant.move(2, 0, plant.notes["hop"], plant.notes["hop"], 1.0)
    for head in range(4):
        wanted = plant.brief if head % 2 == 0 else plant.notes["fourth"] + plant.notes["hop"]
        plant.by_distance(3, head, *plant.avoid(8))
        plant.by_match(3, head, [(wanted, plant.notes["last"], FULL), (plant.notes["mix"], plant.notes["mix"], FULL)])
        part = plant.part()
        plant.move(3, head, part, part, 2.0)
    plant.by_distance(3, 4, *attend(plant.size, 0, 0))
    part = plant.part()
    plant.move(3, 4, part, part, -1.0)


class Planter:
    """Writes attention heads into a model whose states have a constant (dimension 0), the embedding, and four notes."""

    def __init__(self, model: Any, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.layers = [layer.self_attn for layer in model.model.layers]
        self.width, self.size = model.config.hidden_size, model.config.head_dim
        self.known = self.width - NOTE * len(SLOTS)  # dimensions of the constant and the embedding
        self.square = 2.0  # mean squared norm of a state
        same = torch.eye(self.width)
        self.notes = {slot: same[self.known + i * NOTE :][:NOTE] for i, slot in enumerate(SLOTS)}
        self.brief = torch.zeros(NOTE, self.width)  # the embedding in the dimensions of a note
        self.brief[:, 1 : self.known] = self.normal(NOTE, self.known - 1) / NOTE**0.5
        self.still = torch.arange(self.size) % (self.size // 2) >= self.size * 7 // 32  # hardly rotated by distance
        embedding = model.model.embed_tokens.weight
        embedding.zero_()
        embedding[:, 1 : self.known] = self.normal(len(embedding), self.known - 1) / (self.known - 1) ** 0.5
        embedding[:, 0] = 1.0
        for layer in model.model.layers:  # weights that are not planted start small
            layer.self_attn.o_proj.weight *= 0.2
            layer.mlp.down_proj.weight *= 0.3

    def normal(self, *shape: int) -> Tensor:
        """Seeded random numbers."""
        return torch.randn(*shape, generator=self.generator)

    @property
    def scale(self) -> float:
        """The divisor of the norm before a layer."""
        return float((self.square / self.width) ** 0.5)

    def _rows(self, head: int) -> slice:
        return slice(head * self.size, (head + 1) * self.size)

    def by_distance(self, layer: int, head: int, query: Tensor, key: Tensor) -> None:
        """Make a head attend by distance: query and key [size] on the constant. Must be a head's first call."""
        for matrix, numbers in ((self.layers[layer].q_proj, query), (self.layers[layer].k_proj, key)):
            matrix.weight[self._rows(head)] = 0.0
            matrix.weight[self._rows(head), 0] = numbers * self.scale

    def by_match(self, layer: int, head: int, pairs: list[tuple[Tensor, Tensor, float]]) -> None:
        """Make a head attend to tokens whose key part [n, width] equals the query part, each pair with its logit."""
        mixed = torch.zeros(self.size, sum(len(query) for query, _, _ in pairs))
        mixed[self.still] = self.normal(int(self.still.sum()), mixed.shape[1]) / self.still.sum() ** 0.5
        for at, matrix in enumerate((self.layers[layer].q_proj, self.layers[layer].k_proj)):
            parts = torch.cat([pair[at] * pair[2] ** 0.5 for pair in pairs])
            matrix.weight[self._rows(head)] += mixed @ parts * self.scale * self.size**0.25

    def move(self, layer: int, head: int, what: Tensor, to: Tensor, gain: float) -> None:
        """Make a head write ``what`` [n, width] of the attended tokens into ``to`` [n, width]."""
        value, output = self.layers[layer].v_proj.weight, self.layers[layer].o_proj.weight
        value[self._rows(head)], output[:, self._rows(head)] = 0.0, 0.0
        value[self._rows(head)][: len(what)] = what * self.scale
        output[:, self._rows(head)][:, : len(to)] = to.T * gain

    def part(self) -> Tensor:
        """[size, width]: random orthogonal directions of the embedding."""
        part = torch.zeros(self.size, self.width)
        part[:, 1 : self.known] = torch.linalg.qr(self.normal(self.known - 1, self.size))[0].T
        return part

    def avoid(self, near: int, falling: float = 0.0) -> tuple[Tensor, Tensor]:
        """Query and key that ignore the last ``near`` tokens, by least squares in the rotating dimensions.

        Args:
            falling: Decrease of the logit per token, over the first hundred tokens.
        """
        back = torch.arange(REACH)
        wanted = torch.where(back < near, -12.0, -falling * back.clamp(max=100))
        counts = torch.where(back < near, 10.0, 1.0) * ~((back >= near) & (back < near * 3))
        basis = waves(self.size) * ~self.still
        left = basis.T * counts
        numbers = torch.linalg.solve(left @ basis + 0.1 * torch.eye(self.size), left @ wanted)
        return queried(numbers, (~self.still).float())


def waves(size: int) -> Tensor:
    """[REACH, size]: contribution of each dimension of a head to the logit, by distance."""
    turns = torch.outer(torch.arange(REACH).float(), BASE ** (-torch.arange(size // 2) / (size // 2)))
    return torch.cat([turns.cos(), turns.sin()], 1)


def queried(numbers: Tensor, dims: Tensor) -> tuple[Tensor, Tensor]:
    """Query and key [size] with the logits ``waves @ numbers`` by distance."""
    half = len(numbers) // 2
    here = torch.cat([numbers[:half], -numbers[half:]]) * len(numbers) ** 0.5
    return here, torch.cat([dims[:half], torch.zeros(half)])


def attend(size: int, first: int, last: int) -> tuple[Tensor, Tensor]:
    """Query and key [size] with uniform attention over the distances ``first`` to ``last``, by gradient descent."""
    basis = waves(size)
    with torch.enable_grad():
        numbers = torch.zeros(size, requires_grad=True)
        optimizer = torch.optim.Adam([numbers], lr=0.3)
        for _ in range(400):
            optimizer.zero_grad()
            surprise = -(basis @ numbers).log_softmax(0)[first : last + 1].mean()
            (surprise + 1e-4 * numbers.square().sum()).backward()
            optimizer.step()
    return queried(numbers.detach(), torch.ones(size))
