"""The static retriever: against formulas restated plainly, ties, batches, adapters, bad input."""

import itertools
import json
import math
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval import make_retriever
from lm_eval_rag.harness.retrieval import static_documents as documents
from lm_eval_rag.harness.retrieval import static_queries as queries
from lm_eval_rag.harness.retrieval.static import Static, find_tower
from lm_eval_rag.harness.retrieval.static_features import (
    BEGINNINGS,
    GROUPS,
    KINDS,
    SEGMENTS,
    document_features,
    query_features,
)

NAMES = ("Ada Moss", "Bo", "Ceres Vale Ltd", "Vale", "Time Warner", "Ümit Öz")
RELATIONS = ("was born in", "lives in", "visits", "owns shares of")


def corpus_of(n: int = 300, seed: int = 0) -> Corpus:
    draw = np.random.default_rng(seed)
    made = []
    for i in range(n):
        a, r, b = (draw.choice(x) for x in (NAMES, RELATIONS, NAMES))
        date = f"2014-{draw.integers(1, 13):02}-{draw.integers(1, 29):02}"
        when = f"Time {date} " if draw.random() < 0.7 else ""
        made.append(Passage(f"d{i:03}", f"{when}{a} {r} {b}.", fact=(a, r, b)))
    return Corpus.of(made)


def plain_features(text: str) -> list[str]:
    """What a document's features stand for."""
    text = re.sub(r"^Time \d{4}(-\d\d-\d\d)? ", "", text)
    words = re.findall(r"\w+", text.lower())
    pairs = [f"{a} {b}" for a, b in itertools.pairwise(words)]
    begun = ["^" + " ".join(words[: n + 1]) for n in range(min(len(words), BEGINNINGS))]
    return words + pairs + begun


def test_features_are_the_words_pairs_and_beginnings() -> None:
    texts = corpus_of(80).texts
    found = document_features(texts)
    names = {name for text in texts for name in plain_features(text)}
    assert len(set(found.keys.tolist())) == len(names)
    for number, text in enumerate(texts):
        keys = Counter(found.keys[found.texts == number].tolist())
        assert sorted(keys.values()) == sorted(Counter(plain_features(text)).values())
    one = document_features(["Ada Moss lives in Vale."])
    other = document_features(["Vale lives in Ada Moss."])
    shared = len(set(one.keys.tolist()) & set(other.keys.tolist()))
    assert shared == len(
        set(plain_features("Ada Moss lives in Vale.")) & set(plain_features("Vale lives in Ada Moss."))
    )


def test_scores_are_dot_products_of_normalised_bags() -> None:
    corpus = corpus_of()
    retriever = make_retriever("static", corpus, adapter="base")
    bags = [Counter(plain_features(text)) for text in corpus.texts]
    df = Counter(feature for bag in bags for feature in bag)
    idf = {feature: math.log(1 + len(corpus) / n) for feature, n in df.items()}
    query = "what does Ada Moss lives in ?"
    wanted = Counter(f for f in plain_features("Ada Moss lives in") if f in idf)

    def cosine(a: Counter[str], b: Counter[str]) -> float:
        dot = sum(a[f] * b[f] * idf[f] ** 2 for f in a)
        return dot / math.prod(math.sqrt(sum((n * idf[f]) ** 2 for f, n in x.items())) for x in (a, b))

    exact = np.array([cosine(wanted, bag) for bag in bags])
    found = np.zeros(len(corpus))
    for row, score in retriever.search([query], len(corpus))[0]:
        found[row] = score
    # Hashed into WIDTH places a dot product of unit vectors keeps its value but for noise of about 1 / sqrt(WIDTH).
    assert np.abs(found - exact).max() < 6 / math.sqrt(documents.WIDTH)
    assert np.sqrt(np.mean((found - exact) ** 2)) < 1.5 / math.sqrt(documents.WIDTH)


def test_dates_attract() -> None:
    days = np.array([0.0, 1, 30, 365, 3650, np.nan])
    kernel = documents.times(days) @ documents.times(days)[0]
    assert kernel[0] == pytest.approx(1)
    assert kernel[0] > kernel[1] > kernel[2] > kernel[3] > kernel[4]
    assert kernel[5] == 0


@pytest.mark.parametrize("k", [1, 7, 1000])
def test_search_is_exact_with_ties_by_row(k: int) -> None:
    texts = [*corpus_of(200).texts] * 3
    corpus = Corpus.of(Passage(f"d{i:03}", text) for i, text in enumerate(texts))
    retriever = Static(corpus, queries.base())
    asked = ["what does Ada Moss lives in ?", "Time 2014-05-02 what does Bo visits ?", "Ümit", "?"]
    vectors = retriever.documents.vectors.astype(np.float64)
    for query, found in zip(asked, retriever.search(asked, k), strict=True):
        scores = (vectors * retriever.tower.encode([query], retriever.documents)[0]).sum(axis=1)
        order = sorted(range(len(corpus)), key=lambda row: (-scores[row], row))[:k]
        assert [row for row, _ in found] == order
        assert [score for _, score in found] == [scores[row] for row in order]


def test_a_result_depends_on_no_other_query(monkeypatch: pytest.MonkeyPatch) -> None:
    retriever = Static(corpus_of(500), queries.base())
    asked = [f"Time 2014-03-0{d} what does {name} {r} ?" for d in (1, 9) for name in NAMES for r in RELATIONS]
    together = retriever.search(asked, 10)
    assert together == [retriever.search([text], 10)[0] for text in asked]
    monkeypatch.setattr(sys.modules[Static.__module__], "BLOCK", 64)
    assert together == retriever.search(asked, 10)


