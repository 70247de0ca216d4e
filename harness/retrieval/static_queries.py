"""The static query tower: the document tower's embeddings, with what training changed.

    q = [ normalised(sum over features f of idf(f) exp(w_group(f)) e_f + d_f),  time x phi(date of the query) ]

e_f and phi are the document tower's. Trained are the weight w of each group (segment and kind of feature), the offset d
of features that training saw often, one in each segment, and the weight ``time`` of the date. Without training w and d
are 0: that is ``base``. Offsets are stored in int8 with one scale a feature.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.retrieval.static_documents import WIDTH, Documents, bags, normalised, times
from lm_eval_rag.harness.retrieval.static_features import GROUPS, query_features

WEIGHTS = "model.safetensors"
TIME = 0.2  # of the base tower: a date that fits exactly counts as a fifth of all words
FORMAT = "1"  # of features and embeddings; a tower of another is refused
DTYPES = {"I8": np.int8, "F32": np.float32, "F64": np.float64, "U64": np.uint64}


@dataclass(frozen=True, slots=True)
class QueryTower:
    """A trained query tower.

    Args:
        keys: uint64 (V,): the tagged features that have an offset, ascending.
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
        """float64 (texts, WIDTH + TIMES); a text's vector depends on no other text."""
        features = query_features(texts)
        weights = documents.weigh(features.keys) * np.exp(np.float64(self.groups))[features.groups]
        words = bags(features, weights)
        if len(self.keys):
            tagged = features.tagged
            places = np.minimum(np.searchsorted(self.keys, tagged), len(self.keys) - 1)
            for at in np.flatnonzero(self.keys[places] == tagged):
                row = places[at]
                words[features.texts[at]] += self.offsets[row] * np.float64(self.scales[row])
        return np.concatenate([normalised(words), self.time * times(features.days)], axis=1)


def base() -> QueryTower:
    """The query tower before training: the document tower itself."""
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
    """Write ``model.safetensors``, the format of https://github.com/huggingface/safetensors (8 bytes with the length of
    a JSON header, the header, the arrays)."""
    arrays = {
        "keys": tower.keys,
        "offsets": tower.offsets,
        "scales": tower.scales,
        "groups": tower.groups,
        "time": np.array([tower.time], np.float64),
    }
    names = {np.dtype(kind): name for name, kind in DTYPES.items()}
    header: dict[str, Any] = {"__metadata__": {"format": "static", "version": FORMAT}}
    end = 0
    for name, array in arrays.items():
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    content = b"".join([struct.pack("<Q", len(text)), text, *(array.tobytes() for array in arrays.values())])
    (folder / WEIGHTS).write_bytes(content)


def load(path: Path) -> QueryTower:
    """Read what :func:`save` wrote; numpy alone, so that the core install can.

    Raises:
        UserError: The file is missing, damaged, or of another format.
    """
    try:
        content = path.read_bytes()
        (size,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + size])
        kind = header.pop("__metadata__", {})
        found = {name: _array(content[8 + size :], entry) for name, entry in header.items()}
        if kind.get("format") == "static" and kind.get("version") == FORMAT:
            tower = QueryTower(**{**found, "time": float(found["time"][0])})
            if tower.offsets.shape == (len(tower.keys), WIDTH) and tower.groups.shape == (GROUPS,):
                return tower
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise UserError(f"{path} is missing or damaged ({error}). Copy or train the query tower again.") from None
    raise UserError(f"{path} is no query tower of format {FORMAT} for `static`: found {kind}. Train it again.")


def _array(data: bytes, entry: dict[str, Any]) -> Any:
    begin, end = entry["data_offsets"]
    return np.frombuffer(data[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"])
