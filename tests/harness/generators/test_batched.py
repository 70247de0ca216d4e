"""Asks that wait meet in batches of like length."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from lm_eval_rag.harness.generators.base import Completion, Decoding
from lm_eval_rag.harness.generators.batched import Batched


class Echo:
    """Notes the lengths of each batch."""

    fingerprint, batch = "echo", 8

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def generate(self, prompts: Sequence[str], decoding: Decoding, samples: Sequence[int]) -> list[str]:
        self.batches.append([len(prompt) for prompt in prompts])
        return list(prompts)

    def loglikelihood(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [0.0] * len(pairs)

    def count_tokens(self, text: str) -> None:
        return None

    def room(self, max_tokens: int) -> None:
        return None


def replies(generator: Echo, prompts: Sequence[str], decodings: Sequence[Decoding]) -> list[str]:
    async def main() -> list[str]:
        stream = Batched(generator)

        async def ask(number: int) -> str:
            for _ in range(number % 4):  # questions come to their asks one after the other
                await asyncio.sleep(0)
            reply = await stream.generate(prompts[number], decodings[number], 0)
            assert isinstance(reply, Completion)
            return reply.text

        try:
            return await asyncio.gather(*map(ask, range(len(prompts))))
        finally:
            await stream.close()

    return asyncio.run(main())


def test_as_few_batches_as_possible_in_the_order_of_length() -> None:
    prompts = ["x" * length for length in random.Random(0).sample(range(1, 1000), 28)]
    generator = Echo()
    assert replies(generator, prompts, [Decoding()] * 28) == prompts
    by_length = sorted(map(len, prompts), reverse=True)
    assert sorted(generator.batches, reverse=True) == [by_length[i : i + 8] for i in range(0, 28, 8)]
    assert len(prompts[0]) in generator.batches[0]  # the oldest is in the first


def test_a_batch_has_one_way_of_decoding() -> None:
    prompts = [f"{'short' if i % 2 else 'long'} {i}" for i in range(20)]
    generator = Echo()
    assert replies(generator, prompts, [Decoding(max_tokens=9 + i % 2) for i in range(20)]) == prompts
    assert sorted(map(len, generator.batches)) == [2, 2, 8, 8]
