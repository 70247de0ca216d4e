"""Self-RAG: retrieve when it helps, then criticise what each passage leads to (arXiv:2310.11511, section 3.3).

For each segment of the answer the model is asked whether to retrieve. If so, each passage leads to a candidate segment,
and three judgements score it: is the passage relevant, does it support the segment, is the segment useful. A segment's
score is p(segment | passage) + w_relevant s_relevant + w_supported s_supported + w_useful s_useful, where s is the
expected value of the label: relevant 1 or 0; fully 1, partially 1/2, not supported 0; useful -1 to 1 in steps of 1/2.
The ``beam`` best answers go on.

Defaults: threshold 0.2 on P(retrieve) / (P(retrieve) + P(not)), beam 2, weights 1, 1 and 0.5 for relevance, support and
usefulness, 5 passages (all: the paper's section 4.2, "Inference settings"), one segment, as for short answers. The
authors' short-form script has the same weights in its call; its option ``--w_use`` has the default 1, but is not used.

``tokens=True`` is for the published checkpoints: their prompt and their reflection tokens (``[Retrieval]``,
``[Relevant]``, ``[Fully supported]``, ``[Utility:5]`` ...). Otherwise any model is asked in words.

``variant=official`` has the gate of the authors' short-form script, which divides log-probabilities: ln P(retrieve) /
(ln P(retrieve) + ln P(not)) > threshold. That inverts the decision: P(retrieve) = 0.95 gives 0.017, so nothing is
retrieved, and P(retrieve) = 0.05 gives 0.98. All else is as in ``paper``.

``variant=flashrag`` is the FlashRAG toolkit's pipeline for short answers (commit 1ee5249, ``active_pipeline.py`` and
``examples/methods/run_exp.py``): weights 1, 1, 1; the checkpoint is asked for a short answer in its instruction; the
whole reply is the segment, not its first sentence. Its gate divides probabilities, as the paper's.

Departures: the wording of the prompts is ours. The judgements are asked for by label after a segment was written, where
a checkpoint writes them as it goes: with tokens a segment stands after ``[Relevant]``, its usefulness after ``[Fully
supported]``, and labels of earlier segments are left out. A judgement without a readable label counts as undecided (all
labels alike). p(segment) is the geometric mean over words, not tokens, so that it is the same unit for every model.
Without retrieval a segment is scored by p and its usefulness. Where the model gives no log-probabilities the label that
it writes has probability 1, and p(segment) is left out (note ``no log-probabilities: labels``). If nothing is retrieved
the segment is written without (note ``nothing retrieved``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.asks import generate, has_loglikelihood, loglikelihood, retrieve, together
from lm_eval_rag.harness.core.parameters import Depth, Positive
from lm_eval_rag.harness.core.prompts import Prompt
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query
from lm_eval_rag.harness.scoring.normalise import count_words
from lm_eval_rag.methods.prompts.worded import Wording, wordings
from lm_eval_rag.methods.reasoning.judgements import PROXY, label_logs, shares
from lm_eval_rag.methods.reasoning.rationales import answer_in, before_answer, first_sentence, states_answer
from lm_eval_rag.methods.reasoning.steps import STOP, final, limited, merged

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


Variant = Literal["paper", "official", "flashrag"]
W_USEFUL = {"paper": 0.5, "official": 0.5, "flashrag": 1.0}


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
        scored: Whether the model gives log-probabilities.
        whole: FlashRAG's form: a short answer is asked for, and the whole reply is the segment.
    """

    wording: Mapping[str, Wording]
    tokens: bool
    scored: bool
    whole: bool = False

    def prompt(
        self, step: str, question: str, draft: Draft, passage: Passage | None, segment: str = ""
    ) -> Prompt | str:
        """The prompt of a step; in tokens all that was written so far, with the passage between its marks."""
        if not self.tokens:
            shown = () if passage is None or step == "useful" else (passage,)
            texts = {"retrieve": {"before": draft.text}, "segment": {}, "relevant": {"before": draft.text}}
            given = texts.get(step, {"segment": segment})
            reasoning = draft.text if step == "segment" else ""
            return self.wording[step].prompt(shown, reasoning=reasoning, question=question, **given)
        begun = self.wording["tokens_short" if self.whole else "tokens"].prompt(question=question).render() + draft.text
        if step == "retrieve":
            return begun
        if passage is None:
            return f"{begun}[No Retrieval]{segment}"
        relevant = "" if step == "relevant" else "[Relevant]"
        supported = "[Fully supported]" if step == "useful" else ""
        return f"{begun}[Retrieval]<paragraph>{passage.text}</paragraph>{relevant}{segment}{supported}"

    def logs(self, step: str, prompt: Prompt | str) -> Plan[dict[str, float]]:
        """ln P of each label of a judgement."""
        in_words, marks, _ = LABELS[step]
        return (
            yield from label_logs(prompt, marks if self.tokens else in_words, self.scored, "" if self.tokens else " ")
        )


