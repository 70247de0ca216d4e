"""The in-batch contrastive loss of RuleRAG (arXiv:2410.22353, equation 3), and training with it.

    L = -ln( exp s(d+, q) / ( exp s(d+, q) + sum over d- of exp s(d-, q) ) ),    s(d, q) = (d . q) / temperature

d+ is one oracle document of the example, drawn anew each time; d- are the other documents of the batch, without those
that state a gold answer of the question, and ``hard`` documents that BM25 takes for good ones. Documents are embedded
by the frozen tower, so their vectors are looked up, and batches on several devices cost no exchange of documents.

Departures: the paper names no schedule and no number of epochs; the learning rate falls linearly to 0.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval.bm25 import BM25
from lm_eval_rag.harness.retrieval.fusion import round_robin
from lm_eval_rag.harness.scoring.normalise import normalise
from lm_eval_rag.harness.train.rows import Example, Question
from lm_eval_rag.harness.train.settings import Settings
from lm_eval_rag.harness.train.state import State

log = logging.getLogger(__name__)
POOL = 50  # documents of BM25 that hard negatives are drawn from
BUDGET = 10  # documents that the dev recall looks at
Batch = tuple[int, list[int]]  # a part, and its examples


@dataclass(frozen=True, slots=True)
class Part:
    """What one corpus gives to training.

    Args:
        task: Its name.
        vectors: (N, D): every document, by the frozen tower.
        examples: To learn from.
        dev: Questions to look at.
        hard: For each example, rows that BM25 finds for it and that state no gold answer.
    """

    task: str
    corpus: Corpus
    vectors: Any
    examples: list[Example]
    dev: list[Question]
    hard: list[list[int]]


class QueryEncoder(Protocol):
    """A query tower while it is trained."""

    @property
    def module(self) -> Any:
        """torch module; called with (part, texts) it gives the queries, (B, D)."""
        ...

    def parameters(self) -> list[dict[str, Any]]:
        """Parameter groups for the optimizer, each with its learning rate."""
        ...

    def search(self, part: int, texts: list[str], k: int) -> list[list[tuple[int, float]]]:
        """The ``k`` best (row, score) of each text with the tower as it is now."""
        ...


def hard_negatives(corpus: Corpus, examples: Sequence[Example]) -> list[list[int]]:
    """For each example the rows of BM25's first ``POOL`` documents that state no gold answer."""
    found = BM25(corpus).search([example.text for example in examples], POOL)
    return [
        [row for row, _ in ranked if row not in example.stating]
        for ranked, example in zip(found, examples, strict=True)
    ]


def loss(queries: Any, documents: Any, allowed: Any, temperature: float) -> Any:
    """Mean of equation 3 over a batch; a scalar tensor, 0 or more.

    Args:
        queries: (B, D).
        documents: (M, D), of which the i-th is the positive of the i-th query; M >= B.
        allowed: bool (B, M): whether a document is in the sum for a query; a query's positive always is.
        temperature: Above 0.
    """
    import torch

    scores = (queries @ documents.T / temperature).masked_fill(~allowed, -math.inf)
    return torch.nn.functional.cross_entropy(scores, torch.arange(len(queries), device=scores.device))


def batches(parts: Sequence[Part], size: int, seed: int, epoch: int) -> list[Batch]:
    """One epoch: every example once, each batch of one part, in an order drawn by seed and epoch."""
    draw = np.random.default_rng([seed, 2, epoch])
    found: list[Batch] = []
    for number, part in enumerate(parts):
        order = draw.permutation(len(part.examples)).tolist()
        found += [(number, order[start : start + size]) for start in range(0, len(order), size)]
    return [found[i] for i in draw.permutation(len(found))]


def documents_of(part: Part, rows: Sequence[int], hard: int, draw: Any) -> tuple[list[int], Any]:
    """The documents of a batch, one positive an example first, and which count for which example, bool (B, M)."""
    taken = [part.examples[row] for row in rows]
    chosen = [int(draw.choice(example.positives)) for example in taken]
    for row in rows:
        chosen += draw.choice(part.hard[row], hard).tolist() if hard and part.hard[row] else []
    allowed = np.array([[document not in example.stating for document in chosen] for example in taken])
    np.fill_diagonal(allowed, True)
    return chosen, allowed


