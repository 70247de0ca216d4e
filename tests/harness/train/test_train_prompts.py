"""What a generator is tuned on: the method's own prompts, the right answer, the right tokens, a fair split."""

import csv
import random
from itertools import pairwise

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.prompts import load_template
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.plugin.arguments import read_arguments
from lm_eval_rag.harness.plugin.engine import run
from lm_eval_rag.harness.scoring import METRICS
from lm_eval_rag.harness.scoring.case import read_case
from lm_eval_rag.harness.train.generator_trainer import length_grouped
from lm_eval_rag.harness.train.presets import PRESETS
from lm_eval_rag.harness.train.training_prompts import build_rows, read_questions, split, stated_answer, taught
from lm_eval_rag.leaderboards import published
from lm_eval_rag.methods.rulerag_ft import rulerag_ft
from lm_eval_rag.methods.standard_rag import standard_rag
from lm_eval_rag.tasks.ruleqa_demo.build import build as build_demo


class Words:
    """Counts words as tokens, keeps the prompts it is sent, and answers nothing."""

    fingerprint, batch = "words", 4

    def __init__(self, room=None):
        self.prompts, self.limit = [], room

    def generate(self, prompts, decoding, draws):
        self.prompts += prompts
        return ["" for _ in prompts]

    def count_tokens(self, text):
        return len(text.split())

    def room(self, max_tokens):
        return None if self.limit is None else self.limit - max_tokens


@pytest.fixture(scope="module")
def corpus_id():
    return build_demo()


@pytest.fixture(scope="module")
def questions(corpus_id):
    return read_questions("ruleqa_demo", corpus_id)[:12]


@pytest.fixture(scope="module")
def setup():
    return read_arguments("rulerag_ft", rulerag_ft, {"retriever": "bm25", "generator": "tiny"})


def rows_of(setup, questions, room=None, **parameters):
    return build_rows(setup.bound(**parameters), setup.corpora, questions, Words(room), max_tokens=8)


def sent(method, questions, room=None, **parameters):
    generator = Words(room)
    run(method, [question.query for question in questions], generator=generator, retriever="bm25", **parameters)
    return generator.prompts


# --- prompts


def test_training_prompts_are_byte_for_byte_those_of_the_method(setup, questions):
    found = [row.prompt for row in rows_of(setup, questions)]
    assert sorted(found) == sorted(sent(rulerag_ft, questions))
    for question, prompt in zip(questions, found, strict=True):
        assert question.query.text in prompt and prompt.endswith("Answer:")
    assert sum("Rules:" in prompt for prompt in found) > len(found) / 2


def test_without_rules_the_documents_are_those_of_the_question_alone(setup, questions):
    found = [row.prompt for row in rows_of(setup, questions, n_rules=0)]
    assert sorted(found) == sorted(sent(standard_rag, questions))
    assert not any("Rules:" in prompt or "follow the rules" in prompt for prompt in found)


def test_a_prompt_that_is_too_long_drops_its_last_documents_and_counts_them(setup, questions):
    whole, cut = rows_of(setup, questions), rows_of(setup, questions, room=150)
    assert sorted(row.prompt for row in cut) == sorted(sent_with_room(questions, 150))
    for long, short in zip(whole, cut, strict=True):
        documents = [
            row.prompt.partition("Documents:\n")[2].partition("\nRules")[0].split("\n") for row in (long, short)
        ]
        shown = [[line for line in part if line.endswith(".")] for part in documents]
        assert short.dropped == len(shown[0]) - len(shown[1]) and shown[0][: len(shown[1])] == shown[1]
        assert len(short.prompt.split()) <= 150 - 8
    assert sum(row.dropped for row in cut) > 0 == sum(row.dropped for row in whole)


def sent_with_room(questions, room):
    from lm_eval_rag.harness.generators.base import Decoding

    return sent(rulerag_ft, questions, room, decoding=Decoding(max_tokens=8))


def test_prompts_that_never_fit_are_left_out(setup, questions):
    assert rows_of(setup, questions, room=20) == []


def test_the_version_is_that_of_the_wording(setup, questions):
    from importlib.resources import files

    template = load_template(str(files("lm_eval_rag.methods.prompts") / "ruleqa.toml"))
    assert {row.version for row in rows_of(setup, questions)} == {template.version}


def test_methods_that_generate_twice_are_refused(setup, questions):
    def twice(query):
        from lm_eval_rag.harness.core.asks import generate

        yield from generate(query.text)

    with pytest.raises(UserError, match=r"a method that generates once.*--method"):
        build_rows(twice, setup.corpora, questions, Words(), max_tokens=8)


def test_a_corpus_without_training_rows_is_named(corpus_id, tmp_path, monkeypatch):
    from shutil import copytree

    import pyarrow.parquet as pq

    from lm_eval_rag.harness.common.paths import cache_dir

    folder = copytree(cache_dir() / corpus_id, tmp_path / corpus_id)
    table = pq.read_table(folder / "generator_train.parquet")
    pq.write_table(table.slice(0, 0), folder / "generator_train.parquet")
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    with pytest.raises(UserError, match=r"ruleqa_demo has no generator training data \(F_G\)"):
        read_questions("ruleqa_demo", corpus_id)


