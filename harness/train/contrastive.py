"""Training of query towers with the in-batch contrastive loss of RuleRAG (arXiv:2410.22353, equation 3).

    L = -ln( exp s(d+, q) / ( exp s(d+, q) + sum over d- of exp s(d-, q) ) ),    s(d, q) = (d . q) / temperature

d+ is one oracle document of the example, drawn at random at each step. d- are the other documents of the batch, without
those that state a gold answer of the question, and ``hard`` negatives from BM25. The document tower is frozen, so the
documents' vectors are precomputed, and several devices need not exchange them.

Departures: the paper names no schedule and no number of epochs; here the learning rate decays linearly to 0.
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
from lm_eval_rag.harness.train.rows import Example, RetrieverQuestion
from lm_eval_rag.harness.train.settings import Settings
from lm_eval_rag.harness.train.state import State

log = logging.getLogger(__name__)
POOL = 50  # hard negatives are drawn from this many documents of BM25
BUDGET = 10  # k of the dev recall
Batch = tuple[int, list[int]]  # index of the part, and indices of its examples


@dataclass(frozen=True, slots=True)
class Part:
    """The training data of one corpus.

    Args:
        task: Name of the task.
        corpus: The corpus.
        vectors: Embeddings of all documents by the frozen tower, shape (N, D).
        examples: Training examples.
        dev: Dev questions.
        hard: For each example, rows of hard negatives: retrieved by BM25, without a gold answer.
    """

    task: str
    corpus: Corpus
    vectors: Any
    examples: list[Example]
    dev: list[RetrieverQuestion]
    hard: list[list[int]]


class QueryEncoder(Protocol):
    """A query tower in training."""

    @property
    def module(self) -> Any:
        """torch module; called with (part, texts) it returns the query embeddings, shape (B, D)."""
        ...

    def parameters(self) -> list[dict[str, Any]]:
        """Parameter groups for the optimizer, each with its learning rate."""
        ...

    def search(self, part: int, texts: list[str], k: int) -> list[list[tuple[int, float]]]:
        """The ``k`` best (row, score) of each text with the current weights."""
        ...


def hard_negatives(corpus: Corpus, examples: Sequence[Example]) -> list[list[int]]:
    """For each example, the rows among BM25's first ``POOL`` documents that state no gold answer."""
    rankings = BM25(corpus).search([example.text for example in examples], POOL)
    return [
        [row for row, _ in ranked if row not in example.stating]
        for ranked, example in zip(rankings, examples, strict=True)
    ]


def loss(queries: Any, documents: Any, allowed: Any, temperature: float) -> Any:
    """Mean of equation 3 over a batch: a scalar tensor, 0 or more.

    Args:
        queries: Shape (B, D).
        documents: Shape (M, D) with M >= B; the i-th is the positive of the i-th query.
        allowed: bool (B, M): whether a document is in the sum for a query; True for the query's positive.
        temperature: Above 0.
    """
    import torch

    scores = (queries @ documents.T / temperature).masked_fill(~allowed, -math.inf)
    return torch.nn.functional.cross_entropy(scores, torch.arange(len(queries), device=scores.device))


def batches(parts: Sequence[Part], size: int, seed: int, epoch: int) -> list[Batch]:
    """One epoch: every example once, in random order by seed and epoch; all examples of a batch are from one part."""
    draw = np.random.default_rng([seed, 2, epoch])
    ordered: list[Batch] = []
    for number, part in enumerate(parts):
        order = draw.permutation(len(part.examples)).tolist()
        ordered += [(number, order[start : start + size]) for start in range(0, len(order), size)]
    return [ordered[i] for i in draw.permutation(len(ordered))]


def documents_of(part: Part, rows: Sequence[int], hard: int, draw: Any) -> tuple[list[int], Any]:
    """The documents of a batch, first one positive per example; and ``allowed`` of :func:`loss`, bool (B, M)."""
    taken = [part.examples[row] for row in rows]
    chosen = [int(draw.choice(example.positives)) for example in taken]
    for row in rows:
        chosen += draw.choice(part.hard[row], hard).tolist() if hard and part.hard[row] else []
    allowed = np.array([[document not in example.stating for document in chosen] for example in taken])
    np.fill_diagonal(allowed, True)
    return chosen, allowed


