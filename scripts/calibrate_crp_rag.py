"""Chooses ``threshold`` and ``similarity`` of ``crp_rag`` on single hops of MuSiQue's training questions.

    python scripts/calibrate_crp_rag.py --questions 50 \
        --model_args generator=hf,gen_pretrained=checkpoints/smollm2,batch_size=8,chat=True

Each training question comes with its hops, and each hop with the paragraph that answers it. That is what a threshold
has to tell apart, without the cost of whole answers (``tune_crp_rag.py``):

- ``threshold``: for each hop the model gets the best five of the question's twenty paragraphs for it, once with the
  paragraph that answers it and once without, and judges both as CRP-RAG judges a node: it summarises them, reasons
  about the hop, and the perplexity of the reasoning decides. The threshold with the highest balanced accuracy is
  chosen: half the sum of the share of hops with the paragraph that suffice and the share of those without that do not.
  It is also chosen on each half of the questions and measured on the other half, where 50 % is chance. The area under
  the ROC curve says how well any threshold could do; a second one is about whether the reasoning names the answer.
- ``similarity``: no two hops of one question are the same step. The share of such pairs that each value would merge is
  printed. Nothing tells which steps are the same in other words, so a value is too low if it merges any, and how high
  it should be remains open.

Intervals are 95 % bootstrap intervals over questions. The model needs log-probabilities: a local one, or a chat API
with ``gen_logprobs=True``. Calls are kept in a journal, so that an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.core.asks import log_probabilities, rank
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.parameters import defaults
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query
from lm_eval_rag.harness.plugin.arguments import Setup, read_arguments
from lm_eval_rag.harness.plugin.engine import Engine
from lm_eval_rag.harness.scoring.normalise import count_words, normalise
from lm_eval_rag.methods.crp.node_knowledge import Judge, aggregated
from lm_eval_rag.methods.crp_rag import crp_rag
from lm_eval_rag.methods.prompts.worded import wordings
from lm_eval_rag.methods.reasoning.rationales import overlap

FILE = "musique/musique_train_100.json"  # training questions alone: never those that a table is of
SIMILARITIES = (0.5, 0.6, 0.7, 0.8, 0.9)
DRAWS = 2_000
REFERENCE = re.compile(r"#(\d)")


@dataclass(frozen=True, slots=True)
class Hop:
    """One hop of a question.

    Args:
        question: Id of the question.
        step: What is asked, with the answers of earlier hops in place of references.
        answer: Its gold answer.
        gold: The paragraph that answers it.
        others: The question's other paragraphs, without those that contain the answer.
    """

    question: str
    step: str
    answer: str
    gold: str
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """A hop judged with or without the paragraph that answers it.

    Args:
        perplexity: Of the reasoning, per word; infinite where the model wrote none.
        right: Whether the reasoning names the gold answer.
    """

    question: str
    given: bool
    perplexity: float
    right: bool


def hops(rows: Sequence[Mapping[str, Any]]) -> list[Hop]:
    """The hops of rows in MuSiQue's format, in order."""
    found = []
    for row in rows:
        texts = [f"{p['title']}\n{p['paragraph_text']}" for p in row["paragraphs"]]
        steps = row["question_decomposition"]
        for step in steps:
            text = REFERENCE.sub(lambda match: str(steps[int(match[1]) - 1]["answer"]), step["question"])  # noqa: B023
            subject, relation, of = text.partition(" >> ")
            answer, gold = str(step["answer"]), step["paragraph_support_idx"]
            others = [t for i, t in enumerate(texts) if i != gold and normalise(answer) not in normalise(t)]
            asked = f"What is the {of} of {subject}?" if relation else text
            found.append(Hop(row["id"], asked, answer, texts[gold], tuple(others)))
    return found


