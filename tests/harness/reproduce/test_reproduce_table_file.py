"""Reading tables: placeholders, seeds, training steps, and errors that name what is wrong."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from lm_eval.tasks import TaskManager

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.reproduce.check_table import check_table
from lm_eval_rag.harness.reproduce.running import jobs
from lm_eval_rag.harness.reproduce.table_file import read_table
from lm_eval_rag.harness.reproduce.table_spec import Table, TrainingStep, fill

WHOLE = """
title = "T"
tasks = ["ruleqa_demo"]
metrics = ["em"]

[train.static]
what = "retriever"
task = "{task}"
mode = "{mode}"
seed = "{seed}"

[train.reader]
what = "generator"
task = ["ruleqa_demo"]
retriever_adapter = "@static"

[[row]]
name = "plain"
model = "standard_rag"
arguments = { k = 5 }

[[row]]
name = "{mode}-k{k}"
label = "tuned, {mode}"
model = "rulerag_ft"
each = { mode = ["rgft"], k = [1, 2], seed = [0, 1] }
series = "{mode}"
x = "{k}"
[row.arguments]
k = "{k}"
retriever = "static"
retriever_adapter = "@static"
generator = "tiny"
gen_pretrained = "@reader"

[[claim]]
text = "k = {k} against none"
each = { k = [1, 2] }
better = ["rgft-k{k}"]
worse = ["plain"]
metrics = ["recall@{k}"]
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "made_up.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return read_table(write(tmp_path, WHOLE))


def test_a_row_is_one_for_each_combination(table: Table) -> None:
    names = [row.name for row in table.rows]
    assert names == ["plain", *(f"rgft-k{k}/seed{seed}" for k in (1, 2) for seed in (0, 1))]
    assert {line: len(rows) for line, rows in table.lines().items()} == {"plain": 1, "rgft-k1": 2, "rgft-k2": 2}
    assert [claim.metrics for claim in table.claims] == [("recall@1",), ("recall@2",)]
    assert [row.x for row in table.rows] == [None, 1.0, 1.0, 2.0, 2.0]


def test_a_placeholder_keeps_its_type_and_a_step_is_resolved_for_the_task(table: Table) -> None:
    arguments = table.rows[2].arguments_for("ruleqa_demo")
    tower = TrainingStep("retriever", (("mode", "rgft"), ("seed", 1), ("task", "ruleqa_demo")))
    reader = TrainingStep("generator", (("retriever_adapter", tower), ("task", ("ruleqa_demo",))))
    assert arguments == {
        "k": 1, "retriever": "static", "retriever_adapter": tower, "generator": "tiny", "gen_pretrained": reader,
    }  # fmt: skip
    assert fill("{a}", {"a": 3}, "") == 3
    assert fill(["x{a}", {"b": "{a}"}, True], {"a": 3}, "") == ["x3", {"b": 3}, True]


def test_the_commands_train_first_and_name_every_option(table: Table) -> None:
    (job,) = jobs(table.rows[1])
    tower, reader, evaluation = job.commands(Path("out"))
    assert tower.startswith("lm-eval-rag train retriever --mode rgft --seed 0 --task ruleqa_demo --out checkpoints/")
    folder = tower.split()[-1]
    assert f"--retriever-adapter {folder} --task ruleqa_demo" in reader
    assert f"retriever_adapter={folder}" in evaluation and f"gen_pretrained={reader.split()[-1]}" in evaluation


def test_a_chat_and_its_batches_are_options_of_lm_eval(tmp_path: Path) -> None:
    plain, chat = WHOLE, WHOLE.replace("{ k = 5 }", "{ k = 5, batch_size = 4 }\nchat = true")
    ((before,), (job,)) = (jobs(read_table(write(tmp_path, text)).rows[0]) for text in (plain, chat))
    (command,) = job.commands(Path("out"))
    assert command.endswith("--model_args k=5 --batch_size 4 --apply_chat_template")
    assert before.commands(Path("out"))[0].endswith("--model_args k=5")
    names = {job.name(None), jobs(replace(job.row, chat=False))[0].name(None)}
    assert len(names) == 2  # a chat is another run