def test_a_rule_gives_segments() -> None:
    rule = "[Entity1, visits, Entity2] leads to [Entity1, lives in, Entity2]"
    alone, guided = (
        query_features(["what does Ada Moss lives in ?"]),
        query_features([f"what does Ada Moss lives in ? {rule}"]),
    )
    assert {SEGMENTS[g // KINDS] for g in alone.groups} == {"question"}
    assert {SEGMENTS[g // KINDS] for g in guided.groups} == {"guided", "body", "head", "asked"}
    assert guided.groups.min() >= 0 and guided.groups.max() < GROUPS
    body = document_features(["Ada Moss visits"])
    assert set(body.keys.tolist()) <= set(guided.keys.tolist())  # read as what a document of the body begins with
    assert set(guided.tagged.tolist()).isdisjoint(alone.tagged.tolist())


def trained(corpus: Corpus, seed: int = 1) -> tuple[queries.QueryTower, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    keys = np.unique(query_features([f"what does {n} lives in ?" for n in NAMES]).tagged)
    offsets = draw.standard_normal((len(keys), documents.WIDTH)).astype(np.float32)
    return queries.compressed(keys, offsets, draw.standard_normal(GROUPS), 0.3), keys, offsets


def test_offsets_are_added_and_rounded_finely() -> None:
    corpus = corpus_of(60)
    tower, keys, offsets = trained(corpus)
    found = documents.embed(corpus)
    features = query_features(["what does Bo lives in ?"])
    weights = found.weigh(features.keys) * np.exp(tower.groups)[features.groups]
    words = documents.bags(features, weights)[0] + sum(offsets[list(keys).index(key)] for key in features.tagged)
    got = tower.encode(["what does Bo lives in ?"], found)[0, : documents.WIDTH]
    assert got == pytest.approx(words / np.linalg.norm(words), abs=0.01)


def test_saved_and_loaded_alike(tmp_path) -> None:
    corpus = corpus_of(60)
    tower, *_ = trained(corpus)
    queries.save(tower, tmp_path)
    again = find_tower(str(tmp_path))
    assert Static(corpus, tower).search(["Bo visits"], 5) == Static(corpus, again).search(["Bo visits"], 5)
    assert Static(corpus, tower).fingerprint == Static(corpus, again).fingerprint
    assert Static(corpus, tower).fingerprint != Static(corpus, queries.base()).fingerprint


def test_a_tower_in_the_earlier_form_of_the_header_is_read(tmp_path: Path) -> None:
    """The towers in the package have it: 8 bytes with the length of a JSON header, the header, the arrays."""
    tower, *_ = trained(corpus_of(60))
    arrays = {name: getattr(tower, name) for name in ("keys", "offsets", "scales", "groups")}
    arrays["time"] = np.array([tower.time], np.float64)
    names = {"uint64": "U64", "int8": "I8", "float32": "F32", "float64": "F64"}
    header: dict[str, object] = {"__metadata__": {"format": "static", "version": "1"}}
    end = 0
    for name, array in arrays.items():
        start, end = end, end + array.nbytes
        header[name] = {"dtype": names[str(array.dtype)], "shape": array.shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    content = len(text).to_bytes(8, "little") + text + b"".join(array.tobytes() for array in arrays.values())
    (tmp_path / queries.WEIGHTS).write_bytes(content)
    loaded = find_tower(str(tmp_path))
    assert loaded.time == tower.time
    for name in ("keys", "offsets", "scales", "groups"):
        assert np.array_equal(getattr(loaded, name), arrays[name])


def test_equal_towers_have_equal_bytes(tmp_path: Path) -> None:
    contents = set()
    for _ in range(8):
        queries.save(trained(corpus_of(60))[0], tmp_path)
        contents.add((tmp_path / queries.WEIGHTS).read_bytes())
    assert len(contents) == 1


@pytest.mark.parametrize("damage", [lambda b: b[:40], lambda b: b"", lambda b: b.replace(b"static-1", b"others-1")])
def test_damaged_tower_is_refused(tmp_path, damage) -> None:
    queries.save(queries.base(), tmp_path)
    path = tmp_path / queries.WEIGHTS
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match=r"model\.safetensors"):
        find_tower(str(tmp_path))


def test_bad_input() -> None:
    corpus = corpus_of(5)
    with pytest.raises(UserError, match="whole number of 1"):
        make_retriever("static", corpus, adapter="base").search(["x"], 0)
    with pytest.raises(UserError, match="no_such_folder"):
        make_retriever("static", corpus, adapter="no_such_folder")


def test_documents_without_words() -> None:
    corpus = Corpus.of([Passage("a", "???"), Passage("b", "!")])
    assert [row for row, _ in Static(corpus, queries.base()).search(["what ?"], 5)[0]] == [0, 1]


@pytest.mark.parametrize("name", ["rgft", "ssft"])
def test_embedded_towers(name: str) -> None:
    tower = find_tower(name)
    assert len(tower.keys) > 100 and tower.time > 0
    folder = Path(queries.__file__).parent / "static_towers" / name
    note = json.loads((folder / "rulerag.json").read_text())
    assert (note["kind"], note["mode"]) == ("retriever", name)


def test_embedded_towers_are_small() -> None:
    folder = Path(queries.__file__).parent / "static_towers"
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 8_000_000
