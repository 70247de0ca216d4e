"""Classifies questions by a linear support vector machine on sentence embeddings (arXiv:2408.05141, section 4.2).

A classifier is a folder with one JSON file, ``attributes.json``: the encoder's name and, for each attribute, its
labels, with one row of coefficients and one intercept for each label. ``lm-eval-rag train attributes`` writes it
(:mod:`lm_eval_rag.harness.train.classifier_trainer`). The file holds numbers and texts alone, no code.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from lm_eval_rag.harness.common.errors import UserError, unknown

FILE = "attributes.json"


@dataclass(frozen=True, slots=True)
class Linear:
    """One attribute's classifier.

    Args:
        labels: Two or more, in the order of the rows.
        weights: (labels, width) of floats.
        intercepts: (labels,) of floats.
    """

    labels: tuple[str, ...]
    weights: np.ndarray
    intercepts: np.ndarray

    def predict(self, vectors: np.ndarray) -> list[str]:
        """The label of each row of (n, width) vectors: the one with the highest score, ties by the order of labels."""
        return [self.labels[best] for best in np.argmax(vectors @ self.weights.T + self.intercepts, axis=1)]


@dataclass(frozen=True)
class Attributes:
    """A trained classifier for several attributes.

    Args:
        encoder: Preset, folder or Hub id of the sentence encoder.
        models: One for each attribute, by its name.
        fingerprint: Hash of the file.
    """

    encoder: str
    models: dict[str, Linear]
    fingerprint: str

    def classify(self, texts: Sequence[str], attribute: str) -> list[str]:
        """The label of each text.

        Raises:
            UserError: The attribute is unknown, or the encoder is not available.
        """
        if attribute not in self.models:
            raise unknown("attribute", attribute, self.models)
        model, vectors = self.models[attribute], self._encode(list(texts))
        if vectors.shape[1] != model.weights.shape[1]:
            width = model.weights.shape[1]
            raise UserError(f"{self.encoder} gives {vectors.shape[1]} numbers; the classifier was trained on {width}.")
        return model.predict(vectors)

    @cached_property
    def _encode(self) -> Any:
        return encode_with(self.encoder)


def encode_with(encoder: str) -> Any:
    """Texts to (n, width) vectors of length 1, by a sentence encoder.

    Raises:
        UserError: A package or the checkpoint is missing.
    """
    from lm_eval_rag.harness.retrieval.encoders import Overrides, towers
    from lm_eval_rag.harness.retrieval.towers import Encoder

    return Encoder(towers(encoder, None, None, Overrides(normalize=True))[0]).encode


def read_attributes(folder: str | Path) -> Attributes:
    """Read a classifier.

    Raises:
        UserError: The file is missing or is not a classifier.
    """
    path = Path(folder) / FILE
    try:
        content = path.read_bytes()
        data = json.loads(content)
        models = {name: _linear(part) for name, part in data["attributes"].items()}
        encoder = str(data["encoder"])
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {error.strerror}. Make it with `lm-eval-rag train attributes`."
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} is not a classifier of attributes ({type(error).__name__}: {error}).") from None
    return Attributes(encoder, models, sha256(content).hexdigest())


def write_attributes(folder: Path, encoder: str, models: dict[str, Linear], note: dict[str, Any]) -> Path:
    """Write a classifier and a note on how it was trained; return the path of the file."""
    data = {
        "encoder": encoder,
        "attributes": {
            name: {"labels": m.labels, "weights": m.weights.tolist(), "intercepts": m.intercepts.tolist()}
            for name, m in models.items()
        },
        "note": note,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def _linear(part: dict[str, Any]) -> Linear:
    labels = tuple(map(str, part["labels"]))
    weights, intercepts = np.array(part["weights"], dtype=np.float64), np.array(part["intercepts"], dtype=np.float64)
    if (
        len(labels) < 2
        or weights.shape[:1] != (len(labels),)
        or weights.ndim != 2
        or intercepts.shape != (len(labels),)
    ):
        raise ValueError("the shapes of labels, weights and intercepts disagree")
    if not (np.isfinite(weights).all() and np.isfinite(intercepts).all()):
        raise ValueError("a coefficient is not a finite number")
    return Linear(labels, weights, intercepts)
