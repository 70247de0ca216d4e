"""First weights from which copying need not be found by chance.

From random weights, most of a short training goes by before a transformer finds out how to copy (the two-layer
induction circuit of arXiv:2209.11895). So the first two layers start with this circuit: two heads of layer 0 look one
token back, by the phases of their rotary positions, and write down in a subspace of their own what they see; two heads
of layer 1 look for the token that follows an earlier copy of the present one, and all later heads write what they look
at (in the spirit of mimetic initialisation, arXiv:2305.09828). All of it is trained on like any other weight.
"""

from __future__ import annotations

from typing import Any

import torch

LOOKS = (1, 4)  # tokens back: from "Answer:" the fourth is the last one of the asked relation
BASE = 10000.0  # of the rotary positions
NEAR = 8  # rotary frequencies that tell neighbours apart: the fastest
SPREAD, COMMON, SEEN = 0.07, 0.5, 0.9  # lengths: a number of an embedding, its shared part, what is written down
LOOK, MATCH, COPY = 0.8, 2.0, 0.5  # strengths: of looking back, of looking for the same token, of copying


@torch.no_grad()
def plant_copying(model: Any, seed: int) -> None:
    """Overwrite first weights of a Llama model with two or more layers and tied embeddings.

    Embeddings begin in the first half of the dimensions, with a constant in dimension 0 (what position heads look at);
    the second half is for what heads write down. Each of the first two heads handles half of an embedding.

    Args:
        model: ``LlamaForCausalLM`` with four heads and as many key heads.
    """
    generator = torch.Generator().manual_seed(seed)
    layers = [layer.self_attn for layer in model.model.layers]
    width, size = model.config.hidden_size, model.config.head_dim
    embedding, same = model.model.embed_tokens.weight, torch.eye(width)
    embedding.normal_(0.0, SPREAD, generator=generator)
    embedding[:, width // 2 :] = 0.0
    embedding[:, 0] = COMMON
    back = [look_back(size, steps) for steps in LOOKS]
    slow = torch.arange(size) % (size // 2) >= size // 4  # dimensions that distance hardly turns
    halves = [same[:size], same[size : 2 * size]]
    notes = [same[2 * size : 3 * size], same[3 * size :]]
    for head in range(2):
        mine = slice(head * size, (head + 1) * size)
        layers[0].q_proj.weight[mine] = LOOK * torch.outer(back[head][0], same[0])
        layers[0].k_proj.weight[mine] = LOOK * torch.outer(back[head][1], same[0])
        layers[0].v_proj.weight[mine] = halves[0]
        layers[0].o_proj.weight[:, mine] = notes[head].T * SEEN / width**0.5
    for head in range(4):
        mine, half = slice(head * size, (head + 1) * size), halves[head // 2]
        wanted = halves[0] if head % 2 == 0 else notes[1]
        layers[1].q_proj.weight[mine] = MATCH * wanted * slow[:, None]
        layers[1].k_proj.weight[mine] = MATCH * notes[0] * slow[:, None]
        for layer in layers[1:]:
            layer.v_proj.weight[mine] = half
            layer.o_proj.weight[:, mine] = half.T * (COPY if layer is layers[1] else COPY / 20)


def look_back(size: int, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What a query and a key [size] must hold for a head to look ``steps`` tokens back."""
    turns = steps * BASE ** (-torch.arange(NEAR) / (size // 2))
    here, there = torch.zeros(size), torch.zeros(size)
    here[:NEAR], here[size // 2 : size // 2 + NEAR], there[:NEAR] = turns.cos(), -turns.sin(), 1.0
    return here, there
