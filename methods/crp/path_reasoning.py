"""Reasoning along the chosen paths, and one answer from theirs (section 3.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lm_eval_rag.harness.core.asks import generate
from lm_eval_rag.harness.core.prompts import Prompt
from lm_eval_rag.harness.core.types import Plan
from lm_eval_rag.harness.scoring.normalise import normalise
from lm_eval_rag.methods.crp.node_knowledge import Knowledge
from lm_eval_rag.methods.crp.reasoning_graph import Graph, Path
from lm_eval_rag.methods.prompts.worded import Wording
from lm_eval_rag.methods.reasoning.rationales import answer_or_line, rationale_of
from lm_eval_rag.methods.reasoning.steps import STOP


@dataclass(frozen=True, slots=True)
class Reasoner:
    """Reasons along paths of a graph.

    Args:
        question: The question of the user.
        knowledge: Of each node, by number.
        results: Of the beginnings of paths, so that paths that begin alike share them; of whole paths at once.
    """

    question: str
    graph: Graph
    knowledge: Mapping[int, Knowledge]
    wording: Mapping[str, Wording]
    temperature: float
    tokens: int
    results: dict[Path, str] = field(default_factory=dict)

    def step_by_step(self, path: Path) -> Plan[str]:
        """The result of the last step (equations 11 and 12): each step knows the results before it."""
        known: list[str] = []
        for length, number in enumerate(path, 1):
            begun, step = path[:length], self.graph.nodes[number].text
            if begun not in self.results:
                name = "last_step" if length == len(path) else "reason"
                prompt = self.wording[name].prompt(
                    self.knowledge[number].shown, question=self.question, known=known, step=step
                )
                self.results[begun] = yield from self._write(prompt)
            known.append(f"{step} {self.results[begun]}".strip())
        return answer_or_line(self.results[path])

    def at_once(self, path: Path) -> Plan[str]:
        """The answer from all steps and their knowledge in one prompt."""
        steps = [self.graph.nodes[number].text for number in path]
        texts = {passage.text: passage for number in path for passage in self.knowledge[number].shown}
        prompt = self.wording["one_shot"].prompt(texts.values(), question=self.question, steps=steps)
        self.results[path] = yield from self._write(prompt)
        return answer_or_line(self.results[path])

    @property
    def rationale(self) -> str:
        """All results, without the answers that they state."""
        return " ".join(filter(None, map(rationale_of, self.results.values())))

    def fused(self, answers: Sequence[str]) -> Plan[str]:
        """One answer from those of several paths (equation 13); equal ones need no model."""
        distinct = list({normalise(answer): answer for answer in reversed(answers)}.values())[::-1]
        if len(distinct) == 1:
            return distinct[0]
        prompt = self.wording["fuse_answers"].prompt(question=self.question, answers=answers)
        return answer_or_line((yield from self._write(prompt)))

    def _write(self, prompt: Prompt) -> Plan[str]:
        reply = yield from generate(prompt, temperature=self.temperature, max_tokens=self.tokens, stop=STOP)
        return reply.strip()
