"""Fine-tuning a tiny generator on ruleqa_demo: what is learnt, what stays, going on after a kill, bad input."""

import errno
import json
import logging
import multiprocessing
import shutil
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from trainings import PRESET, settings_of, train, weights

from lm_eval_rag.harness.checkpoints.note import Note, read_note, write_note
from lm_eval_rag.harness.common.errors import MachineError, UserError
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import EMBEDDED, ModelSpec
from lm_eval_rag.harness.plugin.arguments import read_arguments
from lm_eval_rag.harness.train import generator as generator_module
from lm_eval_rag.harness.train import generator_model, generator_trainer
from lm_eval_rag.harness.train.answer_loss import answer_loss
from lm_eval_rag.harness.train.generator import train_generator
from lm_eval_rag.harness.train.generator_model import Loaded
from lm_eval_rag.harness.train.generator_outcome import Outcome
from lm_eval_rag.harness.train.generator_trainer import dev_scores, is_stuck, per_device
from lm_eval_rag.methods.rulerag_ft import rulerag_ft
from lm_eval_rag.tasks.ruleqa_demo.build import build as build_demo

torch = pytest.importorskip("torch")
pytest.importorskip("trl")


@pytest.fixture(scope="module")
def done(little_llama, tmp_path_factory):
    """A finished run in full, whose rows have other names in the second epoch."""
    out = tmp_path_factory.mktemp("done") / "run"
    return out, train(little_llama, out, names="fresh")


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    """Only ``done``, which is there before, draws its curves: a picture takes longer than the epoch that it shows."""
    monkeypatch.setattr("lm_eval_rag.harness.train.curves.find_spec", lambda name: None)


# --- what is learnt


def test_it_learns_its_rows_by_heart(little_llama, tmp_path):
    train(little_llama, tmp_path / "run", epochs=20, eval_every=20, rows=4, learning_rate=0.02)
    losses = [row["loss"] for row in json.loads((tmp_path / "run" / "curves.json").read_text()) if "loss" in row]
    assert len(losses) == 20 and losses[-1] < 0.75 * losses[0]


@pytest.mark.parametrize("names", ["original", "fresh"])
def test_each_epoch_has_every_row_once_and_other_names_if_asked(little_llama, tmp_path, monkeypatch, names):
    from trl import SFTTrainer

    batches, step = [], SFTTrainer.training_step

    def training_step(self, model, inputs, *rest):
        batches.append([tuple(ids.tolist()) for ids in inputs["input_ids"]])
        return step(self, model, inputs, *rest)

    monkeypatch.setattr(SFTTrainer, "training_step", training_step)
    train(little_llama, tmp_path / "run", names=names)
    first, second = {*batches[0], *batches[1]}, {*batches[2], *batches[3]}
    assert len(batches) == 4 and len(first) == len(second) == 8
    assert (first == second) is (names == "original")


# --- what stays


def test_the_folder_is_a_transformers_folder_with_its_history(done, little_llama):
    out, results = done
    note = read_note(out)
    assert (note.kind, note.mode, note.prompt, note.seed) == ("generator", "rgft", "ruleqa-1", 0)
    assert note.tasks == ("ruleqa_demo",) and note.corpora[0].startswith("ruleqa_demo/")
    assert note.settings["preset"]["learning_rate"] == 5e-3 and note.settings["retriever"] == ["bm25", {}]
    assert note.settings["parameters"] == {"documents": 2, "n_rules": 1} and note.results == results
    assert results["rows"] == 8 and results["dev_rows"] == 3 and results["dropped_documents"] == 0
    curve = json.loads((out / "curves.json").read_text())
    assert [row["epoch"] for row in curve if "dev_em" in row] == [0, 1, 2]
    assert not (out / "state").exists()
    assert any(
        not torch.equal(a, b) for a, b in zip(weights(out).values(), weights(little_llama).values(), strict=True)
    )
    answers = LMGenerator(ModelSpec("hf", {"pretrained": str(out)}, device="cpu")).generate(["a"], Decoding(), [0])
    assert isinstance(answers[0], str)


def test_the_learning_rate_is_the_one_that_is_set(done):
    """Linear decay after one step of warm-up: at step i > 1 of n the rate is (n - i + 1) / (n - 1) of the peak."""
    curve = json.loads((done[0] / "curves.json").read_text())
    rates = {row["step"]: row["learning_rate"] for row in curve if "learning_rate" in row}
    steps = max(row["step"] for row in curve)
    assert len(rates) > 1
    for step, rate in rates.items():
        assert rate == pytest.approx(PRESET.learning_rate * (steps - step + 1) / (steps - 1) if step > 1 else 0.0)


