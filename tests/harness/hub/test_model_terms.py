"""The terms of a model: those of all data that it and its base learned, and no licence that allows more."""

import logging
from dataclasses import replace

import pytest
import yaml

from lm_eval_rag.harness.checkpoints.note import Note, write_note
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.hub.learned import base_tasks

REPO = "acme/tuned"
DEMO = Note("generator", "rgft", prompt="ruleqa-1", tasks=("ruleqa_demo",), corpora=("ruleqa_demo/aa",),
            settings={"base": "tiny_rgft", "method": "rulerag_ft"}, results={"finished": True})  # fmt: skip
SETS = ("ruleqa_i", "ruleqa_y", "ruleqa_w", "ruleqa_f", "ruleqa_n", "ruleqa_demo")  # of tiny_rgft


def made(folder, note):
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
    write_note(folder, note)
    return folder


def test_the_terms_of_what_the_base_learned_bind_the_model(publish, client, tmp_path):
    command = ("model", str(made(tmp_path / "tuned", DEMO)), "--repo", REPO, "--licence")
    with pytest.raises(UserError, match=r"trained on sets whose terms restrict.*ruleqa_i \(.*research and educational"):
        publish(*command, "other")
    with pytest.raises(UserError, match=r"--licence mit would allow more than the terms.*ruleqa_i.*--licence other"):
        publish(*command, "mit", "--accept-terms")
    card = publish(*command, "other", "--accept-terms").split("----- README.md\n")[1]
    front = yaml.safe_load(card.split("---\n")[1])
    assert (front["license"], front["license_name"], front["license_link"]) == ("other", "research-only", "README.md")
    assert "**Research and educational use only.** Trained on ruleqa_i" in card
    assert f"Its base model was trained on {', '.join(SETS)} before." in card
    assert "--tasks ruleqa_demo " in card  # the command is about its own task


def test_a_base_without_terms_changes_nothing(publish, client, tmp_path):
    folder = made(tmp_path / "tuned", replace(DEMO, settings={**DEMO.settings, "base": "tiny"}))
    assert "Research" not in publish("model", str(folder), "--repo", REPO, "--licence", "mit")


@pytest.mark.parametrize("licence", ["apache-2.0", "mit", "cc-by-4.0"])
def test_a_licence_of_the_folder_is_refused_as_one_that_is_given(publish, client, tmp_path, licence):
    folder = made(tmp_path / "tuned", DEMO)
    (folder / "README.md").write_text(f"---\nlicense: {licence}\n---\n# Mine\n")
    command = ("model", str(folder), "--repo", REPO, "--accept-terms")
    with pytest.raises(UserError, match=rf"README.md: license {licence} would allow more"):
        publish(*command)
    assert "license: other" in publish(*command, "--licence", "other")


def test_the_base_of_a_base_counts_and_what_was_recorded_comes_first(tmp_path):
    first = made(tmp_path / "first", DEMO)
    second = replace(DEMO, tasks=("ruleqa_n_fresh",), settings={"base": str(first)})
    third = replace(DEMO, settings={"base": str(made(tmp_path / "second", second))})
    assert base_tasks(third) == ("ruleqa_n_fresh", "ruleqa_demo", *SETS[:-1])
    assert base_tasks(replace(third, base_tasks=("mine",))) == ("mine",)
    assert base_tasks(replace(third, base_tasks=())) == ()


def test_a_folder_that_was_renamed_may_name_itself(tmp_path):
    own = tmp_path / "own"
    assert base_tasks(replace(DEMO, settings={"base": str(made(own, replace(DEMO, settings={"base": str(own)})))})) == (
        "ruleqa_demo",
    )


def test_a_retriever_learned_what_its_encoder_had(tmp_path):
    tower = made(tmp_path / "tower", Note("retriever", "rgft", tasks=("ruleqa_i",), settings={"encoder": "minilm"}))
    assert base_tasks(Note("retriever", "rgft", settings={"encoder": str(tower)})) == ("ruleqa_i",)
    for encoder in ("static", "minilm"):
        assert base_tasks(Note("retriever", "rgft", settings={"encoder": encoder})) == ()


def test_the_note_of_a_base_on_the_hub_is_read(publish, hub, client, tmp_path, caplog):
    base = made(tmp_path / "base", replace(DEMO, tasks=("ruleqa_i",), settings={"base": "tiny"}))
    publish("model", str(base), "--repo", "acme/base", "--licence", "other", "--accept-terms", "--upload")
    gone = replace(DEMO, settings={"base": "checkpoints/gone"})
    with caplog.at_level(logging.WARNING):
        assert base_tasks(gone, "acme/base") == ("ruleqa_i",) and not caplog.messages
        assert base_tasks(gone, "acme/nowhere") == ()
    assert "What the base model checkpoints/gone was trained on is not known" in caplog.text
