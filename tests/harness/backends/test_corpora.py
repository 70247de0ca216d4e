"""Corpora are opened when needed; of the built ones, the last used stay open."""

from __future__ import annotations

import pytest

from lm_eval_rag.harness.backends import corpora as corpora_module
from lm_eval_rag.harness.backends.corpora import BUILT, Corpora
from lm_eval_rag.harness.core.types import Passage, Query
from lm_eval_rag.harness.data.corpus import Corpus


def test_the_last_used_stay_open_and_all_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def opening(id: str) -> Corpus:
        opened.append(id)
        return Corpus.of([Passage("d", f"text of {id}")], id=id)

    monkeypatch.setattr(corpora_module, "open_corpus", opening)
    corpora = Corpora()
    for id in ("a", "b", "a", "b", "a", "c", "a", "c", "b"):
        corpus = corpora.corpus(Query("q", "?", corpus=id))
        assert corpus.id == id
        assert len(corpora.retriever_of(corpus).search([f"text of {id}"], 1)[0]) == 1
        assert len(corpora._corpora) <= BUILT and len(corpora._retrievers) <= BUILT
    assert opened == ["a", "b", "c", "b"]  # "a" was used after "b" when "c" came, and before "c" when "b" came
    assert list(corpora.identity()) == ["a", "b", "c"]


def test_an_empty_corpus_is_opened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def opening(id: str) -> Corpus:
        opened.append(id)
        return Corpus.of([], id=id, empty=True)

    monkeypatch.setattr(corpora_module, "open_corpus", opening)
    corpora = Corpora()
    assert corpora.corpus(Query("q", "?", corpus="a")) is corpora.corpus(Query("r", "?", corpus="a"))
    assert opened == ["a"]
