"""The numbered sentences of passages: from a folder that has them, of a part of it, and where there are none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lm_eval_rag.harness.backends.corpora import Corpora, RetrieveBackend
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.ask_types import Retrieve
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.types import Passage, Query
from lm_eval_rag.harness.data import sentences
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.data.sentences import split_passages

PASSAGES = tuple(Passage(f"p{i}", f"Title {i}\nOne {i}. Two {i}.") for i in range(4))
SENTENCES = [["One 0.", " Two 0."], None, ["", "One 2.", "Two 2."], []]
EXPECTED = [("One 0.", " Two 0."), (), ("", "One 2.", "Two 2."), ()]
HITS = [(2, 1.5), (0, 1.0), (3, 0.5), (1, 0.0), (2, 0.0)]


def saved(folder: Path, column: Any = SENTENCES) -> Corpus:
    """A corpus whose file has the column, as those of the tasks over Wikipedia."""
    file = Corpus.of(PASSAGES).save(folder) / "corpus.parquet"
    table = pq.read_table(file)
    pq.write_table(table.append_column("sentences", pa.array(column, pa.list_(pa.large_string()))), file)
    return Corpus.open(folder)


def test_the_sentences_of_passages(tmp_path: Path) -> None:
    corpus = saved(tmp_path / "c")
    passages = split_passages(corpus, HITS)
    assert [passage.sentences for passage in passages] == [EXPECTED[row] for row, _ in HITS]
    plain = corpus.passages(HITS)
    assert [(p.id, p.text, p.score) for p in passages] == [(p.id, p.text, p.score) for p in plain]
    assert all(passage.sentences == () for passage in plain) and split_passages(corpus, []) == []


def test_a_part_has_those_of_the_whole(tmp_path: Path) -> None:
    part = saved(tmp_path / "c").part([3, 2, 0], "part")
    assert [p.sentences for p in split_passages(part, [(1, 0.0), (2, 0.0)])] == [EXPECTED[2], EXPECTED[0]]
    again = part.part([2], "again")
    assert [p.sentences for p in split_passages(again, [(0, 0.0)])] == [EXPECTED[0]]


def test_corpora_without_the_column_have_none(tmp_path: Path) -> None:
    for corpus in (Corpus.of(PASSAGES), Corpus.open(Corpus.of(PASSAGES).save(tmp_path / "c"))):
        for each in (corpus, corpus.part([2, 1, 0], "part")):
            assert split_passages(each, HITS[1:2]) == each.passages(HITS[1:2])


def test_a_file_that_changed_is_read_anew(tmp_path: Path) -> None:
    corpus = saved(tmp_path / "c")
    assert split_passages(corpus, [(0, 0.0)])[0].sentences == EXPECTED[0]
    file = tmp_path / "c" / "corpus.parquet"
    table = pq.read_table(file).drop_columns(["sentences"])
    pq.write_table(table.append_column("sentences", pa.array([["New."]] * 4, pa.list_(pa.large_string()))), file)
    os.utime(file, ns=(1, 1))
    assert split_passages(corpus, [(0, 0.0)])[0].sentences == ("New.",)
    file.write_bytes(b"nothing")
    with pytest.raises(UserError, match="missing or damaged"):
        split_passages(corpus, [(0, 0.0)])


def test_a_retrieval_reads_them_only_where_they_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the same text is asked with and without them at once; both have the same passages and steps."""
    backend = RetrieveBackend(Corpora(given=saved(tmp_path / "c")), Journal(None))
    query = Query("q", "two 2")
    with monkeypatch.context() as patch:
        patch.setattr(sentences, "_column", lambda *_: pytest.fail("the column was read"))
        (plain,) = backend.serve([(query, Retrieve(query.text, 2))])
    first, second = backend.serve([(query, Retrieve(query.text, 2, sentences=wanted)) for wanted in (True, False)])
    assert [p.sentences for p in first.value] == [EXPECTED[int(p.id[1:])] for p in first.value]
    assert second.value == plain.value and {p.sentences for p in second.value} == {()}
    assert [p.id for p in first.value] == [p.id for p in second.value] and first.value[0].sentences
    assert first.step.request == second.step.request and first.step.passages == second.step.passages
