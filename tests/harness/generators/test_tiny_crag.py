"""The embedded generator for CRAG's hybrid: its teacher's rows, and that it writes the forms of the modules."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.kg.calling import read_calls
from lm_eval_rag.methods.crag.reasoning import read_reasoning

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("resiliparse")
pytest.importorskip("blingfire")
ROOT = Path(__file__).resolve().parents[3]
KINDS = {"baseline", "refined", "refined_false_premise", "static_or_dynamic", "domain", "calculator", "knowledge",
         "fields", "calls", "reasoning", "reasoning_false_premise"}  # fmt: skip
NAMES = ("movie_name", "person", "artist_name", "song_name", "team", "main_entity")
READABLE = 0.6  # share of replies in the form that is asked for; 97 % or more of each kind in the card
READ = 0.5  # share of answers that equal the teacher's; 63 % or more in the card, also after reasoning


@pytest.fixture(scope="module")
def scripts() -> Any:
    """Imports a module of scripts/tiny_crag."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts" / "tiny_crag"))
        yield importlib.import_module


@pytest.fixture(scope="module")
def groups(scripts: Any, tmp_path_factory: pytest.TempPathFactory) -> list[list[tuple[str, str, str]]]:
    """The teacher's groups of rows over some questions of a world that training has not seen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path_factory.mktemp("cache")))
        make, seed = scripts("make_crag_rows"), scripts("measure_crag").UNSEEN
        lines = list(make.lines(seed))[::6]
        patch.setattr(make, "lines", lambda _: lines)
        return [list(group["rows"]) for group in make.rows_of(seed)]


@pytest.fixture(scope="module")
def rows(groups: list[list[tuple[str, str, str]]]) -> list[tuple[str, str, str]]:
    """All rows, the first of each group first."""
    return [row for rank in range(max(map(len, groups))) for group in groups for row in group[rank : rank + 1]]


def test_a_group_asks_other_questions_about_the_same_references(
    groups: list[list[tuple[str, str, str]]], scripts: Any
) -> None:
    make = scripts("make_crag_rows")
    asked, long = 0, 0
    for group in groups:
        (name,) = {name for name, _, _ in group}
        shown = {prompt.rpartition("References:")[2].rpartition("\nQuestion: ")[0] for _, prompt, _ in group}
        assert name in make.SHORT or len(shown) == 1
        if name in make.SHORT:
            assert len(group) <= make.TOGETHER
            continue
        others = group[1:]
        assert len({prompt for _, prompt, _ in group}) == len(group) <= 1 + make.OTHERS
        assert sum(not reply or make.DONT_KNOW in reply for _, _, reply in others) <= make.SILENT
        asked, long = asked + len(others), long + 1
    assert asked > long > 20


def test_an_answer_that_only_a_calculation_states_is_asked_for_alone(groups: list[list[tuple[str, str, str]]]) -> None:
    sizes = []
    for group in groups:
        name, prompt, reply = group[0]
        shown = prompt.rpartition("References:")[2].rpartition("\nQuestion: ")[0]
        values = re.findall(r"^Calculation: .* = ([\d.]+)$", shown, re.MULTILINE)
        shown = re.sub("^Calculation: .*$", "", shown, flags=re.MULTILINE)
        number = re.search(r"[\d,]*\d(\.\d+)?", reply.rpartition("## Answer:")[2])
        known = number and re.search(rf"(?<![\d.,]){number[0]}(?!\d)", shown)
        if not name.startswith(("refined", "reasoning")) or not number or known:
            continue
        digits = len(number[1] or ".") - 1
        if any(f"{float(value):.{digits}f}" == number[0].replace(",", "") for value in values):
            sizes.append(len(group))
    assert len(sizes) > 2 and set(sizes) == {1}


def test_the_rows_have_every_module_and_fit_the_context(rows: list[tuple[str, str, str]], scripts: Any) -> None:
    make = scripts("make_crag_rows")
    tokenizer = make.AutoTokenizer.from_pretrained(make.BASE)
    assert {name for name, _, _ in rows} >= KINDS - {"refined_false_premise", "knowledge"}
    assert len(set(rows)) > 50
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


def test_the_teacher_writes_calls_that_may_run(scripts: Any) -> None:
    make = scripts("make_crag_rows")
    fields, written = make.Teacher([], make.make_world(1)).fields, 0
    for line in make.lines(1):
        row = json.loads(line)
        named = fields.of(row["domain"], row["query"])
        read = read_calls(json.dumps(make.calls(named)))
        assert not read.refused, row
        assert bool(read.calls) == any(named.get(key) for key in make.NAMES), row
        written += len(read.calls)
    assert written > 150


def test_the_checkpoint_writes_the_forms_of_an_unseen_world(rows: list[tuple[str, str, str]], scripts: Any) -> None:
    torch.set_num_threads(1)
    measure = scripts("measure_crag")
    few = [row for name in sorted(KINDS) for row in [row for row in rows if row[0] == name][:3]]
    generator = measure.embedded("tiny_crag")
    asked = measure.table_of(generator, few, 3)
    assert all(row["read"] >= READABLE * row["prompts"] for row in asked.values())
    kinds = ("refined", "reasoning", "reasoning_false_premise")
    answered = [row for row in rows if row[0] in kinds and "don't know" not in row[2] and "invalid" not in row[2]]
    read = measure.table_of(generator, answered, 8).values()
    equal, prompts, most = (sum(row[key] for row in read) for key in ("equal", "prompts", "most common"))
    assert len(read) == 3 and prompts > 16 and equal >= READ * prompts > most


def test_size_and_tokenizer() -> None:
    """As large as the base, with its tokenizer."""
    folder, base = (ROOT / "harness" / "generators" / name for name in ("crag_tiny", "rulerag_tiny"))
    assert abs((folder / "model.safetensors").stat().st_size - (base / "model.safetensors").stat().st_size) < 1000
    assert (folder / "tokenizer.json").read_bytes() == (base / "tokenizer.json").read_bytes()
