"""``lm-eval-rag`` and how the stock ``lm_eval`` command runs and ends with our tasks and models."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from lm_eval_rag import __version__, _errors, cli, doctor
from lm_eval_rag._build import builders_of_tasks
from lm_eval_rag._register import tasks_folder
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.plugin.unscored import tell

DEMO = ("--tasks", "ruleqa_demo", "--model", "rule_vote", "--limit", "1")


RUN = """
import sys, lm_eval_rag._autoload as a; a.install(); sys.argv[0] = "lm_eval"
from lm_eval.__main__ import cli_evaluate; cli_evaluate()
"""


def lm_eval(
    *arguments: str, before: str = "", after: str = "", folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """The stock command in a fresh Python, with code that runs before and after it."""
    return subprocess.run(
        [sys.executable, "-c", f"{before}\n{RUN}\n{after}", *arguments], capture_output=True, text=True, cwd=folder
    )


# --- lm-eval-rag


def test_help_names_what_works_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    said = capsys.readouterr().out
    assert cli.main(["--help"]) == 0 and capsys.readouterr().out == said
    listed = said.partition("commands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == list(cli.COMMANDS)


SLOW = """
import asyncio, sys
from lm_eval_rag import cli
from lm_eval_rag.harness.core.loop import run_async
async def answer():
    print("begun", flush=True)
    await asyncio.sleep(60)
cli.COMMANDS["evaluate"] = lambda argv: run_async(answer())
sys.exit(cli.main(["evaluate"]))
"""


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_command_ends_with_one_line(sent: signal.Signals, status: int) -> None:
    with subprocess.Popen([sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"begun\n"
        process.send_signal(sent)
        _, said = process.communicate(timeout=30)
    assert process.returncode == status
    assert said.startswith(b"lm-eval-rag: interrupted. ") and said.count(b"\n") == 1


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"lm-eval-rag {__version__}\n"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["buidl"], "Did you mean 'build'?"),
        (["trian"], "Did you mean 'train'?"),
        (["leaderboard"], "Allowed: board, build, demo, describe, doctor, encode, evaluate"),
        (["build", "ruleqa_ii"], "Did you mean 'ruleqa_i'"),
        (["build", "ruleqa_demo", "--seed", "-1"], "seed=-1"),
        (["build", "ruleqa_i", "--corpus", "trian"], "Unknown corpus 'trian'. Did you mean 'train'"),
        (["build", "ruleqa_f", "--corpus", "train_valid"], "not for ruleqa_f, whose documents"),
        (["build", "ruleqa", "--corpus", "train_valid"], "not for ruleqa_f, ruleqa_n, whose documents"),
        (["build", "ruleqa_i_fresh", "ruleqa_demo", "--corpus", "train_valid"], "not for ruleqa_demo, whose"),
        (["build", "bamboogle", "--corpus", "poled"], "Allowed: mirror, wiki18_100w"),
        (["build", "ruleqa_f", "bamboogle", "--corpus", "mirror"], "Unknown corpus 'mirror'"),
        (["report", "nowhere"], "nowhere"),
        (["rescore", "nowhere"], "nowhere"),
    ],
)
def test_bad_input_is_one_line_and_status_2(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(argv) == 2
    out, err = capsys.readouterr()
    assert said in err and err.count("\n") == 1 and out == ""


def test_build_demo(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    assert cli.main(["build", "ruleqa_demo", "ruleqa_demo"]) == 0
    (folder,) = capsys.readouterr().out.splitlines()
    assert Path(folder).parent == tmp_path / "ruleqa_demo"
    assert (Path(folder) / "corpus.parquet").is_file()


def test_build_with_the_validation_facts(capsys: pytest.CaptureFixture[str], mirror: Path | None, cache: Path) -> None:
    """The published size of RuleQA-I's D, 77,508, is training plus validation (RuleRAG, table 1); ours lacks a loop."""
    import polars as pl

    sizes = {}
    for corpus in ("train", "train_valid"):
        assert cli.main(["build", "ruleqa_i", "--corpus", corpus]) == 0
        folder = Path(capsys.readouterr().out.strip())
        assert folder.parent == cache / "ruleqa_i"
        sizes[corpus] = pl.read_parquet(folder / "corpus.parquet").height
        assert json.loads((folder / "meta.json").read_text())["parameters"]["corpus"] == corpus
    assert sizes == {"train": 63684, "train_valid": 77508 - 1}


