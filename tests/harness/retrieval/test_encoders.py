"""Settings of encoders by short name, Hub id and folder, with a Hub that has nothing but a few JSON files."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.checkpoints.locate import Checkpoint
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.retrieval import encoders, make_retriever
from lm_eval_rag.harness.retrieval.encoders import PRESETS, Overrides, Tower, towers

INSTRUCTION = "Represent this sentence for searching relevant passages: "
QUESTION, CONTEXT = "facebook/dpr-question_encoder-single-nq-base", "facebook/dpr-ctx_encoder-single-nq-base"
SIZES = ("small", "base", "large")
# By Hub id what the model cards say: pooling, whether cosine, prefix of queries, prefix of documents.
E5 = ("mean", True, "query: ", "passage: ")
BGE = ("cls", True, INSTRUCTION, "")
CARDS = {
    **{f"intfloat/{name}-{size}": E5 for name in ("e5", "multilingual-e5") for size in SIZES},
    **{f"intfloat/e5-{size}-v2": E5 for size in SIZES},
    **{f"BAAI/bge-{size}-en{version}": BGE for size in SIZES for version in ("", "-v1.5")},
    "facebook/contriever": ("mean", False, "", ""),
    "facebook/contriever-msmarco": ("mean", False, "", ""),
    "princeton-nlp/sup-simcse-bert-base-uncased": ("pooler", True, "", ""),
    QUESTION: ("pooler", False, "", ""),
    "facebook/dpr-question_encoder-multiset-base": ("pooler", False, "", ""),
}
Hub = Callable[..., None]


@pytest.fixture(autouse=True)
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Hub:
    """Every Hub id exists, as an empty folder; returns a function that writes a JSON file into one."""

    def fetched(name: str, kind: str) -> Checkpoint:
        return Checkpoint(tmp_path / name.partition("@")[0], f"{name.partition('@')[0]}@commit")

    def write(name: str, file: str, content: Any) -> None:
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / file).write_text(json.dumps(content))

    monkeypatch.setattr(encoders, "checkpoint", fetched)
    encoders._warn_of_defaults.cache_clear()
    for kind, name in (("Question", "question"), ("Context", "ctx")):
        for data in ("single-nq", "multiset"):
            write(f"facebook/dpr-{name}_encoder-{data}-base", "config.json", {"architectures": [f"DPR{kind}Encoder"]})
    return write


def plain(model: str, document_model: str | None = None, **overrides: Any) -> tuple[Tower, Tower]:
    return towers(model, document_model, None, Overrides(**overrides))


def settings(queries: Tower, documents: Tower) -> tuple[str, bool, str, str]:
    assert (queries.pooling, queries.normalize) == (documents.pooling, documents.normalize)
    return queries.pooling, queries.normalize, queries.prefix, documents.prefix


@pytest.mark.parametrize("revision", ["", "@refs/pr/1"])
@pytest.mark.parametrize("model", CARDS)
def test_a_hub_id_has_the_settings_of_its_card(model: str, revision: str, caplog: pytest.LogCaptureFixture) -> None:
    queries, documents = plain(model + revision)
    assert settings(queries, documents) == CARDS[model]
    assert queries.checkpoint.identity == f"{model}@commit"
    assert documents.checkpoint.identity == f"{model.replace('question', 'ctx')}@commit"
    assert not caplog.records


@pytest.mark.parametrize("name", PRESETS)
def test_short_name_and_hub_id_are_one_encoder(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also to what is stored: the identities of short names are spelled out here, since stored vectors go by them."""
    monkeypatch.setattr(encoders, "find_spec", lambda package: None)
    preset = PRESETS[name]
    short, by_id = plain(name), plain(preset.model)
    assert [tower.identity for tower in short] == [tower.identity for tower in by_id]
    shared = {"adapter": None, "pooling": preset.pooling, "normalize": preset.normalize}
    shared |= {"max_length": preset.max_length}
    document_model = preset.document_model or preset.model
    assert short[0].identity == {"model": f"{preset.model}@commit", "prefix": preset.query_prefix, **shared}
    assert short[1].identity == {"model": f"{document_model}@commit", "prefix": preset.document_prefix, **shared}


