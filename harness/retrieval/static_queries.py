"""The static query tower: the embeddings of the document tower, and what is trained.

    q = [ normalised(sum over features f of idf(f) exp(w_group(f)) e_f + d_f),  time x phi(date of the query) ]

e_f and phi are those of the document tower. Trained are the weight w of each group (segment and kind of feature), the
offset d of each feature that is frequent in training (one for each segment), and the weight ``time`` of the date. In
``base``, the untrained tower, w and d are 0. Offsets are stored in int8 with one scale for each feature.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.retrieval.static_documents import WIDTH, Documents, bags, normalised, times
from lm_eval_rag.harness.retrieval.static_features import GROUPS, query_features

WEIGHTS = "model.safetensors"
TIME = 0.2  # of the base tower: an equal date counts a fifth of what equal words count
FORMAT = "1"  # of features and embeddings; a tower of another format is refused
ARRAYS = ("keys", "offsets", "scales", "groups")
# One key, since safetensors writes several in random order, and equal towers are to have equal bytes.
METADATA = {"format": f"static-{FORMAT}"}
EARLIER_METADATA = {"format": "static", "version": FORMAT}


@dataclass(frozen=True, slots=True)
class QueryTower:
    """A trained query tower.

    Args:
        keys: uint64 (V,): the tagged features with an offset, ascending.
        offsets: int8 (V, WIDTH).
        scales: float32 (V,): an offset is ``offsets * scales``.
        groups: float32 (GROUPS,): w.
        time: Weight of the date, 0 or more.
    """

    keys: Any
    offsets: Any
    scales: Any
    groups: Any
    time: float

    def encode(self, texts: list[str], documents: Documents) -> Any:
        """float64 (texts, WIDTH + TIMES). The vector of a text does not depend on the other texts."""
        features = query_features(texts)
        weights = documents.weigh(features.keys) * np.exp(np.float64(self.groups))[features.groups]
        words = bags(features, weights)
        if len(self.keys):
            tagged = features.tagged
            places = np.minimum(np.searchsorted(self.keys, tagged), len(self.keys) - 1)
            for feature in np.flatnonzero(self.keys[places] == tagged):
                row = places[feature]
                words[features.texts[feature]] += self.offsets[row] * np.float64(self.scales[row])
        return np.concatenate([normalised(words), self.time * times(features.days)], axis=1)


def base() -> QueryTower:
    """The query tower before training: that of the documents."""
    return QueryTower(
        np.zeros(0, np.uint64),
        np.zeros((0, WIDTH), np.int8),
        np.zeros(0, np.float32),
        np.zeros(GROUPS, np.float32),
        TIME,
    )


def compressed(keys: Any, offsets: Any, groups: Any, time: float) -> QueryTower:
    """A tower of float offsets (V, WIDTH), each rounded to one of 255 multiples of its largest value / 127."""
    order = np.argsort(keys)
    offsets = np.asarray(offsets, np.float32)[order]
    scales = np.abs(offsets).max(axis=1, initial=0) / 127
    rounded = np.rint(offsets / np.where(scales == 0, 1, scales)[:, None]).astype(np.int8)
    return QueryTower(np.asarray(keys)[order], rounded, scales, np.asarray(groups, np.float32), float(time))


def save(tower: QueryTower, folder: Path) -> None:
    """Write ``model.safetensors``; equal towers give equal bytes."""
    from safetensors.numpy import save_file

    arrays = {name: getattr(tower, name) for name in ARRAYS}
    save_file({**arrays, "time": np.array([tower.time], np.float64)}, folder / WEIGHTS, metadata=METADATA)


def load(path: Path) -> QueryTower:
    """Read what :func:`save` wrote; numpy alone, so that the core install can.

    Raises:
        UserError: The file is missing, damaged, or of another format.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata()
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path} is missing or damaged ({error}). Copy or train the query tower again.") from None
    shapes = {name: array.shape for name, array in arrays.items()}
    words = len(arrays.get("keys", ()))
    expected = {"keys": (words,), "offsets": (words, WIDTH), "scales": (words,), "groups": (GROUPS,), "time": (1,)}
    if metadata not in (METADATA, EARLIER_METADATA) or shapes != expected:
        raise UserError(
            f"{path} is not a query tower of format {FORMAT} for `static`: its metadata is {metadata}, its arrays have "
            f"the shapes {shapes}. Train it again."
        )
    return QueryTower(**{**arrays, "time": float(arrays["time"][0])})
