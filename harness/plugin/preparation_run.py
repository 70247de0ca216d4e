"""One run of a preparation: its plans in a driver, the limit of calls, what they cost, and the products on disk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.driver import Driver
from lm_eval_rag.harness.core.preparing import Product, checked_product
from lm_eval_rag.harness.core.progress import Bar, cost_of
from lm_eval_rag.harness.core.types import Answer, Plan, Query, Step, Trace
from lm_eval_rag.harness.core.watching import calls_of, watched
from lm_eval_rag.harness.data.products import store_product
from lm_eval_rag.harness.generators.base import Decoding, Generator
from lm_eval_rag.harness.plugin.preparation_jobs import TOKENS, Job, Work

# What a preparation leaves open: its calls do not depend on the task of the run.
DECODING = Decoding(max_tokens=256, stop=(), temperature=0.0)
WINDOW = 16  # corpora that are prepared at once, where each question has one of its own
COUNTED = ("passages", "calls", "journalled", *TOKENS, "seconds", "elapsed", "dropped_passages")  # in an account
OnStep = Callable[[Query, Step], None]


@dataclass(slots=True)
class CallBar:
    """Progress in calls of the model, in place of questions."""

    bar: Bar

    def update(self, finished: int, waiting: int, steps: Sequence[Step]) -> None:
        """Count the calls that were just served."""
        self.bar.update(sum(step.calls for step in steps), waiting, steps)


@dataclass(slots=True)
class PreparationRun:
    """The plans of several corpora, and what becomes of them.

    Args:
        work: The preparation with its parameters.
        jobs: The corpora.
        prices: US dollars per million prompt tokens and per million completion tokens; None where they are unknown.
        on_step: Told of every step.
        journal: Where finished calls are kept, to be named in messages.
    """

    work: Work
    jobs: Sequence[Job]
    prices: tuple[float, float] | None = None
    on_step: OnStep = lambda query, step: None
    journal: Path | None = None
    _products: dict[str, Product] = field(default_factory=dict)
    _sums: dict[str, dict[str, Any]] = field(default_factory=dict)
    _calls: int = 0

    def run(self, served: Mapping[type, Any], bar: Bar) -> None:
        """Prepare every corpus and store its product as soon as it is there.

        Raises:
            UserError: A preparation failed, or made more calls than are allowed.
        """
        by_id = {f"preparation of {job.query.corpus or 'the corpus'}": job for job in self.jobs}
        queries = [replace(job.query, id=id, text="", time=None, repeat=0) for id, job in by_id.items()]

        def keep(query: Query, answer: Answer, trace: Trace) -> str | None:
            if trace.failure is None:
                store_product(by_id[query.id].inputs, self._products.pop(query.id), self._account(query.id))
            return trace.failure

        failures = Driver(self._plan, served, CallBar(bar), WINDOW, self._note).run(queries, keep)
        self._check(failures)

    def _plan(self, query: Query) -> Plan[Answer]:
        """The preparation of one corpus as a driver takes it; the product is left in ``_products``."""
        self._sums[query.id], began = defaultdict(int), perf_counter()
        passages = self.work.passages(query)
        plan = self.work.preparation.function(passages, **self.work.options)
        product = yield from watched(plan, before=lambda ask: self._count(calls_of(ask)))
        self._products[query.id] = checked_product(self.work.preparation, product)
        self._sums[query.id] |= {"passages": len(passages), "elapsed": perf_counter() - began}
        return Answer("")

    def _count(self, calls: int) -> None:
        self._calls += calls
        if self._calls > self.work.max_calls:
            raise UserError(
                f"The preparation of {self.work.name} needs more than the {self.work.max_calls:,} calls that are "
                f"allowed. {self._kept()} Give a larger prepare_max_calls=, or a smaller corpus."
            )

    def _note(self, query: Query, step: Step) -> None:
        sums = self._sums[query.id]
        sums["calls"] += step.calls
        sums["journalled"] += step.calls * step.journalled
        for name in (*TOKENS, "seconds", "dropped_passages"):
            sums[name] += getattr(step, name)
        if self.prices is not None:
            sums["cost"] += cost_of(step, self.prices)
        self.on_step(query, step)

    def _account(self, id: str) -> dict[str, Any]:
        """What one corpus cost. Calls that the journal served count too: an earlier run paid for them.

        ``seconds`` are those of its asks, summed; ``elapsed`` those by the clock from its beginning in this run.
        """
        sums = self._sums.pop(id)
        costs = {} if self.prices is None else {"cost": round(sums.get("cost", 0.0), 8)}
        return {**{name: round(sums.get(name, 0), 6) for name in COUNTED}, **costs}

    def _check(self, failures: Sequence[str | None]) -> None:
        failed = [failure for failure in failures if failure is not None]
        if failed:
            raise UserError(
                f"The preparation of {self.work.name} failed for {len(failed)} of {len(failures)} corpora: "
                f"{failed[0]}. {self._kept()} Run again to go on."
            )

    def _kept(self) -> str:
        return f"Finished calls are kept in {self.journal}." if self.journal else "No call is kept (journal=off)."


@contextmanager
def without_system(generator: Generator | None) -> Iterator[None]:
    """The generator without the task's system instruction, which is for answers."""
    system = getattr(generator, "system", None)
    if system is None:
        yield
        return
    generator.system = None  # type: ignore[union-attr]
    try:
        yield
    finally:
        generator.system = system  # type: ignore[union-attr]
