"""``--model_args`` of a method: what is refused, and what of them stands in the results."""

import json
from pathlib import Path

import pytest

from lm_eval_rag._register import METHODS
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.plugin.arguments import TEXTS, read_arguments
from lm_eval_rag.harness.plugin.model import RagLM
from lm_eval_rag.methods.external import external

CHAT = "local-chat-completions"


def model_of(name):
    from lm_eval.api.registry import get_model

    return get_model(name)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"kk": 3}, r"Unknown argument 'kk'. Did you mean 'k'"),
        ({"retreiver": "bm25"}, r"Unknown argument 'retreiver'. Did you mean 'retriever'"),
        ({"retriever": "bm52"}, r"Unknown retriever 'bm52'. Did you mean 'bm25'"),
        ({"retriever_size": 3}, r"size"),
        ({"generator": "hff"}, r"Unknown generator 'hff'. Did you mean 'hf'"),
        ({"k": 0}, r"k=0 is not allowed"),
        ({"k": "many"}, r"k='many' is not allowed"),
        ({"max_prompt_tokens": 0}, r"max_prompt_tokens=0 is not allowed"),
        ({"seed": -1}, r"seed=-1 is not allowed"),
        ({"document_order": "worst"}, r"best_first"),
        ({"corpus": "nowhere.jsonl"}, r"nowhere.jsonl"),
        ({"prompt_file": "nowhere.toml"}, r"nowhere.toml"),
        ({"gen_flavor": "sweet"}, r"generator=scripted-lm with .*flavor.* cannot be built.*gen_NAME=VALUE"),
        ({"gen_api_key": "sk-1"}, r"gen_api_key is refused"),
        ({"trust_remote_code": True}, r"--trust_remote_code is refused: .*gen_trust_remote_code=True"),
        ({"corpus": "/dev/zero"}, r"/dev/zero' is a device, not a file. Give a folder"),
        ({"prompt_file": "/dev/zero"}, r"/dev/zero is a device, not a file. Give prompt_file="),
        ({"k": 1e9}, r"k=1000000000.0 is not allowed: .* of 10000 or less\.$"),
        ({"k": 1_000_000_000}, r"k=1000000000 is not allowed: .* of 10000 or less\.$"),
        *(({name: ""}, rf"^{name}= is empty: give it a value, or leave it out") for name in TEXTS),
        *(({name: 5}, rf"^{name}=5 is not allowed: give a text or None") for name in TEXTS),
        *(
            ({"generator": CHAT, "gen_base_url": url}, r"gen_base_url=.* is not an address: give one such as http://")
            for url in ("notaurl", "http://", "ftp://x", "http://x:99999/v1", "http://[x/v1")
        ),
        ({"generator": CHAT}, r"generator=local-chat-completions needs the address of its server, gen_base_url="),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_bad_arguments_say_what_is_allowed(evaluate, arguments, said):
    with pytest.raises(UserError, match=said) as raised:
        evaluate(arguments=arguments)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("given", [0, -3, "0", "-3", "abc", "auto:x", "1.5", ""])
def test_a_batch_size_is_a_count_or_auto(given):
    with pytest.raises(UserError, match=f"--batch_size {given} is not allowed: give a whole number of 1 or more"):
        model_of("rule_vote")(batch_size=given)


@pytest.mark.parametrize(
    ("generator", "given", "batch_size"),
    [("tiny", "auto", None), ("tiny", "auto:4", None), ("tiny", 1, None), ("tiny", "8", 8), ("hf", "auto:4", "auto:4")],
)
def test_auto_is_the_default_of_embedded_generators(generator, given, batch_size):
    model = model_of("rule_vote")(generator=generator, gen_pretrained="gpt2", batch_size=given)
    assert model.generator.spec.batch_size == batch_size


