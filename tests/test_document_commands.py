"""The commands of README and docs run, but for those in one table; each document in a folder of its own.

What a document presupposes is there: a system, a method, documents, questions, and two runs.
An evaluation gets ``--limit 3``, so that all of them cost a few seconds. That commands name options that exist is
tested for all of them in test_documents.py.
"""

import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from lm_eval_rag import cli, register

sys.path.insert(0, str(Path(__file__).parent))

from test_documents import PAGES, ROOT, commands

NOT_RUN = {  # what a command holds -> why it is not run here; each reason holds for a command of the documents
    r"PATH_OR_HUB_ID|gen_pretrained=[AB]\b": "needs a model of the Hub",
    r"gen_base_url|url=http|kg=http": "needs a server; tests/harness/systems and generators have one",
    r"ORG/NAME": "needs the Hub; tests/harness/hub has a double of it",
    r"lm-eval-rag train .*ruleqa_demo|retriever_adapter=base": "trains; tests/harness/train",
    r"--figures": "draws for seconds; tests/harness/report",
    r"ruleqa_([iywfn]|natural|f_hard)\b|--tasks ruleqa |crag_task|hotpotqa|rag_nq|open_domain": "needs data of others",
    r"runs/rulerag_ft|runs/llama|runs/base|towers|generators/rgft": "needs a run or a model of such a command",
    r"lm-eval-rag reproduce (?!.*--dry-run)": "minutes; tests/harness/reproduce runs tables",
    r"lm-eval-rag demo": "tests/test_demo.py runs it",
    r"ircot|crp_rag|crag_hybrid": "hundreds of calls; tests/methods runs them",
    r"my_adapter": "needs other libraries; tests/test_adapters.py",
}
LIMIT = ["--limit", "3"]
METHOD = re.compile(r"```python\n(from lm_eval_rag import Answer, .*?)```", re.DOTALL)
SYSTEM = 'def answer(question):\n    return {"answer": "Vale", "passages": [{"text": "Ada Moss was born in Vale."}]}\n'
VOTE = "lm_eval --tasks ruleqa_demo --model rule_vote --output_path runs/rule_vote --log_samples"
RAG = "lm_eval --tasks ruleqa_demo --model standard_rag --output_path runs/standard_rag --log_samples"


def reason(command: str) -> str | None:
    """Why a command is not run; None if it is."""
    return next((why for pattern, why in NOT_RUN.items() if re.search(pattern, command)), None)


COMMANDS = {path.name: commands(path.read_text(encoding="utf-8")) for path in PAGES}
REPORTS = [one for lines in COMMANDS.values() for one in lines if one.startswith("lm-eval-rag report runs/*")]
REPEATED = {one for one in REPORTS if REPORTS.count(one) > 1}  # run in report.md alone, which has all of them
RUN = {
    name: [one for one in lines if reason(one) is None and (one not in REPEATED or name == "report.md")]
    for name, lines in COMMANDS.items()
}


def execute(command: str, limit: list[str]) -> None:
    """A command of the shell in this process; ``>`` and its file are left out."""
    words = shlex.split(command.partition(" > ")[0])
    words = [name for word in words for name in (sorted(map(str, Path().glob(word))) if "*" in word else [word])]
    if words[0] == "lm-eval-rag":
        assert cli.main(words[1:]) == 0, command
        return
    from lm_eval._cli.harness import HarnessCLI

    harness = HarnessCLI()
    harness.execute(harness._parser.parse_args(["run", *words[1:], *limit]))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs of a vote, over all questions, and of a method with a generator."""
    folder = tmp_path_factory.mktemp("presupposed")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        register()
        execute(VOTE, [])
        execute(RAG, LIMIT)
    return folder / "runs"


@pytest.fixture
def place(tmp_path: Path, runs: Path, monkeypatch: pytest.MonkeyPatch, undescribed: None) -> Path:
    """A folder with all that the documents speak of."""
    monkeypatch.setattr("webbrowser.open", lambda url: True)
    monkeypatch.setattr("lm_eval_rag.harness.report.report_html.why_no_figures", lambda: "not in this test")  # seconds
    monkeypatch.chdir(tmp_path)
    (method,) = METHOD.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    (tmp_path / "my.py").write_text(f"{method}\n{SYSTEM}")
    questions = "question,answer\nwhere was Ada Moss born?,Vale\nwhat does Ben Orr is a citizen of ?,Ree\n"
    for folder in ("docs", "tasks/docs"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.md").write_text("# Towns\n\nAda Moss was born in Vale. Ben Orr was born in Ree.\n")
    for file in ("questions.csv", "tasks/questions.csv"):
        (tmp_path / file).write_text(questions)
    facts = [("Ada Moss", "Vale"), ("Cy Lund", "Norn"), ("Ben Orr", "Ree")]
    rows = [f"{name},{relation},{town}" for name, town in facts for relation in ("was born in", "is a citizen of")]
    (tmp_path / "facts.csv").write_text("subject,relation,object\n" + "\n".join(rows[:-1]) + "\n")
    table = re.search(r"```toml\n(.*?)```", (ROOT / "docs" / "your_table.md").read_text(encoding="utf-8"), re.DOTALL)
    task = re.search(r"```yaml\n(.*?)```", (ROOT / "docs" / "your_documents.md").read_text(encoding="utf-8"), re.DOTALL)
    assert table is not None and task is not None
    (tmp_path / "mine.toml").write_text(table[1])
    (tmp_path / "tasks" / "my_docs.yaml").write_text(task[1])
    shutil.copytree(runs, tmp_path / "runs")
    return tmp_path


@pytest.mark.parametrize("document", [name for name, lines in RUN.items() if lines])
def test_the_commands_of_a_document_run(document: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in RUN[document]:
        execute(command, [] if command == VOTE else LIMIT)
    text = capsys.readouterr()
    assert "Traceback" not in text.err and text.out


def test_every_reason_not_to_run_a_command_holds_for_one() -> None:
    commands = [one for lines in COMMANDS.values() for one in lines]
    assert {reason(one) for one in commands} == {None, *NOT_RUN.values()}
    assert sum(map(len, RUN.values())) >= 25 and set(REPEATED) <= set(RUN["report.md"])
