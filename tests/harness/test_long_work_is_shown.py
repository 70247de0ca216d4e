"""Downloads, builds and the building of indexes have a bar on a terminal, and only there while they are short."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.data.folders import content_folder
from lm_eval_rag.harness.data.sources import Source, _keep
from lm_eval_rag.harness.documents.intake import read_documents
from lm_eval_rag.harness.kg.convert import open_records
from lm_eval_rag.harness.retrieval import static_documents
from lm_eval_rag.harness.retrieval.bm25_index import build_index
from lm_eval_rag.harness.retrieval.embeddings import stored_vectors

CORPUS = Corpus.of(Passage(f"d{i}", f"Alba visited Bern in {i}") for i in range(1_500))


def download(folder: Path) -> None:
    source = Source("graph/train.txt", "o/n", "c", "p", "0", 2_000_000, "CC0", "none")
    _keep(source, io.BytesIO(b"x" * 2_000_000), folder / "file")


def build(folder: Path) -> None:
    def write(temporary: Path) -> dict[str, Any]:
        (temporary / "table").write_bytes(b"x" * 3_000_000)
        return {}

    content_folder("ruleqa_x", ["inputs"], write)


def convert(folder: Path) -> None:
    (folder / "movie.json").write_text('{"a": 1}')
    open_records(folder, "movie.json")


@pytest.mark.parametrize(
    ("work", "shown"),
    [
        (download, "download of graph/train.txt: 100%|"),
        (build, "build of ruleqa_x: 0 ["),
        (convert, "conversion of movie.json: 0 ["),
        (lambda _: build_index(CORPUS.texts, 0.9, 0.4), "BM25 index: 100%|"),
        (lambda _: static_documents._embed(CORPUS), "embeddings of documents: 100%|"),
        (
            lambda folder: stored_vectors(folder, 9, "float32", lambda a, b: np.ones((b - a, 2), np.float32), {}, 4),
            "encoding of documents: 100%|",
        ),
        (lambda _: read_documents(["One.", "Two.", "Three."]), "reading of documents: 3"),
    ],
    ids=["download", "build", "conversion", "bm25", "static", "dense", "documents"],
)
@pytest.mark.parametrize("terminal", [True, False])
def test_long_work_is_shown(
    work: Callable[[Path], Any], shown: str, terminal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = io.StringIO()
    file.isatty = lambda: terminal  # type: ignore[method-assign]
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.stderr", file)
    monkeypatch.setattr("tqdm.std.tqdm.monitor_interval", 0)
    monkeypatch.setattr("lm_eval_rag.harness.common.progress.MININTERVAL", 0)
    if work is download:
        monkeypatch.setattr("lm_eval_rag.harness.data.sources._is_right", lambda path, source: True)
    work(tmp_path)
    assert (shown in file.getvalue()) == terminal
    assert terminal or file.getvalue() == ""
