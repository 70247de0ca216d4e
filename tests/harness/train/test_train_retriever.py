"""Training of query towers: the loss restated, negatives, what is learnt, seeds, a kill, bad input."""

import errno
import json
import math
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from trainings import DENSE, QUICK

from lm_eval_rag.harness.checkpoints.note import read_note
from lm_eval_rag.harness.common.errors import MachineError, UserError
from lm_eval_rag.harness.data.corpus import open_corpus
from lm_eval_rag.harness.retrieval import make_retriever
from lm_eval_rag.harness.retrieval.encoders import PRESETS
from lm_eval_rag.harness.train.contrastive import Part, _step, batches, documents_of, loss
from lm_eval_rag.harness.train.retriever import train_retriever
from lm_eval_rag.harness.train.rows import Example
from lm_eval_rag.harness.train.state import State
from lm_eval_rag.harness.train.static_tower import StaticEncoder
from lm_eval_rag.harness.train.train_cli import add_arguments, read_settings, train_main

torch = pytest.importorskip("torch")
pytest.importorskip("accelerate")


def test_loss_is_equation_3() -> None:
    draw = np.random.default_rng(0)
    queries, documents = draw.standard_normal((3, 4)), draw.standard_normal((5, 4))
    allowed = draw.random((3, 5)) < 0.6
    np.fill_diagonal(allowed, True)
    total = 0.0
    for i in range(3):
        scores = [math.exp(documents[j] @ queries[i] / 0.1) for j in range(5) if allowed[i, j] and j != i]
        positive = math.exp(documents[i] @ queries[i] / 0.1)
        total += -math.log(positive / (positive + sum(scores)))
    found = loss(torch.tensor(queries), torch.tensor(documents), torch.tensor(allowed), 0.1)
    assert float(found) == pytest.approx(total / 3)


def test_no_document_that_states_a_gold_answer_is_a_negative() -> None:
    group = [
        Example("a", (1, 2), frozenset({1, 2, 9})),
        Example("b", (9,), frozenset({9})),
        Example("c", (4,), frozenset({4})),
    ]
    part = Part("t", None, None, group, [], [[5], [], [6, 7]])  # type: ignore[arg-type]
    draw = np.random.default_rng(0)
    for _ in range(20):
        rows, allowed = documents_of(part, [0, 1, 2], 2, draw)
        assert rows[0] in (1, 2) and rows[1:3] == [9, 4] and len(rows) == 7 and set(rows[3:]) <= {5, 6, 7}
        assert allowed.tolist() == [
            [j == i or row not in group[i].stating for j, row in enumerate(rows)] for i in range(3)
        ]


@pytest.mark.parametrize("hard", [0, 2])
def test_negatives_do_not_depend_on_the_number_of_devices(monkeypatch: pytest.MonkeyPatch, hard: int) -> None:
    """The mean loss of two processes, each with half of the batch, is the loss of one process with all of it."""
    draw = np.random.default_rng(0)
    vectors, queries = draw.standard_normal((20, 4)), torch.tensor(draw.standard_normal((6, 4)), dtype=torch.float32)
    group = [Example(str(i), (i, i + 6), frozenset({i, i + 6, i + 1})) for i in range(6)]
    part = Part("t", None, vectors, group, [], [[12 + i] for i in range(6)])  # type: ignore[arg-type]

    def value(index: int, processes: int) -> float:
        accelerator = SimpleNamespace(process_index=index, num_processes=processes, device="cpu", gather=lambda x: x)
        accelerator.backward = lambda value: None
        optimizer = SimpleNamespace(zero_grad=lambda: None, step=lambda: None)

        def module(number: int, texts: list[str]):
            return queries[[int(text) for text in texts]]

        settings = replace(QUICK, hard=hard, temperature=0.5)
        return _step(module, accelerator, optimizer, [part], (0, [5, 3, 1, 0]), settings, (2, 7))

    assert value(0, 2) != pytest.approx(value(1, 2))
    assert (value(0, 2) + value(1, 2)) / 2 == pytest.approx(value(0, 1))


