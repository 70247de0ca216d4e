"""Rows of a table on several machines: the merged page is that of one machine, and what does not fit is refused."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.reproduce import reproduce_cli
from lm_eval_rag.harness.reproduce.reproduce_cli import reproduce_main
from lm_eval_rag.harness.reproduce.running import Runner, jobs
from lm_eval_rag.harness.reproduce.table_file import read_table
from lm_eval_rag.harness.reproduce.table_shards import jobs_of_share
from lm_eval_rag.tasks.ruleqa_demo.build import build

PUBLISHED = Path(__file__).parents[3] / "leaderboards" / "published"
TABLE = """
title = "On three machines"
tasks = ["ruleqa_demo"]
metrics = ["em"]

[[row]]
name = "k{k}"
model = "rule_vote"
arguments = { k = "{k}" }
first = 6
each = { k = [2, 5] }

[[row]]
name = "random"
model = "rule_vote"
arguments = { rules = "random" }
first = 6

[[claim]]
text = "Selected rules answer better than random ones"
better = ["k5"]
worse = ["random"]
metrics = ["em"]
"""
STEPS = """
title = "With training"
tasks = ["ruleqa_demo"]
metrics = ["recall@10"]
[train.first]
what = "retriever"
task = "ruleqa_demo"
mode = "rgft"
[train.second]
what = "retriever"
task = "ruleqa_demo"
mode = "ssft"
"""
TRAINED = """
[[row]]
name = "{name}"
model = "standard_rag"
arguments = {{ generator = "dummy", retriever = "static", retriever_adapter = "{adapter}" }}
"""
FILES = ("page.json", "page.txt", "page.html")


Run = Callable[..., int]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("machines")


@pytest.fixture(scope="module")
def run(place: Path, undescribed: None) -> Iterator[Run]:
    """The command, with folders in ``place``; figures, which take most of the time, are left out."""
    file = place / "mine.toml"
    file.write_text(TABLE, encoding="utf-8")

    def run(out: str, *argv: str, table: str = str(file)) -> int:
        arguments = [table, "--out", str(place / out), *argv]
        return reproduce_main(arguments, tables=place, published=PUBLISHED, build=lambda task: build())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reproduce_cli, "why_no_figures", lambda: "no figures here")
        yield run


@pytest.fixture(scope="module")
def both(run: Run, place: Path) -> list[str]:
    """The folders of two machines that have ended."""
    assert [run(f"m{i}", "--shard", f"{i}/2") for i in (1, 2)] == [0, 0]
    return [str(place / "m1"), str(place / "m2")]


def pages(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def copied(both: list[str], folder: Path) -> Path:
    """The second machine's folder, to be changed."""
    shutil.copytree(both[1], folder)
    return folder


