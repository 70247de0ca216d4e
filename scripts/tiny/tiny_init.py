"""First weights from which reading need not be found by chance.

From random weights, most of a short training goes by before a transformer finds out how to copy (the two-layer
induction circuit of arXiv:2209.11895). So this circuit, and the hop over a rule, are planted into the first weights (in
the spirit of mimetic initialisation, arXiv:2305.09828); all of it is trained on like any other weight:

- layer 0 notes at every token the one before it, the fourth before it (at "Answer:" the last one of the asked
  relation, at the "]" after "Entity2" the last one of a rule's body or head), and the mix of the last 20;
- layer 1 brings a rule's body to its head: to each "]" the note at the "]" before it;
- layer 2 brings it to the question: "Answer:" looks for the rule whose head ends as the asked relation does;
- layer 3 looks for the token that follows the asked relation, a rule's body, or an earlier copy of the present token,
  where the mix is like the present one, and writes it over the present token.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

BASE = 1e7  # of the rotary positions: more than half of a head's dimensions hardly turn within a prompt
REACH = 900  # tokens back for which attention over distances is fitted
NOTE = 40  # dimensions of a note
SLOTS = ("last", "fourth", "mix", "hop")
FULL = 12.0  # by how much the logit of a full match exceeds that of none


@torch.no_grad()
def plant_reading(model: Any, bracket: int, seed: int) -> None:
    """Overwrite first weights of a Llama model with four layers, five heads and tied embeddings.

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
    """Writes heads into a model whose states hold a constant in dimension 0, the embedding, and a note a slot."""

    def __init__(self, model: Any, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.layers = [layer.self_attn for layer in model.model.layers]
        self.width, self.size = model.config.hidden_size, model.config.head_dim
        self.known = self.width - NOTE * len(SLOTS)  # dimensions of the constant and the embedding
        self.square = 2.0  # mean squared length of a state
        same = torch.eye(self.width)
        self.notes = {slot: same[self.known + i * NOTE :][:NOTE] for i, slot in enumerate(SLOTS)}
        self.brief = torch.zeros(NOTE, self.width)  # the embedding in the dimensions of a note
        self.brief[:, 1 : self.known] = self.normal(NOTE, self.known - 1) / NOTE**0.5
        self.still = torch.arange(self.size) % (self.size // 2) >= self.size * 7 // 32  # hardly turned by distance
        embedding = model.model.embed_tokens.weight
        embedding.zero_()
        embedding[:, 1 : self.known] = self.normal(len(embedding), self.known - 1) / (self.known - 1) ** 0.5
        embedding[:, 0] = 1.0
        for layer in model.model.layers:  # what is not planted starts low
            layer.self_attn.o_proj.weight *= 0.2
            layer.mlp.down_proj.weight *= 0.3

    def normal(self, *shape: int) -> Tensor:
        """Seeded random numbers."""
        return torch.randn(*shape, generator=self.generator)

    @property
    def scale(self) -> float:
        """What the norm before a layer divides by."""
        return float((self.square / self.width) ** 0.5)

    def _rows(self, head: int) -> slice:
        return slice(head * self.size, (head + 1) * self.size)

    def by_distance(self, layer: int, head: int, query: Tensor, key: Tensor) -> None:
        """Let a head attend by distance: query and key [size] on the constant. First of a head's calls."""
        for matrix, numbers in ((self.layers[layer].q_proj, query), (self.layers[layer].k_proj, key)):
            matrix.weight[self._rows(head)] = 0.0
            matrix.weight[self._rows(head), 0] = numbers * self.scale

    def by_match(self, layer: int, head: int, pairs: list[tuple[Tensor, Tensor, float]]) -> None:
        """Let a head attend, too, where a key part [n, width] equals its query part, each with its logit."""
        mixed = torch.zeros(self.size, sum(len(query) for query, _, _ in pairs))
        mixed[self.still] = self.normal(int(self.still.sum()), mixed.shape[1]) / self.still.sum() ** 0.5
        for at, matrix in enumerate((self.layers[layer].q_proj, self.layers[layer].k_proj)):
            parts = torch.cat([pair[at] * pair[2] ** 0.5 for pair in pairs])
            matrix.weight[self._rows(head)] += mixed @ parts * self.scale * self.size**0.25

    def move(self, layer: int, head: int, what: Tensor, to: Tensor, gain: float) -> None:
        """Let a head write ``what`` [n, width] of the tokens it attends to into ``to`` [n, width]."""
        value, output = self.layers[layer].v_proj.weight, self.layers[layer].o_proj.weight
        value[self._rows(head)], output[:, self._rows(head)] = 0.0, 0.0
        value[self._rows(head)][: len(what)] = what * self.scale
        output[:, self._rows(head)][:, : len(to)] = to.T * gain

    def part(self) -> Tensor:
        """[size, width]: random directions of the embedding, at right angles."""
        part = torch.zeros(self.size, self.width)
        part[:, 1 : self.known] = torch.linalg.qr(self.normal(self.known - 1, self.size))[0].T
        return part

    def avoid(self, near: int, falling: float = 0.0) -> tuple[Tensor, Tensor]:
        """Query and key that look past the ``near`` last tokens, by least squares in the dimensions that turn.

        Args:
            falling: How much the logit falls a token, over the first hundred.
        """
        back = torch.arange(REACH)
        wanted = torch.where(back < near, -12.0, -falling * back.clamp(max=100))
        counts = torch.where(back < near, 10.0, 1.0) * ~((back >= near) & (back < near * 3))
        basis = waves(self.size) * ~self.still
        left = basis.T * counts
        found = torch.linalg.solve(left @ basis + 0.1 * torch.eye(self.size), left @ wanted)
        return queried(found, (~self.still).float())


def waves(size: int) -> Tensor:
    """[REACH, size]: what each dimension of a head adds to attention over each distance."""
    turns = torch.outer(torch.arange(REACH).float(), BASE ** (-torch.arange(size // 2) / (size // 2)))
    return torch.cat([turns.cos(), turns.sin()], 1)


def queried(numbers: Tensor, dims: Tensor) -> tuple[Tensor, Tensor]:
    """Query and key [size] of which ``waves @ numbers`` is the logit over distances."""
    half = len(numbers) // 2
    here = torch.cat([numbers[:half], -numbers[half:]]) * len(numbers) ** 0.5
    return here, torch.cat([dims[:half], torch.zeros(half)])


def attend(size: int, first: int, last: int) -> tuple[Tensor, Tensor]:
    """Query and key [size] that spread attention evenly over the distances ``first`` to ``last``; by descent."""
    basis = waves(size)
    with torch.enable_grad():
        found = torch.zeros(size, requires_grad=True)
        optimizer = torch.optim.Adam([found], lr=0.3)
        for _ in range(400):
            optimizer.zero_grad()
            surprise = -(basis @ found).log_softmax(0)[first : last + 1].mean()
            (surprise + 1e-4 * found.square().sum()).backward()
            optimizer.step()
    return queried(found.detach(), torch.ones(size))
