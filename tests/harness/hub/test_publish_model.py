"""Publishing trained models to the Hub double, and using them from there."""

import hashlib
import json
import pickle
from dataclasses import replace

import pytest
import yaml

from lm_eval_rag.harness.checkpoints.download import fetch_folder
from lm_eval_rag.harness.checkpoints.note import Note, write_note
from lm_eval_rag.harness.common.errors import UserError

REPO = "acme/tower"
NOTE = Note(
    kind="retriever", mode="rgft", tasks=("ruleqa_y", "ruleqa_i"), corpora=("ruleqa_y/aa", "ruleqa_i/bb"), seed=3,
    settings={"encoder": "minilm", "temperature": 0.01, "n_rules": 3},
    results={"epoch": 2, "mean": 0.45, "recalls": {"ruleqa_y": 0.5, "ruleqa_i": 0.4}, "before": 0.11, "seconds": 9.5},
    versions={"numpy": "2"},
)  # fmt: skip
GENERATOR = Note(
    kind="generator", mode="rgft", prompt="ruleqa-1", tasks=("ruleqa_y", "ruleqa_n"),
    corpora=("ruleqa_y/aa", "ruleqa_n/bb"),
    settings={
        "base": "acme/llama", "preset": {"lora": True, "four_bit": True}, "dtype": "bfloat16", "unstated": "keep",
        "method": "rulerag_ft", "parameters": {"seed": 0, "k": 5}, "corpora": {"ruleqa_y": "ruleqa_y/aa"},
        "retriever": ["dense", {"model": "dpr", "adapter": "acme/dpr@v1"}],
    },
    results={"rows": 90, "rows_without_the_answer": 30, "epoch": 4.0, "step": 40, "dev_em": 45.0,
             "dev_em_ruleqa_y": 50.0, "dev_em_ruleqa_n": 40.0, "dev_em_before": 11.0, "seconds": 9.5, "finished": True},
)  # fmt: skip


def front_of(card):
    return yaml.safe_load(card.split("---\n")[1])