def test_an_epoch_has_every_example_once_and_batches_of_one_part() -> None:
    parts = [Part(str(n), None, None, [None] * n, [], []) for n in (5, 8)]  # type: ignore[arg-type,list-item]
    found = batches(parts, 3, 0, 0)
    assert sorted((p, row) for p, rows in found for row in rows) == [
        (p, r) for p, n in ((0, 5), (1, 8)) for r in range(n)
    ]
    assert found == batches(parts, 3, 0, 0) != batches(parts, 3, 0, 1)


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("mode", ["rgft", "ssft"])
def test_the_static_tower_learns_and_seeds_are_honoured(corpora: dict[str, str], tmp_path: Path, mode: str) -> None:
    settings = replace(QUICK, mode=mode, epochs=8)  # type: ignore[arg-type]
    results = train_retriever(settings, corpora, tmp_path / "a")
    assert results["mean"] > results["before"] or results["before"] == 1
    train_retriever(settings, corpora, tmp_path / "b")
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in "ab"]
    assert weights[0] == weights[1]
    note = read_note(tmp_path / "a")
    assert note and (note.kind, note.mode, note.corpora) == ("retriever", mode, ("made/seed0",))
    assert note.settings["epochs"] == 8 and note.results["mean"] == results["mean"]
    curves = json.loads((tmp_path / "a" / "curves.json").read_text())
    assert {"loss", "dev recall@10 made"} <= {name for row in curves for name in row}
    tuned = make_retriever("static", open_corpus("made/seed0"), adapter=str(tmp_path / "a"))
    base = make_retriever("static", open_corpus("made/seed0"), adapter="base")
    alone = "what does w1 w21 w30 ?"
    guided = f"{alone} [Entity1, w31, Entity2] leads to [Entity1, w30, Entity2]"
    assert (tuned.search([alone], 5) != base.search([alone], 5)) == (mode == "ssft")  # what was not trained stays
    assert (tuned.search([guided], 5) != base.search([guided], 5)) == (mode == "rgft")