def judging(hop: Hop, given: bool, setup: Setup) -> Callable[[Query], Plan[Answer]]:
    """A method that judges a hop as CRP-RAG judges a node: its answer is the reasoning, with its likelihood."""
    chosen: dict[str, Any] = {**defaults(crp_rag), **setup.parameters}
    wording = wordings("crp_rag", chosen["prompt_file"])

    def judged(query: Query) -> Plan[Answer]:
        logs = yield from log_probabilities()
        if not logs:
            raise UserError("The generator gives no log-probabilities, so there is no threshold to choose.")
        best = yield from rank(hop.step, hop.others, chosen["k"] - given)
        texts = [hop.gold] * given + [hop.others[place] for place, _ in best]
        passages = tuple(Passage(f"{query.id}-{place}", text) for place, text in enumerate(texts))
        if not passages:
            return Answer("")  # a node without passages does not suffice
        temperature = chosen["temperature"]
        known = yield from aggregated(
            hop.step, passages, wording, [], temperature=temperature, tokens=chosen["summary_tokens"]
        )
        judge = Judge(wording, logs, chosen["threshold"], temperature, chosen["step_tokens"])
        reply, perplexity = yield from judge.reasoned(hop.step, known)
        words = count_words(reply)
        return Answer(reply, likelihood=(-words * float(np.log(perplexity)), words) if reply else None)

    return judged


def judged(setup: Setup, journal: Journal, asked: Sequence[Hop]) -> list[Judged]:
    """Every hop, with and without the paragraph that answers it."""
    cases = [(hop, given) for hop in asked for given in (True, False)]
    plans = {f"hop{number}": judging(hop, given, setup) for number, (hop, given) in enumerate(cases)}
    engine = Engine(setup.corpora, setup.generator, journal, setup.max_prompt_tokens)
    queries = [Query(id_, hop.step) for id_, (hop, _) in zip(plans, cases, strict=True)]
    found = []
    results = engine.run(lambda query: plans[query.id](query), queries, name="hops")
    for (hop, given), (answer, trace) in zip(cases, results, strict=True):
        if trace.failure is not None:
            raise UserError(f"A hop could not be judged: {trace.failure}. Run again: finished calls are kept.")
        log, words = answer.likelihood or (-np.inf, 1)
        right = normalise(hop.answer) in normalise(answer.text)
        found.append(Judged(hop.question, given, float(np.exp(min(-log / words, 700.0))), right))
    return found


def area(positive: Sequence[float], negative: Sequence[float]) -> float:
    """The area under the ROC curve: the share of pairs in which the positive has the lower perplexity; ties are 1/2."""
    if not positive or not negative:
        return float("nan")
    a, b = np.array(positive)[:, None], np.array(negative)[None, :]
    return float(np.mean((a < b) + 0.5 * (a == b)))


def balanced(cases: Sequence[Judged], threshold: float) -> float:
    """Balanced accuracy of a threshold: mean of the shares of both kinds that it tells right."""
    shares = [
        np.mean([(one.perplexity < threshold) == given for one in cases if one.given == given])
        for given in (True, False)
    ]
    return float(np.mean(shares))


def best_threshold(cases: Sequence[Judged]) -> float:
    """The threshold with the highest balanced accuracy, between two of the perplexities; of equal ones the lowest."""
    values = sorted({one.perplexity for one in cases})
    between = [float(np.sqrt(low * high)) for low, high in pairwise(values)]
    return max([*between, values[-1] * 2], key=lambda value: balanced(cases, value))


def unseen(cases: Sequence[Judged]) -> tuple[list[float], float]:
    """The thresholds chosen on each half of the questions, and the balanced accuracy of each on the other half."""
    questions = list(dict.fromkeys(one.question for one in cases))
    halves = [[one for one in cases if questions.index(one.question) % 2 == half] for half in (0, 1)]
    chosen = [best_threshold(half) for half in halves]
    return chosen, float(np.mean([balanced(halves[1], chosen[0]), balanced(halves[0], chosen[1])]))


def resampled(cases: Sequence[Judged], statistic: Callable[[list[Judged]], float]) -> tuple[float, float]:
    """The 95 % bootstrap interval of a statistic, over questions."""
    of: dict[str, list[Judged]] = {}
    for one in cases:
        of.setdefault(one.question, []).append(one)
    rng, names = np.random.default_rng(0), list(of)
    values = []
    for _ in range(DRAWS):
        drawn = [one for place in rng.integers(0, len(names), len(names)) for one in of[names[place]]]
        values.append(statistic(drawn))
    low, high = np.nanquantile(values, [0.025, 0.975])
    return float(low), float(high)