@pytest.fixture
def folder(tmp_path):
    """A trained retriever's folder, with what its training left."""
    made = tmp_path / "tower"
    made.mkdir()
    (made / "query.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
    write_note(made, NOTE)
    for path in ("state.pt", ".env", "checkpoint-3/model.safetensors", "run.log"):
        (made / path).parent.mkdir(exist_ok=True)
        (made / path).write_text("left out")
    return made


@pytest.fixture
def ran(tmp_path):
    """``ran(**model_args)``: the results file of an lm_eval run."""

    def write(limit=1559, **arguments):
        scores = {"alias": "ruleqa_i", "em,none": 0.25, "em_stderr,none": 0.01, "recall@10,none": 0.5,
                  "recall@10_stderr,none": "N/A", "sample_len": limit}  # fmt: skip
        whole = {
            "results": {"ruleqa_i": scores},
            "n-samples": {"ruleqa_i": {"original": 1559, "effective": limit}},
            "config": {"model": "rulerag_ft", "model_args": arguments},
            "configs": {},
        }
        path = tmp_path / "runs" / "results_2026-01-01T00-00-00.000000.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(whole))
        return path

    return write


def test_a_retriever_with_its_note(publish, hub, client, folder):
    command = ("model", str(folder), "--repo", REPO, "--tag", "v1", "--licence", "other", "--accept-terms")
    said = publish(*command)
    assert not hub.requests and "Left out: .env, checkpoint-3/model.safetensors, run.log, state.pt" in said
    publish(*command, "--dataset", "acme/ruleqa@v1", "--upload")
    found = hub.repositories["models", REPO]
    assert set(found.files) == {".gitattributes", "README.md", "query.safetensors", "rulerag.json"}
    assert found.tags == {"v1": found.head} and "Publish rgft retriever tower" in found.messages[-1]
    card = found.files["README.md"].decode()
    front = front_of(card)
    assert (front["license"], front["license_name"]) == ("other", "research-only")
    assert front["license_link"] == "README.md" and front["datasets"] == ["acme/ruleqa"]
    assert front["base_model"] == "sentence-transformers/all-MiniLM-L6-v2"
    results = {one["dataset"]["name"]: one["metrics"] for one in front["model-index"][0]["results"]}
    values = {name: [(one["type"], one["value"]) for one in metrics] for name, metrics in results.items()}
    assert values == {f"ruleqa_{s} (dev questions)": [("recall@10", v)] for s, v in (("y", 0.5), ("i", 0.4))}
    conditions = "minilm, exact search, n_rules=3, corpus ruleqa_i/bb"
    assert f"| ruleqa_i (dev questions) | recall@10 | 0.4 | {conditions} | training |" in card
    assert "0.11" not in card and "0.45" not in card  # before training, and a mean of other units
    assert "| seconds | 9.5 |" in card and "| temperature | 0.01 |" in card
    assert "**Research and educational use only.** Trained on ruleqa_i" in card
    got = fetch_folder(f"{REPO}@v1")
    assert (got / "query.safetensors").read_bytes() == (folder / "query.safetensors").read_bytes()


def test_results_of_lm_eval(publish, client, folder, ran):
    command = ("model", str(folder), "--repo", REPO, "--licence", "other", "--accept-terms", "--results")
    for given in (ran(retriever_adapter=str(folder)), ran(retriever_adapter=f"{REPO}@v1").parent):
        card = publish(*command, str(given)).split("----- README.md\n")[1]
        rows = {row["dataset"]["name"]: row for row in front_of(card)["model-index"][0]["results"]}
        assert {one["type"]: one["value"] for one in rows["ruleqa_i"]["metrics"]} == {"em": 0.25, "recall@10": 0.5}
        assert "| ruleqa_i | em | 0.25 ± 0.01 | rulerag_ft, retriever_adapter=this checkpoint | results_" in card
    assert "ruleqa_i (first 20 of 1559 questions)" in publish(*command, str(ran(20, retriever_adapter=str(folder))))


def test_no_result_is_taken_from_another_model(publish, client, folder, ran, tmp_path):
    command = ("model", str(folder), "--repo", REPO, "--licence", "other", "--accept-terms", "--results")
    with pytest.raises(UserError, match=r"is from another model: none of its model_args"):
        publish(*command, str(ran(retriever_adapter="acme/other")))
    (tmp_path / "no.json").write_text("{}")
    for path, message in (
        (tmp_path / "no.json", "is not a results file"),
        (tmp_path / "nowhere", "contains no results"),
    ):
        with pytest.raises(UserError, match=message):
            publish(*command, str(path))


def test_without_a_note_nothing_is_claimed(publish, client, tmp_path):
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "model.safetensors").write_bytes(b"x")
    said = publish("model", str(tmp_path / "bare"), "--repo", REPO, "--licence", "other")
    assert "model-index" not in said and "Measured" not in said and "trained" not in said


