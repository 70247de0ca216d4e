"""Documents for users: their Python runs, and their commands name arguments and options that exist."""

import json
import re
import shlex
from pathlib import Path

import pytest

from lm_eval_rag import cli, describe
from lm_eval_rag._register import METHODS, OWN
from lm_eval_rag.describe.models import model
from lm_eval_rag.describe.tasks import names_in_files

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
ELSEWHERE = {  # whose blocks are run by other tests
    "README.md": "tests/test_readme.py",
    "adapters.md": "tests/test_adapters.py",
    "your_documents.md": "tests/harness/documents/test_your_documents.py",
}
BLOCKS = [
    pytest.param(block, id=f"{path.name}-{place}")
    for path in PAGES
    if path.name not in ELSEWHERE
    for place, block in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL))
]
WITH_PARTS = ("train", "publish", "board")  # commands that consist of several
PLACEHOLDERS = ("NAME", "TASK", "TABLE", "FOLDER", "RUN")


def commands(text: str) -> list[str]:
    """The commands of a document: indented lines, with those that a backslash continues."""
    joined = re.sub(r"\\\n\s+", "", text)
    lines = re.findall(r"^ {4,}((?:lm_eval|lm-eval-rag) .+)$", joined, re.MULTILINE)
    return [re.sub(r"\s+#.*$", "", line) for line in lines]


COMMANDS = [
    pytest.param(line, id=f"{path.name}: {line[:60]}")
    for path in PAGES
    for line in commands(path.read_text(encoding="utf-8"))
]
EVALUATIONS = [one for one in COMMANDS if str(one.values[0]).startswith("lm_eval ")]
OURS = [one for one in COMMANDS if str(one.values[0]).startswith("lm-eval-rag ")]


def option(words: list[str], name: str) -> str | None:
    return words[words.index(name) + 1] if name in words else None


@pytest.mark.parametrize("block", BLOCKS)
def test_python_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    exec(compile(block, "document", "exec"), {"__name__": "document"})


def test_there_is_enough_to_check() -> None:
    assert len(EVALUATIONS) > 30 and len(OURS) > 20 and BLOCKS


@pytest.mark.parametrize("line", EVALUATIONS)
def test_an_evaluation_names_what_exists(line: str) -> None:
    words = shlex.split(line)
    tasks, name, arguments = (option(words, key) for key in ("--tasks", "--model", "--model_args"))
    if tasks and "--include_path" not in words:
        assert set(tasks.split(",")) <= set(names_in_files()), tasks
    if name:
        assert name in (*METHODS, OWN)
        about = model(name)
        known = {argument.name for argument in (*about.arguments, *about.shared)}
        listed = (part.partition("=")[0] for part in (arguments or "").split(",") if part)
        given = set(json.loads(arguments) if (arguments or "").startswith("{") else listed)
        own = {key for key in given - known if not key.startswith(("gen_", "retriever_"))}
        assert not own or name == OWN, f"{name} has no {', '.join(own)}"  # those of OWN are its method's
        options = {
            argument.name for one in describe.retriever_names() for argument in describe.retriever(one).arguments
        }
        options |= {"retriever_rerank", "retriever_rerank_depth"}
        parts = ("retriever_first_", "retriever_second_", "retriever_fallback_")
        unknown = {key for key in given if key.startswith("retriever_") and not key.startswith(parts)} - options
        assert not unknown


@pytest.mark.parametrize("line", OURS)
def test_a_command_has_the_options_that_are_named(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(line)[1:]
    if words[0] in PLACEHOLDERS:
        return
    command = words[: 2 if words[0] in WITH_PARTS else 1]
    with pytest.raises(SystemExit) as ended:
        cli.main([*command, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    for word in words:
        if word.startswith("--"):
            assert re.search(rf"{re.escape(word)}\b", said), f"{' '.join(command)} has no {word}"