@limited
def self_rag(
    query: Query,
    *,
    k: Depth = 5,
    threshold: float = 0.2,
    beam: Positive = 2,
    segments: Positive = 1,
    w_relevant: float = 1.0,
    w_supported: float = 1.0,
    w_useful: float | None = None,
    tokens: bool = False,
    variant: Variant = "paper",
    segment_tokens: Positive = 100,
    prompt_file: str | None = None,
    max_calls: Positive = 500,
) -> Plan[Answer]:
    """Answer with the segments that score best.

    Args:
        k: Passages of each retrieval, each of which leads to a candidate.
        threshold: Retrieve above it; below 0 always, 1 never.
        beam: Answers that go on after each segment.
        segments: Segments of the answer, at most.
        w_relevant: Weight of the passage's relevance.
        w_supported: Weight of the passage's support.
        w_useful: Weight of the usefulness; None is 0.5, and 1 for ``flashrag``.
        tokens: Ask with the special tokens of Self-RAG's checkpoints; needs log-probabilities and raw text.
        variant: ``paper``, or what the authors' script or FlashRAG makes of it.
        segment_tokens: Limit of tokens of a segment.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
        max_calls: Calls of the model, at most; beyond them it abstains.
    """
    wording = wordings("self_rag", prompt_file)
    form = Form(wording, tokens, (yield from has_loglikelihood()), variant == "flashrag")
    if tokens and not form.scored:
        raise UserError(
            "tokens=True needs log-probabilities, which this generator does not give. Take generator=hf or vllm."
        )
    notes = [] if form.scored else [f"{PROXY}: labels"]
    useful = W_USEFUL[variant] if w_useful is None else w_useful
    weights = {"relevant": w_relevant, "supported": w_supported, "useful": useful}
    drafts = [Draft()]
    for _ in range(segments):
        candidates: list[Draft] = []
        for draft in drafts:
            if draft.ended:
                candidates.append(draft)
                continue
            logs = yield from form.logs("retrieve", form.prompt("retrieve", query.text, draft, None))
            passages: Sequence[Passage | None] = ()
            if _retrieves(list(logs.values()), threshold, variant):
                passages = yield from retrieve(" ".join([query.text, *draft.segments[-1:]]), k)
                notes += [] if passages else ["nothing retrieved"]
            candidates += yield from together(
                _continued(query.text, draft, passage, form, weights, segment_tokens) for passage in passages or [None]
            )
        drafts = sorted(candidates, key=lambda draft: -draft.score)[:beam]  # stable: of equal ones the first
    best, text = drafts[0], drafts[0].text
    passages = merged([best.passages, *(draft.passages for draft in drafts[1:])])
    return final(answer_in(text) or text, passages, notes, before_answer(text))


def _retrieves(logs: Sequence[float], threshold: float, variant: str) -> bool:
    """Whether to retrieve, by ln P(retrieve) and ln P(not)."""
    if variant == "official":
        return sum(logs) != 0 and logs[0] / sum(logs) > threshold
    return shares(dict(enumerate(logs)))[0] > threshold


def _continued(
    question: str, draft: Draft, passage: Passage | None, form: Form, weights: Mapping[str, float], max_tokens: int
) -> Plan[Draft]:
    """The draft with the segment that a passage leads to, scored; without a segment it ends as it is."""
    prompt = form.prompt("segment", question, draft, passage)
    reply = yield from generate(prompt, temperature=0.0, max_tokens=max_tokens, stop=STOP)
    written = _without_tokens(reply)
    segment = " ".join(written.split()) if form.whole else first_sentence(written)
    shown = draft.passages if passage is None else merged([draft.passages, [passage]])
    if not segment:
        return Draft(draft.segments, draft.score, shown, ended=True)
    score = draft.score
    if form.scored:
        space = "" if form.tokens else " "
        score += math.exp((yield from loglikelihood(prompt, f"{space}{segment}")) / count_words(segment))
    steps = ("relevant", "supported", "useful") if passage else ("useful",)
    judged = together(
        form.logs(step, form.prompt(step, question, draft, passage, segment * (step != "relevant"))) for step in steps
    )
    for step, logs in zip(steps, (yield from judged), strict=True):
        values = zip(shares(logs).values(), LABELS[step][2], strict=True)
        score += weights[step] * sum(share * worth for share, worth in values)
    return Draft((*draft.segments, segment), score, shown, ended=states_answer(segment))


def _without_tokens(reply: str) -> str:
    """The reply before the first reflection token, where a model shows them; one at its beginning is skipped."""
    for _, marks, _ in LABELS.values():
        for mark in marks:
            reply = reply.strip().removeprefix(mark)
            reply = reply.partition(mark)[0]
    return reply.removesuffix("</s>")
