"""Tree of Thoughts, breadth-first and without retrieval (arXiv:2305.10601, section 3 and algorithm 1).

From each of the best states so far the model samples next thoughts; it values each new state several times with sure,
likely or impossible; the best states go on. A state that states an answer is not continued. The answer is that of the
best state at the end; where it states none, the model is asked for it.

Defaults: those of the paper's Game of 24 (3 steps, the 5 best states, 3 valuations, worth 20, 1 and 0.001), with 5
sampled thoughts as in its creative writing, temperature 0.7.

Departures: the wording of the prompts is ours; the paper has no task like these, CRP-RAG's Table 1 says no more than
"ToT". A state is valued once. Valuations without one of the three words count 0 (note ``value unparsed``).
"""

from __future__ import annotations

from lm_eval_rag.harness.core.asks import generate, sample
from lm_eval_rag.harness.core.parameters import NonNegative, Positive
from lm_eval_rag.harness.core.types import Answer, Plan, Query
from lm_eval_rag.methods.prompts.worded import wordings
from lm_eval_rag.methods.reasoning.judgements import first_label
from lm_eval_rag.methods.reasoning.rationales import (
    answer_in,
    answer_or_first_line,
    first_sentence,
    rationale_of,
    states_answer,
)
from lm_eval_rag.methods.reasoning.steps import STOP, abstention, final, limited

VALUES = {"sure": 20.0, "likely": 1.0, "impossible": 0.001}
State = tuple[str, ...]  # thoughts, in order


@limited
def tree_of_thoughts(
    query: Query,
    *,
    steps: Positive = 3,
    thoughts: Positive = 5,
    breadth: Positive = 5,
    votes: Positive = 3,
    temperature: NonNegative = 0.7,
    thought_tokens: Positive = 100,
    prompt_file: str | None = None,
    max_calls: Positive | None = None,
) -> Plan[Answer]:
    """Answer from the best chain of thoughts.

    Args:
        steps: Depth of the tree.
        thoughts: Samples of each state; equal ones count once.
        breadth: States that go on after each step.
        votes: Valuations of each state.
        temperature: Of all but the last generation, which is greedy.
        thought_tokens: Limit of tokens of a thought and of the answer.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
        max_calls: Calls of the model, at most; beyond them it abstains. None is as many as the parameters lead to.
    """
    wording = wordings("tree_of_thoughts", prompt_file)
    notes: list[str] = []
    values: dict[State, float] = {}
    best: list[State] = [()]
    for _ in range(steps):
        states: dict[State, None] = {}
        for state in best:
            if _ended(state):
                states[state] = None
                continue
            prompt = wording["thought"].prompt(question=query.text, thoughts=state)
            replies = yield from sample(prompt, thoughts, temperature, max_tokens=thought_tokens, stop=STOP)
            states |= {(*state, thought): None for reply in replies if (thought := first_sentence(reply))}
        for state in states:
            if state not in values:
                prompt = wording["value"].prompt(question=query.text, thoughts=state)
                replies = yield from sample(prompt, votes, temperature, max_tokens=8, stop=STOP)
                labels = [first_label(reply, VALUES) for reply in replies]
                values[state] = sum(VALUES[label] for label in labels if label)
                notes += ["value unparsed"] if None in labels else []
        if not states:
            break
        best = sorted(states, key=lambda state: -values[state])[:breadth]  # stable: of equal states the first
        if all(map(_ended, best)):
            break
    if not best[0]:
        return abstention((), *notes, "no thoughts")
    if _ended(best[0]):
        return final(answer_in(best[0][-1]) or "", (), notes, rationale_of(" ".join(best[0])))
    prompt = wording["answer"].prompt(question=query.text, thoughts=best[0])
    reply = yield from generate(prompt, temperature=0.0, max_tokens=thought_tokens, stop=STOP)
    return final(answer_or_first_line(reply), (), [*notes, "no answer in thoughts"], " ".join(best[0]))


def _ended(state: State) -> bool:
    return bool(state) and states_answer(state[-1])
