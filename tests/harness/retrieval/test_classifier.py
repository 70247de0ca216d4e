"""Classifiers of questions: the file, the arithmetic, training and its measurement, and the ask."""

import bz2
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_eval_rag.harness.backends.classification import ClassifyBackend
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.asks import Classify
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.types import Query
from lm_eval_rag.harness.retrieval.classifier import FILE, Attributes, Linear, read_attributes, write_attributes
from lm_eval_rag.harness.train.classifier_trainer import (
    _folds,
    cross_validate,
    read_labelled,
    train_attributes_main,
    train_linear,
)

TOPICS = {"finance": "share price", "music": "song band", "movie": "film actor"}


def toy(texts: Any) -> Any:
    """Vectors of length 1 that count a few words."""
    words = [*" ".join(TOPICS.values()).split(), "now"]
    rows = np.array([[text.split().count(word) for word in words] + [0.1] for text in texts], dtype=np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """60 questions in two files, one of them packed; the encoder counts words."""
    rates = ["static", "slow-changing", "real-time"]
    rows = [
        {"query": f"what {words} {i} {'now' if i % 3 else ''}", "domain": domain, "static_or_dynamic": rates[i % 3]}
        for domain, words in TOPICS.items()
        for i in range(20)
    ]
    lines = [json.dumps(row) for row in rows]
    (tmp_path / "a.jsonl").write_text("\n".join([*lines[:40], "", '{"query": "no label"}', '{"domain": "x"}']))
    (tmp_path / "b.jsonl.bz2").write_bytes(bz2.compress("\n".join(lines[30:]).encode()))
    monkeypatch.setattr("lm_eval_rag.harness.train.classifier_trainer.need", lambda *names: None)
    for module in ("retrieval.classifier", "train.classifier_trainer"):
        monkeypatch.setattr(f"lm_eval_rag.harness.{module}.encode_with", lambda encoder: toy)
    return tmp_path


def test_reading_labels(questions: Path) -> None:
    files = [questions / "a.jsonl", questions / "b.jsonl.bz2"]
    assert Counter(read_labelled(files, "domain").values()) == dict.fromkeys(TOPICS, 20)
    assert Counter(read_labelled(files, "static_or_dynamic").values()) == {"static": 21, "dynamic": 39}
    assert read_labelled(files, "question_type") == {}


@pytest.mark.parametrize("content", [b"no JSON", b"[1]", b'{"query": 1}\n{', b"\xff\xfe"])
def test_broken_files_of_questions(tmp_path: Path, content: bytes) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(content)
    with pytest.raises(UserError, match="not a JSON object"):
        read_labelled([bad], "domain")
    cut = tmp_path / "cut.bz2"
    cut.write_bytes(bz2.compress(b"x" * 9999)[:30])
    for path in (cut, tmp_path / "missing.jsonl"):
        with pytest.raises(UserError, match="cannot be read"):
            read_labelled([path], "domain")


def test_two_labels_and_more_are_sklearns() -> None:
    svm = pytest.importorskip("sklearn.svm")
    rng = np.random.default_rng(0)
    for labels in ("ab", "abc"):
        given = [labels[i % len(labels)] for i in range(60)]
        vectors = rng.normal(size=(60, 5)) + np.array([[ord(label) - 97] for label in given])
        theirs = svm.LinearSVC(C=0.5, dual=True, random_state=0, max_iter=10_000).fit(vectors, given)
        ours = train_linear(vectors, given, 0.5)
        assert ours.labels == tuple(labels) and ours.weights.shape == (len(labels), 5)
        assert ours.predict(vectors) == theirs.predict(vectors).tolist()


def test_folds_hold_every_question_once_and_labels_in_equal_shares() -> None:
    labels = ["a"] * 17 + ["b"] * 8
    folds = _folds(labels, 5, 3)
    assert sorted(i for fold in folds for i in fold) == list(range(25))
    assert {Counter(labels[i] for i in fold)["b"] for fold in folds} <= {1, 2}
    assert folds == _folds(labels, 5, 3) != _folds(labels, 5, 4)


def test_cross_validation_tells_signal_from_noise() -> None:
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    labels = ["a", "b"] * 50
    noise = rng.normal(size=(100, 8))
    signal = noise + 4 * np.array([[label == "b"] for label in labels])
    clear, chance = (cross_validate(v, labels, folds=10, seed=0) for v in (signal, noise))
    assert clear.right > 95 and 35 <= chance.right <= 65
    assert (clear.n, clear.majority) == (100, 50) and chance.low < chance.right / 100 < chance.high < clear.high <= 1
    alone = cross_validate(signal[:3], ["a", "a", "b"], folds=3, seed=0)  # a fold that leaves one label
    assert alone.n == 3


def test_training_writes_what_is_read_again(questions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    out = questions / "out"
    given = ["--data", str(questions / "a.jsonl"), str(questions / "b.jsonl.bz2"), "--out", str(out), "--folds", "5"]
    assert train_attributes_main(given) == 0
    told = capsys.readouterr().out
    assert "domain: 100.0%" in told and "of 60; majority 33.3% (finance 20, movie 20, music 20)" in told
    model = read_attributes(out)
    assert model.classify(["the share price", "a film actor"], "domain") == ["finance", "movie"]
    assert model.classify(["song now now"], "static_or_dynamic") == ["dynamic"]
    assert json.loads((out / FILE).read_text())["note"]["results"]["domain"]["right"] == 60
    with pytest.raises(UserError, match="Unknown attribute 'colour'"):
        model.classify(["x"], "colour")
    with pytest.raises(UserError, match="No attribute has labelled questions"):
        train_attributes_main(["--data", str(questions / "a.jsonl"), "--attribute", "question_type"])
    for wrong in (["--folds", "1"], ["--c", "0"]):
        with pytest.raises(UserError, match="not allowed"):
            train_attributes_main([*given, *wrong])


PART: dict[str, Any] = {"labels": ["a", "b"], "weights": [[1.0, 0.0], [0.0, 1.0]], "intercepts": [0.0, 0.5]}


def test_the_highest_score_wins_and_ties_go_to_the_first() -> None:
    model = Linear(("a", "b"), np.array(PART["weights"]), np.array(PART["intercepts"]))
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.5], [0.7, 0.3]])
    expected = ["ab"[max(range(2), key=lambda i, row=row: row[i] + PART["intercepts"][i])] for row in rows]
    assert model.predict(rows) == expected == ["a", "b", "a", "b"]


