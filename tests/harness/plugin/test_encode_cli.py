"""``lm-eval-rag encode``: a corpus in, shards of vectors out that a run uses as its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_eval_rag import cli
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.shares import share_of
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.plugin.encode_cli import encode_main
from lm_eval_rag.harness.retrieval import make_retriever, shards

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")
pytest.importorskip("faiss")

TEXTS = [f"w{i % 7} w{i % 11} w{i % 13}" + " w1" * (i % 5) for i in range(50)]
CORPUS = Corpus.of(Passage(f"d{i}", text) for i, text in enumerate(TEXTS))
QUERIES = ["w1 w2", "w3", "w5 w5 w6"]


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(shards, "SHARD", 16)


@pytest.mark.parametrize("store", ["float16", "int8"])
def test_shares_of_two_processes_are_what_a_run_uses(
    store: str, little_bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    CORPUS.save(tmp_path / "docs")
    arguments = ["encode", "--corpus", str(tmp_path / "docs"), "--retriever-args", f"model={little_bert},store={store}"]
    assert cli.main([*arguments, "--shard", "2/2"]) == 0
    assert "share 2 of 2 is finished, other shards are missing" in capsys.readouterr().out
    assert cli.main([*arguments, "--shard", "1/2"]) == 0
    text = capsys.readouterr().out
    assert "50 documents in, 50 vectors of 32 numbers out, in 4 shards, checksums right" in text
    folder = text.rstrip().rpartition(": ")[2]

    def none(self: Any, texts: Any) -> Any:
        raise AssertionError("the documents are encoded already")

    options: dict[str, Any] = {"model": str(little_bert), "store": store}
    opened = Corpus.open(tmp_path / "docs")
    run: Any = make_retriever("dense", opened, **options)
    assert str(run.folder) == folder
    queries = run._encoder.encode(QUERIES)
    monkeypatch.setattr("lm_eval_rag.harness.retrieval.towers.Encoder.encode", none)
    whole = np.asarray(run.vectors)
    monkeypatch.setattr("lm_eval_rag.harness.retrieval.towers.Encoder.encode", lambda self, texts: queries)
    rankings = run.search(QUERIES, 9)
    scores = (queries.astype(np.float64) @ whole.astype(np.float64).T).astype(np.float32)
    assert [[row for row, _ in ranking] for ranking in rankings] == [
        np.lexsort((np.arange(50), -of_query))[:9].tolist() for of_query in scores
    ]
    moved = (tmp_path / "elsewhere").absolute()
    Path(folder).rename(moved)
    given: Any = make_retriever("dense", opened, index=str(moved), **options)
    assert given.search(QUERIES, 9) == rankings and given.fingerprint != run.fingerprint


def test_vectors_of_another_corpus_or_encoder_are_refused(little_bert: Path, tmp_path: Path) -> None:
    made: Any = make_retriever("dense", CORPUS, model=str(little_bert))
    assert len(made.vectors) == 50
    index = str(made.folder)
    other = Corpus.of(Passage(f"e{i}", text) for i, text in enumerate(TEXTS))
    with pytest.raises(UserError, match="holds vectors of another corpus"):
        make_retriever("dense", other, model=str(little_bert), index=index)
    with pytest.raises(UserError, match="holds vectors of another tower"):
        make_retriever("dense", CORPUS, model=str(little_bert), index=index, pooling="cls")
    (made.folder / "00002.npy").unlink()
    with pytest.raises(UserError, match=r"00002\.npy is missing or damaged"):
        make_retriever("dense", CORPUS, model=str(little_bert), index=index)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "one of the two"),
        (["--tasks", "ruleqa_demo", "--corpus", "docs"], "one of the two"),
        (["--tasks", "ruleqa_demo", "--shard", "3/2"], "give I/N"),
        (["--tasks", "ruleqa_demo", "--retriever-args", "stor=int8"], "Did you mean 'store'"),
        (["--tasks", "ruleqa_demo", "--retriever-args", "store=int4"], "Allowed: float16, float32, int8"),
        (["--tasks", "ruleqa_demo", "--retriever-args", "index=flat"], "index has no meaning here"),
        (["--tasks", "ruleqa_demo", "--retriever-args", "rerank=x"], "rerank has no meaning here"),
    ],
)
def test_bad_arguments_teach(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        encode_main(arguments)


def test_shares() -> None:
    assert share_of("--shard", "2/4") == (2, 4) and share_of("--shard", "1/1") == (1, 1)
    for text in ("0/4", "5/4", "2", "a/b", "1/0", "-1/4", "1/4/5", ""):
        with pytest.raises(UserError, match="--shard"):
            share_of("--shard", text)