def test_the_document_model_names_the_preset_too(caplog: pytest.LogCaptureFixture) -> None:
    queries, documents = plain("my/question-encoder", CONTEXT)
    assert settings(queries, documents) == CARDS[QUESTION] and queries.max_length == 256
    assert documents.checkpoint.identity == f"{CONTEXT}@commit" and not caplog.records


def test_what_the_user_gives_wins() -> None:
    assert settings(*plain("intfloat/e5-base-v2", query_prefix="", document_prefix="")) == ("mean", True, "", "")
    assert settings(*plain("BAAI/bge-base-en", pooling="mean", query_prefix="q: ")) == ("mean", True, "q: ", "")
    # HippoRAG's rows normalise Contriever's vectors.
    rows = plain("facebook/contriever", pooling="mean", normalize=True, max_length=512)
    assert settings(*rows) == ("mean", True, "", "") and rows[0].max_length == 512
    assert plain(QUESTION, "my/ctx")[1].checkpoint.identity == "my/ctx@commit"


def test_modules_of_a_known_encoder_go_with_its_prefixes(hub: Hub) -> None:
    hub("intfloat/e5-small-v2", "modules.json", [])
    assert settings(*plain("intfloat/e5-small-v2")) == ("own", True, "query: ", "passage: ")


def test_an_unknown_encoder_says_once_what_it_takes(hub: Hub, caplog: pytest.LogCaptureFixture) -> None:
    hub("my/modules", "modules.json", [])
    hub("my/prompts", "config_sentence_transformers.json", {"prompts": {"query": "q: "}})
    with caplog.at_level(logging.WARNING):
        assert settings(*plain("my/modules")) == ("own", True, "", "")
        assert settings(*plain("my/prompts")) == ("mean", True, "q: ", "")
        plain("my/explicit", pooling="cls", normalize=False, query_prefix="", document_prefix="")
        assert not caplog.records
        for _ in range(3):
            assert settings(*plain("my/bert", query_prefix="q: ")) == ("mean", True, "q: ", "")
    (record,) = caplog.records
    used = "my/bert .* Queries: mean pooling, cosine, prefix 'q: '. Documents: mean pooling, cosine, prefix ''"
    for words in (used, "retriever_pooling=", "retriever_normalize=", "retriever_query_prefix=", "document_prefix="):
        assert re.search(words, record.getMessage())


@pytest.mark.skipif(
    not all(map(find_spec, ("torch", "transformers", "sentence_transformers", "faiss"))), reason="needs the extra dense"
)
def test_towers_of_dpr_in_each_others_place(hub: Hub, tmp_path: Path) -> None:
    import numpy as np

    corpus = Corpus.of([Passage("a", "w1"), Passage("b", "w2")])
    hub("my/question", "config.json", {"architectures": ["DPRQuestionEncoder"]})
    hub("my/ctx", "config.json", {"architectures": ["DPRContextEncoder"]})
    asks, reads = (
        "question encoder of DPR and cannot encode documents",
        "document encoder of DPR and cannot encode queries",
    )
    for options, message in (
        ({"model": "my/question"}, rf"my/question is a {asks}.*retriever_document_model="),
        ({"model": QUESTION, "document_model": "my/question"}, asks),
        ({"model": "my/ctx"}, rf"my/ctx is a {reads}.*retriever_document_model="),
        ({"model": CONTEXT}, reads),
        ({"model": QUESTION, "adapter": "my/ctx"}, reads),
    ):
        with pytest.raises(UserError, match=message):
            make_retriever("dense", corpus, **options)
    np.save(tmp_path / "vectors.npy", np.eye(2, dtype=np.float32))  # then nobody asks the tower of the documents
    index = {"index": str(tmp_path / "vectors.npy"), "index_ids": "rows"}
    for options in (
        {"model": QUESTION},
        {"model": "my/question", "document_model": "my/ctx"},
        {"model": "my/question", **index},
    ):
        assert make_retriever("dense", corpus, **options).fingerprint
