"""Trains the classifier of questions (arXiv:2408.05141, section 4.2) and measures it by cross-validation.

The classifier is a linear support vector machine on the embeddings of the questions. As in the paper, CRAG's four rates
of change are merged into static and dynamic. The paper does not say which of the two slow-changing questions are; that
they are dynamic here is our choice. The paper's results speak against it: its system abstains from dynamic questions,
but scores 27.5 on slow-changing ones and 1.7 on fast-changing ones (figure 3). The paper reports no accuracy of its
classifier. In the cross-validation every question is predicted once, by a model that was not trained on it. A label
with only one question is left out.
"""

from __future__ import annotations

import argparse
import bz2
import json
import logging
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lm_eval_rag.harness.common.errors import UserError, at_least
from lm_eval_rag.harness.common.extras import need, versions
from lm_eval_rag.harness.common.paths import output_folder
from lm_eval_rag.harness.retrieval.classifier import Linear, encode_with, write_attributes
from lm_eval_rag.harness.scoring.judge.agreement import wilson

log = logging.getLogger(__name__)
ATTRIBUTES = ("static_or_dynamic", "domain", "question_type")
DYNAMIC = frozenset({"real-time", "fast-changing", "slow-changing", "dynamic"})
Labelled = Mapping[str, str]  # question -> label


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Accuracy on questions that were not used for training.

    Args:
        right: Number of correct predictions.
        n: Number of questions.
        low, high: Wilson's 95 % interval of the accuracy.
        majority: Number of correct predictions of the most frequent label.
        labels: Label -> number of questions.
    """

    right: int
    n: int
    low: float
    high: float
    majority: int
    labels: Mapping[str, int]

    def __str__(self) -> str:
        shown = ", ".join(f"{label} {count}" for label, count in sorted(self.labels.items()))
        share, most = self.right / self.n, self.majority / self.n
        return f"{share:.1%} [{self.low:.1%}, {self.high:.1%}] of {self.n}; majority {most:.1%} ({shown})"


def read_labelled(files: Sequence[Path], attribute: str) -> dict[str, str]:
    """Labelled questions from JSON Lines with ``query``, plain or .bz2; of a repeated question the first label is used.

    Raises:
        UserError: A file cannot be read, or a line is not a JSON object.
    """
    rows: dict[str, str] = {}
    for path in files:
        opener: Callable[..., Any] = bz2.open if path.suffix == ".bz2" else open
        number = 0
        try:
            with opener(path, "rt", encoding="utf-8") as lines:
                for line in lines:
                    number += 1
                    row = json.loads(line) if line.strip() else {}
                    query, label = row.get("query"), row.get(attribute)
                    if isinstance(query, str) and isinstance(label, str) and label:
                        rows.setdefault(query.strip().lower(), "dynamic" if label in DYNAMIC else label)
        except (OSError, EOFError) as error:
            raise UserError(f"{path} cannot be read: {error}.") from None
        except (ValueError, AttributeError) as error:
            raise UserError(f"{path}, line {number}: not a JSON object ({error}).") from None
    return rows


def train_linear(vectors: np.ndarray, labels: Sequence[str], c: float = 1.0) -> Linear:
    """A linear support vector machine, one versus rest; labels in alphabetical order.

    Args:
        vectors: Embeddings, shape (n, width).
        labels: n labels, at least two distinct ones.
        c: Inverse strength of the regularisation, above 0.
    """
    from sklearn.svm import LinearSVC

    machine = LinearSVC(C=c, dual=True, random_state=0, max_iter=10_000).fit(vectors, list(labels))
    weights, intercepts = np.asarray(machine.coef_, dtype=np.float64), np.asarray(machine.intercept_, dtype=np.float64)
    if len(weights) == 1:  # with two labels scikit-learn has only one row, for the second label
        weights, intercepts = np.vstack([-weights, weights]), np.concatenate([-intercepts, intercepts])
    return Linear(tuple(map(str, machine.classes_)), weights, intercepts)


def cross_validate(vectors: np.ndarray, labels: Sequence[str], *, folds: int, seed: int, c: float = 1.0) -> Accuracy:
    """Accuracy by stratified cross-validation."""
    right = 0
    all_folds = _folds(labels, folds, seed)
    for test in all_folds:
        training = [i for fold in all_folds if fold is not test for i in fold]
        known = [labels[i] for i in training]
        if not test:
            continue
        constant = len(set(known)) < 2
        guesses = (
            known[:1] * len(test) if constant else train_linear(vectors[training], known, c).predict(vectors[test])
        )
        right += sum(guess == labels[i] for guess, i in zip(guesses, test, strict=True))
    counts = Counter(labels)
    low, high = wilson(right, len(labels))
    return Accuracy(right, len(labels), low, high, max(counts.values()), counts)


def _folds(labels: Sequence[str], folds: int, seed: int) -> list[list[int]]:
    """Stratified folds of positions: the shuffled questions of each label are distributed in turn."""
    rng, by_label = random.Random(seed), defaultdict(list)
    for i, label in enumerate(labels):
        by_label[label].append(i)
    dealt = []
    for label in sorted(by_label):
        rng.shuffle(by_label[label])
        dealt += by_label[label]
    return [dealt[start::folds] for start in range(folds)]


def train_attributes_main(argv: Sequence[str]) -> int:
    """``lm-eval-rag train attributes``: measure a classifier and, with ``--out``, write it; exit status 0.

    Raises:
        UserError: Bad input, or a package is missing.
    """
    parser = argparse.ArgumentParser(prog="lm-eval-rag train attributes", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="JSON Lines with query and labels, or .bz2")
    parser.add_argument("--attribute", nargs="+", choices=ATTRIBUTES, default=list(ATTRIBUTES))
    parser.add_argument("--encoder", default="minilm", help="preset, folder or Hub id (default: minilm)")
    parser.add_argument("--folds", type=int, default=10, help="folds of the cross-validation (default: 10)")
    parser.add_argument("--c", type=float, default=1.0, help="inverse strength of the regularisation (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the folds (default: 0)")
    parser.add_argument("--out", type=Path, help="folder for the classifier, trained on all questions")
    options = parser.parse_args(argv)
    at_least("--folds", options.folds, 2)
    if options.out:
        output_folder(options.out)
    if not options.c > 0:
        raise UserError(f"--c={options.c} is not allowed. Give a number above 0.")
    need("Training a classifier of questions", "dense", "sklearn", "sentence_transformers")
    encode, models, results = encode_with(options.encoder), {}, {}
    for attribute in options.attribute:
        rows = _usable(read_labelled(options.data, attribute))
        if not rows:
            log.warning("%s is left out: it needs two labels with two questions each.", attribute)
            continue
        vectors, labels = np.asarray(encode(list(rows))), list(rows.values())
        measured = cross_validate(vectors, labels, folds=options.folds, seed=options.seed, c=options.c)
        sys.stdout.write(f"{attribute}: {measured}\n")
        models[attribute] = train_linear(vectors, labels, options.c)
        results[attribute] = {"right": measured.right, "n": measured.n, "majority": measured.majority}
    if not models:
        raise UserError(f"No attribute has labelled questions in {', '.join(map(str, options.data))}.")
    if options.out:
        note = {"results": results, "folds": options.folds, "seed": options.seed, "c": options.c,
                "versions": versions("scikit-learn", "sentence-transformers")}  # fmt: skip
        sys.stdout.write(f"{write_attributes(options.out, options.encoder, models, note)}\n")
    return 0


def _usable(rows: Labelled) -> dict[str, str]:
    """The rows whose label has at least two questions; {} if fewer than two labels remain."""
    counts = Counter(rows.values())
    usable = {query: label for query, label in rows.items() if counts[label] > 1}
    return usable if len(set(usable.values())) > 1 else {}
