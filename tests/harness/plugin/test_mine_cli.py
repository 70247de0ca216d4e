"""``lm-eval-rag mine``: the file that it writes holds the mined rules, as ``--rules`` reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lm_eval_rag import cli
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.documents.rule_files import mined, read_facts, read_rules
from lm_eval_rag.harness.plugin.mine_cli import mine_main

HEADER = "subject,relation,object,time"
FACTS = [
    *(f"a{i},visits,b{i},{i:02}\na{i},praises,b{i},{i + 5:02}" for i in range(6)),
    *(f"b{i},hosts,c{i},{i + 1:02}\na{i},meets,c{i},{i + 9:02}" for i in range(6)),
]


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    path = tmp_path / "facts.csv"
    path.write_text("\n".join([HEADER, *FACTS]), encoding="utf-8")
    return path


@pytest.mark.parametrize("length", [1, 2, 3])
def test_the_file_is_read_as_the_rules(
    length: int, facts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rules.jsonl"
    assert cli.main(["mine", str(facts), "--out", str(out), "--rule-length", str(length)]) == 0
    rules = mined(read_facts(facts), rule_length=length)
    assert read_rules(str(out)) == rules
    assert capsys.readouterr().out == f"{len(rules)} rules of 24 facts: {out}\n"
    assert any(rule.path == ("visits", "hosts") and rule.head == "meets" for rule in rules) == (length > 1)
    assert any((rule.head, rule.body, rule.confidence) == ("praises", "visits", 1.0) for rule in rules)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "rules.csv"], "give a name that ends with .jsonl"),
        (["--out", "rules.jsonl", "--min-support", "0"], "give a whole number of 1 or more"),
        (["--out", "rules.jsonl", "--engine", "ray"], "needs ray|leave --engine out"),
    ],
)
def test_bad_arguments_teach(arguments: list[str], message: str, facts: Path) -> None:
    with pytest.raises(UserError, match=message):
        mine_main([str(facts), *arguments])


def test_a_table_without_facts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rules.jsonl").write_text('{"head": "a", "body": "b"}\n')
    with pytest.raises(UserError, match=r"there is no fact. Give subject, relation, object"):
        mine_main([str(tmp_path / "rules.jsonl"), "--out", str(tmp_path / "out.jsonl")])
    (tmp_path / "empty.csv").write_text(HEADER + "\n")
    with pytest.raises(UserError, match="There are no facts in"):
        mine_main([str(tmp_path / "empty.csv"), "--out", str(tmp_path / "out.jsonl")])