def area_by(cases: Sequence[Judged], label: str) -> float:
    """The area under the ROC curve for ``given`` or ``right``."""
    parts = [[one.perplexity for one in cases if getattr(one, label) == value] for value in (True, False)]
    return area(parts[0], parts[1])


def summary(cases: Sequence[Judged], default: float) -> list[str]:
    """What is printed about the threshold."""
    lines = []
    for given, what in ((True, "with the paragraph"), (False, "without it")):
        values = [one.perplexity for one in cases if one.given == given]
        quantiles = ", ".join(f"{value:.3g}" for value in np.quantile(values, [0.1, 0.25, 0.5, 0.75, 0.9]))
        right = 100 * np.mean([one.right for one in cases if one.given == given])
        lines.append(f"{what}: perplexity per word, 10 to 90 %: {quantiles}; names the answer in {right:.1f} %")
    for label, what in (("given", "the paragraph is there"), ("right", "the reasoning names the answer")):
        if len({getattr(one, label) for one in cases}) == 1:
            lines.append(f"area under the ROC curve, {what}: none, since all are alike")
            continue
        low, high = resampled(cases, lambda drawn, label=label: area_by(drawn, label))  # type: ignore[misc]
        lines.append(f"area under the ROC curve, {what}: {area_by(cases, label):.3f} [{low:.3f}, {high:.3f}]")
    halves, accuracy = unseen(cases)
    low, high = resampled(cases, lambda drawn: balanced(drawn, default))
    lines += [
        f"chosen on all: threshold={best_threshold(cases):.3g}",
        f"chosen on each half: {', '.join(f'{value:.3g}' for value in halves)}; balanced accuracy on the other half "
        f"{100 * accuracy:.1f} %",
        f"the default {default:g}: balanced accuracy {100 * balanced(cases, default):.1f} "
        f"[{100 * low:.1f}, {100 * high:.1f}] %",
    ]
    return lines


def merging(asked: Sequence[Hop]) -> str:
    """What is printed about the similarity."""
    of: dict[str, list[str]] = {}
    for hop in asked:
        of.setdefault(hop.question, []).append(hop.step)
    values = [overlap(a, b) for steps in of.values() for a, b in combinations(steps, 2)]
    shares = {value: sum(one > value for one in values) / len(values) for value in SIMILARITIES}
    told = ", ".join(f"{value:g}: {100 * share:.1f} %" for value, share in shares.items())
    return f"pairs of different steps that would be merged, of {len(values)}: {told}"


def main() -> None:
    """Print what each value does, and which is chosen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=100, help="the first N (default: all 100)")
    parser.add_argument("--model_args", default="generator=tiny_steps", help="as for lm_eval --model crp_rag")
    parser.add_argument("--journal", type=Path, help="keeps finished calls (default: in the cache folder)")
    options = parser.parse_args()
    from lm_eval._cli.utils import key_val_to_dict

    from lm_eval_rag.harness.data.sources import fetch
    from lm_eval_rag.tasks.wikipedia.corpus_build import manifest

    try:
        if options.questions < 2:
            raise UserError(f"--questions {options.questions} is not allowed: give 2 or more, one for each half.")
        rows = json.loads(fetch(manifest()[FILE]).read_text(encoding="utf-8"))[: options.questions]
        asked = hops(rows)
        setup = read_arguments("crp_rag", crp_rag, key_val_to_dict(options.model_args))
        path = options.journal or cache_dir() / "journal" / f"calibrate-{setup.fingerprint[:16]}.sqlite"
        journal = Journal(path, "calibrate")
        try:
            cases = judged(setup, journal, asked)
        finally:
            journal.close()
    except UserError as error:
        sys.exit(f"calibrate_crp_rag: {error}")
    print(f"{len(rows)} questions with {len(asked)} hops, {len(cases)} judgements")
    print(*summary(cases, defaults(crp_rag)["threshold"]), merging(asked), sep="\n")


if __name__ == "__main__":
    main()
