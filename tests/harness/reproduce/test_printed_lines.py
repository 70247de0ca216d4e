"""What the lines of ``--dry-run`` have done is not lost: ``reproduce`` takes over their trainings and evaluations."""

from __future__ import annotations

import json
import shlex
import shutil
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.checkpoints.note import Note, read_note, write_note
from lm_eval_rag.harness.reproduce import reproduce_cli
from lm_eval_rag.harness.reproduce.reproduce_cli import reproduce_main
from lm_eval_rag.harness.reproduce.table_file import read_table
from lm_eval_rag.harness.reproduce.training import Trainer, by_hand_folder
from lm_eval_rag.harness.train import generator_cli, train_cli
from lm_eval_rag.harness.train.generator import recorded
from lm_eval_rag.tasks.ruleqa_demo.build import build

pytest.importorskip("accelerate")

PUBLISHED = Path(__file__).parents[3] / "leaderboards" / "published"
TABLE = """
tasks = ["ruleqa_demo"]
metrics = ["recall@10"]
first = 6

[train.tower]
what = "retriever"
task = "{task}"
mode = "rgft"
rows = 40
dev = 10
epochs = 2
hard = 0
device = "cpu"

[train.reader]
what = "generator"
task = "{task}"
base = "tiny"
mode = "rgft"
rows = 8
retriever = "static"
retriever_adapter = "@tower"

[[row]]
name = "plain"
model = "standard_rag"
arguments = { generator = "dummy" }

[[row]]
name = "tower"
model = "standard_rag"
arguments = { generator = "dummy", retriever = "static", retriever_adapter = "@tower", batch_size = 2 }
"""
READER = """
[[row]]
name = "reader"
model = "rulerag_ft"
arguments = { retriever = "static", retriever_adapter = "@tower", gen_pretrained = "@reader" }
"""


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undescribed: None) -> None:
    """An empty folder with an empty cache, so that no journal of another test serves these."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reproduce_cli, "why_no_figures", lambda: "no figures here")
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    Path("t.toml").write_text(TABLE, encoding="utf-8")


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The arguments of all trainings; generators are not trained, only their notes are written."""
    calls: list[list[str]] = []
    whole = train_cli.train_main

    def train(argv: list[str], build: Callable[[str], str]) -> int:
        calls.append(argv)
        if argv[0] == "retriever":
            return whole(argv, build=build)
        write_generator(argv)
        return 0

    monkeypatch.setattr(train_cli, "train_main", train)
    return calls


def write_generator(argv: list[str], **changes: Any) -> None:
    """The folder of a generator that was trained with these arguments."""
    parser = ArgumentParser()
    generator_cli.add_arguments(parser)
    given = parser.parse_args(argv[1:])
    corpora = {task: build() for task in given.task}
    settings = recorded(generator_cli.read_settings(given), generator_cli.read_setup(given), corpora)
    note = {"settings": json.loads(json.dumps(settings)), "corpora": (build(),), "results": {"finished": True}}
    given.out.mkdir(parents=True, exist_ok=True)
    write_note(given.out, Note("generator", "rgft", **{**note, **changes}))


def reproduce(*argv: str) -> int:
    out = str(Path("reproduced/t").absolute())  # lm_eval may close a trace when another folder is current
    return reproduce_main(
        ["./t.toml", "--out", out, *argv], tables=Path(), published=PUBLISHED, build=lambda task: build()
    )


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> list[list[str]]:
    """The words of each printed line."""
    capsys.readouterr()
    assert reproduce("--dry-run", *argv) == 0
    return [shlex.split(line) for line in capsys.readouterr().out.splitlines() if not line.startswith("#")]


def run_by_hand(words: list[str]) -> None:
    if words[:2] == ["lm-eval-rag", "train"]:
        assert train_cli.train_main(words[2:], build=lambda task: build()) == 0
        return
    from lm_eval._cli.harness import HarnessCLI

    import lm_eval_rag

    lm_eval_rag.register()
    cli = HarnessCLI()
    cli.execute(cli._parser.parse_args(words[1:]))


