"""The commands of the documents that name a repository of the Hub run against the double, from publishing to use."""

import json
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
    (r"publish model adapter", "acme/towers", [("ORG/GENERATOR", "acme/generator"), ("$", " --upload")]),
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
    Path("adapter").mkdir()
    Path("adapter/adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "acme/llama", "r": 8}))
    Path("adapter/adapter_model.safetensors").write_bytes(Path("towers/rgft/model.safetensors").read_bytes())
    settings = {"base": "acme/llama", "method": "rulerag_ft", "retriever": ["static", {"adapter": "towers/rgft"}]}
    results = {"finished": True, "dev_em": 50.0, "epoch": 1.0}
    note = Note("generator", "rgft", prompt="ruleqa-1", tasks=("ruleqa_y",), settings=settings, results=results)
    write_note(Path("adapter"), note)
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
    assert capsys.readouterr().out.count("Published: ") == 4
    models, datasets = {"acme/towers", "acme/generator"}, {"acme/sets", "acme/runs"}
    assert set(hub.repositories) == {*(("models", one) for one in models), *(("datasets", one) for one in datasets)}
    assert hub.repositories["models", "acme/towers"].tags and hub.repositories["datasets", "acme/sets"].tags
