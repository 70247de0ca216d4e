"""Self-RAG: retrieve when it helps, then criticise what each passage leads to (arXiv:2310.11511, section 3.3).

For each segment of the answer the model is asked whether to retrieve. If so, each passage leads to a candidate segment,
and three judgements score it: is the passage relevant, does it support the segment, is the segment useful. A segment's
score is p(segment | passage) + w_relevant s_relevant + w_supported s_supported + w_useful s_useful, where s is the
expected value of the label: relevant 1 or 0; fully 1, partially 1/2, not supported 0; useful -1 to 1 in steps of 1/2.
The ``beam`` best answers go on.

Defaults: threshold 0.2 on P(retrieve) / (P(retrieve) + P(not)), beam 2, weights 1, 1 and 0.5 for relevance, support and
usefulness, 5 passages (all: the paper's section 4.2, "Inference settings"), one segment, as for short answers.

``tokens=True`` is for the published checkpoints: their prompt and their reflection tokens (``[Retrieval]``,
``[Relevant]``, ``[Fully supported]``, ``[Utility:5]`` ...). Otherwise any model is asked in words.

``variant=official`` is the authors' ``run_short_form.py`` (AkariAsai/self-rag at 1fcdc42, where the script is that of
ed22968, 2023-12-22) with the arguments of its README:

- Its gate divides log-probabilities: ln P(retrieve) / (ln P(retrieve) + ln P(not)) > threshold. That inverts the
  decision: P(retrieve) = 0.95 gives 0.017, so nothing is retrieved, and P(retrieve) = 0.05 gives 0.98.
- Weights 1, 1, 1: since 6947748 (2023-11-17) it passes on ``--w_use``, whose default is 1, and no command of the README
  sets it. Before, it always passed 0.5. p(segment) counts only with ``--use_seqscore``, which the commands for PopQA,
  ARC and PubHealth all have.
- The whole generation is the answer, and is not continued. Without retrieval it is not scored.
- A missing judgement of support or usefulness scores 0. With tokens each is asked for after the likeliest labels before
  it; it is missing where its labels have less than half of the probability, as the checkpoint would then write
  something else. In words it is missing where the reply has no readable label, or with ``gen_logprobs=True`` where the
  labels have less than half of the probability.
- 10 passages and 100 tokens. ``closed=True`` is for its tasks ``arc_c`` and ``fever`` (PubHealth): the scores of equal
  answers are added up, with 5 passages and 50 tokens.

Not taken over: its instructions for ARC and PubHealth (give them by ``prompt_file=``); the title on a line of its own
before a passage's text; p over all tokens, also the reflection tokens; labels after the first of several segments,
where ours come after the last; that a passage with a blank generation can win by its other scores; ``true`` and
``false`` for SUPPORTS and REFUTES in the scoring.

``variant=flashrag`` is the FlashRAG toolkit's pipeline for short answers (commit 1ee5249, ``active_pipeline.py`` and
``examples/methods/run_exp.py``). It is as ``official``, but its gate divides probabilities, as the paper's; the
checkpoint is asked for a short answer in its instruction; 5 passages and 100 tokens, also with ``closed=True`` (its
``fever`` and ``arc_c``). Not taken over: it reads labels among the five likeliest tokens alone.

Departures: the wording of the prompts is ours. The judgements are asked for by label after a segment was written, where
a checkpoint writes them as it goes: with tokens a segment stands after ``[Relevant]``, its usefulness after ``[Fully
supported]``, and labels of earlier segments are left out. A judgement without a readable label counts as undecided (all
labels alike). Where a model gives log-probabilities of its replies alone (``gen_logprobs=True``), labels are read among
the 20 likeliest tokens in the place of the first word. p(segment) is the geometric mean over words, not tokens, so that
it is the same unit for every model. Without retrieval a segment is scored by p and its usefulness. Where the model
gives no log-probabilities the label that it writes has probability 1, and p(segment) is left out (note ``no
log-probabilities: labels``). If nothing is retrieved the segment is written without (note ``nothing retrieved``). In
words the model is told to state its answer, which then is the answer in place of the whole text, in all variants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.asks import generate, log_probabilities, retrieve, together
from lm_eval_rag.harness.core.parameters import Depth, Positive
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query
from lm_eval_rag.methods.prompts.worded import wordings
from lm_eval_rag.methods.reasoning.judgements import PROXY, shares
from lm_eval_rag.methods.reasoning.rationales import before_answer, sentences, states_answer
from lm_eval_rag.methods.reasoning.steps import STOP, final, limited, merged
from lm_eval_rag.methods.self_rag_parts.reflection import (
    Draft,
    Form,
    Variant,
    at_once,
    in_turn,
    likelihood,
    without_tokens,
)

W_USEFUL = {"paper": 0.5, "official": 1.0, "flashrag": 1.0}
# (variant, closed) -> passages, and tokens of a segment, where they are not 5 and 100
SIZES = {("official", False): (10, 100), ("official", True): (5, 50)}


@limited
def self_rag(
    query: Query,
    *,
    k: Depth | None = None,
    threshold: float = 0.2,
    beam: Positive = 2,
    segments: Positive = 1,
    w_relevant: float = 1.0,
    w_supported: float = 1.0,
    w_useful: float | None = None,
    closed: bool = False,
    tokens: bool = False,
    variant: Variant = "paper",
    segment_tokens: Positive | None = None,
    prompt_file: str | None = None,
    max_calls: Positive | None = None,
) -> Plan[Answer]:
    """Answer with the segments that score best.

    Args:
        k: Passages of each retrieval, each of which leads to a candidate; None is 5, and 10 for ``official`` without
            ``closed``.
        threshold: Retrieve above it; below 0 always, 1 never.
        beam: Answers that go on after each segment.
        segments: Segments of the answer, at most; ``official`` and ``flashrag`` have one.
        w_relevant: Weight of the passage's relevance.
        w_supported: Weight of the passage's support.
        w_useful: Weight of the usefulness; None is 0.5, and 1 for ``official`` and ``flashrag``.
        closed: Add up the scores of equal answers: for questions with few possible ones, such as claims.
        tokens: Ask with the special tokens of Self-RAG's checkpoints; needs log-probabilities and raw text.
        variant: ``paper``, or what the authors' script or FlashRAG makes of it.
        segment_tokens: Limit of tokens of a segment; None is 100, and 50 for ``official`` with ``closed``.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
        max_calls: Calls of the model, at most; beyond them it abstains. None is as many as the parameters lead to.
    """
    wording = wordings("self_rag", prompt_file)
    form = Form(wording, tokens, (yield from log_probabilities()), variant)
    _check(form, segments)
    notes = [] if form.given else [f"{PROXY}: labels"]
    useful = W_USEFUL[variant] if w_useful is None else w_useful
    weights = {"relevant": w_relevant, "supported": w_supported, "useful": useful}
    depth, room = SIZES.get((variant, closed), (5, 100))
    drafts = [Draft()]
    for number in range(1, segments + 1):
        candidates: list[Draft] = []
        for draft in drafts:
            if draft.ended:
                candidates.append(draft)
                continue
            logs = yield from form.logs("retrieve", form.prompt("retrieve", query.text, draft, None))
            passages: Sequence[Passage | None] = ()
            if _retrieves(list(logs.values()), threshold, variant):
                passages = yield from retrieve(" ".join([query.text, *draft.segments[-1:]]), k or depth)
                notes += [] if passages else ["nothing retrieved"]
            candidates += yield from together(
                _continued(query.text, draft, passage, form, weights, segment_tokens or room, number == segments)
                for passage in passages or [None]
            )
        drafts = _ranked(candidates, form, closed)[:beam]
    best, text = drafts[0], drafts[0].text
    notes += [] if form.tokens or states_answer(text) else ["answer unparsed"]
    passages = merged([best.passages, *(draft.passages for draft in drafts[1:])])
    return final(form.answer(text), passages, notes, before_answer(text))


def _check(form: Form, segments: int) -> None:
    """Raise a UserError for what this model or variant cannot do."""
    if form.tokens and form.given != "texts":
        raise UserError(
            "tokens=True needs log-probabilities of any text, which this generator does not give. Take generator=hf "
            "or vllm."
        )
    if form.whole and segments > 1:
        raise UserError(
            f"segments={segments} is not allowed with variant={form.variant}, which writes the whole answer at once. "
            "Leave it out, or take variant=paper."
        )


def _retrieves(logs: Sequence[float], threshold: float, variant: str) -> bool:
    """Whether to retrieve, by ln P(retrieve) and ln P(not)."""
    if variant == "official":
        return sum(logs) != 0 and logs[0] / sum(logs) > threshold
    return shares(dict(enumerate(logs)))[0] > threshold


def _first_segment(written: str, to_the_answer: bool) -> str:
    """The first sentence, or all up to the one that states the answer, if one does."""
    found = sentences(written)
    ends = (place for place, sentence in enumerate(found, start=1) if states_answer(sentence))
    return " ".join(found[: next(ends, 1) if to_the_answer else 1])


def _ranked(candidates: Sequence[Draft], form: Form, closed: bool) -> list[Draft]:
    """The best first, of equal ones the first; with ``closed`` by the sum of the scores of all with the same answer."""
    keys = [form.answer(draft.text) if closed else place for place, draft in enumerate(candidates)]
    totals: dict[str | int, float] = {}
    for key, draft in zip(keys, candidates, strict=True):
        totals[key] = totals.get(key, 0.0) + draft.score
    order = sorted(range(len(candidates)), key=lambda place: -totals[keys[place]])
    return [candidates[place] for place in order]


def _continued(
    question: str,
    draft: Draft,
    passage: Passage | None,
    form: Form,
    weights: Mapping[str, float],
    max_tokens: int,
    last: bool,
) -> Plan[Draft]:
    """The draft with the segment that a passage leads to, scored; without a segment it ends as it is.

    Args:
        last: Whether no segment comes after it; then it goes on to the sentence that states the answer.
    """
    prompt = form.prompt("segment", question, draft, passage)
    reply = yield from generate(prompt, temperature=0.0, max_tokens=max_tokens, stop=STOP)
    written = without_tokens(reply, form.whole)
    segment = " ".join(written.split()) if form.whole else _first_segment(written, last and not form.tokens)
    shown = draft.passages if passage is None else merged([draft.passages, [passage]])
    if not segment:
        return Draft(draft.segments, draft.score, shown, ended=True)
    score = draft.score
    if form.whole and passage is None:
        return Draft((segment,), score, shown, ended=True)
    if form.whole and form.tokens:
        fluency, judged = yield from in_turn(question, draft, passage, form, segment)
    else:
        fluency = (yield from likelihood(form, prompt, reply, segment)) if form.given else 0.0
        judged = yield from at_once(question, draft, passage, form, segment)
    score += fluency + sum(weights[step] * form.worth(step, logs) for step, logs in judged.items())
    return Draft((*draft.segments, segment), score, shown, ended=form.whole or states_answer(segment))