def counts(row: str) -> dict[str, int]:
    (done,) = Path("reproduced/t/runs", row).glob("*/done.json")
    counted: dict[str, int] = json.loads(done.read_text(encoding="utf-8"))["counts"]
    return counted


def step_of(row: str, argument: str) -> Any:
    (found,) = [own for own in read_table(Path("t.toml")).rows if own.name == row]
    return found.arguments_for("ruleqa_demo")[argument]


def test_reproduce_takes_over_what_the_lines_have_done(
    trained: list[list[str]], capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the training nor a single call of the evaluation is made again."""
    for words in printed(capsys, "--only", "tower"):
        run_by_hand(words)
    assert len(trained) == 1 and trained[0][-1].startswith("checkpoints/retriever-")
    assert reproduce("--page-only") == 0 and "Not run, or only partly: plain, tower." in capsys.readouterr().out
    assert "It has them after `lm-eval-rag reproduce ./t.toml --only tower`" in caplog.text
    caplog.clear()
    assert reproduce() == 0 and "single lines" not in caplog.text
    assert len(trained) == 1 and not Path("cache/checkpoints").exists()
    own, plain = counts("tower"), counts("plain")
    assert own["Retrieve"] and own["journalled"] == own["Retrieve"] + own["Generate"]
    assert not plain["journalled"]  # which no line has run
    lines = json.loads(Path("reproduced/t/page.json").read_text())["page"]["lines"]
    assert [line["status"] for line in lines] == ["run", "run"]
    done = next(Path("reproduced/t/runs/tower").glob("*/done.json")).stat().st_mtime_ns
    assert reproduce() == 0 and next(Path("reproduced/t/runs/tower").glob("*/done.json")).stat().st_mtime_ns == done


def test_a_tower_of_the_lines_serves_a_generator_that_they_have_not_trained(
    trained: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("t.toml").write_text(TABLE + READER, encoding="utf-8")
    for words in printed(capsys, "--only", "tower"):
        if words[0] == "lm-eval-rag":
            run_by_hand(words)
    trainer, reader = Trainer(lambda task: build()), step_of("reader", "gen_pretrained")
    tower = trainer.folder(step_of("tower", "retriever_adapter"))
    generator = trainer.checkpoint(reader)
    assert [argv[0] for argv in trained] == ["retriever", "generator"]
    assert trained[1][trained[1].index("--retriever-adapter") + 1] == str(tower)
    by_hand = Path(by_hand_folder(step_of("tower", "retriever_adapter")))
    files = sorted(path.name for path in by_hand.iterdir())
    assert files == sorted(path.name for path in tower.iterdir())
    assert all((by_hand / name).read_bytes() == (tower / name).read_bytes() for name in files)
    assert trainer.checkpoint(reader) == generator and len(trained) == 2


def test_a_generator_of_the_lines_is_taken_over_with_its_tower(
    trained: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("t.toml").write_text(TABLE + READER, encoding="utf-8")
    for words in printed(capsys, "--only", "reader"):
        if words[0] == "lm-eval-rag":
            run_by_hand(words)
    trainer, reader = Trainer(lambda task: build()), step_of("reader", "gen_pretrained")
    (row,) = [own for own in read_table(Path("t.toml")).rows if own.name == "reader"]
    options = trainer.resolved(row.arguments_for("ruleqa_demo"))
    tower = by_hand_folder(step_of("reader", "retriever_adapter"))
    assert (options["gen_pretrained"], options["retriever_adapter"]) == (by_hand_folder(reader), tower)
    assert len(trained) == 2
    copied = trainer.checkpoint(reader)  # as another row takes it, of which the lines have not trained everything
    note = read_note(copied)
    assert len(trained) == 2 and note and note.settings["retriever"] == ["static", {"adapter": tower}]


@pytest.mark.parametrize("other", ["settings", "corpora", "unfinished", "tower of its own", "no tower", "seed"])
def test_what_differs_is_not_taken_over(
    trained: list[list[str]], capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, other: str
) -> None:
    Path("t.toml").write_text(TABLE + READER, encoding="utf-8")
    lines = printed(capsys, "--only", "reader")
    for words in lines:
        if words[0] == "lm-eval-rag":
            run_by_hand(words)
    trainer, reader = Trainer(lambda task: build()), step_of("reader", "gen_pretrained")
    tower, folder = step_of("reader", "retriever_adapter"), Path(by_hand_folder(reader))
    note = read_note(folder)
    assert note and trainer.made_by_hand(reader)
    argv = next(words[2:] for words in lines if words[2] == "generator")
    if other == "settings":
        write_generator(argv, settings={**note.settings, "rows": 9})
    elif other == "seed":
        write_generator([*argv, "--seed", "1"])
    elif other == "corpora":
        write_generator(
            argv, corpora=("ruleqa_demo/older",), settings={**note.settings, "corpora": {"ruleqa_demo": "o"}}
        )
    elif other == "unfinished":
        write_generator(argv, results={"finished": False})
    elif other == "no tower":
        shutil.rmtree(by_hand_folder(tower))
    else:  # trained by reproduce before, and not the one of the lines
        ours = trainer.checkpoint(tower)
        weights = bytearray((ours / "model.safetensors").read_bytes())
        weights[-1] ^= 1
        (ours / "model.safetensors").write_bytes(weights)
    assert trainer.made_by_hand(reader) == (other == "tower of its own")
    before = len(trained)
    trainer.checkpoint(reader)
    assert [argv[0] for argv in trained[before:]] == (["retriever"] if other == "no tower" else []) + ["generator"]
    assert f"{folder} is not used" in caplog.text


def test_a_dry_run_first_says_which_command_fills_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    reproduce("--dry-run")
    head, command, *rest = capsys.readouterr().out.splitlines()
    assert head.startswith("#") and "writes the page" in head
    out = str(Path("reproduced/t").absolute())
    assert shlex.split(command) == ["#", "lm-eval-rag", "reproduce", "./t.toml", "--only", "*", "--out", out]
    assert any("do not fill the page" in line for line in rest)
    given = ["--only", "tower", "plain", "--limit", "3", "--max-steps", "5", "--out", "o", "--shard", "1/2"]
    reproduce("--dry-run", *given, "--without-training")
    words = shlex.split(capsys.readouterr().out.splitlines()[1])[4:]
    assert words == ["--only", "tower", "plain", "--without-training", *given[3:]]


def test_a_trial_trains_a_few_steps_and_never_passes_for_the_whole(
    trained: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert reproduce("--limit", "3", "--max-steps", "1") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "A trial, not a result: every training of a row ended after 1 steps (--max-steps)." in text
    (trial,) = Path("cache/checkpoints").glob("*/*/rulerag.json")
    assert json.loads(trial.read_text())["settings"]["max_steps"] == 1
    assert reproduce("--limit", "3", "--max-steps", "1") == 0 and len(trained) == 1
    lines = printed(capsys, "--only", "tower", "--max-steps", "1")
    assert lines[0][lines[0].index("--max-steps") + 1] == "1"
    assert reproduce("--limit", "3", "--page-only") == 0
    page = json.loads(Path("reproduced/t/page.json").read_text())["page"]
    assert [line["status"] for line in page["lines"]] == ["run", "not run"]
    assert reproduce("--limit", "3") == 0 and len(trained) == 2
    assert "--max-steps" in trained[0] and "--max-steps" not in trained[1]
    assert len(list(Path("cache/checkpoints").glob("*/*/rulerag.json"))) == 2


def test_a_trial_shortens_every_step_and_says_so_of_its_rows() -> None:
    from lm_eval_rag.harness.reproduce.trial import trial_of

    Path("t.toml").write_text((TABLE + READER).replace("rows = 8\n", "rows = 8\nmax_steps = 2\n"), encoding="utf-8")
    table = read_table(Path("t.toml"))
    plain, tower, reader = trial_of(table, 5).rows
    assert plain == table.rows[0]
    assert "ended after 5 steps" in tower.differs and "ended after 5 steps" in reader.differs
    options = dict(reader.arguments_for("ruleqa_demo")["gen_pretrained"].options)
    assert options["max_steps"] == 2 and dict(options["retriever_adapter"].options)["max_steps"] == 5