def test_the_picture_of_the_curves(done):
    pytest.importorskip("matplotlib")
    assert (done[0] / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_a_finished_run_is_not_repeated_and_another_is_refused(done, little_llama, monkeypatch):
    out, results = done
    with pytest.raises(UserError, match=r"contains a run with other settings \(seed\).*another --out"):
        train(little_llama, out, seed=1, names="fresh")
    monkeypatch.setattr(generator_model, "_base", None)  # not even loaded
    assert train(little_llama, out, names="fresh") == results


def test_a_folder_of_somebody_else_is_refused(little_llama, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match=r"is not empty and contains no training run"):
        train(little_llama, tmp_path)


def test_the_best_of_equals_is_the_first(done):
    out, results = done
    curve = [row for row in json.loads((out / "curves.json").read_text()) if row.get("dev_em") is not None]
    best = max(row["dev_em"] for row in curve if row["step"])
    assert results["dev_em"] == best
    assert results["step"] == next(row["step"] for row in curve if row["step"] and row["dev_em"] == best)


def test_the_dev_score_is_exact_match_in_percent_and_the_best_checkpoint_stays(little_llama, tmp_path, monkeypatch):
    looked, kept = [], []

    def answer(self, rows, decoding):
        looked.append(decoding)
        right = {0: 0, 1: 2, 2: 1}[len(looked) - 1]  # of three, at each look
        return [row.question.answers[0].upper() if i < right else "Nobody" for i, row in enumerate(rows)]

    monkeypatch.setattr(Loaded, "answer", answer)
    monkeypatch.setattr(Outcome, "keep", lambda self, model, *rest: kept.append(rest[-1]["dev_em"]))
    results = train(little_llama, tmp_path / "run")
    assert (results["dev_em_before"], results["dev_em"], results["epoch"]) == (0, 66.67, 1)
    assert kept == [66.67] and looked[0].max_tokens == 32 and looked[0].stop == ("\n",)


def test_every_dev_question_counts_the_same():
    """A task of two questions does not weigh as much as one of eight."""
    hits = [("small", 1.0), ("large", 0.0), ("small", 0.0), *[("large", 1.0)] * 2, *[("large", 0.0)] * 5]
    assert dev_scores(hits) == (30.0, {"small": 50.0, "large": 25.0})  # and not 37.5, the mean over tasks
    assert dev_scores(reversed(hits)) == dev_scores(hits)


@pytest.mark.parametrize("lora", [False, True])
def test_logits_of_prompts_are_not_computed(little_llama, tmp_path, monkeypatch, lora):
    """With an adapter or without: the loss that computes logits of the answers alone takes every step."""
    losses = []
    monkeypatch.setattr(
        generator_trainer, "answer_loss", lambda *given: losses.append(answer_loss(*given)) or losses[-1]
    )
    train(little_llama, tmp_path / "run", lora=lora, epochs=1)
    assert len(losses) == 2  # eight rows in steps of four


def test_an_adapter_leaves_the_base_as_it_is_and_names_it(little_llama, tmp_path):
    before = weights(little_llama)
    train(little_llama, tmp_path / "run", lora=True, epochs=1)
    assert all(torch.equal(value, before[name]) for name, value in weights(little_llama).items())
    adapter = weights(tmp_path / "run")
    assert all("lora" in name for name in adapter) and any(
        value.abs().max() > 0 for n, value in adapter.items() if "_B" in n
    )
    config = json.loads((tmp_path / "run" / "adapter_config.json").read_text())
    assert (config["base_model_name_or_path"], config["r"], config["lora_alpha"]) == (str(little_llama), 8, 32)
    generator = LMGenerator(ModelSpec("hf", {"peft": str(tmp_path / "run")}, device="cpu"))  # the base is named by it
    assert isinstance(generator.generate(["a"], Decoding(), [0])[0], str) and generator.prompt_version == "ruleqa-1"


def test_four_bits(wider_llama, tmp_path):
    results = train(wider_llama, tmp_path / "run", lora=True, four_bit=True, epochs=1, rows=4, dtype="bfloat16")
    assert results["step"] == 1 and all("lora" in name for name in weights(tmp_path / "run"))


# --- kills and numbers that are none


def test_a_killed_run_goes_on_and_ends_as_if_it_had_not_been(little_llama, done, tmp_path, monkeypatch):
    out, looks = tmp_path / "run", []

    def hang(self, rows, decoding):
        looks.append(1)
        if len(looks) == 3:  # in the second epoch, after the first was saved
            time.sleep(600)
        return ["" for _ in rows]

    with monkeypatch.context() as patch:
        patch.setattr(Loaded, "answer", hang)
        process = multiprocessing.get_context("fork").Process
        child = process(target=train, args=(little_llama, out), kwargs={"names": "fresh"})
        child.start()
        end = time.monotonic() + 120
        while not list(out.glob("state/checkpoint-2/trainer_state.json")) and time.monotonic() < end:
            time.sleep(0.05)
        child.kill()
        child.join()
    torn = out / "state" / "checkpoint-9"
    torn.mkdir()
    results = train(little_llama, out, names="fresh")
    assert not torn.exists() and results["finished"] and results["rows"] == 8
    curve = json.loads((out / "curves.json").read_text())
    assert [row["epoch"] for row in curve if "dev_em" in row] == [0, 1, 2]  # the first two from before the kill
    unbroken = json.loads((done[0] / "curves.json").read_text())
    assert [row["loss"] for row in curve if "loss" in row] == [row["loss"] for row in unbroken if "loss" in row]
    for name, value in weights(out).items():
        assert torch.equal(value, weights(done[0])[name])


def test_a_loss_that_is_no_number_stops_it_and_the_last_good_checkpoint_stays(little_llama, tmp_path, monkeypatch):
    keep = Outcome.keep

    def keep_and_spoil(self, model, *rest):
        keep(self, model, *rest)
        with torch.no_grad():
            next(model.parameters()).fill_(float("nan"))

    monkeypatch.setattr(Outcome, "keep", keep_and_spoil)
    with pytest.raises(UserError, match=r"Training stops, because the loss at step 3 is nan.*lower --learning-rate"):
        train(little_llama, tmp_path / "run")
    assert all(value.isfinite().all() for value in weights(tmp_path / "run").values())
    assert read_note(tmp_path / "run").results["finished"] is False


def test_a_trial_ends_after_its_steps_and_is_evaluated(little_llama, tmp_path):
    results = train(little_llama, tmp_path / "run", max_steps=1, rows=4, dev=1)
    assert results["step"] == 1 and results["finished"] and weights(tmp_path / "run")
    assert read_note(tmp_path / "run").settings["max_steps"] == 1
    assert not {"max_steps", "patience"} & set(settings_of("tiny").recorded())  # older runs can be resumed


@pytest.mark.parametrize(
    ("scores", "patience", "stuck"),
    [
        ([10, 9, 9], 2, True),
        ([10, 9, 10], 2, True),  # as good is not better
        ([10, 9, 11], 2, False),
        ([10, 9], 2, False),
        ([9, 10, 9], 2, False),
        ([10, 9, 9, 9], None, False),
    ],
)
def test_training_ends_after_evaluations_without_a_better_score(scores, patience, stuck):
    assert is_stuck(scores, patience) == stuck


def test_a_step_has_the_same_number_of_prompts_on_any_number_of_devices():
    for devices, accumulate in ((1, 1), (1, 8), (4, 2), (2, 2)):
        assert per_device(8, devices, accumulate) * devices * accumulate == 8
    for devices, accumulate in ((4, 8), (3, 1), (1, 16)):
        with pytest.raises(UserError, match=f"--batch-size 8 cannot be divided among {devices} devices"):
            per_device(8, devices, accumulate)


def test_a_full_disk_is_one_line_and_loses_nothing(little_llama, tmp_path, monkeypatch):
    keep, out = Outcome.keep, tmp_path / "run"

    def full(self, *rest):
        if read_note(out):  # the first checkpoint is written
            raise OSError(errno.ENOSPC, "No space left on device")
        keep(self, *rest)

    with (
        monkeypatch.context() as patch,
        pytest.raises(MachineError, match=r"run cannot be written: the disk is full.*resumes"),
    ):
        patch.setattr(Outcome, "keep", full)
        patch.setattr(generator_trainer, "METRICS", {"em": SimpleNamespace(of=Rising())})
        train(little_llama, out, rows=4, dev=1)
    note = read_note(out)
    assert weights(out) and note.results["epoch"] == 1 and not note.results["finished"]
    resumed = Outcome(out, "rgft", note.settings)  # what the same command opens
    assert resumed.last_state().name == "checkpoint-1" and resumed.finished is None


class Rising:
    """A score that is better at each evaluation."""

    calls = 0

    def __call__(self, case):
        self.calls += 1
        return self.calls / 100


# --- bad input


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": 0}, "rows=0 is not allowed"),
        ({"epochs": 0}, "epochs=0 is not allowed"),
        ({"learning_rate": 0.0}, "learning_rate=0.0 is not allowed"),
        ({"unstated": "skip"}, "skip"),
        ({"names": "new"}, "new"),
        ({"four_bit": True}, "Give --lora"),
        ({"patience": 0}, "patience=0 is not allowed"),
        ({"max_steps": 0}, "max_steps=0 is not allowed"),
    ],
)
def test_settings_out_of_range(changes, message):
    with pytest.raises(UserError, match=message):
        settings_of("tiny", **changes).check()


