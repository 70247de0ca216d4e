"""Base models that cannot be trained: without a tokenizer, with an empty or a too large one, with cut weights."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from trainings import DENSE, train

from lm_eval_rag.harness.checkpoints.locate import reason
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.retrieval.encoders import PRESETS
from lm_eval_rag.harness.train.retriever import train_retriever

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

WEIGHTS = ("config.json", "model.safetensors")


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    monkeypatch.setattr("lm_eval_rag.harness.train.curves.find_spec", lambda name: None)


def copied(folder, target, names):
    target.mkdir()
    for name in names:
        shutil.copy(folder / name, target / name)
    return target


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    """Configuration and weights of a GPT-2; transformers makes an empty tokenizer of them, with an end token."""
    folder = tmp_path_factory.mktemp("gpt2")
    config = transformers.GPT2Config(n_embd=32, n_layer=1, n_head=2, n_positions=2048)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


@pytest.fixture
def enlarged():
    """``enlarged(folder)``: the folder, whose tokenizer gets a token that its network has no embedding of."""

    def enlarge(folder):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        tokenizer.add_special_tokens({"additional_special_tokens": ["<|new|>"]})
        tokenizer.save_pretrained(folder)
        return folder

    return enlarge


def test_a_generator_without_a_tokenizer_is_refused_and_its_folder_is_free(gpt2, little_llama, tmp_path):
    pytest.importorskip("trl")
    out = tmp_path / "run"
    with pytest.raises(UserError, match=r"has no tokenizer, so its model cannot read a text"):
        train(gpt2, out)
    empty = copied(gpt2, tmp_path / "empty", WEIGHTS)
    (empty / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "GPT2Tokenizer"}))
    with pytest.raises(UserError, match=r"reads nothing of '.+': all of its 0 tokens.*vocabulary has 1 entries"):
        train(empty, out)
    assert train(little_llama, out, rows=4, dev=1, epochs=1)["finished"]  # the corrected command, with the same --out


def test_a_generator_whose_reason_has_several_lines(little_llama, tmp_path):
    pytest.importorskip("trl")
    base = copied(little_llama, tmp_path / "base", WEIGHTS)
    (base / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    with pytest.raises(UserError, match=r"cannot be loaded: .*\(1\) .*\(3\) .*\. Give --base tiny") as raised:
        train(base, tmp_path / "run")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError("No such file.\nPass a token."), "No such file"),
        (ValueError("made from one of: \n(1) a file, \n(2) a class.\n"), "made from one of: (1) a file, (2) a class"),
        (KeyError(), "KeyError"),
    ],
)
def test_the_reason_of_a_library_is_one_line(error, line):
    assert reason(error) == line


def test_weights_that_were_cut(little_llama, tmp_path):
    pytest.importorskip("trl")
    base = Path(shutil.copytree(little_llama, tmp_path / "base"))
    (base / "model.safetensors").write_bytes((base / "model.safetensors").read_bytes()[:5000])
    with pytest.raises(UserError, match=r"The base model '.*base' cannot be loaded: .*--base tiny") as raised:
        train(base, tmp_path / "run")
    assert "\n" not in str(raised.value)


def test_a_generator_with_more_tokens_than_embeddings(little_llama, tmp_path, enlarged):
    pytest.importorskip("trl")
    base = enlarged(Path(shutil.copytree(little_llama, tmp_path / "base")))
    with pytest.raises(UserError, match=r"cannot be loaded: its tokenizer has \d+ tokens and its network embeddings"):
        train(base, tmp_path / "run")


@pytest.fixture
def dense(corpora, tmp_path):
    """``dense(folder)``: trains this encoder."""
    for name in ("sentence_transformers", "peft", "faiss"):
        pytest.importorskip(name)

    def dense(folder):
        return train_retriever(replace(DENSE, encoder=str(folder)), corpora, tmp_path / "out")

    return dense


def test_an_encoder_without_a_tokenizer_is_refused_and_its_folder_is_free(dense, little_bert, encoder, tmp_path):
    with pytest.raises(UserError, match=r"has no tokenizer, so its model cannot read a text"):
        dense(copied(little_bert, tmp_path / "bare", WEIGHTS))
    empty = copied(little_bert, tmp_path / "empty", WEIGHTS)
    (empty / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
    with pytest.raises(UserError, match=r"reads nothing of 'what does .*': all of its \d+ tokens are unknown"):
        dense(empty)
    assert dense(encoder)["epoch"] == 1  # the corrected command, with the same --out


@pytest.mark.parametrize("tower", ["queries", "documents", "sentence-transformers"])
def test_an_encoder_with_more_tokens_than_embeddings(dense, encoder, enlarged, tmp_path, monkeypatch, tower):
    """Of queries or of documents, as a folder of transformers or of sentence-transformers."""
    larger = tmp_path / "larger"
    if tower == "sentence-transformers":
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer import modules

        network = modules.Transformer(encoder)
        SentenceTransformer(modules=[network, modules.Pooling(network.get_embedding_dimension())]).save(str(larger))
    else:
        shutil.copytree(encoder, larger)
    folders = (str(enlarged(larger)), encoder) if tower == "queries" else (encoder, str(enlarged(larger)))
    preset = replace(PRESETS["contriever"], model=folders[0], document_model=folders[1])
    monkeypatch.setitem(PRESETS, "contriever", preset)
    with pytest.raises(UserError, match=r"larger.*ValueError: its tokenizer has 49 tokens and its network embeddings"):
        dense("contriever")