def fit(encoder: QueryEncoder, parts: Sequence[Part], settings: Settings, state: State) -> None:
    """Train until the last epoch, from where ``state`` stands; the best tower by dev recall is kept by ``state``.

    Raises:
        UserError: The loss is not a number; the best tower so far stays where it is.
    """
    import torch
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=settings.device == "cpu")
    optimizer = torch.optim.AdamW(encoder.parameters(), weight_decay=0.0)
    module, optimizer = accelerator.prepare(encoder.module, optimizer)
    if state.position == (0, 0):
        state.restore(None, optimizer)
        state.look(0, math.nan, dev_recall(encoder, parts))
    else:
        state.restore(encoder.module, optimizer)
    per_epoch = len(batches(parts, settings.batch_size, settings.seed, 0))
    for epoch, step, batch in _remaining(parts, settings, state.position):
        done = epoch * per_epoch + step
        for group, lr in zip(optimizer.param_groups, state.rates, strict=True):
            group["lr"] = lr * (1 - done / (per_epoch * settings.epochs))
        value = _step(module, accelerator, optimizer, parts, batch, settings, (epoch, step))
        if not math.isfinite(value):
            raise UserError(state.failed(done, value))
        state.log(done, value)
        last = step == per_epoch - 1
        state.position = (epoch + 1, 0) if last else (epoch, step + 1)
        if last and ((epoch + 1) % settings.eval_every == 0 or epoch + 1 == settings.epochs):
            state.look(epoch + 1, value, dev_recall(encoder, parts))
        if accelerator.is_main_process:
            state.keep(encoder.module, optimizer, now=last)


def dev_recall(encoder: QueryEncoder, parts: Sequence[Part]) -> dict[str, float]:
    """Task -> share of its dev questions with a gold answer among the first ``BUDGET`` documents, in [0, 1].

    Each input of a question (with each of its rules for RGFT) is searched alone, and the lists are united in turn.
    """
    found = {}
    for number, part in enumerate(parts):
        inputs = [question.inputs for question in part.dev]
        texts = [text for group in inputs for text in group]
        lists = iter(encoder.search(number, texts, BUDGET))
        hits = 0
        for question, group in zip(part.dev, inputs, strict=True):
            golds = {normalise(answer) for answer in question.answers}
            united = round_robin([[part.corpus.passage(row) for row, _ in next(lists)] for _ in group])
            hits += any(p.fact is not None and normalise(p.fact[2]) in golds for p in united[:BUDGET])
        found[part.task] = hits / len(part.dev)
    return found


def _remaining(
    parts: Sequence[Part], settings: Settings, position: tuple[int, int]
) -> Iterator[tuple[int, int, Batch]]:
    for epoch in range(position[0], settings.epochs):
        for step, batch in enumerate(batches(parts, settings.batch_size, settings.seed, epoch)):
            if (epoch, step) >= position:
                yield epoch, step, batch


def _step(
    module: Callable[..., Any],
    accelerator: Any,
    optimizer: Any,
    parts: Sequence[Part],
    batch: Batch,
    settings: Settings,
    position: tuple[int, int],
) -> float:
    """One step on this process's share of a batch; returns the mean loss over all processes."""
    import torch

    number, rows = batch
    part, share = parts[number], rows[accelerator.process_index :: accelerator.num_processes] or rows
    draw = np.random.default_rng([settings.seed, 3, *position, accelerator.process_index])
    chosen, allowed = documents_of(part, share, settings.hard, draw)
    documents = torch.tensor(np.asarray(part.vectors[chosen], np.float32), device=accelerator.device)
    torch.manual_seed(int(draw.integers(2**31)))  # of dropout: a resumed run drops the same
    queries = module(number, [part.examples[row].text for row in share])
    value = loss(queries, documents, torch.tensor(allowed, device=accelerator.device), settings.temperature)
    if torch.isfinite(value):
        optimizer.zero_grad()
        accelerator.backward(value)
        optimizer.step()
    return float(accelerator.gather(value.detach().reshape(1)).mean())
