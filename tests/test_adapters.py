"""docs/adapters.md: each block, unchanged, makes `answer(question)` of a system built with its framework."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

import lm_eval_rag

HERE = Path(__file__).parent
PAGE = (HERE.parent / "docs" / "adapters.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^## (\w+)\n.*?```python\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL))
PACKAGES = {"LangChain": "langchain_core", "LlamaIndex": "llama_index.core", "Haystack": "haystack", "DSPy": "dspy"}
DOCUMENTS = [
    {"id": "d1", "text": "Ada Moss was born in Vale."},
    {"id": "d2", "text": "Vale is the capital of Norn."},
    {"id": "d3", "text": "Kell lies by the sea."},
]


def test_every_framework_has_a_block_of_at_most_ten_lines() -> None:
    assert set(BLOCKS) == set(PACKAGES)
    for block in BLOCKS.values():
        assert "def answer(question):" in block and len(block.strip().splitlines()) <= 10


@pytest.mark.parametrize("framework", PACKAGES)
def test_a_system_is_scored(framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "HAYSTACK_TELEMETRY_ENABLED", "False")
    monkeypatch.setitem(os.environ, "DSPY_CACHEDIR", str(tmp_path / "dspy"))
    pytest.importorskip(
        PACKAGES[framework], reason=f"{PACKAGES[framework]} is not installed; `make adapters` runs this"
    )
    for name in ("my_system", "small_corpus"):  # each framework has its own
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, DOCUMENTS)), encoding="utf-8")
    (tmp_path / "my_adapter.py").write_text(BLOCKS[framework], encoding="utf-8")
    shutil.copy(HERE / "adapters" / "small_corpus.py", tmp_path)
    shutil.copy(HERE / "adapters" / f"{framework.lower()}_system.py", tmp_path / "my_system.py")
    questions = ["Where was Ada Moss born?", "What is the capital of Norn?"]
    results = lm_eval_rag.run(
        "external", questions, corpus=tmp_path / "corpus.jsonl", function=f"{tmp_path / 'my_adapter.py'}:answer"
    )
    assert [trace.failure for _, trace in results] == [None, None]
    assert [answer.text for answer, _ in results] == ["Vale", "Vale"]
    assert [answer.passages[0].id for answer, _ in results] == ["d1", "d2"]
    assert [answer.notes for answer, _ in results] == [(), ()]  # every passage is one of the corpus
