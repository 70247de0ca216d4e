"""What trainings need: a made corpus, a BERT that knows its words, and a file system that is soon full."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for trainings.py, which the tests here share

from trainings import write_corpus


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    return {"made": write_corpus(tmp_path / "cache")}


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if matplotlib were missing: a figure at each evaluation takes longer than the training."""
    monkeypatch.setattr("lm_eval_rag.harness.train.curves.find_spec", lambda name: None)


@pytest.fixture
def encoder(little_bert: Path, tmp_path: Path) -> str:
    """The same BERT with a tokenizer that knows its words (transformers 5 takes them as ``vocab`` alone)."""
    transformers = pytest.importorskip("transformers")
    folder = Path(shutil.copytree(little_bert, tmp_path / "encoder"))
    words = (folder / "vocab.txt").read_text().split("\n")
    vocab = {word: number for number, word in enumerate(words)}
    transformers.BertTokenizerFast(vocab=vocab, model_max_length=64).save_pretrained(folder)
    return str(folder)


class SmallDisk:
    """A mounted file system of a few megabytes.

    Args:
        folder: Where it is mounted.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._filler = folder, folder / "filler"

    def fill(self, leave: int = 0) -> None:
        """Fill it up to ``leave`` bytes."""
        with self._filler.open("ab") as file:
            file.write(bytes(max(0, shutil.disk_usage(self.folder).free - leave)))

    def free(self) -> None:
        """Free what was filled."""
        self._filler.unlink()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], SmallDisk]]:
    """``small_disk(bytes)``: a mounted tmpfs; skipped where mounting is not allowed."""
    mounted: list[Path] = []

    def mount(size: int) -> SmallDisk:
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        try:
            command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            pytest.skip(f"needs to mount a small file system: {error}")
        if done.returncode:
            pytest.skip(f"needs to mount a small file system, as root: {done.stderr.strip()}")
        mounted.append(folder)
        return SmallDisk(folder)

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # a traceback may hold a file open
