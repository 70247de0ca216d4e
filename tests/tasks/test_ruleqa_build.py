"""Bad input to the builder is named, loses nothing and leaves nothing half-written."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from lm_eval_rag.harness.common.errors import MachineError, UserError
from lm_eval_rag.harness.common.paths import mirror_dir
from lm_eval_rag.harness.data import sources
from lm_eval_rag.harness.data.folders import write_folder
from lm_eval_rag.tasks.ruleqa import card
from lm_eval_rag.tasks.ruleqa.build import build
from lm_eval_rag.tasks.ruleqa.source_files import FILES
from lm_eval_rag.tasks.ruleqa.specs import SPECS, TASKS


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def small_mirror(mirror: Path | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror of ICEWS14 alone that a test may spoil."""
    if mirror is None:
        pytest.skip("needs LM_EVAL_RAG_MIRROR")
    for name in FILES["icews14"]:
        (tmp_path / "mirror" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(mirror / name, tmp_path / "mirror" / name)
    monkeypatch.setenv("LM_EVAL_RAG_MIRROR", str(tmp_path / "mirror"))
    assert mirror_dir() == tmp_path / "mirror"
    return tmp_path / "mirror"


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_unknown_task_names_the_nearest() -> None:
    with pytest.raises(UserError, match=r"'ruleqa_x'.*Did you mean.*Allowed:.*ruleqa_i"):
        build("ruleqa_x")


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ("ruleqa_i", {"corpus": "valid"}, "train_valid"),
        ("ruleqa_f", {"corpus": "train_valid"}, "temporal"),
        ("ruleqa_i", {"seed": -1}, "seed"),
    ],
)
def test_bad_options(task: str, options: dict[str, object], message: str, empty_cache: Path) -> None:
    with pytest.raises(UserError, match=message):
        build(task, **options)  # type: ignore[arg-type]
    assert files_in(empty_cache) == []


def test_no_mirror_and_no_network(monkeypatch: pytest.MonkeyPatch, empty_cache: Path) -> None:
    monkeypatch.delenv("LM_EVAL_RAG_MIRROR", raising=False)
    monkeypatch.setattr(sources, "HOST", "http://127.0.0.1:9")
    with pytest.raises(UserError, match=r"icews14/entity2id\.txt.*LM_EVAL_RAG_MIRROR"):
        build("ruleqa_i")
    assert files_in(empty_cache) == []


def test_a_wrong_hash_stops_the_build(small_mirror: Path, empty_cache: Path) -> None:
    spoiled = small_mirror / "icews14/test.txt"
    spoiled.write_text(spoiled.read_text().replace("\t0\t", "\t1\t", 1))
    with pytest.raises(UserError, match=r"icews14/test\.txt.*sha256"):
        build("ruleqa_i")
    assert files_in(empty_cache) == []


def test_a_failed_build_leaves_nothing(small_mirror: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched, pytest.raises(MachineError, match="no space"):
        patched.setattr(card, "text", _no_space)
        build("ruleqa_i")
    assert files_in(empty_cache) == []
    assert list((empty_cache / "ruleqa_i").iterdir()) == []
    assert (empty_cache / build("ruleqa_i")).is_dir()


def _no_space(*args: object) -> str:
    raise OSError("no space")


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def empty_meta(path: Path) -> None:
    (path.parent / "meta.json").write_text("{}")


def test_a_damaged_folder_is_named(small_mirror: Path, empty_cache: Path, tmp_path: Path) -> None:
    corpus = build("ruleqa_i")
    folder, whole = empty_cache / corpus, tmp_path / "whole"
    shutil.copytree(folder, whole)
    spoils: tuple[Callable[[Path], object], ...] = (truncate, Path.unlink, empty_meta)
    for spoil in spoils:
        spoil(folder / "rules.parquet")
        with pytest.raises(UserError, match=f"{folder} is damaged.*Delete this folder"):
            build("ruleqa_i")
        shutil.rmtree(folder)
        shutil.copytree(whole, folder)
    shutil.rmtree(folder)
    assert build("ruleqa_i") == corpus
    assert pl.read_parquet(folder / "rules.parquet").equals(pl.read_parquet(whole / "rules.parquet"))


def test_folders_are_named_by_what_they_are_made_from(small_mirror: Path, empty_cache: Path) -> None:
    made = [build("ruleqa_i"), build("ruleqa_i", seed=1), build("ruleqa_i", corpus="train_valid"), build("ruleqa_i")]
    assert len(set(made)) == 3 and made[0] == made[3]
    metas = [json.loads((empty_cache / corpus / "meta.json").read_text()) for corpus in made]
    assert [f"ruleqa_i/{meta['hash']}" for meta in metas] == made
    train_valid = metas[2]["statistics"]["documents"]
    assert train_valid == {"ours": 77508 - 1, "published": 77508}  # table 1 of arXiv:2410.22353; a self-loop is out
    assert metas[1]["checksums"]["corpus"] == metas[0]["checksums"]["corpus"]
    assert metas[1]["checksums"]["queries"] != metas[0]["checksums"]["queries"]


def test_every_source_of_a_set_is_in_the_manifest() -> None:
    manifest = sources.read_manifest(Path(card.__file__).with_name("sources.toml"))
    assert set(manifest) == {path for paths in FILES.values() for path in paths}
    assert all(len(source.commit) == 40 and len(source.sha256) == 64 for source in manifest.values())
    assert all(source.licence and source.terms for source in manifest.values())
    assert manifest["icews14/train.txt"].terms == "research and educational use only"


def test_ten_sets() -> None:
    assert set(TASKS) == {*SPECS, *(f"{task}_fresh" for task in SPECS)} and len(TASKS) == 10


def test_of_two_processes_that_build_at_once_the_first_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the ranks of a launch do in a fresh data folder; the other finds the name taken when it is done."""
    from lm_eval_rag.tasks.ruleqa_demo import build as demo

    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    made = demo.build()
    before = (tmp_path / made / "meta.json").read_bytes()
    world = demo.make_world(0)
    meta = {"planted": [], "parameters": {"seed": 0}}
    write_folder(tmp_path / made, "0", lambda folder: demo.write_set(folder, demo.tables(world), meta))
    assert (tmp_path / made / "meta.json").read_bytes() == before
    assert [path.name for path in (tmp_path / "ruleqa_demo").iterdir()] == [made.split("/")[1]]
    (tmp_path / "file").touch()
    with pytest.raises(MachineError, match="file"):
        write_folder(tmp_path / "file" / "below", "0", lambda folder: meta)