def test_build_over_a_corpus(capsys: pytest.CaptureFixture[str], mirror: Path | None, cache: Path) -> None:
    assert cli.main(["build", "musique_train_100", "musique_train_100_pooled", "--corpus", "own"]) == 2
    assert "Unknown corpus 'own'" in capsys.readouterr().err
    assert cli.main(["build", "musique_train_100", "musique_train_100_pooled"]) == 0
    questions, corpus = (Path(line) for line in capsys.readouterr().out.splitlines())
    meta = json.loads((questions / "meta.json").read_text())
    assert (meta["choice"], cache / meta["corpus"]) == ("pooled", corpus)
    assert cli.main(["build", "musique_train_100", "--corpus", "own"]) == 0
    folder = Path(capsys.readouterr().out.strip())
    assert json.loads((folder / "meta.json").read_text())["corpus"] == meta["corpus"] and folder != questions


def test_ruleqa_is_all_five_sets() -> None:
    builders = builders_of_tasks()
    names = [made.args[0] for made in builders["ruleqa"]]
    assert names == ["ruleqa_i", "ruleqa_y", "ruleqa_w", "ruleqa_f", "ruleqa_n"]
    assert {*names, "ruleqa_i_fresh", "ruleqa_demo"} < set(builders)


# --- the doctor


def wrongs(found: list[doctor.Finding]) -> str:
    return " ".join(finding.wrong for finding in found if finding.wrong)


def test_doctor_says_what_is_where(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        doctor, "examine", lambda **_: iter([doctor.Finding("a", "b"), doctor.Finding("c", "d", "fix it")])
    )
    assert doctor.doctor_main([]) == 1
    assert capsys.readouterr().out.endswith("\nWRONG: fix it\n")
    monkeypatch.setattr(doctor, "examine", lambda **_: iter([doctor.Finding("a", "b")]))
    assert doctor.doctor_main([]) == 0
    assert "Nothing is wrong." in capsys.readouterr().out


def test_doctor_on_autoload(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_RAG_AUTOLOAD", "0")
    assert "Autoload is off by LM_EVAL_RAG_AUTOLOAD=0" in wrongs(list(doctor._autoloading()))
    monkeypatch.delenv("LM_EVAL_RAG_AUTOLOAD")
    monkeypatch.setattr(sys, "meta_path", [])
    assert "The hook is not active" in wrongs(list(doctor._autoloading()))
    monkeypatch.setattr(sys, "path", [])
    assert "lm_eval_rag.pth is not in site-packages" in wrongs(list(doctor._autoloading()))


def test_doctor_on_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lm_eval_rag").mkdir()
    (tmp_path / "lm_eval_rag" / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert "More than one copy is installed" in wrongs(list(doctor._package()))


@pytest.mark.parametrize(
    ("version", "fits"), [("0.4.13", True), ("0.4.14.dev0", True), ("0.4.12", False), ("0.5", False), ("1.0.0", False)]
)
def test_doctor_on_lm_evals_version(version: str, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    held = SimpleNamespace(version=version, locate_file=lambda name: Path(name))
    monkeypatch.setattr(doctor.metadata, "distribution", lambda name: held)
    assert (doctor._lm_eval().wrong == "") == fits


def test_doctor_on_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "a.sqlite").write_bytes(b"0" * 2_000_000)
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    monkeypatch.setenv("LM_EVAL_RAG_MIRROR", str(tmp_path))
    found = list(doctor._data())
    assert "journal: 2.0 MB in 1 file" in [finding.text for finding in found] and not wrongs(found)
    monkeypatch.setenv("LM_EVAL_RAG_MIRROR", str(tmp_path / "no"))
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "journal" / "a.sqlite" / "below"))
    assert "LM_EVAL_RAG_MIRROR=" in wrongs(list(doctor._data()))
    assert "cannot be written" in wrongs(list(doctor._data()))


# --- lm_eval


def test_lm_eval_runs_ours_without_torch_and_without_its_own_tasks(cache: Path) -> None:
    before = """
from lm_eval.tasks._index import TaskIndex
find, parsed = TaskIndex._iter_yaml_files, []
TaskIndex._iter_yaml_files = staticmethod(lambda root: parsed.append(str(root)) or find(root))
"""
    after = "import json; print(json.dumps([parsed, sorted({'torch', 'transformers'} & set(sys.modules))]))"
    done = lm_eval(*DEMO, before=before, after=after)
    assert done.returncode == 0, done.stderr
    assert "|ruleqa_demo" in done.stdout
    assert json.loads(done.stdout.splitlines()[-1]) == [[str(tasks_folder())], []]


BAD_INPUT = [
    (("--tasks", "ruleqa_demo", "--model", "rule_vote", "--model_args", "k=0"), "k=0"),
    (("--tasks", "ruleqa_demo", "--model", "rule_votes"), "Did you mean 'rule_vote'"),
    ((*DEMO, "--use_cache", "answers"), "journal"),
    (("--tasks", "ruleqa_demo", "--model", "rule_vote", "--model_args", "kk=10"), "'kk'"),
]
EVERY_BUT_THE_LAST = """
import contextlib, io, json, sys
from lm_eval.__main__ import cli_evaluate
for arguments in json.loads(sys.argv[1])[:-1]:
    sys.argv[1:], out, err = arguments, io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli_evaluate()
            status = 0
        except SystemExit as ended:
            status = ended.code
    print(json.dumps([status, out.getvalue(), err.getvalue()]))
sys.argv[1:] = %r
"""