def test_what_is_refused(publish, hub, client, folder, tmp_path):
    command = ("model", str(folder), "--repo", REPO, "--accept-terms")
    with pytest.raises(UserError, match=r"licence of .* is unknown. Give --licence"):
        publish(*command)
    with pytest.raises(UserError, match=r"There is no folder"):
        publish("model", str(tmp_path / "nowhere"), "--repo", REPO, "--licence", "other")
    (folder / "token.txt").write_text("hf_" + "a" * 34)
    with pytest.raises(UserError, match=r"token\.txt, byte 0: a Hugging Face token"):
        publish(*command, "--licence", "other", "--upload")
    (folder / "token.txt").unlink()
    write_note(folder, Note(kind="generator", mode="rgft", results={"finished": False}))
    with pytest.raises(UserError, match=r"is not finished"):
        publish(*command, "--licence", "other", "--upload")
    (folder / "rulerag.json").write_text("{")
    with pytest.raises(UserError, match=r"rulerag\.json is damaged"):
        publish(*command, "--licence", "other", "--upload")
    assert not hub.requests


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("pytorch_model.bin", b"x", "pytorch_model.bin (may be a pickle)"),
        ("deep/model.PT", b"x", "deep/model.PT (may be a pickle)"),
        ("index.pkl", b"", "index.pkl (may be a pickle)"),
        ("modeling_x.py", b"import os", "modeling_x.py (a program)"),
        ("run.sh", b"echo", "run.sh (a program)"),
        ("run", b"#!/bin/sh\n", "run (a script)"),
        ("tool", b"\x7fELF\x02", "tool (a program)"),
        ("weights.dat", pickle.dumps([1]), "weights.dat (a pickle)"),
        ("weights.model", b"PK\x03\x04..", "weights.model (an archive, as torch saves pickles)"),
    ],
)
def test_what_runs_code_is_not_published(publish, hub, client, folder, name, content, says):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    with pytest.raises(UserError) as raised:
        publish("model", str(folder), "--repo", REPO, "--licence", "other", "--accept-terms", "--upload")
    assert says in str(raised.value) and "\n" not in str(raised.value)
    assert not hub.repositories


@pytest.mark.parametrize("target", ["file", "folder", "nowhere"])
def test_a_link_out_of_the_folder_is_not_published(publish, hub, client, folder, tmp_path, target):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("private")
    (folder / "vocab.txt").symlink_to(tmp_path / target)
    with pytest.raises(UserError, match=r"lead out of .*tower: vocab\.txt\. Put the files themselves there"):
        publish("model", str(folder), "--repo", REPO, "--licence", "other", "--accept-terms", "--upload")
    assert not hub.repositories


def test_a_link_within_the_folder_is_the_file_it_leads_to(publish, client, folder):
    (folder / "again.safetensors").symlink_to("query.safetensors")
    said = publish("model", str(folder), "--repo", REPO, "--licence", "other", "--accept-terms")
    assert said.count(hashlib.sha256((folder / "query.safetensors").read_bytes()).hexdigest()) == 2


def test_an_adapter_names_its_base_model_by_its_hub_id(publish, hub, client, folder, tmp_path):
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(tmp_path), "r": 8}))
    (folder / "README.md").write_text(f"---\nbase_model: {tmp_path}\n---\n[More Information Needed]\n")
    command = ("model", str(folder), "--repo", REPO, "--licence", "other", "--accept-terms")
    with pytest.raises(UserError, match=r"a local path, or a name without ORG/.*--base-model ORG/NAME"):
        publish(*command)
    publish(*command, "--base-model", "acme/base", "--upload")
    files = hub.repositories["models", REPO].files
    assert json.loads(files["adapter_config.json"]) == {"base_model_name_or_path": "acme/base", "r": 8}
    card = files["README.md"].decode()
    assert front_of(card)["base_model"] == "acme/base" and front_of(card)["library_name"] == "peft"
    assert "More Information" not in card and not [
        path for path, data in files.items() if str(tmp_path).encode() in data
    ]


