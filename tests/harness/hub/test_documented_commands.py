"""The commands of the documents that name a repository of the Hub run against the double, from publishing to use."""

import re
import sys
from pathlib import Path

import pytest

from lm_eval_rag import register
from lm_eval_rag.harness.checkpoints.note import Note, write_note
from lm_eval_rag.harness.retrieval.static_queries import base, save

sys.path.insert(0, str(Path(__file__).parents[2]))

from test_document_commands import COMMANDS, execute

ON_HUB = list(dict.fromkeys(one for lines in COMMANDS.values() for one in lines if "ORG/NAME" in one))
SET = """--metadata '{"dataset": "acme/sets@v1"}'"""
STEPS = (  # (commands of the documents, the repository that they mean, what else is changed)
    (r"publish model towers ", "acme/towers", [("towers ", "towers/rgft ")]),  # shows what would be uploaded
    (r"publish model towers/rgft", "acme/towers", [("$", " --tag v1 --upload")]),
    (r"publish dataset", "acme/sets", [("$", " --upload")]),
    (r"publish run", "acme/runs", [("$", " --upload")]),
    (r"ruleqa_demo.*retriever_adapter=", "acme/towers", [(",gen_peft=.*", "")]),  # its adapter fits one large model
    (r'"dataset":', "acme/sets", []),
    (r"retriever_path=", "acme/runs", [("hotpotqa_200", "ruleqa_y"), ("$", f" {SET}")]),  # the small set
)


@pytest.fixture
def presupposed(tmp_path, monkeypatch, undescribed):
    """A folder with a retriever's checkpoint and a run with it."""
    monkeypatch.chdir(tmp_path)
    Path("towers/rgft").mkdir(parents=True)
    save(base(), Path("towers/rgft"))
    write_note(Path("towers/rgft"), Note("retriever", "rgft", tasks=("ruleqa_y",), corpora=("ruleqa_y/small",)))
    register()
    trained = "--model_args retriever=static,retriever_adapter=towers/rgft --output_path runs/rgft --log_samples"
    execute(f"lm_eval --tasks ruleqa_demo --model standard_rag {trained}", ["--limit", "2"])


def test_every_command_with_a_repository_is_one_of_the_steps():
    assert len(ON_HUB) >= 7
    assert all(sum(bool(re.search(step, one)) for step, *_ in STEPS) == 1 for one in ON_HUB)


def test_what_is_published_is_used(presupposed, hub, client, offered, capsys):
    client.setattr("lm_eval_rag.tasks.ruleqa.published.offered", lambda: offered)
    for step, repository, changes in STEPS:
        if step == "publish run":
            execute(f"lm-eval-rag retrieve --tasks ruleqa_y {SET} --k 20 --limit 3 --out run.parquet", [])
        for command in (one for one in ON_HUB if re.search(step, one)):
            command = command.replace("ORG/NAME", repository)
            for pattern, text in changes:
                command = re.sub(pattern, text, command, count=1)
            execute(command, ["--limit", "2"])
    assert capsys.readouterr().out.count("Published: ") == 3
    assert set(hub.repositories) == {("models", "acme/towers"), ("datasets", "acme/sets"), ("datasets", "acme/runs")}
    assert hub.repositories["models", "acme/towers"].tags and hub.repositories["datasets", "acme/sets"].tags
