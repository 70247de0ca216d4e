"""A scripted teacher: a generator that knows the world and answers each prompt of each method as that prompt asks.

``reads=True`` is an honest reader: it uses only facts that the prompt states, says "I don't know" (of claims: NOT
ENOUGH INFO) if they do not suffice, and invents entities where a step must be written without documents.
``reads=False`` knows all facts.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from knowledge import facts_seen, guessed, read_fact, sub_questions
from prompt_forms import Asked, forms
from replies import ANSWERS

from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.tasks.reasoning_demo.questions import Reasoning
from lm_eval_rag.tasks.reasoning_demo.world import Fact, Part


class Teacher:
    """The generator.

    Args:
        part: The world.
        questions: What is asked.
        reads: Whether it uses only what prompts state.
    """

    fingerprint = "teacher"
    batch = 512

    def __init__(self, part: Part, questions: Sequence[Reasoning], *, reads: bool) -> None:
        self.part, self.reads = part, reads
        self.known = sub_questions(questions, part)
        self.rows: list[tuple[str, str, str]] = []  # (step, prompt, reply) of all that was asked

    def generate(self, prompts: Sequence[str], decoding: Decoding, samples: Sequence[int]) -> list[str]:
        """The replies."""
        return [self.reply(prompt, sample) for prompt, sample in zip(prompts, samples, strict=True)]

    def loglikelihood(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Nearly 0 for the teacher's own reply, and very low for any other."""
        return [-0.01 if self.reply(prompt).startswith(reply.strip()) else -30.0 for prompt, reply in pairs]

    def count_tokens(self, text: str) -> int:
        """Words."""
        return len(text.split())

    def room(self, max_tokens: int) -> None:
        """No limit."""

    def reply(self, prompt: str, sample: int = 0) -> str:
        """The reply to one prompt, which is recorded."""
        read = self.read(prompt, sample)
        reply = ANSWERS[read.step](self, read)
        self.rows.append((read.step, prompt, reply))
        return reply

    def read(self, prompt: str, sample: int = 0) -> Asked:
        """Which step asks, and the fields of its prompt.

        Raises:
            ValueError: It is none of the methods' prompts.
        """
        for step, pattern in forms():
            if match := pattern.fullmatch(prompt):
                fields = {name: text or "" for name, text in match.groupdict().items() if name not in ("docs", "r")}
                text = fields.get("question") or fields.get("query") or fields.get("step") or ""
                return Asked(step, self.known.get(text), fields, match["docs"], match["r"] or "", sample)
        raise ValueError(f"The teacher does not know this prompt:\n{prompt}")

    def seen(self, read: Asked, text: str) -> list[Fact]:
        """The facts of the question's chain that the teacher may use."""
        assert read.question is not None, read
        return facts_seen(read.question, text if self.reads else None)

    def imagined(self, read: Asked, text: str) -> list[Fact]:
        """A whole chain: what a text states or the teacher knows, and invented facts for the rest."""
        assert read.question is not None, read
        rng = random.Random(f"{read.question.text} {read.sample}")
        known = self.seen(read, "") if not self.reads else _facts_in(text)
        return guessed(read.question, known, rng, self.part)


def _facts_in(text: str) -> list[Fact]:
    """The facts that sentences of a text state."""
    sentences = re.split(r"(?<=\.)\s+|\n|(?<=\d\.) ", text)
    return [fact for sentence in sentences if (fact := read_fact(re.sub(r"^\d+\. ", "", sentence)))]
