"""Chooses ``threshold`` and ``similarity`` of ``crp_rag`` on training questions, for one generator and retriever.

    python scripts/tune_crp_rag.py --task hotpotqa_train_100 --questions 50 \
        --model_args generator=hf,gen_pretrained=checkpoints/smollm2,batch_size=8,chat=True

A model behind a chat API needs ``gen_logprobs=True``; without log-probabilities there is no threshold to choose.

Runs the method with every pair of the two values on the same first questions of a training set, and prints token F1
with its 95 % bootstrap interval, the share of abstentions, and the calls of the model. Pairs share finished calls, in
one journal, so that later pairs are cheap. The best pair is chosen only if it beats the default significantly (paired
on the same questions); if not, the default stays.

For each similarity it also prints the quantiles of the perplexities by which nodes are judged (per word), and for each
threshold the share of nodes that are insufficient and of questions that are refused, so that you can see which
thresholds tell nodes apart: below the lowest perplexity all questions are refused, above the highest none but those
whose nodes have no passages or no reply.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.core.asks import Generate, Loglikelihood, Retrieve
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.parameters import bind, defaults
from lm_eval_rag.harness.core.prompts import Prompt, Template
from lm_eval_rag.harness.core.types import SHORT, Answer, Plan, Query
from lm_eval_rag.harness.core.watching import watched
from lm_eval_rag.harness.core.written import Written
from lm_eval_rag.harness.plugin.arguments import Setup, read_arguments
from lm_eval_rag.harness.plugin.engine import Engine
from lm_eval_rag.harness.report.stats import interval, paired
from lm_eval_rag.harness.scoring import score
from lm_eval_rag.methods.crp.node_knowledge import perplexity
from lm_eval_rag.methods.crp_rag import REFUSED, crp_rag
from lm_eval_rag.methods.prompts.worded import wordings

TASKS = ("hotpotqa_train_100", "musique_train_100")  # training questions alone: never those that a table is of
THRESHOLDS = (1.2, 1.4, 2.0, 5.0, 50.0)
SIMILARITIES = (0.5, 0.7, 0.9)
CALLS = ("Generate", "Loglikelihood")
QUANTILES = {"lowest": 0.0, "10 %": 0.1, "25 %": 0.25, "50 %": 0.5, "75 %": 0.75, "90 %": 0.9, "highest": 1.0}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One pair of values on all questions.

    Args:
        f1: Token F1 of each question, in [0, 1].
        abstained: Share of abstentions.
        calls: Calls of the model a question.
        refused: Share of questions without a path whose nodes all suffice.
        nodes: All nodes of the graphs.
        perplexities: Per word, of those nodes that the model wrote a reply about.
    """

    threshold: float
    similarity: float
    f1: tuple[float, ...]
    abstained: float
    calls: float
    refused: float = 0.0
    nodes: int = 0
    perplexities: tuple[float, ...] = ()

    @property
    def insufficient(self) -> float:
        """Share of nodes whose knowledge does not suffice."""
        enough = sum(one < self.threshold for one in self.perplexities)
        return 1 - enough / self.nodes if self.nodes else 0.0


@dataclass(slots=True)
class Nodes:
    """What is asked about nodes in one run: CRP-RAG retrieves once for each, and only judges by log-probabilities.

    With ``gen_logprobs=True`` they come with the reply about a node, else each is a call.
    """

    judging: Template
    count: int = 0
    perplexities: list[float] = field(default_factory=list)

    def observed(self, method: Any, query: Query) -> Plan[Answer]:
        """The method's plan, unchanged."""
        return watched(method(query), after=self.keep)

    def keep(self, ask: Any, reply: Any) -> None:
        """Count a node, or keep its perplexity."""
        self.count += isinstance(ask, Retrieve)
        if isinstance(ask, Loglikelihood):
            self.perplexities.append(perplexity(reply, ask.continuation))
        elif isinstance(ask, Generate) and isinstance(ask.prompt, Prompt) and ask.prompt.template == self.judging:
            given = [text for text in reply if isinstance(text, Written) and text.strip()]
            self.perplexities += [perplexity(text.log(), text.strip()) for text in given]


