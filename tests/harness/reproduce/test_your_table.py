"""``lm-eval-rag reproduce ./mine.toml``: the example of docs/your_table.md is run; what is wrong in a file is named."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest
from lm_eval.tasks import TaskManager

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.reproduce.check_table import check_arguments
from lm_eval_rag.harness.reproduce.reproduce_cli import reproduce_main
from lm_eval_rag.harness.reproduce.table_file import CLAIM_KEYS, PLOT_KEYS, ROW_KEYS, TOP_KEYS, read_table
from lm_eval_rag.tasks.ruleqa_demo.build import build

ROOT = Path(__file__).parents[3]
DOCS = (ROOT / "docs" / "your_table.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"```toml\n(.*?)```", DOCS, re.DOTALL)
ROW = '[[row]]\nname = "a"\nmodel = "rule_vote"\n'


def run(folder: Path, *argv: str) -> int:
    (folder / "tables").mkdir(exist_ok=True)
    published = ROOT / "leaderboards" / "published"
    return reproduce_main(argv, tables=folder / "tables", published=published, build=lambda task: build())


@pytest.mark.usefixtures("undescribed")
def test_the_example_of_the_docs_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(EXAMPLE, encoding="utf-8")
    assert run(tmp_path, "./mine.toml", "--limit", "8") == 0
    text = capsys.readouterr().out
    assert "reproduced/mine/page.html" in text and "Mined rules answer better than random rules" in text
    page = json.loads(Path("reproduced/mine/page.json").read_text(encoding="utf-8"))["page"]
    lines = {line["name"]: line for line in page["lines"]}
    assert list(lines) == ["vote", "vote-random", "vote-k2", "vote-k5", "vote-k20"]
    assert all(line["cells"]["ruleqa_demo"]["questions"] == 8 and line["status"] == "run" for line in lines.values())
    (curve,) = page["figures"][0]["curves"].values()
    assert [point["x"] for point in curve] == [2, 5, 20]
    em = [lines[f"vote-k{k}"]["cells"]["ruleqa_demo"]["scores"]["em"]["ours"]["mean"] for k in (2, 5, 20)]
    assert [point["ours"]["mean"] for point in curve] == em
    assert lines["vote"]["commands"][-1].endswith("lm-eval-rag reproduce ./mine.toml --only vote")
    html = Path("reproduced/mine/page.html").read_text(encoding="utf-8")
    assert "paper" not in re.sub(r"(?s)<style>.*?</style>", "", html), "a table of one's own is compared with no paper"


def test_every_key_that_the_docs_name_is_one(tmp_path: Path) -> None:
    tables = re.split(r"\n\| (?:at the top|of a `\[\[\w+\]\]`) \| meaning \|", DOCS)[1:]
    for table, keys in zip(tables, (TOP_KEYS, ROW_KEYS, CLAIM_KEYS), strict=True):
        first = re.findall(r"^\| ([^|]+) \|", table.partition("\n\n")[0], re.MULTILINE)
        named = [name for cell in first for name in re.findall(r"`(\w+)`", cell)]
        assert len(named) > 3 and set(named) <= set(keys)
    assert {"title", "metric", "x_label", "log"} <= set(PLOT_KEYS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[row]\nname = 1", r"mine\.toml: row = \{'name': 1\} is not allowed\. Write \[\[row\]\] \(with two"),
        ('title = "T"', r"mine\.toml: there is no row\. Give at least one: \[\[row\]\]"),
        (ROW + 'tasks = "ruleqa_demo"', r"mine\.toml: row 'a': tasks: write a list, \[\"ruleqa_demo\"\]"),
        (ROW + 'tasks = ["t"]\neach = 3', r"mine\.toml: each = 3 is not allowed\. Write each = \{ NAME"),
        (ROW + 'tasks = ["t"]\neach = { k = 3 }', r"mine\.toml: each\.k = 3 is not allowed\. Write a list"),
        (ROW + 'tasks = ["t"]\narguments = "k=3"', r"mine\.toml: arguments of row 'a' = 'k=3' is not allowed"),
        (ROW + 'task = ["t"]', r"mine\.toml: Unknown key of row 'a' 'task'\. Did you mean 'tasks'"),
        (ROW + 'tasks = ["t"]\n[[claim]]\ntext = "c"\nbeter = []', r"mine\.toml: Unknown key of a claim 'beter'"),
        ("train = 3\n" + ROW + 'tasks = ["t"]', r"mine\.toml: train = 3 is not allowed\. Write \[train\.NAME\]"),
        ('rows = "x"', r"Unknown key of mine\.toml 'rows'\. Did you mean 'row'"),
        ("a = = 1", r"The table .*mine\.toml cannot be read: .*line 1"),
        ("name = \"x\"\n", r"Unknown key of mine\.toml 'name'"),
    ],
)  # fmt: skip
def test_a_bad_file_is_one_message_with_file_key_and_mend(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        run(tmp_path, str(tmp_path / "mine.toml"))


def test_no_such_table(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"mine\.toml cannot be read"):
        run(tmp_path, str(tmp_path / "mine.toml"))
    with pytest.raises(UserError, match=r"Unknown table 'mine'.*A table of your own is a file: \./NAME\.toml"):
        run(tmp_path, "mine")


def test_defaults_of_a_short_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(ROW + 'tasks = ["t"]', encoding="utf-8")
    table = read_table(tmp_path / "mine.toml")
    assert table.metrics[0] == "em" and table.title == "mine" and not table.compared


def test_ones_own_method_and_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("lm_eval.tasks.TaskManager", partial(TaskManager, include_defaults=False))
    (tmp_path / "my.py").write_text("def two(query, *, k: int = 5):\n    yield\n", encoding="utf-8")
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / "own.yaml").write_text("task: own_task\ndataset_path: json\n", encoding="utf-8")
    row = f'[[row]]\nname = "a"\nmodel = "rag"\narguments = {{ method = "{tmp_path / "my.py"}:two", k = 3 }}\n'
    file = tmp_path / "mine.toml"
    file.write_text('include_path = "tasks"\ntasks = ["own_task"]\n' + row, encoding="utf-8")
    assert run(tmp_path, str(file), "--dry-run") == 0
    assert f"--include_path {folder}" in capsys.readouterr().out
    file.write_text('include_path = "none"\ntasks = ["own_task"]\n' + row, encoding="utf-8")
    with pytest.raises(UserError, match=r"include_path = '.*none' is no folder"):
        run(tmp_path, str(file), "--dry-run")
    with pytest.raises(UserError, match="Unknown argument 'kk'"):
        check_arguments("rag", {"method": f"{tmp_path / 'my.py'}:two", "kk": 3})
    with pytest.raises(UserError, match="not a RAG method"):
        check_arguments("dummy", {})