def train_query_tower(encoder: QueryEncoder, parts: Sequence[Part], settings: Settings, state: State) -> None:
    """Train from the position of ``state`` to the last step; ``state`` keeps the best tower by dev recall.

    Raises:
        UserError: The loss is not finite; the best tower so far is kept.
    """
    import torch
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=settings.device == "cpu")
    optimizer = torch.optim.AdamW(encoder.parameters(), weight_decay=0.0)
    module, optimizer = accelerator.prepare(encoder.module, optimizer)
    if state.position == (0, 0):
        state.restore(None, optimizer)
        state.begin()
        state.evaluated(0, dev_recall(encoder, parts))
    else:
        state.restore(encoder.module, optimizer)
    encoder.module.train()  # a model is loaded in evaluation mode, and a resumed run has not evaluated yet
    per_epoch = len(batches(parts, settings.batch_size, settings.seed, 0))
    steps = settings.steps(per_epoch)
    for epoch, step, batch in _remaining(parts, settings, state.position):
        done = epoch * per_epoch + step
        if done == steps:
            break
        for group, lr in zip(optimizer.param_groups, state.rates, strict=True):
            group["lr"] = lr * (1 - done / steps)
        value = _step(module, accelerator, optimizer, parts, batch, settings, (epoch, step))
        if not math.isfinite(value):
            raise UserError(state.failed(done, value))
        state.log(done, value)
        last = step == per_epoch - 1
        state.position = (epoch + 1, 0) if last else (epoch, step + 1)
        ends = done + 1 == steps
        if ends or (last and (epoch + 1) % settings.eval_every == 0):
            state.evaluated(epoch + 1 if last else round((done + 1) / per_epoch, 4), dev_recall(encoder, parts))
        if accelerator.is_main_process:
            state.keep(encoder.module, optimizer, now=last or ends)


def dev_recall(encoder: QueryEncoder, parts: Sequence[Part]) -> dict[str, float]:
    """Task -> share of its dev questions with a gold answer in the first ``BUDGET`` documents, in [0, 1].

    Each input of a question (one per rule for RGFT) is searched separately, and the lists are merged round robin.
    """
    recalls = {}
    for number, part in enumerate(parts):
        inputs = [question.inputs for question in part.dev]
        texts = [text for group in inputs for text in group]
        lists = iter(encoder.search(number, texts, BUDGET))
        hits = 0
        for question, group in zip(part.dev, inputs, strict=True):
            golds = {normalise(answer) for answer in question.answers}
            merged = round_robin([[part.corpus.passage(row) for row, _ in next(lists)] for _ in group])
            hits += any(p.fact is not None and normalise(p.fact[2]) in golds for p in merged[:BUDGET])
        recalls[part.task] = hits / len(part.dev)
    return recalls


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
    """One step on this process's share of a batch. Returns the mean loss over all processes.

    Every process draws the documents of the whole batch, so a query's negatives do not depend on the number of devices.
    """
    import torch

    number, rows = batch
    part, index = parts[number], accelerator.process_index
    draw = np.random.default_rng([settings.seed, 3, *position, 0])
    chosen, allowed = documents_of(part, rows, settings.hard, draw)
    share = list(range(len(rows)))[index :: accelerator.num_processes] or list(range(len(rows)))
    columns = share + [column for column in range(len(chosen)) if column not in set(share)]  # own positives first
    documents = torch.tensor(
        np.asarray(part.vectors[[chosen[column] for column in columns]], np.float32), device=accelerator.device
    )
    torch.manual_seed(int(draw.integers(2**31)) + index)  # a resumed run must draw the same dropout
    queries = module(number, [part.examples[rows[i]].text for i in share])
    mask = torch.tensor(allowed[np.ix_(share, columns)], device=accelerator.device)
    value = loss(queries, documents, mask, settings.temperature)
    if torch.isfinite(value):
        optimizer.zero_grad()
        accelerator.backward(value)
        optimizer.step()
    return float(accelerator.gather(value.detach().reshape(1)).mean())