def main() -> None:
    """Print a line for each pair, the perplexities of nodes, and which pair is chosen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=TASKS, default=TASKS[0])
    parser.add_argument("--questions", type=int, default=100, help="the first N (default: all 100)")
    parser.add_argument("--thresholds", type=float, nargs="+", default=THRESHOLDS)
    parser.add_argument("--similarities", type=float, nargs="+", default=SIMILARITIES)
    parser.add_argument("--model_args", default="generator=tiny", help="as for lm_eval --model crp_rag")
    parser.add_argument("--journal", type=Path, help="keeps finished calls (default: in the cache folder)")
    options = parser.parse_args()
    try:
        outcomes = list(tune(options))
    except UserError as error:
        sys.exit(f"tune_crp_rag: {error}")
    print(*spread(outcomes), sep="\n")
    print(choice(outcomes))


def tune(options: argparse.Namespace) -> Sequence[Outcome]:
    """Every pair on the same questions."""
    from lm_eval._cli.utils import key_val_to_dict

    setup = read_arguments("crp_rag", crp_rag, key_val_to_dict(options.model_args))
    queries, answers = questions(options.task, options.questions)
    path = options.journal or cache_dir() / "journal" / f"tune-{setup.fingerprint[:16]}.sqlite"
    journal = Journal(path, "tune")
    try:
        outcomes = []
        for threshold, similarity in product(options.thresholds, options.similarities):
            outcomes.append(run(setup, journal, queries, answers, threshold, similarity))
            print(line(outcomes[-1]), flush=True)
    finally:
        journal.close()
    return outcomes


def questions(task: str, n: int) -> tuple[list[Query], list[list[str]]]:
    """The first questions of a task with their gold answers."""
    import polars as pl

    from lm_eval_rag.tasks.wikipedia.build import build

    rows = pl.read_parquet(cache_dir() / build(task) / "queries.parquet").head(n).to_dicts()
    queries = [Query(row["id"], row["query"], row["time"], row["corpus"], answer_form=SHORT) for row in rows]
    return queries, [row["answers"] for row in rows]


def run(
    setup: Setup,
    journal: Journal,
    queries: Sequence[Query],
    answers: Sequence[Sequence[str]],
    threshold: float,
    similarity: float,
) -> Outcome:
    """One pair of values. An abstention counts as token F1 of its text, which is 0 for a name."""
    method = bind(crp_rag, {**setup.parameters, "threshold": threshold, "similarity": similarity})
    engine = Engine(setup.corpora, setup.generator, journal, setup.max_prompt_tokens)
    nodes = Nodes(wordings("crp_rag", setup.parameters.get("prompt_file"))["answer_step"].template)
    results = engine.run(
        partial(nodes.observed, method), queries, name=f"threshold {threshold:g}, similarity {similarity:g}"
    )
    scores = [
        score({"answers": list(gold)}, answer.text, None)["token_f1"]
        for gold, (answer, _) in zip(answers, results, strict=True)
    ]
    calls = sum(trace.count(kind) for _, trace in results for kind in CALLS)
    abstained = sum(answer.abstained for answer, _ in results)
    refused = sum(REFUSED in answer.notes for answer, _ in results)
    n = len(queries)
    seen = tuple(nodes.perplexities)
    return Outcome(threshold, similarity, tuple(scores), abstained / n, calls / n, refused / n, nodes.count, seen)


def line(outcome: Outcome) -> str:
    """``threshold 50, similarity 0.7: token F1 12.3 [8.1, 17.0], abstained 40 %, 31.5 calls a question``."""
    f1 = interval(outcome.f1)
    ends = "" if f1.low is None or f1.high is None else f" [{100 * f1.low:.1f}, {100 * f1.high:.1f}]"
    return (
        f"threshold {outcome.threshold:g}, similarity {outcome.similarity:g}: token F1 {100 * f1.mean:.1f}{ends}, "
        f"abstained {100 * outcome.abstained:.0f} %, {outcome.calls:.1f} calls a question"
    )


def spread(outcomes: Sequence[Outcome]) -> list[str]:
    """For each similarity, whose nodes are the same at all thresholds, their perplexities and what thresholds do."""
    lines = []
    for similarity in dict.fromkeys(one.similarity for one in outcomes):
        same = [one for one in outcomes if one.similarity == similarity]
        values = same[0].perplexities
        numbers = zip(QUANTILES, np.quantile(values, list(QUANTILES.values())), strict=True) if values else ()
        quantiles = ", ".join(f"{name} {number:.3g}" for name, number in numbers) or "none"
        lines.append(
            f"similarity {similarity:g}: perplexity per word of {len(values)} of {same[0].nodes} nodes: {quantiles}"
        )
        lines += [
            f"  threshold {one.threshold:g}: {100 * one.insufficient:.0f} % of nodes insufficient, "
            f"{100 * one.refused:.0f} % of questions refused"
            for one in sorted(same, key=lambda one: one.threshold)
            if values
        ]
    return lines


def choice(outcomes: Sequence[Outcome]) -> str:
    """Which pair is chosen, and by what."""
    given: dict[str, Any] = defaults(crp_rag)
    default = next(
        (one for one in outcomes if (one.threshold, one.similarity) == (given["threshold"], given["similarity"])), None
    )
    best = max(outcomes, key=lambda one: sum(one.f1))  # of equal ones the first
    if default is None:
        return f"best: threshold={best.threshold:g}, similarity={best.similarity:g}; the default is not in this grid"
    difference = paired(best.f1, default.f1)
    low = difference.interval.low
    better = low is not None and low > 0
    kept = best if better else default
    return (
        f"chosen: threshold={kept.threshold:g}, similarity={kept.similarity:g} (best: {best.threshold:g}, "
        f"{best.similarity:g}; {100 * difference.interval.mean:+.1f} points over the default, "
        f"{'significant' if better else 'not significant'}, n = {difference.interval.n})"
    )


if __name__ == "__main__":
    main()
