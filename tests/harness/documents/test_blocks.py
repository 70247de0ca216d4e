"""``lm-eval-rag build DOCUMENTS --out CORPUS``: the corpus of the documents, also after an interruption."""

import json
from pathlib import Path

import pytest

from lm_eval_rag import cli
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.documents import blocks
from lm_eval_rag.harness.documents.blocks import build_corpus
from lm_eval_rag.harness.documents.intake import as_corpus, read_documents

LONG = " ".join(f"Sentence {number} speaks of Vale and of Norn." for number in range(60))


@pytest.fixture
def documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Texts, pages, tables, facts, an empty file and one that is no text; a block has at most two files."""
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(blocks, "FILES", 2)
    root = tmp_path / "documents"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text(LONG)
    (root / "b.html").write_text(f"<html><title>B</title><body><p>{LONG}</p></body></html>")
    (root / "c.csv").write_text("subject,relation,object,time\nAda,visits,Vale,2014-01-02\n")
    (root / "d.jsonl").write_text(json.dumps({"text": LONG, "title": "D", "url": "http://d", "year": 3}) + "\n")
    (root / "sub" / "e.md").write_text("# E\n\nShort.")
    (root / "sub" / "empty.txt").write_text("")
    (root / "sub" / "z.txt").write_bytes(b"\xff\xfe\x00")
    return root


def test_the_corpus_is_the_one_that_is_read_at_once(documents, tmp_path, capsys):
    assert cli.main(["build", str(documents), "--out", str(tmp_path / "built"), "--passage_tokens", "40"]) == 0
    at_once, built = as_corpus(documents, tokens=40), Corpus.open(tmp_path / "built")
    rows = [(row, 0.0) for row in range(len(at_once))]
    assert len(at_once) > 30 and built.fingerprint == at_once.fingerprint
    of_built = [(p.id, p.text, p.time, p.fact, p.metadata) for p in built.passages(rows)]
    assert of_built == [(p.id, p.text, p.time, p.fact, p.metadata) for p in at_once.passages(rows)]
    sources = {p.source for p in at_once.passages(rows)} - {at_once.id}
    assert (
        {p.source for p in built.passages(rows)} - {built.id} == sources == {"a.txt", "b.html", "http://d", "sub/e.md"}
    )
    intake = read_documents(documents, tokens=40)
    said = capsys.readouterr().out
    assert f"{len(intake.passages)} passages of {intake.documents} documents" in said and len(intake.unread) == 2
    assert all(where in said for where, _ in intake.unread)
    assert not list((tmp_path / "cache" / "documents").iterdir())  # the blocks are not needed any more


def test_an_interrupted_command_goes_on(documents, tmp_path, monkeypatch):
    read, begun = blocks.read_block, []

    def stops(block):
        begun.append(block.number)
        if len(begun) == 3:
            raise KeyboardInterrupt
        return read(block)

    monkeypatch.setattr(blocks, "read_block", stops)
    with pytest.raises(KeyboardInterrupt):
        build_corpus(documents, tmp_path / "built")
    build_corpus(documents, tmp_path / "built")
    assert begun == [0, 1, 2, 2, 3] and Corpus.open(tmp_path / "built").fingerprint == as_corpus(documents).fingerprint
    (documents / "a.txt").write_text("Another text.")
    build_corpus(documents, tmp_path / "changed")
    assert begun[5:] == [0, 1, 2, 3]


def test_a_damaged_block_is_named(documents, tmp_path, monkeypatch):
    parts = blocks.blocks_of(documents, 128, 32)
    for block in parts:
        blocks.read_block(block)
    parts[0].table.write_bytes(parts[1].table.read_bytes())
    with pytest.raises(UserError, match=r"their notes say .* Remove that folder"):
        build_corpus(documents, tmp_path / "built")
    assert not (tmp_path / "built").exists()


@pytest.mark.parametrize(
    ("files", "arguments", "message"),
    [
        ({"a.jsonl": '{"id": "x", "text": "t"}\n', "b.jsonl": '{"id": "x", "text": "u"}\n'}, [], "has the id 'x' too"),
        (
            {"a.jsonl": json.dumps({"id": "x", "text": LONG}), "b.jsonl": '{"id": "x#0", "text": "u"}'},
            [],
            "Two documents have the id 'x#0'",
        ),
        ({"a.txt": ""}, [], "There are no documents in"),
        ({}, [], "There are no documents in"),
        ({"a.jsonl": '{"page": 3}'}, [], "a.jsonl"),
        ({"a.txt": "t"}, ["--passage_tokens", "10", "--overlap", "10"], "give less than passage_tokens=10"),
        ({"a.txt": "t"}, ["--seed", "1"], "without --corpus and --seed"),
        ({"a.txt": "t"}, ["another"], "takes one folder or file"),
    ],
)
def test_bad_documents(files, arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(blocks, "FILES", 1)
    root = tmp_path / "documents"
    root.mkdir()
    for name, text in files.items():
        (root / name).write_text(text)
    assert cli.main(["build", str(root), *arguments, "--out", str(tmp_path / "built")]) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "built").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["FOLDER"], "For documents of your own, name the new corpus with --out."),
        (["ruleqa_demo", "--engine", "ray"], "give --out too"),
        (["ruleqa_demo", "--overlap", "3"], "give --out too"),
        (["FOLDER", "--out", "FOLDER"], "exists already"),
        (["FOLDER/missing", "--out", "new"], "does not exist"),
    ],
)
def test_bad_arguments(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("lm_eval_rag.harness.common.ray_engine.need", lambda *_: None)
    assert cli.main(["build", *(one.replace("FOLDER", str(tmp_path)) for one in arguments)]) == 2
    assert message in capsys.readouterr().err