def test_bad_input_ends_lm_eval_in_one_message(tmp_path: Path) -> None:
    """One process, since each start takes seconds: the last input ends it as it ends a user's."""
    given = [list(arguments) for arguments, _ in BAD_INPUT]
    start = "import lm_eval_rag._autoload as a; a.install()"
    done = lm_eval(
        json.dumps(given),
        before=f"{start}\n{EVERY_BUT_THE_LAST % given[-1]}",
        folder=tmp_path,  # lm_eval makes the file of --use_cache before it asks the model
    )
    ends = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    ends.append([done.returncode, done.stdout, done.stderr])
    for (arguments, said), (status, out, err) in zip(BAD_INPUT, ends, strict=True):
        assert status == 2, (arguments, err)
        assert "Traceback" not in err and "Traceback" not in out
        last = err.splitlines()[-1]
        assert last.startswith("lm-eval-rag: ") and said in last


@pytest.fixture
def execute() -> Any:
    """``HarnessCLI.execute`` with what it runs given as its argument, ended as ours ends it."""
    harness = type("HarnessCLI", (), {"execute": staticmethod(lambda work: work())})
    module: Any = SimpleNamespace(HarnessCLI=harness)
    _errors.plain_endings(module)
    ended = harness.execute
    _errors.plain_endings(module)
    assert harness.execute is ended
    return ended


def failing(error: Exception) -> Any:
    def work() -> None:
        raise error

    return work


def test_bad_input_while_a_model_computes_does_not_wait_for_it() -> None:
    """A plain exit beside a thread in native code may abort; what ends here runs no exit handler."""
    script = """
import atexit, time
from types import SimpleNamespace
from lm_eval_rag import _errors
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.loop import Workers, run_async
import asyncio
atexit.register(print, "a plain exit")
async def call(seconds):
    workers = Workers()
    task = asyncio.ensure_future(workers.call(time.sleep, seconds))
    await asyncio.sleep(0.1)
    workers.close()
    task.cancel()
def work(seconds):
    run_async(call(seconds))
    raise UserError("Give k.")
module = SimpleNamespace(HarnessCLI=type("HarnessCLI", (), {"execute": staticmethod(work)}))
_errors.plain_endings(module)
module.HarnessCLI.execute(SECONDS)
"""
    for seconds, plain in (("30", False), ("0.01", True)):
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", script.replace("SECONDS", seconds)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (2, "lm-eval-rag: Give k.\n")
        assert ("a plain exit" in done.stdout) == plain and time.monotonic() - started < 25


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (UserError("Give k."), "lm-eval-rag: Give k.\n"),
        (ValueError("Tasks not found: x, ruleqa_dem"), "Unknown task 'ruleqa_dem'. Did you mean 'ruleqa_demo'"),
        (ValueError("Attempted to load model 'rule-vote', but"), "Unknown model 'rule-vote'. Did you mean 'rule_vote'"),
    ],
)
def test_errors_of_ours_are_one_line(
    error: Exception, said: str, execute: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        execute(failing(error))
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "error", [ValueError("Tasks not found: hellaswagg"), ValueError("other"), KeyError("k"), RuntimeError("r")]
)
def test_other_errors_pass(error: Exception, execute: Any) -> None:
    with pytest.raises(type(error)) as raised:
        execute(failing(error))
    assert raised.value is error


def test_unscored_questions_end_with_status_3(execute: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(lambda: "done") == "done"
    with pytest.raises(SystemExit) as ended:
        execute(lambda: tell(f"q{i}" for i in range(12)))
    assert ended.value.code == 3
    said = capsys.readouterr().err
    assert "12 questions stay unscored: q0, q1" in said and "q9 and 2 more" in said


def test_runs_of_one_process_do_not_mix(execute: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither with those before and after, nor with one inside, nor with those of other threads."""

    def with_one_inside() -> str:
        with pytest.raises(SystemExit):
            execute(lambda: tell(["inside"]))
        beside = Thread(target=tell, args=(["beside"],))
        beside.start()
        beside.join()
        return "done"

    tell(["before"])  # as where lm_eval is used as a library
    assert execute(with_one_inside) == "done"
    assert "1 questions stay unscored: inside." in capsys.readouterr().err
    assert execute(lambda: "done") == "done"
    with pytest.raises(RuntimeError):
        execute(failing(RuntimeError()))
    assert execute(lambda: "done") == "done"
