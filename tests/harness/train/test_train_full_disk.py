"""Training on a file system that is really full: one line, what is kept is said, and the same command ends alike."""

from types import SimpleNamespace

import pytest
from trainings import QUICK, train, weights

from lm_eval_rag.harness.checkpoints.note import NOTE, Note, read_note, write_note
from lm_eval_rag.harness.common.errors import MachineError
from lm_eval_rag.harness.common.paths import full_disk
from lm_eval_rag.harness.train import generator_trainer
from lm_eval_rag.harness.train.generator_outcome import Outcome
from lm_eval_rag.harness.train.retriever import train_retriever
from lm_eval_rag.harness.train.state import State

torch = pytest.importorskip("torch")
pytest.importorskip("accelerate")

KEPT = ["No {} is kept yet, and the same command starts again.", "The best {} so far is kept, and the same command "]


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    monkeypatch.setattr("lm_eval_rag.harness.train.curves.find_spec", lambda name: None)


def test_what_torch_says_of_a_full_disk(small_disk):
    disk = small_disk(1 << 20)
    with pytest.raises(RuntimeError) as raised:
        torch.save({"a": torch.zeros(1 << 20)}, disk.folder / "state.pt")
    assert full_disk(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "[enforce fail at inline_container.cc:672] . unexpected pos 5255296 vs 5255184",
        "[enforce fail at inline_container.cc:764] . PytorchStreamWriter failed writing file data/1: file write failed",
        "basic_ios::clear: iostream error",
    ],
)
def test_each_error_of_torch_on_a_full_disk_is_known(text):
    assert full_disk(RuntimeError(text))


def test_an_error_that_a_full_disk_led_to():
    try:
        try:
            raise OSError(28, "no room")
        except OSError:
            raise RuntimeError("cannot serialise") from None
    except RuntimeError as error:
        assert full_disk(error)
    assert not full_disk(RuntimeError("cannot serialise"))


@pytest.mark.parametrize(
    ("states", "says"), [(None, KEPT[0]), (0, KEPT[1] + "starts again."), (1, KEPT[1] + "resumes.")]
)
def test_a_retriever(corpora, small_disk, tmp_path, monkeypatch, states, says):
    """``states``: how many states were saved before; None fills it before the training."""
    disk, keep, saved = small_disk(8 << 20), State.keep, []
    out = disk.folder / "out"

    def filling(self, *args, now):
        if now and len(saved) == states:
            disk.fill(leave=8192)  # for the curves, but no state
        keep(self, *args, now=now)
        saved.extend([1] if now else [])

    if states is None:
        disk.fill()
    with monkeypatch.context() as patch, pytest.raises(MachineError) as raised:
        patch.setattr(State, "keep", filling)
        train_retriever(QUICK, corpora, out)
    assert str(raised.value) == f"{out} cannot be written: the disk is full. Free space there. {says.format('tower')}"
    files = {path.name for path in out.rglob("*")}
    assert files == (set() if states is None else {"model.safetensors", "state.pt"} | {"curves.json"} & files)
    disk.free()
    whole = train_retriever(QUICK, corpora, tmp_path / "whole")
    again = train_retriever(QUICK, corpora, out)
    assert {**again, "seconds": 0} == {**whole, "seconds": 0} and read_note(out)
    for name in ("model.safetensors", "curves.json"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_note_that_cannot_be_written_loses_no_state(corpora, small_disk, monkeypatch):
    disk = small_disk(8 << 20)
    out, finish = disk.folder / "out", State.finish

    def filling(self):
        results = finish(self)
        disk.fill()
        return results

    with monkeypatch.context() as patch, pytest.raises(MachineError, match=r"is full.*best tower so far.*resumes\.$"):
        patch.setattr(State, "finish", filling)
        train_retriever(QUICK, corpora, out)
    assert (out / "state.pt").is_file() and read_note(out) is None
    disk.free()
    assert train_retriever(QUICK, corpora, out)["epoch"] and not (out / "state.pt").exists()


def test_a_note_is_replaced_as_a_whole(small_disk):
    disk, note = small_disk(1 << 20), Note("retriever", "rgft", results={"mean": 0.5})
    write_note(disk.folder, note)
    disk.fill()
    with pytest.raises(OSError):
        write_note(disk.folder, Note("retriever", "rgft", versions={"x": "y" * 10_000}))
    assert read_note(disk.folder) == note and {path.name for path in disk.folder.iterdir()} == {NOTE, "filler"}


class Rising:
    """A score that is better at each evaluation."""

    calls = 0

    def __call__(self, case):
        self.calls += 1
        return self.calls / 100


@pytest.fixture(scope="module")
def whole(little_llama, tmp_path_factory):
    """A generator that was trained without an interruption; the checkpoint of the second epoch is kept."""
    out = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lm_eval_rag.harness.train.curves.find_spec", lambda name: None)
        patch.setattr(generator_trainer, "METRICS", {"em": SimpleNamespace(of=Rising())})
        train(little_llama, out, rows=4, dev=1)
    return out


@pytest.mark.parametrize(
    ("checkpoints", "says"),
    [(0, KEPT[0]), (1, KEPT[1] + "starts again."), (2, KEPT[1] + "resumes from the last complete state.")],
)
def test_a_generator(little_llama, small_disk, whole, monkeypatch, checkpoints, says):
    """``checkpoints``: how many were kept before; the state that is saved after the last one has no room."""
    pytest.importorskip("trl")
    disk, keep, kept = small_disk(16 << 20), Outcome.keep, []
    out = disk.folder / "run"

    def filling(self, *args):
        keep(self, *args)
        kept.append(1)
        if len(kept) == checkpoints:
            disk.fill(leave=weights_of_model)

    weights_of_model = 2 * sum(path.stat().st_size for path in little_llama.glob("*.safetensors"))
    monkeypatch.setattr(generator_trainer, "METRICS", {"em": SimpleNamespace(of=Rising())})
    if not checkpoints:
        disk.fill()
    with monkeypatch.context() as patch, pytest.raises(MachineError) as raised:
        patch.setattr(Outcome, "keep", filling)
        train(little_llama, out, rows=4, dev=1)
    says = says.format("checkpoint")
    assert str(raised.value) == f"{out} cannot be written: the disk is full. Free space there. {says}"
    note = read_note(out)
    assert (note.results["epoch"] if note else 0) == checkpoints
    disk.free()
    train(little_llama, out, rows=4, dev=1)
    assert read_note(out).finished and not (out / "state").exists()
    assert all(torch.equal(value, weights(whole)[name]) for name, value in weights(out).items())


def test_a_state_that_was_cut_is_not_resumed(tmp_path):
    outcome = Outcome(tmp_path / "run", "rgft", {"seed": 0})
    for step, text in ((1, "{}"), (2, '{"epoch": 1, "log_his')):
        (outcome.state / f"checkpoint-{step}").mkdir(parents=True)
        (outcome.state / f"checkpoint-{step}" / "trainer_state.json").write_text(text)
    assert outcome.last_state().name == "checkpoint-1" and not (outcome.state / "checkpoint-2").exists()
