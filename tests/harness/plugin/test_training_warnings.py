"""A checkpoint whose training did not end, or that was trained on another version of the data, says so, once."""

import logging

import pytest

from lm_eval_rag.harness.checkpoints.note import Note, write_note
from lm_eval_rag.harness.plugin.arguments import read_arguments
from lm_eval_rag.harness.plugin.training_warnings import other_data, warn_of_training
from lm_eval_rag.methods.rulerag_ft import rulerag_ft

NOTE = Note("generator", "rgft", "ruleqa-1", ("ruleqa_i", "ruleqa_f"), ("ruleqa_i/3aa", "ruleqa_f/4bb"))


@pytest.mark.parametrize(
    ("asked", "pairs"),
    [
        (["ruleqa_i/3aa", "ruleqa_i/3aa"], []),
        (["ruleqa_i/9cc", None, "ruleqa_f/4bb", "ruleqa_i/9cc"], [("ruleqa_i/3aa", "ruleqa_i/9cc")]),
        (["ruleqa_i_fresh/9cc", "ruleqa_n/1dd"], []),  # data that it never saw
    ],
)
def test_data_of_another_version(asked, pairs):
    assert other_data(NOTE, asked) == pairs and other_data(None, asked) == []


def test_generator_and_retriever_are_named(tmp_path, caplog):
    for kind in ("generator", "retriever"):
        (tmp_path / kind).mkdir()
        write_note(tmp_path / kind, Note(kind, "rgft", NOTE.prompt, NOTE.tasks, NOTE.corpora))
    given = {"gen_pretrained": str(tmp_path / "generator"), "retriever_adapter": str(tmp_path / "retriever")}
    setup = read_arguments("rulerag_ft", rulerag_ft, given)
    with caplog.at_level(logging.WARNING):
        warn_of_training(setup, ["ruleqa_f/4bb"])
        assert not caplog.messages
        warn_of_training(setup, ["ruleqa_i/9cc"])
    assert [message.split(" was trained")[0] for message in caplog.messages] == ["The generator", "The retriever"]
    assert "ruleqa_i/3aa, asked about ruleqa_i/9cc" in caplog.text


def test_a_training_that_did_not_end_is_named(tmp_path, caplog):
    for finished in (True, False):
        write_note(tmp_path, Note("generator", "rgft", NOTE.prompt, NOTE.tasks, results={"finished": finished}))
        setup = read_arguments("rulerag_ft", rulerag_ft, {"gen_pretrained": str(tmp_path)})
        assert not caplog.messages
        with caplog.at_level(logging.WARNING):
            warn_of_training(setup, ["ruleqa_i/3aa"])
    (message,) = caplog.messages
    assert message.startswith("The training of the generator did not end")