def test_a_base_model_that_is_missing(tmp_path):
    with pytest.raises(UserError, match=r"The base model '.*nowhere' cannot be loaded.*--base tiny"):
        train(tmp_path / "nowhere", tmp_path / "run")


def test_long_prompts_drop_documents_which_are_counted(little_llama, tmp_path):
    results = train(little_llama, tmp_path / "run", sequence_length=345, epochs=1)
    assert 0 < results["dropped_documents"] <= 2 * 11 and results["prompts_with_dropped_documents"] <= 11


def test_no_row_is_left_when_none_states_the_answer(little_llama, tmp_path, monkeypatch):
    read = generator_module._rows

    def unstated(*args):
        rows, dev, n = read(*args)
        return [replace(row, stated=False) for row in rows], dev, n

    monkeypatch.setattr(generator_module, "_rows", unstated)
    with pytest.raises(UserError, match=r"No document of the 8 training prompts states a gold answer.*keep or abstain"):
        train(little_llama, tmp_path / "run", unstated="drop")


def test_the_note_has_what_was_trained_on_and_what_the_base_had_learned(done, little_llama, tmp_path, monkeypatch):
    out, results = done
    assert results["rows_trained"] == results["rows"] == 8 and results["dev_questions"] == {"ruleqa_demo": 3}
    assert read_note(out).base_tasks == ()  # the base has no note
    base = tmp_path / "base"
    shutil.copytree(little_llama, base)
    write_note(base, Note("generator", "rgft", tasks=("ruleqa_i",), settings={"base": "tiny_rgft"}))
    read = generator_module._rows

    def half_stated(*args):
        rows, dev, n = read(*args)
        return [replace(row, stated=i % 2 == 0) for i, row in enumerate(rows)], dev, n

    monkeypatch.setattr(generator_module, "_rows", half_stated)
    results = train(base, tmp_path / "run", unstated="drop", epochs=1)
    counts = ("rows", "rows_trained", "rows_without_the_answer", "step")
    assert [results[name] for name in counts] == [8, 4, 4, 1]
    learned = read_note(EMBEDDED["tiny_rgft"]).tasks
    assert read_note(tmp_path / "run").base_tasks == tuple(dict.fromkeys(("ruleqa_i", *learned)))