def test_arguments_may_come_as_a_text(documents):
    made = model_of("standard_rag").create_from_arg_string(
        f"k=3,generator=scripted-lm,gen_flavour=sweet,corpus={documents},journal=off", {"batch_size": 4, "device": None}
    )
    assert made.setup.parameters == {"k": 3} and made.generator.lm.flavour == "sweet"
    assert made.generator.spec.batch_size == 4


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_is_a_model(name):
    assert issubclass(model_of(name), RagLM) and model_of(name).name == name


def test_two_adapters_get_two_results_folders(documents):
    paths = set()
    for given in ({"k": 1}, {"k": 2}, {"k": 1, "gen_flavour": "sweet"}, {"k": 1, "corpus": documents}):
        arguments = {"generator": "scripted-lm", **given}
        model_of("standard_rag").create_from_arg_obj(arguments, {"batch_size": 1})
        paths.add(arguments["path"])
        assert arguments["path"].startswith("lm-eval-rag/standard_rag-")
    model_of("rulerag_icl").create_from_arg_obj(arguments := {"generator": "scripted-lm", "k": 1})
    assert len({*paths, arguments["path"]}) == 5
    model_of("standard_rag").create_from_arg_obj(arguments := {"path": "mine"})
    assert arguments["path"] == "mine"


def test_results_tell_what_produced_them(evaluate, documents):
    rag = evaluate(arguments={"k": 3, "gen_flavour": "sweet"})["config"]["rag"]
    assert rag["method"] == "standard_rag" and rag["parameters"]["k"] == 3 and rag["parameters"]["documents"] == 10
    assert rag["generator"][:2] == ["scripted-lm", {"flavour": "sweet"}] and rag["journal"] is None
    assert rag["retriever"][0] == "bm25" and rag["indexes"] and rag["corpus"]
    assert set(rag["versions"]) >= {"lm-eval-rag", "lm_eval"}
    assert rag["counts"] == {
        "questions": 6, "unscored": 0, "calls": 6, "journalled": 0, "Retrieve": 6, "Generate": 6,
    }  # fmt: skip
    assert rag["unscored"] == []
    json.dumps(rag)


def test_the_fingerprint_changes_with_what_changes_answers_alone(evaluate, documents, tmp_path):
    def fingerprint(**arguments):
        return evaluate(arguments=arguments, limit=1)["config"]["rag"]["fingerprint"]

    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({"id": "d", "text": "Person0 Alba visited Rome Burg."}))
    moved = tmp_path / "moved.jsonl"
    moved.write_bytes(Path(documents).read_bytes())
    base = fingerprint()
    assert base == fingerprint(journal=str(tmp_path / "j.sqlite")) == fingerprint(corpus=str(moved))
    changed = [{"k": 3}, {"gen_flavour": "sweet"}, {"corpus": str(other)}, {"max_prompt_tokens": 99}, {"seed": 1}]
    assert len({base, *(fingerprint(**given) for given in changed)}) == 6


def test_the_code_of_a_system_is_part_of_the_fingerprint(tmp_path):
    file = tmp_path / "my.py"

    def fingerprint():
        return read_arguments("external", external, {"function": f"{file}:answer"}).fingerprint

    file.write_text("def answer(question): return 'x'\n")
    before = fingerprint()
    assert fingerprint() == before
    file.write_text("def answer(question): return 'y'\n")
    assert fingerprint() != before


def test_a_local_folder_generates(evaluate, little_llama):
    arguments = {"generator": "hf", "gen_pretrained": str(little_llama), "gen_dtype": "float32"}
    results = evaluate(arguments=arguments, limit=3, device="cpu", batch_size=2)
    records = [sample["doc"]["_rag"] for sample in results["samples"]["visits"]]
    assert len(records) == 3 and all(record["answer"] and record["failure"] is None for record in records)
    assert all(record["completion_tokens"] > 0 for record in records)
    name, given, (files,) = results["config"]["rag"]["generator"]
    assert (name, given["pretrained"]) == ("hf", str(little_llama))
    assert "model.safetensors" in {file for file, _ in files}