def test_tasks_with_other_arguments_are_other_jobs(tmp_path: Path) -> None:
    text = WHOLE.replace('tasks = ["ruleqa_demo"]', 'tasks = ["ruleqa_demo", "ruleqa_i"]')
    rows = read_table(write(tmp_path, text)).rows
    assert [job.tasks for job in jobs(rows[0])] == [("ruleqa_demo", "ruleqa_i")]
    assert [job.tasks for job in jobs(rows[1])] == [("ruleqa_demo",), ("ruleqa_i",)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "T"', 'titel = "T"', "Unknown key of made_up.toml 'titel'. Did you mean 'title'"),
        ('series = "{mode}"', 'serie = "{mode}"', "Unknown key of row"),
        ('"tuned, {mode}"', '"tuned, {mod}"', "placeholder without a value"),
        ('"@static"\ngenerator', '"@statick"\ngenerator', "Unknown training step in row 'rgft-k1/seed0': 'statick'"),
        ('what = "retriever"', 'what = "retreiver"', "'what' in training step 'static'"),
        ('worse = ["plain"]', 'worse = ["plane"]', "Unknown row in the claim 'k = 1 against none': 'plane'"),
        ('name = "{mode}-k{k}"', 'name = "plain"', "2 rows are named 'plain/seed0'"),
        ("[[row]]", "[[row]", "cannot be read"),
        ('metrics = ["em"]', 'metrics = "em"', 'made_up.toml: metrics: write a list, ["em"]'),
        ('x = "{k}"', 'x = "many"', "row 'rgft-k1': x: Input should be a valid number"),
        ('tasks = ["ruleqa_demo"]\n', "", "row 'plain': tasks: Field required"),
        ('worse = ["plain"]', "", "Claim 'k = {k} against none': worse: Field required"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(UserError) as raised:
        read_table(write(tmp_path, WHOLE.replace(old, new)))
    assert message in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nothing\.toml cannot be read"):
        read_table(tmp_path / "nothing.toml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('tasks = ["ruleqa_demo"]', 'tasks = ["ruleqa_dem"]', "Unknown task in made_up: 'ruleqa_dem'"),
        (
            '"standard_rag"',
            '"standard_ragg"',
            "row 'plain': Unknown method 'standard_ragg'. Did you mean 'standard_rag'",
        ),
        ("{ k = 5 }", "{ kk = 5 }", "row 'plain': Unknown argument 'kk'"),
        ("{ k = 5 }", '{ k = "5" }', "k='5' is not allowed"),
        ("{ k = 5 }", '{ retriever = "bm26" }', "row 'plain': Unknown retriever 'bm26'. Did you mean 'bm25'"),
        ("{ k = 5 }", '{ retriever = "static", retriever_adaptor = "base" }', "Unknown argument 'adaptor'"),
        ("{ k = 5 }", '{ generator = "tinny" }', "row 'plain': Unknown generator 'tinny'"),
        ('metrics = ["em"]', 'metrics = ["emm"]', "Unknown metric in made_up: 'emm'"),
        ('mode = "{mode}"\n', 'moody = "{mode}"\n', "A training step of the table is wrong"),
        ('mode = "{mode}"\n', 'mode = "sft"\n', "A training step of the table is wrong"),
        ("{ k = 5 }", '{ k = 5 }\npublished = { method = "No such" }', "the paper has no number of"),
    ],
)
def test_unknown_names_are_found_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, message: str
) -> None:
    ours = partial(TaskManager, include_defaults=False, include_path=str(Path(__file__).parents[3] / "tasks"))
    monkeypatch.setattr("lm_eval.tasks.TaskManager", ours)  # lm_eval's own 14,000 need not be read
    with pytest.raises(UserError) as raised:
        check_table(read_table(write(tmp_path, WHOLE.replace(old, new))), ())
    assert message in str(raised.value)
