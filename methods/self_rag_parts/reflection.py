"""How Self-RAG asks a model for a segment and for the judgements about it (arXiv:2310.11511, table 1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from lm_eval_rag.harness.core.asks import Logs, together
from lm_eval_rag.harness.core.prompts import Prompt
from lm_eval_rag.harness.core.types import Passage, Plan
from lm_eval_rag.harness.scoring.normalise import count_words
from lm_eval_rag.methods.prompts.worded import Wording
from lm_eval_rag.methods.reasoning.judgements import label_logs, log_of, shares
from lm_eval_rag.methods.reasoning.rationales import answer_in

Variant = Literal["paper", "official", "flashrag"]
Labels = dict[str, float]  # ln P by label
# judgement -> its labels in words, as tokens of the checkpoints, and what each is worth
LABELS = {
    "retrieve": (("yes", "no"), ("[Retrieval]", "[No Retrieval]"), (1.0, 0.0)),
    "relevant": (("yes", "no"), ("[Relevant]", "[Irrelevant]"), (1.0, 0.0)),
    "supported": (
        ("fully", "partially", "no"),
        ("[Fully supported]", "[Partially supported]", "[No support / Contradictory]"),
        (1.0, 0.5, 0.0),
    ),
    "useful": (tuple("12345"), tuple(f"[Utility:{n}]" for n in range(1, 6)), (-1.0, -0.5, 0.0, 0.5, 1.0)),
}
JUDGEMENTS = ("relevant", "supported", "useful")


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer on its way: its segments, the sum of their scores, and the passages behind it."""

    segments: tuple[str, ...] = ()
    score: float = 0.0
    passages: tuple[Passage, ...] = ()
    ended: bool = False

    @property
    def text(self) -> str:
        """The segments as one text."""
        return " ".join(self.segments)


@dataclass(frozen=True, slots=True)
class Form:
    """How the model is asked.

    Args:
        wording: The prompts in words.
        tokens: Ask with the checkpoints' tokens instead.
        given: Which log-probabilities the model gives.
        variant: That of the method.
    """

    wording: Mapping[str, Wording]
    tokens: bool
    given: Logs
    variant: Variant

    @property
    def whole(self) -> bool:
        """Whether one generation is the whole answer."""
        return self.variant != "paper"

    def prompt(
        self, step: str, question: str, draft: Draft, passage: Passage | None, segment: str = "", *, after: str = ""
    ) -> Prompt | str:
        """The prompt of a step.

        Args:
            segment: What is judged, in words.
            after: What was written after the passage, in tokens; "" begins as the variant does.
        """
        if not self.tokens:
            shown = () if passage is None or step == "useful" else (passage,)
            texts = {"retrieve": {"before": draft.text}, "segment": {}, "relevant": {"before": draft.text}}
            given = texts.get(step, {"segment": segment})
            begun = draft.text if step == "segment" else ""
            return self.wording[step].prompt(shown, begun=begun, question=question, **given)
        name = "tokens_short" if self.variant == "flashrag" else "tokens"
        begun = self.wording[name].prompt(question=question).render() + draft.text
        if step == "retrieve":
            return begun
        if passage is None:
            return f"{begun}[No Retrieval]{after}"
        forced = "[Relevant]" if step == "segment" and not self.whole else ""
        return f"{begun}[Retrieval]<paragraph>{passage.text}</paragraph>{forced}{after}"

    def logs(self, step: str, prompt: Prompt | str) -> Plan[Labels]:
        """ln P of each label of a judgement."""
        in_words, marks, _ = LABELS[step]
        return (
            yield from label_logs(prompt, marks if self.tokens else in_words, self.given, "" if self.tokens else " ")
        )

    def lacks(self, step: str, logs: Mapping[str, float]) -> bool:
        """Whether a judgement is missing, which the scripts score 0; relevance never is."""
        known = self.tokens or self.given != "texts"  # the probability of a label in words does not tell
        return self.whole and known and step != "relevant" and sum(map(math.exp, logs.values())) < 0.5

    def worth(self, step: str, logs: Mapping[str, float]) -> float:
        """The expected value of the label; 0 where the judgement is missing."""
        if self.lacks(step, logs):
            return 0.0
        return sum(share * worth for share, worth in zip(shares(logs).values(), LABELS[step][2], strict=True))

    def answer(self, text: str) -> str:
        """The answer in a text; the scripts drop one sign that checkpoints begin with."""
        if self.whole and self.tokens:
            return text[1:].strip() if text.startswith(("#", ":")) else text
        return answer_in(text) or text


def likelihood(form: Form, prompt: Prompt | str, reply: str, segment: str) -> Plan[float]:
    """p(segment), of a segment that a reply begins with: the geometric mean over its words."""
    log = yield from log_of(prompt, reply, segment, form.given, "" if form.tokens else " ")
    return math.exp(log / count_words(segment))


def at_once(question: str, draft: Draft, passage: Passage | None, form: Form, segment: str) -> Plan[dict[str, Labels]]:
    """ln P of the labels of each judgement; in tokens after those of a good segment."""
    steps = JUDGEMENTS if passage else JUDGEMENTS[-1:]
    relevant, supported = ("[Relevant]", "[Fully supported]") if passage else ("", "")
    after = {"supported": f"{relevant}{segment}", "useful": f"{relevant}{segment}{supported}"}
    judged = yield from together(
        form.logs(step, form.prompt(step, question, draft, passage, segment, after=after.get(step, "")))
        for step in steps
    )
    return dict(zip(steps, judged, strict=True))


def in_turn(
    question: str, draft: Draft, passage: Passage | None, form: Form, segment: str
) -> Plan[tuple[float, dict[str, Labels]]]:
    """p(segment) and ln P of the labels, each after the likeliest ones before it, as a checkpoint writes them."""
    judged: dict[str, Labels] = {}
    after, fluency = "", 0.0
    for step in JUDGEMENTS:
        logs = judged[step] = yield from form.logs(step, form.prompt(step, question, draft, passage, after=after))
        after += "" if form.lacks(step, logs) else max(logs, key=logs.__getitem__)
        if step == "relevant":
            prompt = form.prompt("segment", question, draft, passage, after=after)
            fluency = yield from likelihood(form, prompt, segment, segment)
            after += segment
    return fluency, judged


def without_tokens(reply: str, whole: bool) -> str:
    """The reply without reflection tokens, where a model shows them.

    Args:
        whole: Keep all of the text; otherwise it ends at the first of them that is not at its beginning.
    """
    marks = [mark for _, marks, _ in LABELS.values() for mark in marks]
    if whole:
        for mark in (*marks, "<paragraph>", "</paragraph>", "</s>"):
            reply = reply.replace(mark, " ")
        return reply
    for mark in marks:
        reply = reply.strip().removeprefix(mark).partition(mark)[0]
    return reply.removesuffix("</s>")