@pytest.mark.parametrize("empty", ["one", "all"])
def test_rows_without_answers_are_left_out(corpus_id, tmp_path, monkeypatch, caplog, empty):
    from shutil import copytree

    import pyarrow as pa
    import pyarrow.parquet as pq

    from lm_eval_rag.harness.common.paths import cache_dir

    folder = copytree(cache_dir() / corpus_id, tmp_path / corpus_id)
    table = pq.read_table(folder / "generator_train.parquet")
    answers = [[] if empty == "all" or i == 1 else row for i, row in enumerate(table["answers"].to_pylist())]
    column = pa.array(answers, type=table.schema.field("answers").type)
    table = table.set_column(table.schema.get_field_index("answers"), "answers", column)
    pq.write_table(table, folder / "generator_train.parquet")
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    if empty == "all":
        with pytest.raises(
            UserError, match=rf"None of the {len(answers)} generator training questions of ruleqa_demo has"
        ):
            read_questions("ruleqa_demo", corpus_id)
    else:
        assert len(read_questions("ruleqa_demo", corpus_id)) == len(answers) - 1
        assert "1 training questions of ruleqa_demo have no answer and are left out." in caplog.text


# --- the answer that is learnt


FACTS = [Passage("d0", "A likes B.", fact=("A", "likes", "B")), Passage("d1", "A likes C.", fact=("A", "likes", "C"))]


@pytest.mark.parametrize(
    ("answers", "passages", "learnt"),
    [
        (("X", "C", "B"), FACTS, "B"),  # the best-ranked document that states one
        (("X", "C"), FACTS, "C"),
        (("X", "A"), FACTS, None),  # A is a subject, which states nothing
        (("X",), (), None),
        (("Y", "Vale"), [Passage("t", "They moved to Vale.")], "Vale"),  # a free text
    ],
)
def test_of_several_answers_the_one_that_the_best_document_states(answers, passages, learnt):
    assert stated_answer(answers, passages) == learnt


def test_every_learnt_answer_is_a_gold_one_and_the_first_where_no_document_states_one(setup, questions):
    rows = rows_of(setup, questions)
    assert all(row.answer in row.question.answers for row in rows)
    for row in rows:
        documents = row.prompt.partition("Documents:\n")[2].partition("\nRules")[0]
        lines = [line for line in documents.split("\n") if line.endswith(f"{row.answer}.")]
        assert bool(lines) == row.stated
        assert row.stated or row.answer == row.question.answers[0]
    assert {row.stated for row in rows} == {True, False}


def test_what_is_taught_where_no_document_states_the_answer(setup, questions):
    rows = rows_of(setup, questions)
    assert taught(rows, "keep") == rows
    assert taught(rows, "drop") == [row for row in rows if row.stated]
    abstaining = taught(rows, "abstain")
    assert [row.prompt for row in abstaining] == [row.prompt for row in rows]
    assert [row.answer for row in abstaining] == [row.answer if row.stated else "I don't know" for row in rows]
    assert METRICS["crag_missing"].of(read_case({"answers": ["X"]}, "I don't know", None)) == 1.0


# --- the split


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("rows", [1, 5, 1000, None])
def test_the_split_is_disjoint_seeded_and_its_dev_part_does_not_depend_on_rows(seed, rows):
    pool = list(range(60))
    train, dev = split(pool, rows=rows, dev=200, seed=seed)
    assert not set(train) & set(dev) and len(dev) == 6
    assert len(train) == min(rows or 54, 54) and (train, dev) == split(pool, rows=rows, dev=200, seed=seed)
    assert split(pool, rows=None, dev=200, seed=seed)[0][: len(train)] == train
    assert split(pool, rows=rows, dev=200, seed=seed + 1)[1] != dev


def test_a_split_needs_two_rows():
    assert [len(part) for part in split([1, 2], rows=None, dev=9, seed=0)] == [1, 1]
    with pytest.raises(UserError, match="F_G has 1 question, but training needs at least two"):
        split([1], rows=None, dev=1, seed=0)


# --- batches and presets


@pytest.mark.parametrize(("count", "batch"), [(1, 4), (7, 4), (500, 8), (64, 1)])
def test_batches_hold_every_row_once_and_rows_of_like_length(count, batch):
    rng = random.Random(count)
    lengths = [rng.randint(5, 400) for _ in range(count)]
    order = length_grouped(lengths, batch, seed=3)
    assert sorted(order) == list(range(count)) and order == length_grouped(lengths, batch, seed=3)
    if count == 500:
        assert order != length_grouped(lengths, batch, seed=4)
        parts = [[lengths[i] for i in order[start : start + batch]] for start in range(0, count, batch)]
        spread = sum(max(part) - min(part) for part in parts) / len(parts)
        assert spread < 0.15 * (max(lengths) - min(lengths))
        assert any(max(a) > min(b) for a, b in pairwise(parts)) and any(max(a) < min(b) for a, b in pairwise(parts))


NAMES = {"ChatGLM2_6B": "chatglm2_6b", "Mistral_7B_v0.2": "mistral_7b", "LLAMA2_7B": "llama2_7b"} | {
    "LLAMA2_13B": "llama2_13b"
}
FIELDS = {"warm_up": "warmup"}


def test_presets_are_table_7():
    from importlib.resources import files

    text = (files(published) / "rulerag_hyperparameters.csv").read_text()
    rows = [row for row in csv.DictReader(text.splitlines()) if row["source"] == "Table 7"]
    assert len(rows) == 36
    for row in rows:
        found = getattr(PRESETS[NAMES[row["model"]]], FIELDS.get(row["parameter"], row["parameter"]))
        assert found == float(row["value"]), row
    paper = [PRESETS[name] for name in NAMES.values()]
    assert all(preset.lora and preset.four_bit and preset.eval_every == 3 for preset in paper)  # appendix A.5
