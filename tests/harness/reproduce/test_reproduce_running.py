"""Running a table on the embedded set: resuming after a kill, samples, limits, training, and rows that fail."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.checkpoints.note import Note, write_note
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.data.corpus import open_corpus
from lm_eval_rag.harness.report.report_cli import report_main
from lm_eval_rag.harness.report.rescore import rescore
from lm_eval_rag.harness.report.run_files import read_runs
from lm_eval_rag.harness.reproduce.banks import corpus_with_part, part_of_heads
from lm_eval_rag.harness.reproduce.reproduce_cli import reproduce_main
from lm_eval_rag.harness.reproduce.running import Runner
from lm_eval_rag.harness.reproduce.table_spec import TrainingStep
from lm_eval_rag.harness.reproduce.training import Trainer
from lm_eval_rag.tasks.ruleqa_demo.build import build

SYSTEM = """
def always(question):
    raise ValueError

def answer(question):
"""
PUBLISHED = Path(__file__).parents[3] / "leaderboards" / "published"
TABLE = """
title = "On the embedded set"
tasks = ["ruleqa_demo"]
metrics = ["recall@10", "em"]

[[row]]
name = "sampled"
model = "standard_rag"
arguments = { generator = "dummy", k = 10 }
sample = { ruleqa_demo = 25 }

[[row]]
name = "vote"
model = "rule_vote"

[[row]]
name = "random"
model = "rule_vote"
arguments = { rules = "random" }

[[row]]
name = "large"
model = "rule_vote"
arguments = { k = 20 }
needs = "a GPU"

[[claim]]
text = "Selected rules answer better than random ones"
better = ["vote"]
worse = ["random"]
metrics = ["em"]
"""


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "made_up.toml").write_text(TABLE, encoding="utf-8")
    return folder


@pytest.fixture
def reproduce(tables: Path, tmp_path: Path) -> Callable[..., int]:
    def run(*argv: str) -> int:
        whole = ["made_up", "--out", str(tmp_path / "out"), *argv]
        return reproduce_main(whole, tables=tables, published=PUBLISHED, build=lambda task: build())

    return run


@pytest.fixture
def evaluated(undescribed: None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the rows that were evaluated, in order."""
    names: list[str] = []
    stock = Runner._evaluate

    def evaluate(self: Runner, job: Any, *rest: Any) -> None:
        names.append(job.row.name)
        stock(self, job, *rest)

    monkeypatch.setattr(Runner, "_evaluate", evaluate)
    return names