@pytest.mark.parametrize(
    "change",
    [{"labels": ["a"]}, {"weights": [[1.0, 0.0]]}, {"weights": [1.0, 0.0]}, {"intercepts": [0.0]}, {"labels": 3},
     {"intercepts": [0.0, float("nan")]}, {"weights": [["x", 0.0], [0.0, 1.0]]}, {"weights": [[1.0], [0.0, 1.0]]}],
)  # fmt: skip
def test_files_that_are_no_classifier(tmp_path: Path, change: dict[str, Any]) -> None:
    data = {"encoder": "minilm", "attributes": {"domain": {**PART, **change}}}
    (tmp_path / FILE).write_text(json.dumps(data))
    with pytest.raises(UserError, match="is not a classifier"):
        read_attributes(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"encoder": "x"}', "[" * 99_999, '{"attributes": []}'])
def test_files_that_are_something_else(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(UserError, match="is not a classifier"):
        read_attributes(tmp_path)
    with pytest.raises(UserError, match="lm-eval-rag train attributes"):
        read_attributes(tmp_path / "missing")


def test_the_ask_is_served_in_batches_and_journalled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def encode(texts: list[str]) -> Any:
        seen.append(texts)
        return np.array([[len(text), 3.0] for text in texts])

    monkeypatch.setattr("lm_eval_rag.harness.retrieval.classifier.encode_with", lambda encoder: encode)
    model = Linear(("long", "short"), np.array(PART["weights"]), np.zeros(2))
    write_attributes(tmp_path, "toy", {"size": model}, {})
    asked = [(Query("q", ""), Classify(text, "size", str(tmp_path))) for text in ("ab", "abcd", "ab")]
    for again in (False, True):
        backend = ClassifyBackend(Journal(tmp_path / "j.sqlite", "run"))
        served = backend.serve(asked)
        assert [reply.value for reply in served] == ["short", "long", "short"]
        assert [reply.step.journalled for reply in served] == [again] * 3
    assert seen == [["ab", "abcd"]]


def test_an_encoder_of_another_width_is_refused() -> None:
    model = Attributes("toy", {"size": Linear(("a", "b"), np.eye(2), np.zeros(2))}, "0")
    model.__dict__["_encode"] = lambda texts: np.ones((len(texts), 5))
    with pytest.raises(UserError, match="trained on 2"):
        model.classify(["x"], "size")