def changed(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_the_merged_page_is_that_of_one_machine(both: list[str], run: Run, place: Path) -> None:
    rows = Counter(path.name for folder in both for path in (Path(folder) / "runs").iterdir())
    assert rows == Counter(["k2", "k5", "random"])
    assert not (Path(both[0]) / "page.json").exists()
    assert run("merged", "--merge", *reversed(both)) == 0
    merged = pages(place / "merged")
    assert run("merged", "--merge", *both) == 0 and pages(place / "merged") == merged  # over what is there
    shutil.copytree(place / "merged" / "runs", place / "one" / "runs")
    assert run("one") == 0  # one machine finds the same runs finished, and writes its page
    assert pages(place / "one") == merged


def test_shards_give_the_scores_of_one_machine(both: list[str], run: Run, place: Path) -> None:
    assert run("scores", "--merge", *both) == 0 and run("alone") == 0
    alone, merged = (json.loads((place / name / "page.json").read_text())["page"] for name in ("alone", "scores"))
    for line in (*alone["lines"], *merged["lines"]):
        line["seconds"] = 0.0
    assert alone["lines"] == merged["lines"] and alone["claims"] == merged["claims"]


def test_machines_may_share_the_folder(both: list[str], run: Run, place: Path) -> None:
    shutil.copytree(both[0], place / "shared")
    with pytest.raises(UserError, match=r"Shards are missing: 2/2. Run --shard 2/2"):
        run("shared", "--merge")
    shutil.copytree(both[1], place / "shared", dirs_exist_ok=True)
    assert run("shared", "--merge") == 0 and run("merged_too", "--merge", *both) == 0
    assert pages(place / "shared") == pages(place / "merged_too")


def test_what_does_not_fit_is_refused(both: list[str], run: Run, place: Path) -> None:
    assert run("target", "--merge", *both) == 0
    again, other_run, lost, third = (copied(both, place / name) for name in ("again", "other_run", "lost", "third"))
    done = next((other_run / "runs").rglob("done.json"))
    changed(done, seconds=99.0)
    shutil.rmtree(lost / "runs" / "k5")
    changed(third / "shard-2-of-2.json", shards=3)
    other = place / "other.toml"
    other.write_text(TABLE.replace("first = 6", "first = 7"), encoding="utf-8")
    cases: list[tuple[list[str], dict[str, Any], str]] = [
        ([*both, str(again)], {}, r"shard 2/2 is there twice: .*m2.* and .*again"),
        (both[:1], {}, "Shards are missing: 2/2"),
        ([both[0], str(third)], {}, "overlaps .*: one of 3 shards, the other of 2"),
        (both, {"table": str(other)}, "of another table"),
        ([*both, "--limit", "3"], {}, "other rows or another --limit"),
        ([both[0], str(lost)], {}, "run of the row k5 is missing"),
        ([both[0], str(other_run)], {}, "Two different runs of the row .* overlap"),
        ([str(place / "nowhere")], {}, "No shard has ended in .*nowhere"),
        ([*both, "--shard", "1/2"], {}, "give one of the two"),
    ]
    for argv, options, message in cases:
        with pytest.raises(UserError, match=message):
            run("target", "--merge", *argv, **options)
    with pytest.raises(UserError, match="give I/N"):
        run("target", "--shard", "3/2")
    other.write_text("share_calls = true\n" + TABLE, encoding="utf-8")
    with pytest.raises(UserError, match="share_calls = true"):
        run("target", "--shard", "1/2", table=str(other))


def test_a_row_that_failed_on_a_machine_is_named_on_the_page(
    both: list[str], run: Run, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Runner, job: Any) -> bool:
        raise UserError("its key is missing")

    monkeypatch.setattr(Runner, "run", fails)
    assert run("failed", "--shard", "2/2") == 1
    assert run("all", "--merge", both[0], str(place / "failed")) == 1
    lines = json.loads((place / "all" / "page.json").read_text())["page"]["lines"]
    assert [line["status"] for line in lines] == ["run", "failed: its key is missing", "run"]


def shares_of(folder: Path, text: str, n: int) -> list[list[str]]:
    (folder / "steps.toml").write_text(text, encoding="utf-8")
    every = [job for row in read_table(folder / "steps.toml").rows for job in jobs(row)]
    return [[job.run_name for job in jobs_of_share(every, (i, n))] for i in range(1, n + 1)]


def test_rows_with_one_training_step_stay_together(tmp_path: Path) -> None:
    adapters = {"a": "@first", "b": "@second", "c": "@first", "d": "base", "e": "@second", "f": "base"}
    text = STEPS + "".join(TRAINED.format(name=name, adapter=adapter) for name, adapter in adapters.items())
    a, b, c, _, e, _ = names = [f"{name} on ruleqa_demo" for name in adapters]
    for n in (1, 2, 3, 9):
        shares = shares_of(tmp_path, text, n)
        assert sorted(name for share in shares for name in share) == names
        assert {a, c} <= set(next(share for share in shares if a in share))
        assert {b, e} <= set(next(share for share in shares if b in share))
    assert shares[4:] == [[]] * 5 and [len(share) for share in shares[:4]] == [2, 2, 1, 1]


def test_a_step_of_each_task_lets_its_rows_be_divided_by_task(tmp_path: Path) -> None:
    """A row with equal arguments on all tasks is one evaluation; with a checkpoint of each task it is one for each."""
    text = STEPS.replace('task = "ruleqa_demo"', 'task = "{task}"')
    text = text.replace('tasks = ["ruleqa_demo"]', 'tasks = ["ruleqa_f", "ruleqa_n"]')
    text += "".join(TRAINED.format(name=name, adapter=adapter) for name, adapter in (("a", "@first"), ("b", "@first")))
    shares = shares_of(tmp_path, text + TRAINED.format(name="c", adapter="base"), 3)
    assert shares == [
        ["a on ruleqa_f", "b on ruleqa_f"],
        ["a on ruleqa_n", "b on ruleqa_n"],
        ["c on ruleqa_f, ruleqa_n"],
    ]


def test_the_trainings_of_a_large_model_are_divided_by_set() -> None:
    """Table 2: each set has its own retrievers and generators, so five machines may tune the model of 7B."""
    table = read_table(PUBLISHED.parent / "reproduce" / "rulerag_table2.toml")
    every = [job for row in table.rows for job in jobs(row) if row.name.startswith("llama2_7b")]
    shares = [[job for job in jobs_of_share(every, (i, 5)) if job.steps] for i in range(1, 6)]
    assert [len({job.tasks for job in share}) for share in shares] == [1] * 5
    assert {job.tasks for share in shares for job in share} == {(task,) for task in table.rows[0].tasks}