COMMANDS = {  # what its note says -> the one command of its card
    "dense": (NOTE, f"--tasks ruleqa_y,ruleqa_i --model rulerag_ft --model_args retriever=dense,retriever_model=minilm,"
              f"retriever_adapter={REPO}@v1,generator=tiny_rgft"),
    "static ssft": (
        replace(NOTE, mode="ssft", settings={"encoder": "static"}),
        "--tasks ruleqa_y,ruleqa_i --model standard_rag --model_args retriever=static,"
        f"retriever_adapter={REPO}@v1,generator=tiny",
    ),
    "7B": (GENERATOR, "--tasks ruleqa_y,ruleqa_n --model rulerag_ft --model_args retriever=dense,retriever_model=dpr,"
           f"retriever_adapter=acme/dpr@v1,k=5,gen_peft={REPO}@v1,gen_load_in_4bit=True,gen_dtype=bfloat16"),
    "tiny": (
        replace(GENERATOR, mode="ssft", settings={
            "base": "tiny", "preset": {"lora": False, "four_bit": False}, "dtype": "float32", "method": "rulerag_ft",
            "parameters": {"seed": 0, "n_rules": 0}, "retriever": ["static", {"adapter": "ssft"}]}),
        "--tasks ruleqa_y,ruleqa_n --model rulerag_ft --model_args retriever=static,retriever_adapter=ssft,n_rules=0,"
        f"generator=tiny,gen_pretrained={REPO}@v1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_of_a_card_runs_the_checkpoint_as_it_was_trained(publish, hub, client, folder, name):
    from lm_eval._cli.harness import HarnessCLI
    from lm_eval.api.registry import get_model
    from lm_eval.config.evaluate_config import EvaluatorConfig

    import lm_eval_rag
    from lm_eval_rag.harness.plugin.arguments import LM_EVALS, read_arguments

    note, expected = COMMANDS[name]
    write_note(folder, note)
    if "peft" in expected:
        (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "acme/llama"}))
    publish("model", str(folder), "--repo", REPO, "--tag", "v1", "--licence", "other", "--accept-terms", "--upload")
    card = hub.repositories["models", REPO].files["README.md"].decode()
    (line,) = [line.strip() for line in card.splitlines() if "lm_eval --tasks" in line]
    assert line == f"lm_eval {expected}"
    lm_eval_rag.register()
    config = EvaluatorConfig.from_cli(HarnessCLI()._parser.parse_args(["run", *line.split()[1:]]))
    given = {key: value for key, value in config.model_args.items() if key not in LM_EVALS}
    setup = read_arguments(config.model, get_model(config.model).method, given)
    trained = note.settings.get("retriever")
    assert trained is None or [setup.corpora.retriever, dict(setup.corpora.options)] == trained
    assert setup.generator.spec.note is None or setup.generator.spec.note.mode in (note.mode, "rgft", "base")
    assert "## Limits" in card and f"of seed {note.seed}" in card


def test_a_generators_card_has_its_results_and_not_those_of_its_base(publish, client, folder):
    write_note(folder, GENERATOR)
    card = publish("model", str(folder), "--repo", REPO, "--licence", "other", "--accept-terms").split(
        "----- README.md\n"
    )[1]
    rows = {row["dataset"]["name"]: row["metrics"][0]["value"] for row in front_of(card)["model-index"][0]["results"]}
    assert rows == {"ruleqa_y (dev questions)": 0.5, "ruleqa_n (dev questions)": 0.4}
    conditions = (
        "rulerag_ft, k=5, retriever=dense, retriever_model=dpr, retriever_adapter=acme/dpr@v1, corpus ruleqa_y/aa"
    )
    assert f"| ruleqa_y (dev questions) | em | 0.5 | {conditions} | training |" in card
    assert "dev_em" not in card and "11.0" not in card
    assert front_of(card)["base_model"] == "acme/llama" and "huggingface.co/acme/llama" in card
    assert "30 of its 90 training prompts have no document that states the answer" in card


def test_a_run_that_nothing_answered_gives_no_score_of_answers(publish, client, folder, ran):
    command = ("model", str(folder), "--repo", REPO, "--licence", "other", "--accept-terms", "--results")
    card = publish(*command, str(ran(generator="dummy", retriever_adapter=str(folder)))).split("----- README.md\n")[1]
    assert "| ruleqa_i | recall@10 | 0.5 | rulerag_ft, generator=dummy, retriever_adapter=this checkpoint |" in card
    assert "| em |" not in card and "type: em" not in card


