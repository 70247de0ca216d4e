"""docs/your_documents.md: its code runs as it stands, and it says what the code does."""

import re
import shlex
from pathlib import Path

import pytest

from lm_eval_rag import cli
from lm_eval_rag.harness.documents.intake import KNOWN, OVERLAP, TOKENS
from lm_eval_rag.harness.documents.questions import KNOWN as OF_QUESTIONS
from lm_eval_rag.harness.documents.records import READERS
from lm_eval_rag.harness.documents.rule_files import MIN_SUPPORT
from lm_eval_rag.harness.documents.text_files import KINDS
from lm_eval_rag.harness.plugin import evaluate_cli

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "your_documents.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
FACTS = "subject,relation,object\n" + "".join(f"P{i},was born in,T{i}\nP{i},is a citizen of,T{i}\n" for i in range(3))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undescribed: None) -> Path:
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("code", PYTHON, ids=range(len(PYTHON)))
def test_python(place: Path, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict = {}
    exec(compile(code, "your_documents.md", "exec"), names)
    if "evaluation" in names:
        assert names["evaluation"].scores["em"].to_list() == [1.0]
        assert names["evaluation"].answers["answer"].to_list() == ["Norn"]
        assert capsys.readouterr().out.count("rule_vote") >= 3


def test_the_command_over_facts(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = re.findall(r"^    lm-eval-rag (evaluate .*--rules mine.*)$", PAGE, re.MULTILINE)
    (place / "facts.csv").write_text(FACTS)
    (place / "questions.csv").write_text("question,answer\nwhat does P1 is a citizen of ?,T1\n")
    assert cli.main(shlex.split(line)) == 0
    assert re.search(r"^rule_vote +1 +0 +100\.0", capsys.readouterr().out, re.MULTILINE)


def test_the_yaml(place: Path) -> None:
    from lm_eval.tasks import TaskManager

    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (place / "tasks" / "docs").mkdir(parents=True)
    (place / "tasks" / "docs" / "a.md").write_text("Ada Moss was born in Vale.")
    (place / "tasks" / "questions.csv").write_text("question,answer\nwhere was Ada Moss born?,Vale\n")
    (place / "tasks" / "my_docs.yaml").write_text(text)
    task = TaskManager(include_path=str(place / "tasks"), include_defaults=False).load(["my_docs"])["tasks"]["my_docs"]
    (doc,) = task.test_docs()
    assert doc["query"] == "where was Ada Moss born?" and doc["answers"] == ["Vale"]


def test_every_column_ending_option_and_default_is_documented() -> None:
    endings = {*KINDS, *READERS} - {".text", ".markdown", ".htm", ".xhtml", ".ndjson"}  # other names of the same
    names = {*KNOWN, *OF_QUESTIONS, *endings}
    assert {name for name in names if f"`{name}`" not in PAGE} == set()
    options = re.findall(r"--\w+", evaluate_cli._parser().format_help())
    assert {option for option in options if option not in PAGE} <= {"--help"}
    assert f"| {TOKENS}, {OVERLAP}, {MIN_SUPPORT} |" in PAGE
