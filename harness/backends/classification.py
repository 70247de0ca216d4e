"""Attributes of questions by trained classifiers, through the journal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.asks import Classify
from lm_eval_rag.harness.core.backend import Served
from lm_eval_rag.harness.core.journal import Call, Journal, Reply
from lm_eval_rag.harness.core.types import Query, Step
from lm_eval_rag.harness.retrieval.classifier import Attributes, read_attributes


@dataclass(frozen=True, slots=True)
class ClassifyBackend:
    """Serves Classify; texts for one classifier are embedded together."""

    journal: Journal
    batch: int = 512
    _models: dict[str, Attributes] = field(default_factory=dict)

    def serve(self, asked: Sequence[tuple[Query, Classify]]) -> list[Served | CallError]:
        """The label of each text."""
        groups: dict[tuple[str, str], list[int]] = defaultdict(list)
        for i, (_, ask) in enumerate(asked):
            groups[ask.model, ask.attribute].append(i)
        served: dict[int, Served | CallError] = {}
        for (folder, attribute), positions in groups.items():
            texts = [asked[i][1].text for i in positions]
            for i, text, reply in zip(positions, texts, self._labels(folder, attribute, texts), strict=True):
                served[i] = reply if isinstance(reply, CallError) else _served(attribute, text, reply)
        return [served[i] for i in range(len(asked))]

    def _labels(self, folder: str, attribute: str, texts: list[str]) -> list[Reply | CallError]:
        if folder not in self._models:
            self._models[folder] = read_attributes(folder)
        model = self._models[folder]
        calls = [Call(model.fingerprint, ["classify", attribute, text]) for text in texts]
        return self.journal.serve(calls, lambda some: model.classify([texts[i] for i in some], attribute), self.batch)


def _served(attribute: str, text: str, reply: Reply) -> Served:
    step = Step("Classify", f"{attribute}: {text}", reply.value, seconds=reply.seconds, journalled=reply.journalled)
    return Served(reply.value, step)