@pytest.mark.usefixtures("no_figures")
def test_a_killed_run_goes_on_and_ends_alike(corpora: dict[str, str], tmp_path: Path) -> None:
    whole = replace(QUICK, epochs=6)
    train_retriever(whole, corpora, tmp_path / "whole")
    script = (
        "from dataclasses import replace; from pathlib import Path; import time\n"
        "from lm_eval_rag.harness.train import contrastive, state\n"
        "from lm_eval_rag.harness.train.retriever import train_retriever\n"
        "from lm_eval_rag.harness.train.settings import Settings\n"
        "kept = state.State.keep\n"
        "def slow(self, *a, now): kept(self, *a, now=now); time.sleep(30 if self.position >= (2, 0) else 0)\n"
        "state.State.keep = slow\n"
        f"train_retriever({whole!r}, {corpora!r}, Path({str(tmp_path / 'cut')!r}))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    deadline, path = time.monotonic() + 120, tmp_path / "cut" / "state.pt"
    while time.monotonic() < deadline:
        if path.is_file() and torch.load(path, weights_only=True)["position"] >= (2, 0):
            break
        time.sleep(0.2)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert path.is_file() and read_note(tmp_path / "cut") is None
    with pytest.raises(UserError, match="other settings"):
        train_retriever(replace(whole, learning_rate=0.5), corpora, tmp_path / "cut")
    train_retriever(whole, corpora, tmp_path / "cut")
    for name in ("model.safetensors", "curves.json"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not path.exists()


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("lora", [True, False])
def test_a_killed_transformer_goes_on_and_ends_alike(
    corpora: dict[str, str], encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lora: bool
) -> None:
    """By SIGKILL, after a state within the second epoch; forked, as a new process would import torch for seconds."""
    for name in ("sentence_transformers", "peft", "faiss"):
        pytest.importorskip(name)
    settings = replace(DENSE, encoder=encoder, lora=lora, epochs=2)
    train_retriever(settings, corpora, tmp_path / "whole")
    keep = State.keep

    def killed(self: State, *args, now: bool) -> None:
        keep(self, *args, now=True)
        if self.position == (1, 3):
            os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(State, "keep", killed)
        child = multiprocessing.get_context("fork").Process(
            target=train_retriever, args=(settings, corpora, tmp_path / "cut")
        )
        child.start()
        child.join(120)
    assert child.exitcode == -signal.SIGKILL
    assert torch.load(tmp_path / "cut" / "state.pt", weights_only=True)["position"] == (1, 3)
    train_retriever(settings, corpora, tmp_path / "cut")
    weights = [path.relative_to(tmp_path / "whole") for path in (tmp_path / "whole").rglob("*.safetensors")]
    assert [name.name for name in weights] == ["adapter_model.safetensors" if lora else "model.safetensors"]
    for name in [*weights, "curves.json"]:
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not (tmp_path / "cut" / "state.pt").exists()


@pytest.mark.usefixtures("no_figures")
def test_seconds_are_those_of_all_parts_of_a_run(
    corpora: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep, path = State.keep, tmp_path / "out" / "state.pt"

    def ending(self: State, *args, now: bool) -> None:
        keep(self, *args, now=now)
        if now:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(State, "keep", ending)
        train_retriever(QUICK, corpora, tmp_path / "out")
    stored = torch.load(path, weights_only=True)
    assert 0 < stored["seconds"] < 300
    torch.save({**stored, "seconds": 1000.0}, path)
    assert 1000 < train_retriever(QUICK, corpora, tmp_path / "out")["seconds"] < 1300


@pytest.mark.usefixtures("no_figures")
def test_a_folder_of_somebody_else_is_refused_and_that_of_a_run_is_not(
    corpora: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "model.safetensors").write_text("years of work")
    with pytest.raises(UserError, match=r"thesis is not empty and contains no training run. Give another --out"):
        train_retriever(QUICK, corpora, tmp_path / "thesis")
    assert (tmp_path / "thesis" / "model.safetensors").read_text() == "years of work"

    def ending(self: State, *args, now: bool) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(State, "keep", ending)  # a tower is there, but no step was saved
        train_retriever(QUICK, corpora, tmp_path / "out")
    assert (tmp_path / "out" / "model.safetensors").is_file()
    results = train_retriever(QUICK, corpora, tmp_path / "out")
    note = read_note(tmp_path / "out")
    assert note and note.results == results and note.base_tasks == ()
    assert results["rows_trained"] > results["dev_questions"]["made"] == 20


@pytest.mark.usefixtures("no_figures")
def test_a_trial_ends_within_an_epoch_and_goes_on_after_a_kill(
    corpora: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By --max-steps: its tower is measured, the rate decays over its steps, and it is never taken for a whole run."""
    rates: list[float] = []
    kept = State.keep

    def keep(self: State, module, optimizer, *, now: bool) -> None:
        rates.append(optimizer.param_groups[0]["lr"])
        kept(self, module, optimizer, now=now)

    monkeypatch.setattr(State, "keep", keep)
    monkeypatch.setattr("lm_eval_rag.harness.train.state.EVERY", 0.0)
    whole = train_retriever(replace(QUICK, epochs=1), corpora, tmp_path / "whole")
    note, per_epoch = read_note(tmp_path / "whole"), len(rates)
    assert whole["epoch"] in (0, 1) and note and "max_steps" not in note.settings and per_epoch >= 3
    rates.clear()
    trial = replace(QUICK, max_steps=per_epoch + 2)
    results = train_retriever(trial, corpora, tmp_path / "trial")
    steps = per_epoch + 2
    assert rates == pytest.approx([QUICK.learning_rate * (1 - done / steps) for done in range(steps)])
    curves = json.loads((tmp_path / "trial" / "curves.json").read_text())
    assert [row["epoch"] for row in curves if "epoch" in row] == [0, 1, round(steps / per_epoch, 4)]
    assert results["epoch"] in (0, 1, round(steps / per_epoch, 4))
    note = read_note(tmp_path / "trial")
    assert note and note.settings["max_steps"] == steps
    with pytest.raises(UserError, match="finished checkpoint of other settings"):
        train_retriever(QUICK, corpora, tmp_path / "trial")

    for ends in ((1, 1), (1, 2)):  # within the trial, and after its last step
        out = tmp_path / str(ends)

        def ending(self: State, *args, now: bool, ends=ends) -> None:
            kept(self, *args, now=now)
            if self.position == ends:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(State, "keep", ending)
            train_retriever(trial, corpora, out)
        with pytest.raises(UserError, match=f"unfinished run with other settings .max_steps={steps}, now None"):
            train_retriever(QUICK, corpora, out)
        train_retriever(trial, corpora, out)
        for name in ("model.safetensors", "curves.json"):
            assert (out / name).read_bytes() == (tmp_path / "trial" / name).read_bytes()


def test_nan_loss_stops_and_keeps_the_last_good_tower(corpora: dict[str, str], tmp_path: Path, monkeypatch) -> None:
    from lm_eval_rag.harness.train import contrastive

    real, calls = contrastive.loss, []

    def broken(*given):
        calls.append(1)
        return real(*given) * (math.nan if len(calls) > 12 else 1)

    monkeypatch.setattr(contrastive, "loss", broken)
    with pytest.raises(UserError, match=r"loss is NaN at step 12.*best tower so far, after 1 epochs.*learning-rate"):
        train_retriever(QUICK, corpora, tmp_path / "out")
    assert make_retriever("static", open_corpus("made/seed0"), adapter=str(tmp_path / "out")).search(["w1"], 1)
    assert read_note(tmp_path / "out") is None


def test_a_full_disk_is_one_line_and_the_best_tower_stays(
    corpora: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, saved = tmp_path / "out", StaticEncoder.save

    def full(self: StaticEncoder, folder: Path) -> None:
        if (out / "model.safetensors").is_file():
            (folder / "model.safetensors").write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        saved(self, folder)

    with monkeypatch.context() as patch, pytest.raises(MachineError, match=r"out cannot be written: the disk is full"):
        patch.setattr(StaticEncoder, "save", full)
        train_retriever(QUICK, corpora, out)
    assert make_retriever("static", open_corpus("made/seed0"), adapter=str(out)).search(["w1"], 1)
    assert read_note(out) is None
    assert train_retriever(QUICK, corpora, out)["epoch"] and not (out / ".saving").exists()


def test_command_line(corpora: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = []

    def build(task: str) -> str:
        asked.append(task)
        return corpora["made"]

    given = ["retriever", "--task", "made", "--out", str(tmp_path / "out"), "--epochs", "1", "--device", "cpu"]
    assert train_main([*given, "--seed", "0"], build=build) == 0
    assert asked == ["made"] and "dev recall@10" in capsys.readouterr().out
    assert (tmp_path / "out" / "curves.png").read_bytes().startswith(b"\x89PNG")
    when = (tmp_path / "out" / "rulerag.json").stat().st_mtime_ns
    assert train_main(given, build=build) == 0  # finished, with the same settings
    assert (tmp_path / "out" / "rulerag.json").stat().st_mtime_ns == when
    assert "dev recall@10" in capsys.readouterr().out
    with pytest.raises(UserError, match="finished checkpoint of other settings"):
        train_main([*given, "--seed", "1"], build=build)


@pytest.mark.parametrize(
    ("given", "rate"),
    [
        (["--encoder", "minilm"], 2e-4),
        (["--encoder", "minilm", "--mode", "ssft"], 2e-5),
        (["--encoder", "minilm", "--full"], 1e-5),  # the paper's, for all weights
        (["--encoder", "minilm", "--learning-rate", "3e-5"], 3e-5),
        (["--encoder", "dpr"], 1e-5),
        ([], 0.02),
    ],
)
def test_the_default_learning_rate_is_the_one_that_dev_prefers(given: list[str], rate: float) -> None:
    parser = ArgumentParser()
    add_arguments(parser)
    assert read_settings(parser.parse_args(["--task", "ruleqa_i", *given])).learning_rate == rate


@pytest.mark.parametrize(
    "change",
    [
        {"epochs": 0}, {"max_steps": 0}, {"temperature": 0.0}, {"learning_rate": -1.0}, {"seed": -1}, {"lora": True},
        {"rows": 0},
    ],
)  # fmt: skip
def test_settings_out_of_range(change: dict, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"not allowed|transformer"):
        train_retriever(replace(QUICK, **change), {}, tmp_path)


def pooled(kind: str, encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A preset as DPR's, of two encoders, or SimCSE's, one BERT through its pooling layer."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    folders = {"simcse": encoder}
    if kind == "dpr":
        config = transformers.DPRConfig.from_pretrained(encoder, initializer_range=0.5)
        for seed, tower in enumerate(("Question", "Context")):
            folders[tower] = str(shutil.copytree(encoder, tmp_path / tower))
            with torch.random.fork_rng():
                torch.manual_seed(seed)
                getattr(transformers, f"DPR{tower}Encoder")(config).save_pretrained(folders[tower])
    preset = PRESETS[kind]
    ours = replace(preset, model=folders.get("Question", encoder), document_model=folders.get("Context"))
    monkeypatch.setitem(PRESETS, kind, ours)
    return kind


@pytest.mark.parametrize("kind", ["mean", "simcse", "dpr"])
@pytest.mark.parametrize("lora", [True, False])
def test_transformer_towers_are_taken_by_the_dense_retriever(
    corpora, encoder: str, tmp_path: Path, lora: bool, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sentence_transformers", "peft", "faiss"):
        pytest.importorskip(name)
    if kind != "mean":
        encoder = pooled(kind, encoder, tmp_path, monkeypatch)
    settings = replace(DENSE, encoder=encoder, lora=lora)
    train_retriever(settings, corpora, tmp_path / "out")
    corpus = open_corpus("made/seed0")
    base = make_retriever("dense", corpus, model=encoder, device="cpu")
    tuned = make_retriever("dense", corpus, model=encoder, adapter=str(tmp_path / "out"), device="cpu")
    asked = ["what does w1 w21 w30 ?"]
    assert tuned.search(asked, 5) != base.search(asked, 5)
    assert (tmp_path / "out" / "adapter_config.json").is_file() == lora
    assert (tmp_path / "out" / "modules.json").is_file() == (kind == "mean" and not lora)
    # What was saved is what was measured: the dev recall of the note is that of the retriever over the checkpoint.
    from lm_eval_rag.harness.train.contrastive import dev_recall
    from lm_eval_rag.harness.train.rows import read_questions, split

    class Asked:
        def search(self, part: int, texts: list[str], k: int):
            return tuned.search(texts, k)

    _, dev = split(read_questions(corpus, 3), 20, 0)
    measured = dev_recall(Asked(), [Part("made", corpus, None, [], dev, [])])  # type: ignore[arg-type]
    note = read_note(tmp_path / "out")
    assert note and measured["made"] == pytest.approx(note.results["recalls"]["made"], abs=0.051)


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("kind", ["static", "lora", "all weights"])
def test_a_run_that_ends_within_an_epoch_goes_on_as_if_it_had_not(
    corpora, encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Also with dropout, which a model in evaluation mode does not apply."""
    for name in ("sentence_transformers", "peft", "faiss"):
        pytest.importorskip(name)
    static = replace(QUICK, epochs=2)
    settings = static if kind == "static" else replace(DENSE, encoder=encoder, lora=kind == "lora")
    train_retriever(settings, corpora, tmp_path / "whole")
    monkeypatch.setattr("lm_eval_rag.harness.train.state.EVERY", 0.0)
    keep = State.keep

    def ending(self: State, *args, now: bool) -> None:
        keep(self, *args, now=now)
        if self.position == (settings.epochs - 1, 2):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(State, "keep", ending)
        train_retriever(settings, corpora, tmp_path / "cut")
    train_retriever(settings, corpora, tmp_path / "cut")
    weights = [path.relative_to(tmp_path / "whole") for path in (tmp_path / "whole").rglob("*.safetensors")]
    assert weights
    for name in weights:
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_base_models_that_cannot_be_trained(corpora: dict[str, str], encoder: str, tmp_path: Path) -> None:
    for name in ("sentence_transformers", "peft", "faiss"):
        pytest.importorskip(name)
    with pytest.raises(UserError, match="not a local folder and not on the Hub"):
        train_retriever(replace(DENSE, encoder="no/such-model"), corpora, tmp_path / "x")
    broken = shutil.copytree(encoder, tmp_path / "unpadded")
    path = broken / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "pad_token": None}))
    with pytest.raises(UserError, match="no padding token"):
        train_retriever(replace(DENSE, encoder=str(broken)), corpora, tmp_path / "y")