def test_a_table_is_run_and_its_page_written(
    reproduce: Callable[..., int], evaluated: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce() == 0
    assert evaluated == ["sampled", "vote", "random"]  # and not what needs a GPU
    out = tmp_path / "out"
    page = json.loads((out / "page.json").read_text(encoding="utf-8"))["page"]
    lines = {line["name"]: line for line in page["lines"]}
    cell = lines["sampled"]["cells"]["ruleqa_demo"]
    assert cell["questions"] == 25 and list(cell["scores"]) == ["recall@10"]  # nothing answers, so there is no em
    assert lines["large"]["status"] == "not run: needs a GPU"
    ((_, (tested,)),) = page["claims"]
    assert tested["comparisons"][0]["verdict"] == "holds"
    (run,) = read_runs([out / "runs" / "vote"])
    assert rescore(run).agrees
    assert lines["vote"]["cells"]["ruleqa_demo"]["scores"]["em"]["ours"]["mean"] == pytest.approx(
        run.reported["em,none"]
    )
    assert "page.html" in capsys.readouterr().out
    assert report_main([str(out / "runs" / "vote"), "--errors"]) == 0
    wrong = sum(value == 0 for value in run.scores["em"].values())
    assert f"ruleqa_demo    rule_vote  {wrong}" in capsys.readouterr().out
    assert reproduce() == 0 and len(evaluated) == 3  # nothing is run twice
    assert reproduce("--only", "large") == 0 and evaluated[3:] == ["large"]


def test_a_killed_table_goes_on_where_it_was(
    reproduce: Callable[..., int], evaluated: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stock = Runner._evaluate

    def killed(self: Runner, job: Any, *rest: Any) -> None:
        stock(self, job, *rest)
        if job.row.name == "vote":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Runner, "_evaluate", killed)
        reproduce("--only", "sampled", "vote")
    assert evaluated == ["sampled", "vote"]
    assert reproduce("--only", "sampled", "vote") == 0
    assert evaluated[2:] == ["vote"]  # started again, since it had not finished
    (done,) = (tmp_path / "out" / "runs" / "vote").glob("*/done.json")
    counts = json.loads(done.read_text(encoding="utf-8"))["counts"]
    served = [call for call in ("Retrieve",) if counts[call]]
    assert served and counts["journalled"] == counts["Retrieve"]  # and no finished call was made again


def test_other_arguments_or_data_are_another_run(
    reproduce: Callable[..., int], evaluated: list[str], tables: Path, tmp_path: Path
) -> None:
    reproduce("--only", "vote")
    reproduce("--only", "vote", "--limit", "5")
    path = tables / "made_up.toml"
    path.write_text(TABLE.replace('model = "rule_vote"\n\n', 'model = "rule_vote"\narguments = { k = 4 }\n\n', 1))
    reproduce("--only", "vote")
    assert evaluated == ["vote"] * 3
    for done in (tmp_path / "out").rglob("done.json"):
        content = json.loads(done.read_text(encoding="utf-8"))
        done.write_text(json.dumps({**content, "fingerprint": "of other weights"}), encoding="utf-8")
    reproduce("--only", "vote")
    assert evaluated == ["vote"] * 4


def counts(out: Path, row: str) -> dict[str, int]:
    (done,) = (out / "runs" / row).glob("*/done.json")
    counted: dict[str, int] = json.loads(done.read_text(encoding="utf-8"))["counts"]
    return counted


SHARING = """
tasks = ["ruleqa_demo"]
share_calls = true

[[row]]
name = "first"
model = "standard_rag"
arguments = { generator = "dummy", k = 10 }

[[row]]
name = "shorter"
model = "standard_rag"
arguments = { generator = "dummy", k = 10, max_prompt_tokens = 90 }
"""


@pytest.mark.parametrize("shared", ["true", "false"])
def test_rows_reuse_each_others_calls_where_the_table_says_so(
    shared: str,
    reproduce: Callable[..., int],
    evaluated: list[str],
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    (tables / "made_up.toml").write_text(SHARING.replace("true", shared), encoding="utf-8")
    assert reproduce("--limit", "5") == 0
    first, shorter = (counts(tmp_path / "out", row) for row in ("first", "shorter"))
    assert first["journalled"] == 0 and first["Retrieve"] == first["Generate"] == 5
    assert shorter["journalled"] == (5 if shared == "true" else 0)  # its lists, but not its prompts
    assert (tmp_path / "out" / "calls.sqlite").exists() == (shared == "true")


def test_a_row_that_is_a_chat_says_so_to_its_model(
    reproduce: Callable[..., int], tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chats = []

    def evaluate(self: Runner, job: Any, model: Any, *rest: Any) -> None:
        chats.append(model.generator.chat)
        raise UserError("enough")

    monkeypatch.setattr(Runner, "_evaluate", evaluate)
    (tables / "made_up.toml").write_text(
        TABLE.replace('model = "standard_rag"\n', 'model = "standard_rag"\nchat = true\n', 1), encoding="utf-8"
    )
    assert reproduce() == 1
    assert chats == [True, False, False]


def test_the_models_of_a_row_make_room_for_the_next(
    reproduce: Callable[..., int], evaluated: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    after: list[int] = []
    monkeypatch.setattr("lm_eval_rag.harness.reproduce.running.release_all", lambda: after.append(len(evaluated)))
    assert reproduce("--only", "vote", "random") == 0
    assert after == [1, 2]


def test_a_dry_run_runs_nothing(
    reproduce: Callable[..., int], evaluated: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce("--dry-run", "--only", "*") == 0
    text = capsys.readouterr().out
    assert "# large: needs a GPU" in text and "lm_eval run --model rule_vote --tasks ruleqa_demo" in text
    assert not evaluated and not (tmp_path / "out").exists()


def test_a_page_alone_runs_nothing(
    reproduce: Callable[..., int], evaluated: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce("--page-only") == 0
    assert "not run" in capsys.readouterr().out and "not run" in (tmp_path / "out" / "page.txt").read_text()
    assert not evaluated and not (tmp_path / "out" / "runs").exists()


def test_the_printed_commands_read_samples_that_a_printed_command_writes(
    reproduce: Callable[..., int], evaluated: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reproduce("--dry-run", "--only", "sampled")
    write, command = (line for line in capsys.readouterr().out.splitlines() if not line.startswith("#"))
    out = str(tmp_path / "out")
    assert write == f"lm-eval-rag reproduce made_up --write-samples --out {out} --only sampled"
    assert reproduce(*shlex.split(write)[3:]) == 0 and not evaluated  # made_up and --out are given by the fixture
    path = Path(command.split("--samples ")[1])
    assert capsys.readouterr().out == f"{path}\n"
    samples = json.loads(path.read_text(encoding="utf-8"))
    assert len(samples["ruleqa_demo"]) == 25
    assert reproduce("--only", "sampled") == 0
    (run,) = (tmp_path / "out" / "runs" / "sampled").glob("*/samples.json")
    assert json.loads(run.read_text(encoding="utf-8")) == samples


def test_a_row_that_fails_says_why_and_the_others_go_on(
    reproduce: Callable[..., int], evaluated: list[str], tables: Path, tmp_path: Path
) -> None:
    broken = TABLE.replace(
        'arguments = { rules = "random" }', 'arguments = { retriever = "static", retriever_adapter = "x/y" }'
    )
    (tables / "made_up.toml").write_text(broken, encoding="utf-8")
    assert reproduce("--only", "random", "vote", "--limit", "5") == 1
    assert evaluated == ["vote", "random"]
    assert "failed: The query tower" in (tmp_path / "out" / "page.txt").read_text(encoding="utf-8").replace("\n  ", " ")


def test_rows_that_train_can_be_left_out(reproduce: Callable[..., int], tables: Path, evaluated: list[str]) -> None:
    trained = TABLE.replace(
        'arguments = { rules = "random" }', 'arguments = { retriever = "static", retriever_adapter = "@tower" }'
    )
    step = '[train.tower]\nwhat = "retriever"\ntask = "{task}"\nencoder = "static"\nmode = "ssft"\n'
    (tables / "made_up.toml").write_text(trained + step, encoding="utf-8")
    assert reproduce("--without-training", "--limit", "5") == 0
    assert evaluated == ["sampled", "vote"]


def test_unknown_tables_and_rows_are_named(reproduce: Callable[..., int], tables: Path) -> None:
    with pytest.raises(UserError, match=r"Unknown row 'votes'\. Did you mean 'vote'"):
        reproduce("--only", "votes")
    with pytest.raises(UserError, match=r"Unknown table 'made_down'\. Did you mean 'made_up'"):
        reproduce_main(["made_down"], tables=tables, published=PUBLISHED, build=lambda task: build())
    with pytest.raises(UserError, match="--limit=0"):
        reproduce("--limit", "0")


def test_a_training_step_is_run_once_and_its_rules_are_a_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    monkeypatch.setattr("lm_eval_rag.harness.reproduce.training.cache_dir", lambda: tmp_path)
    trainer = Trainer(lambda task: build())
    options = (("dev", 10), ("epochs", 1), ("eval_every", 1), ("hard", 0), ("task", "ruleqa_demo"))
    first = trainer.checkpoint(TrainingStep("retriever", options))
    when = (first / "rulerag.json").stat().st_mtime_ns
    assert trainer.checkpoint(TrainingStep("retriever", options)) == first
    assert (first / "rulerag.json").stat().st_mtime_ns == when
    part = trainer.checkpoint(TrainingStep("retriever", options, bank="1/2"))
    assert part != first
    assert json.loads((part / "rulerag.json").read_text())["corpora"] == [f"{build()}-rules-1of2"]


def test_a_training_step_that_was_interrupted_is_resumed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A generator's folder has a note from its first good epoch on, which says that the training goes on."""
    monkeypatch.setattr("lm_eval_rag.harness.reproduce.training.cache_dir", lambda: tmp_path)
    trained: list[str] = []

    def train(argv: list[str], build: Callable[[str], str]) -> None:
        folder = Path(argv[-1])
        folder.mkdir(parents=True, exist_ok=True)
        write_note(folder, Note("generator", "rgft", results={"finished": bool(trained)}))
        trained.append(argv[0])
        if len(trained) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr("lm_eval_rag.harness.reproduce.training.train_cli.train_main", train)
    trainer, step = Trainer(lambda task: build()), TrainingStep("generator", (("task", "ruleqa_demo"),))
    with pytest.raises(KeyboardInterrupt):
        trainer.checkpoint(step)
    assert [trainer.checkpoint(step) for _ in range(2)] == [trainer.folder(step)] * 2
    assert trained == ["generator", "generator"]


def test_unscored_questions_are_said_and_asked_again(
    undescribed: None, tables: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    for name in ("answer", "always"):
        arguments = f'arguments = {{ function = "{file}:{name}" }}'
        row = f'\n[[row]]\nname = "{name}"\nmodel = "external"\n{arguments}\n'
        path = tables / "made_up.toml"
        path.write_text(path.read_text(encoding="utf-8") + row, encoding="utf-8")
    file.write_text(f"{SYSTEM}    if len(question) % 2: raise ValueError\n    return 'x'\n", encoding="utf-8")

    def run() -> tuple[int, str]:
        argv = ["made_up", "--out", str(tmp_path / "out"), "--only", "answer", "always", "--limit", "12"]
        status = reproduce_main(argv, tables=tables, published=PUBLISHED, build=lambda task: build())
        return status, " ".join(capsys.readouterr().out.split())

    status, text = run()
    (odd,) = (count for count in range(1, 12) if f"answer {count}, always 12." in text)
    assert status == 3 and f"0.0, {odd} unscored" in text
    file.write_text(f"{SYSTEM}    return 'x'\n", encoding="utf-8")
    status, text = run()
    assert status == 3 and "Questions without a score: always 12." in text
    file.write_text(f"{SYSTEM}    return 'x'\n".replace("raise ValueError", "return 'x'"), encoding="utf-8")
    status, text = run()
    assert status == 0 and "without a score" not in text


def test_parts_of_the_rule_bank_are_disjoint_and_make_it_up() -> None:
    whole = open_corpus(build()).rules()
    by_head = part_of_heads(whole, 3)
    parts = [open_corpus(corpus_with_part(build(), f"{i}/3")).rules() for i in (1, 2, 3)]
    assert sorted(rule.text for one in parts for rule in one) == sorted(rule.text for rule in whole)
    for i, one in enumerate(parts):
        assert {by_head[rule.head] for rule in one} == {f"{i + 1}/3"}
    largest = max(sum(rule.head == head for rule in whole) for head in by_head)
    assert max(map(len, parts)) - min(map(len, parts)) <= largest
    for wrong in ("4/3", "0/3", "x", "1"):
        with pytest.raises(UserError, match="is not allowed"):
            corpus_with_part(build(), wrong)


def test_a_part_that_was_not_written_to_its_end_is_written_again() -> None:
    id_ = corpus_with_part(build(), "1/5")
    rules = open_corpus(id_).rules()
    folder = cache_dir() / id_
    (folder / "meta.json").unlink()
    (folder / "rules.parquet").write_bytes(b"half")
    assert corpus_with_part(build(), "1/5") == id_ and open_corpus(id_).rules() == rules
