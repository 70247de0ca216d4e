"""The embedded generator for CRAG's hybrid: its teacher's rows, and that it writes the forms of the modules."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.methods.crag.reasoning import read_reasoning

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("resiliparse")
pytest.importorskip("blingfire")
ROOT = Path(__file__).resolve().parents[3]
KINDS = {"baseline", "refined", "refined_false_premise", "static_or_dynamic", "calculator", "knowledge", "fields",
         "reasoning", "reasoning_false_premise"}  # fmt: skip
NAMES = ("movie_name", "person", "artist_name", "song_name", "team", "main_entity")
READABLE = 0.6  # share of replies in the form that is asked for; 89 % or more of each kind in the card
READ = 0.5  # share of refined answers that equal the teacher's; 72 % in the card


@pytest.fixture(scope="module")
def scripts() -> Any:
    """Imports a module of scripts/tiny_crag."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts" / "tiny_crag"))
        yield importlib.import_module


@pytest.fixture(scope="module")
def rows(scripts: Any, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str, str]]:
    """The teacher's rows over some questions of a world that training has not seen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path_factory.mktemp("cache")))
        make, seed = scripts("make_crag_rows"), scripts("measure_crag").UNSEEN
        lines = list(make.lines(seed))[::6]
        patch.setattr(make, "lines", lambda _: lines)
        return [tuple(row) for group in make.rows_of(seed) for row in group["rows"]]


def test_the_rows_have_every_module_and_fit_the_context(rows: list[tuple[str, str, str]], scripts: Any) -> None:
    make = scripts("make_crag_rows")
    tokenizer = make.AutoTokenizer.from_pretrained(make.BASE)
    assert {name for name, _, _ in rows} >= KINDS - {"refined_false_premise", "knowledge"}
    counts = Counter(rows)
    assert all(count == make.AGAIN.get(name, 1) for (name, _, _), count in counts.items()) and len(counts) > 50
    assert all(len(tokenizer.encode(f"{prompt} {reply}")) <= make.CONTEXT for _, prompt, reply in rows)


def test_the_teacher_answers_in_the_letters_of_prompt_and_question(rows: list[tuple[str, str, str]]) -> None:
    copied = 0
    for name, prompt, reply in rows:
        question = [line for line in prompt.splitlines() if line.startswith("Question: ")][-1]
        if name.startswith("reasoning"):
            read = read_reasoning(reply)
            assert read is not None and f"Question: {read.reasoning.removeprefix('- ')}" == question
            copied += read.answer in prompt
        elif name == "fields":
            fields = json.loads(reply)
            named = [part for key in NAMES for part in fields.get(key, "").split(", ") if part]
            assert fields["domain"] and all(part in question for part in named)
    assert copied > 5


def test_the_checkpoint_writes_the_forms_of_an_unseen_world(rows: list[tuple[str, str, str]], scripts: Any) -> None:
    torch.set_num_threads(1)
    measure = scripts("measure_crag")
    few = [row for name in sorted(KINDS) for row in [row for row in rows if row[0] == name][:3]]
    generator = measure.embedded("tiny_crag")
    asked = measure.table_of(generator, few, 3)
    assert all(row["read"] >= READABLE * row["prompts"] for row in asked.values())
    read = measure.table_of(generator, [row for row in rows if row[0] == "refined"], 12)["refined"]
    assert read["prompts"] > 8 and read["equal"] >= READ * read["prompts"] > read["most common"]


def test_size_and_tokenizer() -> None:
    """As large as the base, with its tokenizer."""
    folder, base = (ROOT / "harness" / "generators" / name for name in ("crag_tiny", "rulerag_tiny"))
    assert abs((folder / "model.safetensors").stat().st_size - (base / "model.safetensors").stat().st_size) < 1000
    assert (folder / "tokenizer.json").read_bytes() == (base / "tokenizer.json").read_bytes()
