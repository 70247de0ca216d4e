"""The commands of README and docs run, but for those in two tables; each document in a folder of its own.

What a document presupposes is there: a system, a method, documents, questions, two runs, servers and a model. In place
of a benchmark that is read from files, a command with a server or a model gets an invented one. An evaluation gets
``--limit 3``, so that all of them cost a few seconds. ``LM_EVAL_RAG_ALL_COMMANDS=1`` also runs those that take minutes
or read files, as printed but for ``--limit 2``. That commands name options that exist is tested for all of them in
test_documents.py.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag import cli, register

sys.path.insert(0, str(Path(__file__).parent))

from document_doubles import answering, graph_server
from test_documents import PAGES, ROOT, commands

ALL = os.environ.get("LM_EVAL_RAG_ALL_COMMANDS") == "1"
CHAT = "{server}/v1/chat/completions"
SERVED = f"generator=local-chat-completions,gen_model=m,gen_base_url={CHAT}"
STAND_INS = {  # what a command names -> what stands in for it; {} is a fixture
    r"gen_base_url=URL": f"gen_base_url={CHAT}",
    r'"gen_base_url": "URL"': f'"gen_base_url": "{CHAT}"',
    r"kg=http://127.0.0.1:8000": f"kg={{graph}},{SERVED}",  # quick
    r"url=http://127.0.0.1:8000/": "url={server}/",
    r"(?<=search_agent --model_args )generator=hf,gen_pretrained=PATH_OR_HUB_ID": (
        SERVED  # its prompt does not fit into the small model
    ),
    r"PATH_OR_HUB_ID|(?<=gen_pretrained=)[AB]\b": "{little_llama}",
}
INVENTED = {  # a benchmark of a command with a server, a model or a saved run -> an invented one of the same form
    r"hotpotqa_200,fever_345|hotpotqa(?= --model ircot)|hotpotqa_200(?= --model standard_rag)": "reasoning_demo",
    r"crag_task2": "crag_demo",
    r"ruleqa_i(?= --model rulerag_icl)": "ruleqa_demo",
}
ELSEWHERE = {  # what a command holds -> which test runs it, or why none does
    r"ORG/NAME": "tests/harness/hub/test_documented_commands.py",
    r"lm-eval-rag demo": "tests/test_demo.py",
    r"my_adapter": "tests/test_adapters.py",
    r"--engine ray": "tests/harness/plugin/test_on_ray.py",
    r"llama2_7b|gen_peft=adapter": "needs a GPU",
    r"lucene|\be5\b|e5_Flat|fullwiki|crag_task3|mirror|--tasks hotpotqa --model standard_rag$": "needs gigabytes",
}
LONG = {  # what a command holds -> why it runs only with LM_EVAL_RAG_ALL_COMMANDS=1
    r"lm-eval-rag train|retriever_adapter=base|towers|runs/base|generators/rgft": "trains",
    r"--figures": "draws",
    r"ruleqa_([iywfn]|f_hard)\b|--tasks ruleqa(_natural)? |crag_task|hotpotqa|rag_nq|open_domain": "upstream files",
    r"runs/rulerag_ft": "needs such a run",
    r"lm-eval-rag reproduce (?!.*--dry-run)": "takes minutes",
    r"crp_rag|crag_hybrid|gen_pretrained=PATH_OR_HUB_ID,k=5": "makes hundreds of calls",
}
LIMIT = ["--limit", "2" if ALL else "3"]
METHOD = re.compile(r"```python\n(from lm_eval_rag import Answer, .*?)```", re.DOTALL)
SYSTEM = 'def answer(question):\n    return {"answer": "Vale", "passages": [{"text": "Ada Moss was born in Vale."}]}\n'
VOTE = "lm_eval --tasks ruleqa_demo --model rule_vote --output_path runs/rule_vote --log_samples"
RAG = "lm_eval --tasks ruleqa_demo --model standard_rag --output_path runs/standard_rag --log_samples"

UNAVAILABLE = "it is in no local mirror and its download failed"


def invented(command: str) -> str:
    """A command over invented data, where it has a server, a model or a saved run that is to be tried."""
    for pattern, name in INVENTED.items():
        command = re.sub(pattern, name, command)
    return command


def reason(command: str) -> str | None:
    """Why a command is not run; None if it is."""
    reasons = ELSEWHERE if ALL else {**ELSEWHERE, **LONG}
    return next((why for pattern, why in reasons.items() if re.search(pattern, invented(command))), None)


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
    pattern = re.compile(r"[^{]*\*")  # JSON stands in quotes, where a shell leaves it as it is
    words = [x for word in words for x in (sorted(map(str, Path().glob(word))) if pattern.match(word) else [word])]
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


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with answering() as (url, paths):
        yield url
    assert {"/ask", "/v1/chat/completions"} >= set(paths)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("uvicorn", reason="needs the extra web")
    with graph_server(tmp_path_factory.mktemp("graph")) as url:
        yield url


@pytest.fixture
def place(tmp_path: Path, runs: Path, monkeypatch: pytest.MonkeyPatch, undescribed: None) -> Path:
    """A folder with all that the documents speak of."""
    monkeypatch.setattr("webbrowser.open", lambda url: True)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr("lm_eval_rag.harness.report.report_html.why_no_figures", lambda: "not in this test")  # seconds
    monkeypatch.chdir(tmp_path)
    (method,) = METHOD.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    (tmp_path / "my.py").write_text(f"{method}\n{SYSTEM}")
    questions = "question,answer\nwhere was Ada Moss born?,Vale\nwhat does Ben Orr is a citizen of ?,Ree\n"
    for folder in ("docs", "my_docs", "tasks/docs"):
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
    records = Path(os.environ.get("LM_EVAL_RAG_MIRROR", "")) / "crag" / "dev_data.jsonl.bz2"
    if ALL and records.is_file():
        (tmp_path / "crag").mkdir()
        shutil.copy(records, tmp_path / "crag")
    return tmp_path


class Fixtures(dict[str, Any]):
    """Fixtures by name, each made when it is first read."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.request = request

    def __missing__(self, name: str) -> Any:
        return self.request.getfixturevalue(name)


@pytest.mark.timeout(3600 if ALL else 300)
@pytest.mark.parametrize("document", [name for name, lines in RUN.items() if lines])
def test_the_commands_of_a_document_run(
    document: str, place: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    fixtures, unavailable = Fixtures(request), []
    for command in map(invented, RUN[document]):
        for pattern, replacement in STAND_INS.items():
            if re.search(pattern, command):
                command = re.sub(pattern, replacement.format_map(fixtures), command)
        try:
            execute(command, [] if command == VOTE else LIMIT)
        except SystemExit:
            if not ALL or UNAVAILABLE not in capsys.readouterr().err:
                raise
            unavailable.append(command)
    text = capsys.readouterr()
    assert "Traceback" not in text.err and (text.out or unavailable)
    if unavailable:
        pytest.skip(f"all others ran; the upstream files are missing for: {'; '.join(unavailable)}")


def test_every_entry_of_the_tables_holds_for_a_command() -> None:
    commands = [one for lines in COMMANDS.values() for one in lines]
    for pattern in (*STAND_INS, *INVENTED, *ELSEWHERE, *LONG):
        assert any(re.search(pattern, one) for one in commands), pattern
    assert sum(map(len, RUN.values())) >= 40 and set(REPEATED) <= set(RUN["report.md"])
