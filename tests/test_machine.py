"""What a machine cannot do, and paths that cannot be: one line and the right exit status, in the same moment."""

import errno
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lm_eval_rag import _build, _errors, _saving, cli
from lm_eval_rag.harness.common import paths
from lm_eval_rag.harness.common.errors import MachineError, UserError
from lm_eval_rag.harness.common.paths import cache_dir, mirror_dir, output_folder, read_text, storing, written_whole
from lm_eval_rag.harness.core.types import Query, Trace
from lm_eval_rag.harness.plugin.trace_file import TraceFile

FULL = OSError(errno.ENOSPC, "No space left on device")


def polars_error() -> Exception:
    import polars

    return polars.exceptions.ComputeError("parquet: underlying IO error: No space left on device (os error 28)")


# --- the cache


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("LM_EVAL_RAG_CACHE", "LM_EVAL_RAG_MIRROR"):
        monkeypatch.setenv(variable, "~/x")
    assert cache_dir() == mirror_dir() == tmp_path / "x"
    monkeypatch.delenv("LM_EVAL_RAG_CACHE")
    assert cache_dir() == tmp_path / ".cache" / "lm_eval_rag"
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", "~nobody_of_this_name/x")
    with pytest.raises(UserError, match=r"LM_EVAL_RAG_CACHE: ~nobody_of_this_name/x has no meaning here"):
        cache_dir()


@pytest.mark.parametrize("variable", ["LM_EVAL_RAG_CACHE", "HOME"])
def test_a_cache_that_cannot_be_written(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.delenv("LM_EVAL_RAG_CACHE", raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "file"))
    assert cli.main(["build", "ruleqa_demo"]) == 1
    err = capsys.readouterr().err
    assert "cannot be written: [Errno 20] Not a directory" in err and "set LM_EVAL_RAG_CACHE" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("error", [FULL, polars_error()], ids=["python", "polars"])
def test_a_disk_that_is_full_while_data_is_built(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import polars

    def full(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    monkeypatch.setattr(polars.DataFrame, "write_parquet", full)
    assert cli.main(["build", "ruleqa_demo"]) == 1
    out, err = capsys.readouterr()
    assert "cannot be written: the disk is full. Free space" in err and err.count("\n") == 1 and out == ""
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_other_errors_of_a_writer_stay_what_they_are(tmp_path: Path) -> None:
    for error in (KeyError("k"), UserError("Give k.")):
        with pytest.raises(type(error)) as raised, written_whole(tmp_path / "folder"):
            raise error
        assert raised.value is error


def test_advice_is_that_of_the_writer(tmp_path: Path) -> None:
    says = r"a cannot be written: the disk is full\. Delete b\.$"
    with pytest.raises(MachineError, match=says), storing(Path("a"), "Delete b."):
        raise FULL


# --- files that are given


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/dev/zero", r"is a device, not a file\. Give a file"),
        ("/dev", r"Is a directory\. Give a file"),
        ("/nowhere", r"it does not exist\. Check the path"),
    ],
)
def test_files_that_cannot_be_read(path: str, says: str) -> None:
    with pytest.raises(UserError, match=rf"^{path} .*{says}\.$"):
        read_text(Path(path), "Give a file.")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff")
    with pytest.raises(UserError, match="is not UTF-8"):
        read_text(tmp_path / "x", "Give a text.")


def test_an_output_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert output_folder(tmp_path / "new" / "folder").is_dir()
    (tmp_path / "file").touch()
    for path, says in ((tmp_path / "file", "is a file. Give a folder"), (tmp_path / "file" / "x", "cannot be written")):
        with pytest.raises(UserError, match=f"--out {path} {says}") as raised:
            output_folder(path)
        assert raised.value.status == 2

    def full(**_: Any) -> None:
        raise FULL

    monkeypatch.setattr(paths.tempfile, "TemporaryFile", full)
    with pytest.raises(MachineError, match="No space left"):
        output_folder(tmp_path)


@pytest.mark.parametrize(
    "command",
    [
        ["train", "retriever", "--task", "ruleqa_demo"],
        ["train", "generator", "--task", "ruleqa_demo", "--mode", "rgft"],
        ["reproduce", "rulerag_retrievers"],
    ],
)
def test_an_output_folder_is_tried_before_the_work(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_build, "corpus_of", lambda task: pytest.fail("the work had begun"))
    (tmp_path / "file").touch()
    assert cli.main([*command, "--out", str(tmp_path / "file")]) == 2
    err = capsys.readouterr().err
    assert f"--out {tmp_path / 'file'} is a file. Give a folder." in err and err.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_trace_on_a_full_disk() -> None:
    says = r"^trace=/dev/full cannot be written: No space left on device\. Free"
    with pytest.raises(MachineError, match=says), TraceFile(Path("/dev/full")) as file:
        file.write("task", Query("a", "q"), Trace())
    with pytest.raises(KeyError), TraceFile(Path("/dev/full")) as file:  # the run's own error is the one that is said
        file.write("task", Query("a", "q"), Trace())
        raise KeyError


# --- the command lines


def test_errors_of_the_machine_end_our_commands_with_status_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Any) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", "/x")

    monkeypatch.setitem(cli.COMMANDS, "build", fail)
    assert cli.main(["build"]) == 1
    assert capsys.readouterr().err.startswith("lm-eval-rag: [Errno 13] Permission denied: '/x'. ")


@pytest.fixture
def execute() -> Any:
    """``HarnessCLI.execute`` of (options, what is run), ended as ours ends it."""
    harness = type("HarnessCLI", (), {"execute": staticmethod(lambda options, work: work())})
    module: Any = SimpleNamespace(HarnessCLI=harness)
    _errors.plain_endings(module)
    return harness.execute


@pytest.mark.parametrize("level", [logging.INFO, logging.ERROR])
def test_results_that_were_not_saved_end_lm_eval_with_status_1(
    execute: Any, tmp_path: Path, level: int, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger(_saving.TRACKER)
    logging.getLogger("lm_eval").setLevel(level)

    def unsaved() -> None:
        logger.warning("Could not save results aggregated")
        logger.info(repr(FULL))

    with pytest.raises(SystemExit) as ended:
        execute(SimpleNamespace(output_path=str(tmp_path / "out")), unsaved)
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert "could not save results aggregated (OSError(28, 'No space left on device')) in --output_path" in said
    assert logger.level == logging.NOTSET and not logger.filters
    assert len(caplog.records) == (2 if level == logging.INFO else 0)  # lm_eval's log is as loud as it was
    assert execute(SimpleNamespace(output_path=None), lambda: "done") == "done"


def test_an_output_path_is_tried_before_the_run(
    execute: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "file/results.json"):
        with pytest.raises(SystemExit) as ended:
            execute(SimpleNamespace(output_path=str(tmp_path / name)), lambda: pytest.fail("it ran"))
        assert ended.value.code == 2
        assert f"--output_path {tmp_path / 'file'} is a file" in capsys.readouterr().err
    assert execute(SimpleNamespace(output_path=str(tmp_path / "new" / "a.json")), lambda: "done") == "done"
    assert list((tmp_path / "new").iterdir()) == []