def test_a_tower_of_another_version_of_the_data_is_said(little_llama, tmp_path, monkeypatch, caplog):
    tower = tmp_path / "tower"
    tower.mkdir()
    write_note(tower, Note("retriever", "rgft", tasks=("ruleqa_demo",), corpora=("ruleqa_demo/other",)))
    given = {"retriever": "static", "retriever_adapter": str(tower), "generator": "tiny"}
    setup = read_arguments("rulerag_ft", rulerag_ft, given)
    monkeypatch.setattr(generator_module, "_rows", lambda *args: pytest.fail("said before the prompts are built"))
    with caplog.at_level(logging.WARNING), pytest.raises(pytest.fail.Exception):
        train_generator(settings_of(little_llama), setup, {"ruleqa_demo": build_demo()}, tmp_path / "run")
    assert "The retriever was trained on another version" in caplog.text and "ruleqa_demo/other, asked" in caplog.text


def test_settings_are_stored_when_the_training_begins(little_llama, tmp_path):
    """Another --sequence-length is no other run if the first one was refused."""
    with pytest.raises(UserError, match=r"No prompt fits into 18 tokens"):
        train(little_llama, tmp_path / "run", sequence_length=50)
    assert train(little_llama, tmp_path / "run", rows=4, dev=1, epochs=1)["finished"]


def test_no_prompt_fits(little_llama, tmp_path):
    with pytest.raises(UserError, match=r"No prompt fits into 18 tokens.*--sequence-length"):
        train(little_llama, tmp_path / "run", sequence_length=50)