def test_nothing_local_is_published(publish, hub, client, folder, tmp_path, ran):
    """Neither in the card nor in the note: the base model, the retriever and the file of prompts have other names."""
    local = tmp_path / "models"
    settings = {**GENERATOR.settings, "base": str(local / "llama"),
                "retriever": ["dense", {"model": "dpr", "adapter": "checkpoints/retriever-1"}],
                "parameters": {"prompt_file": str(local / "mine.toml")}}  # fmt: skip
    write_note(folder, replace(GENERATOR, settings=settings))
    results = ran(gen_pretrained=str(folder), retriever_adapter=str(local / "dpr"))
    command = ("model", str(folder), "--repo", REPO, "--licence", "other", "--accept-terms", "--results", str(results))
    with pytest.raises(UserError, match=r"base model of .*: a local path, or.*--base-model ORG/NAME"):
        publish(*command)
    with pytest.raises(UserError, match=r"retriever's checkpoint 'checkpoints/retriever-1'.*--retriever ORG/NAME@TAG"):
        publish(*command, "--base-model", "acme/llama")
    publish(*command, "--base-model", "acme/llama", "--retriever", "acme/dpr@v2", "--upload")
    files = hub.repositories["models", REPO].files
    assert not [path for path, data in files.items() if str(tmp_path).encode() in data or b"checkpoints/" in data]
    note = json.loads(files["rulerag.json"])
    assert note["settings"]["base"] == "acme/llama" and note["settings"]["parameters"] == {"prompt_file": "mine.toml"}
    assert note["settings"]["retriever"] == ["dense", {"model": "dpr", "adapter": "acme/dpr@v2"}]
    assert note["settings"]["corpora"] == GENERATOR.settings["corpora"]
    assert "retriever_adapter=acme/dpr@v2" in files["README.md"].decode()


def test_a_model_of_restricted_data_needs_its_terms_accepted(publish, hub, client, folder):
    command = ("model", str(folder), "--repo", REPO, "--licence", "other")
    with pytest.raises(UserError, match=r"trained on sets whose terms restrict.*ruleqa_i \(.*research and educational"):
        publish(*command, "--upload")
    assert not hub.repositories
    write_note(folder, replace(NOTE, tasks=("ruleqa_y",)))  # CC BY
    assert "Research" not in publish(*command)


def test_a_card_that_somebody_wrote_is_kept(publish, client, folder):
    (folder / "README.md").write_text("---\nlicense: other\nlanguage: en\nbase_model: a/b\n---\n# Mine\n\nIts story.\n")
    card = publish("model", str(folder), "--repo", REPO, "--accept-terms").split("----- README.md\n")[1]
    front = front_of(card)
    assert (front["license"], front["language"], front["base_model"]) == ("other", "en", "a/b")
    assert "# Mine\n\nIts story." in card and "## Measured" in card


def test_an_interrupted_model_goes_on(publish, hub, client, folder):
    command = ("model", str(folder), "--repo", REPO, "--licence", "other", "--accept-terms", "--upload")
    hub.fault = lambda method, path: method == "PUT"
    with pytest.raises(UserError, match=r"could not be used.*Run the same command again"):
        publish(*command)
    assert set(hub.repositories["models", REPO].files) == {".gitattributes"}
    hub.fault = lambda method, path: None
    publish(*command)
    assert "query.safetensors" in hub.repositories["models", REPO].files


def test_a_generator_from_the_hub_is_the_one_that_was_published(publish, hub, client, little_llama):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    publish("model", str(little_llama), "--repo", "acme/llama", "--tag", "v1", "--licence", "other", "--upload")
    folder = fetch_folder("acme/llama@v1")
    tokens = torch.tensor([[5, 6, 7]])
    here, there = (transformers.AutoModelForCausalLM.from_pretrained(str(path)) for path in (little_llama, folder))
    with torch.no_grad():
        assert torch.equal(here(tokens).logits, there(tokens).logits)
    assert folder.name == hub.repositories["models", "acme/llama"].head
