"""The base of a published model: a name that others find, or none; the kept adapters, from any folder; dead links."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from lm_eval_rag.harness.checkpoints.note import Note, write_note
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.generators.spec import EMBEDDED
from lm_eval_rag.harness.hub.own_card import own_card
from lm_eval_rag.harness.hub.published_note import is_hub_id

ROOT = Path(__file__).parents[3]
REPO, SMOLLM2 = "acme/smol", "HuggingFaceTB/SmolLM2-135M-Instruct"
GENERATOR = Note(
    kind="generator", mode="rgft", prompt="ruleqa-1", tasks=("ruleqa_y",), corpora=("ruleqa_y/aa",),
    settings={"base": "acme/llama", "method": "rulerag_ft", "dtype": "bfloat16", "dev": 20},
    results={"rows": 90, "dev_rows": 9, "dev_em_ruleqa_y": 50.0, "finished": True},
)  # fmt: skip


def front_of(card):
    return yaml.safe_load(card.split("---\n")[1])


@pytest.fixture
def folder(tmp_path):
    """``folder(note, base)``: the folder of a generator, an adapter where it has a base."""

    def folder(note=None, base=None):
        made = tmp_path / "models" / "adapter"
        made.mkdir(parents=True, exist_ok=True)
        (made / "adapter_model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
        if base:
            (made / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": base, "r": 8}))
        if note:
            write_note(made, note)
        return made

    return folder


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("acme/llama", True),
        ("acme/llama@v1", True),
        ("checkpoints/smollm2", False),  # where `train` and `scripts/smollm2.py` put models, whether it is here or not
        ("rulerag_tiny", False),
        ("/models/llama", False),
        ("./models/llama", False),
        ("~/llama", False),
        ("models/llama/7b", False),
    ],
)
def test_what_others_find(tmp_path, monkeypatch, value, found):
    monkeypatch.chdir(tmp_path)
    assert is_hub_id(value, tmp_path / "folder") is found


@pytest.mark.parametrize("mode", ["rgft", "ssft"])
def test_the_kept_adapters_are_published_with_their_base_from_any_folder(
    publish, hub, client, tmp_path, monkeypatch, mode
):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    kept = ROOT / "leaderboards" / "checkpoints" / f"smollm2_{mode}"
    command = ("model", str(kept), "--repo", REPO, "--tag", "v1", "--licence", "other", "--accept-terms")
    with pytest.raises(UserError, match=r"adapter_config.json is 'checkpoints/smollm2': a local path.*--base-model"):
        publish(*command)
    publish(*command, "--base-model", SMOLLM2, "--upload")
    files = hub.repositories["models", REPO].files
    assert not [path for path, data in files.items() if b"checkpoints/smollm2" in data]
    assert json.loads(files["adapter_config.json"])["base_model_name_or_path"] == SMOLLM2  # what gen_peft= loads
    assert json.loads(files["rulerag.json"])["settings"]["base"] == SMOLLM2
    card = files["README.md"].decode()
    assert front_of(card)["base_model"] == SMOLLM2 and f"[{SMOLLM2}](https://huggingface.co/{SMOLLM2})" in card
    rules, em, trained = {"rgft": ("", 0.28, 2201), "ssft": (", n_rules=0", 0.26, 1977)}[mode]
    measured = f"rulerag_ft, documents=5{rules}, retriever=static, retriever_adapter={mode}, 50 questions"
    corpus = "corpus ruleqa_i/589f147b55b6"
    assert f"| ruleqa_i (dev questions) | em | {em} | {measured}, {corpus} | training |" in card
    assert f"Trained on {trained} of 4542 prompts" in card and f"| rows_trained | {trained} |" in card


@pytest.mark.parametrize("base", ["llama", "checkpoints/llama", "/models/llama"])
def test_a_base_that_others_do_not_find_is_refused_and_replaced(publish, hub, client, folder, base):
    made = folder(replace(GENERATOR, settings={**GENERATOR.settings, "base": base}))
    command = ("model", str(made), "--repo", REPO, "--licence", "mit")
    with pytest.raises(UserError, match=rf"adapter is '{base}': a local path, or a name without ORG/"):
        publish(*command)
    publish(*command, "--base-model", "acme/llama", "--upload")
    assert json.loads(hub.repositories["models", REPO].files["rulerag.json"])["settings"]["base"] == "acme/llama"


@pytest.mark.parametrize("option", ["--base-model", "--retriever"])
@pytest.mark.parametrize("given", ["llama", "checkpoints/llama", "./llama", "/models/llama"])
def test_what_is_given_must_be_a_hub_id(publish, client, folder, option, given):
    with pytest.raises(UserError, match=rf"{option} '{given}' is no Hub id. Give ORG/NAME"):
        publish("model", str(folder(GENERATOR)), "--repo", REPO, "--licence", "mit", option, given)


def test_a_base_at_a_revision_is_linked_without_it(publish, client, folder):
    made = folder(replace(GENERATOR, settings={**GENERATOR.settings, "base": "acme/llama@v2"}))
    card = publish("model", str(made), "--repo", REPO, "--licence", "mit").split("----- README.md\n")[1]
    assert front_of(card)["base_model"] == "acme/llama" and "(https://huggingface.co/acme/llama)" in card


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("rulerag_tiny", None),
        ("checkpoints/llama", None),
        ("a/b", "a/b"),
        ("[rulerag_tiny, a/b]", "a/b"),
        ("[a/b, c/d]", ["a/b", "c/d"]),
    ],
)
def test_a_base_of_the_front_matter_that_is_no_hub_id_is_left_out(tmp_path, given, kept):
    (tmp_path / "README.md").write_text(f"---\nlicense: mit\nbase_model: {given}\n---\n# Mine\n")
    assert own_card(tmp_path)[0].get("base_model") == kept


def test_links_that_lead_nowhere_on_the_hub_become_text(tmp_path):
    (tmp_path / "curves.png").touch()
    code = "    table[0](../x)\n\n```\n[a](../b)\n```\n\n`[c](../d)`"
    (tmp_path / "README.md").write_text(
        "---\nlicense: mit\n---\n[twin](../twin/README.md), [scores](../../RESULTS.md#x), ![loss](curves.png), "
        f"![gone](gone.png), [paper](https://arxiv.org/abs/1), [below](#limits).\n\n{code}\n"
    )
    _, text = own_card(tmp_path)
    assert text.startswith(
        "twin, scores, ![loss](curves.png), gone, [paper](https://arxiv.org/abs/1), [below](#limits)."
    )
    assert text.endswith(code)


@pytest.mark.parametrize("name", EMBEDDED)
def test_the_cards_of_shipped_generators_name_nothing_that_is_not_on_the_hub(name):
    front, text = own_card(EMBEDDED[name])
    assert "base_model" not in yaml.safe_load((EMBEDDED[name] / "README.md").read_text().split("---\n")[1])
    assert "base_model" not in front and "](.." not in text


@pytest.mark.parametrize(
    ("tasks", "settings", "results", "shown"),
    [
        (("ruleqa_y",), {"dev": 20}, {"dev_rows": 9}, "9 questions, "),
        (("ruleqa_y", "ruleqa_n"), {"dev": 20}, {"dev_rows": 40}, "20 questions, "),
        (("ruleqa_y", "ruleqa_n"), {"dev": 20}, {"dev_rows": 29}, ""),  # an earlier note, with the sum alone
        (("ruleqa_y", "ruleqa_n"), {"dev": 20}, {"dev_rows": 29, "dev_questions": {"ruleqa_y": 9}}, "9 questions, "),
    ],
)
def test_a_measured_score_says_of_how_many_questions_and_of_which_data(
    publish, client, folder, tasks, settings, results, shown
):
    note = replace(
        GENERATOR,
        tasks=tasks,
        corpora=tuple(f"{task}/aa" for task in tasks),
        settings={**GENERATOR.settings, **settings, "parameters": {"documents": 5, "seed": 1}},
        results={**GENERATOR.results, **results},
    )
    made = folder(note)
    card = publish("model", str(made), "--repo", REPO, "--licence", "other", "--accept-terms")
    assert f"| em | 0.5 | rulerag_ft, documents=5, {shown}corpus ruleqa_y/aa | training |" in card


@pytest.mark.parametrize(
    ("unstated", "results", "trained"),
    [
        ("keep", {"rows_without_the_answer": 30}, 90),
        ("abstain", {"rows_without_the_answer": 30}, 90),
        ("drop", {"rows_without_the_answer": 30}, 60),  # an earlier note
        ("drop", {"rows_without_the_answer": 30, "rows_trained": 60}, 60),
    ],
)
def test_a_card_says_how_many_prompts_it_was_trained_on(publish, client, folder, unstated, results, trained):
    settings = {**GENERATOR.settings, "unstated": unstated}
    made = folder(replace(GENERATOR, settings=settings, results={**GENERATOR.results, **results}))
    card = publish("model", str(made), "--repo", REPO, "--licence", "mit")
    assert f"| rows_trained | {trained} |" in card
    assert ("Trained on 60 of 90 prompts" in card) == (unstated == "drop")
