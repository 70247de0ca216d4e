"""Training the classifier of questions (arXiv:2408.05141, section 4.2), and measuring it by cross-validation.

A linear support vector machine on the embeddings of the questions. As in the paper, CRAG's rates of change are two:
static, and dynamic for all others. The paper gives no number for its classifier. Every question is predicted once, by a
machine that has not seen it; a label with fewer questions than two is left out.
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
from lm_eval_rag.harness.retrieval.classifier import Linear, encode_with, write_attributes
from lm_eval_rag.harness.scoring.judge.agreement import wilson

log = logging.getLogger(__name__)
ATTRIBUTES = ("static_or_dynamic", "domain", "question_type")
DYNAMIC = frozenset({"real-time", "fast-changing", "slow-changing", "dynamic"})
Labelled = Mapping[str, str]  # question -> label


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How often a label was right on questions not trained on.

    Args:
        right: Of ``n`` questions.
        low, high: Wilson's 95 % interval of the share.
        majority: How many are right who always say the most frequent label.
        labels: Number of questions by label.
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
    """Questions with a label, each once (the first label counts), from JSON lines with ``query``, .bz2 or plain.

    Raises:
        UserError: A file cannot be read, or holds a line that is no JSON object.
    """
    found: dict[str, str] = {}
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
                        found.setdefault(query.strip().lower(), "dynamic" if label in DYNAMIC else label)
        except (OSError, EOFError) as error:
            raise UserError(f"{path} cannot be read: {error}.") from None
        except (ValueError, AttributeError) as error:
            raise UserError(f"{path}, line {number}: no JSON object ({error}).") from None
    return found


def fit(vectors: np.ndarray, labels: Sequence[str], c: float = 1.0) -> Linear:
    """A linear support vector machine, one label against the rest; labels in alphabetical order.

    Args:
        vectors: (n, width).
        labels: n of them, at least two different ones.
        c: Inverse strength of regularisation, above 0.
    """
    from sklearn.svm import LinearSVC

    machine = LinearSVC(C=c, dual=True, random_state=0, max_iter=10_000).fit(vectors, list(labels))
    weights, intercepts = np.asarray(machine.coef_, dtype=np.float64), np.asarray(machine.intercept_, dtype=np.float64)
    if len(weights) == 1:  # of two labels it keeps the second's row alone
        weights, intercepts = np.vstack([-weights, weights]), np.concatenate([-intercepts, intercepts])
    return Linear(tuple(map(str, machine.classes_)), weights, intercepts)


def cross_validate(vectors: np.ndarray, labels: Sequence[str], *, folds: int, seed: int, c: float = 1.0) -> Accuracy:
    """Accuracy on questions that were not trained on; folds hold each label's questions in equal shares."""
    right = 0
    places = _folds(labels, folds, seed)
    for held in places:
        kept = [i for part in places if part is not held for i in part]
        known = [labels[i] for i in kept]
        if not held:
            continue
        one = len(set(known)) < 2
        guesses = known[:1] * len(held) if one else fit(vectors[kept], known, c).predict(vectors[held])
        right += sum(guess == labels[i] for guess, i in zip(guesses, held, strict=True))
    counts = Counter(labels)
    low, high = wilson(right, len(labels))
    return Accuracy(right, len(labels), low, high, max(counts.values()), counts)


def _folds(labels: Sequence[str], folds: int, seed: int) -> list[list[int]]:
    """Positions in ``folds`` parts: each label's, shuffled, are dealt out in turn."""
    rng, by_label = random.Random(seed), defaultdict(list)
    for i, label in enumerate(labels):
        by_label[label].append(i)
    dealt = []
    for label in sorted(by_label):
        rng.shuffle(by_label[label])
        dealt += by_label[label]
    return [dealt[start::folds] for start in range(folds)]


def train_attributes_main(argv: Sequence[str]) -> int:
    """``lm-eval-rag train attributes``: measure and, with ``--out``, write a classifier; exit status 0.

    Raises:
        UserError: Bad input, or a package is missing.
    """
    parser = argparse.ArgumentParser(prog="lm-eval-rag train attributes", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="JSON lines with query and labels (.bz2)")
    parser.add_argument("--attribute", nargs="+", choices=ATTRIBUTES, default=list(ATTRIBUTES))
    parser.add_argument("--encoder", default="minilm", help="preset, folder or Hub id (default: minilm)")
    parser.add_argument("--folds", type=int, default=10, help="of the cross-validation (default: 10)")
    parser.add_argument("--c", type=float, default=1.0, help="inverse strength of regularisation (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="of the folds (default: 0)")
    parser.add_argument("--out", type=Path, help="folder for the classifier of all questions")
    given = parser.parse_args(argv)
    at_least("--folds", given.folds, 2)
    if not given.c > 0:
        raise UserError(f"--c={given.c} is not allowed: give a number above 0.")
    need("Training a classifier of questions", "dense", "sklearn", "sentence_transformers")
    encode, models, results = encode_with(given.encoder), {}, {}
    for attribute in given.attribute:
        rows = _usable(read_labelled(given.data, attribute))
        if not rows:
            log.warning("%s: fewer than two labels with two questions each; left out.", attribute)
            continue
        vectors, labels = np.asarray(encode(list(rows))), list(rows.values())
        measured = cross_validate(vectors, labels, folds=given.folds, seed=given.seed, c=given.c)
        sys.stdout.write(f"{attribute}: {measured}\n")
        models[attribute] = fit(vectors, labels, given.c)
        results[attribute] = {"right": measured.right, "n": measured.n, "majority": measured.majority}
    if not models:
        raise UserError(f"No attribute has labelled questions in {', '.join(map(str, given.data))}.")
    if given.out:
        note = {"results": results, "folds": given.folds, "seed": given.seed, "c": given.c,
                "versions": versions("scikit-learn", "sentence-transformers")}  # fmt: skip
        sys.stdout.write(f"{write_attributes(given.out, given.encoder, models, note)}\n")
    return 0


def _usable(rows: Labelled) -> dict[str, str]:
    """Without labels of a single question; nothing where fewer than two labels are left."""
    counts = Counter(rows.values())
    kept = {query: label for query, label in rows.items() if counts[label] > 1}
    return kept if len(set(kept.values())) > 1 else {}
