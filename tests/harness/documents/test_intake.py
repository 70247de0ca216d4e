"""Documents of every kind become passages; whatever is none is an error that names the place."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Passage, Rule
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.data.parts import document_of
from lm_eval_rag.harness.documents import hub, text_files
from lm_eval_rag.harness.documents.cutting import cut
from lm_eval_rag.harness.documents.intake import as_corpus, read_documents
from lm_eval_rag.harness.scoring.normalise import count_words

ROWS = [
    {"_id": "a", "title": "Ada Moss", "text": "Ada was born in Vale.", "year": 1901, "url": "http://x/a"},
    {"_id": "b", "title": None, "text": "Vale lies in Norn.", "year": None, "url": None},
]
PASSAGES = (
    Passage("a", "Ada Moss\nAda was born in Vale.", source="http://x/a", metadata={"year": 1901}),
    Passage("b", "Vale lies in Norn."),
)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    import polars as pl

    frame = pl.DataFrame(rows)
    writers = {
        ".jsonl": lambda: path.write_text("\n\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8"),
        ".json": lambda: path.write_text(json.dumps(rows), encoding="utf-8"),
        ".csv": lambda: frame.write_csv(path),
        ".tsv": lambda: frame.write_csv(path, separator="\t"),
        ".parquet": lambda: frame.write_parquet(path),
    }
    writers[path.suffix]()
    return path


@pytest.mark.parametrize("ending", [".jsonl", ".json", ".csv", ".tsv", ".parquet"])
def test_tables_in_files(tmp_path: Path, ending: str) -> None:
    passages = read_documents(write(tmp_path / f"d{ending}", ROWS)).passages
    assert [(p.id, p.text, p.source) for p in passages] == [(p.id, p.text, p.source) for p in PASSAGES]
    assert [{name: str(value) for name, value in p.metadata.items()} for p in passages] == [{"year": "1901"}, {}]


def frames() -> dict[str, Any]:
    import pandas as pd
    import polars as pl
    from datasets import Dataset

    return {
        "list": ROWS,
        "polars": pl.DataFrame(ROWS),
        "lazy": pl.LazyFrame(ROWS),
        "pandas": pd.DataFrame(ROWS),
        "datasets": Dataset.from_list(ROWS),
        "generator": (row for row in ROWS),
    }


@pytest.mark.parametrize("kind", ["list", "polars", "lazy", "pandas", "datasets", "generator"])
def test_tables_in_memory(kind: str) -> None:
    assert read_documents(frames()[kind]).passages == PASSAGES


def test_a_dataset_on_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    asked = []

    def load(*args: Any, **options: Any) -> Any:
        asked.append((*args, options))
        if args[0] == "no/where":
            raise FileNotFoundError("Dataset 'no/where' doesn't exist on the Hub")
        part = datasets.Dataset.from_list(ROWS)
        return {"corpus": part} if args[1] is None else {"corpus": part, "other": part}

    monkeypatch.setattr(datasets, "load_dataset", load)
    assert read_documents("hub:org/name").passages == PASSAGES
    assert read_documents("hub:org/name/conf@v1:other").passages == PASSAGES
    assert asked == [("org/name", None, {"revision": None}), ("org/name", "conf", {"revision": "v1"})]
    for source, said in (
        ("hub:org/name/conf", "splits corpus, other. Name one: hub:org/name/conf:corpus"),
        ("hub:org/name:corpsu", "Did you mean 'corpus'"),
        ("hub:name", "give hub:ORG/NAME"),
        ("hub:no/where", "doesn't exist on the Hub"),
    ):
        with pytest.raises(UserError, match=said):
            list(hub.hub_rows(source))


def test_texts_and_passages_keep_what_they_are() -> None:
    long = Passage("mine", "word " * 1000)
    intake = read_documents(["One.", long, "Two."])
    assert [p.id for p in intake.passages] == ["d0", "mine", "d2"] and intake.passages[1] is long
    assert intake.documents == 3


def test_documents_of_other_libraries_by_their_attributes() -> None:
    about = {"title": "T", "page": 3}
    documents = [
        SimpleNamespace(page_content="One.", metadata=about, id=None),
        SimpleNamespace(page_content="Two.", metadata={}, id="two"),
        SimpleNamespace(node_id="n3", metadata=about, get_content=lambda: "Three."),
        SimpleNamespace(node_id="n4", metadata={}, text="Four."),
        SimpleNamespace(id="h5", content="Five.", meta={"page": 4}, score=None),
    ]
    assert read_documents(documents).passages == (
        Passage("d0", "T\nOne.", metadata={"page": 3}),
        Passage("two", "Two."),
        Passage("n3", "T\nThree.", metadata={"page": 3}),
        Passage("n4", "Four."),
        Passage("h5", "Five.", metadata={"page": 4}),
    )


def test_real_documents_of_langchain() -> None:
    documents = pytest.importorskip("langchain_core.documents")
    document = documents.Document(page_content="One.", metadata={"source": "a.md"}, id="a")
    assert read_documents([document]).passages == (Passage("a", "One.", source="a.md"),)


def test_facts(tmp_path: Path) -> None:
    rows = [
        {"subject": "Ada", "relation": "was born in", "object": "Vale"},
        {"subject": "Ada", "relation": "visited", "object": "Norn", "time": "1930-01-02"},
        {"id": "x", "text": "Ada came to Norn.", "fact": ["Ada", "visited", "Norn"], "time": 1930},
        {"id": "y", "text": "No fact."},
    ]
    born, visited, told, plain = read_documents(rows).passages
    assert born == Passage("d0", "Ada was born in Vale.", fact=("Ada", "was born in", "Vale"))
    assert visited.text == "Time 1930-01-02 Ada visited Norn." and visited.time == "1930-01-02"
    assert told == Passage("x", "Ada came to Norn.", time="1930", fact=("Ada", "visited", "Norn"))
    assert plain.fact is None


@pytest.mark.parametrize("column", ["content", "page_content", "body"])
def test_a_title_is_no_text_where_another_column_may_be_it(column: str) -> None:
    with pytest.raises(UserError, match=rf"there is no 'text' \(columns: title, {column}\)\. Name the column 'text'"):
        read_documents([{"title": "Ada", column: "Ada Moss was born in Vale."}])
    (passage,) = read_documents([{"title": "Ada", "source": "a.md"}]).passages
    assert passage.text == "Ada"


def test_a_folder_with_files_of_all_kinds(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "notes.md").write_text("hidden")
    (tmp_path / "a.md").write_text("# A\n\nA text.\n")
    (tmp_path / "sub" / "b.txt").write_text("\ufeffB text.", encoding="utf-8")
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    write(tmp_path / "rows.jsonl", [{"text": "A row."}])
    intake = read_documents(tmp_path)
    assert [(p.id, p.text, p.source) for p in intake.passages] == [
        ("a.md", "# A\n\nA text.", "a.md"),
        ("rows-d0", "A row.", ""),
        ("sub/b.txt", "B text.", "sub/b.txt"),
    ]
    assert {Path(name).name: why.split(":")[0] for name, why in intake.unread} == {
        "empty.txt": "no text in it", "latin.txt": "is not UTF-8", "picture.png": "unknown ending"
    }  # fmt: skip


def test_html_goes_through_the_reader_of_web_pages(tmp_path: Path) -> None:
    pytest.importorskip("resiliparse")
    rows = "<table><tr><th>Town</th><th>Country</th></tr><tr><td>Vale</td><td>Norn</td></tr></table>"
    (tmp_path / "a.html").write_text(f"<html><script>x()</script><p>Ada was born in Vale.</p>{rows}</html>")
    (passage,) = read_documents(tmp_path / "a.html").passages
    assert passage.text.startswith("Ada was born in Vale.") and "Norn" in passage.text
    assert "x()" not in passage.text and "<" not in passage.text


def test_office_files(tmp_path: Path) -> None:
    pytest.importorskip("markitdown")
    docx = pytest.importorskip("openpyxl")
    book = docx.Workbook()
    book.active.append(["Town", "Country"])
    book.active.append(["Vale", "Norn"])
    book.save(tmp_path / "towns.xlsx")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 and nothing more")
    intake = read_documents(tmp_path)
    (passage,) = intake.passages
    assert passage.id == "towns.xlsx" and "Vale" in passage.text and "Norn" in passage.text
    assert [(Path(name).name, why) for name, why in intake.unread] == [("broken.pdf", "markitdown cannot read it")]


def test_without_markitdown_a_pdf_is_listed_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "find_spec", lambda name: None)
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.4")
    (tmp_path / "a.md").write_text("A.")
    assert "pip install" in dict(read_documents(tmp_path).unread)[str(tmp_path / "a.pdf")]
    with pytest.raises(UserError, match=r"There are no documents in .*markitdown"):
        read_documents(tmp_path / "a.pdf")


# --- cutting


def test_a_long_document_is_cut_by_sentences_with_overlap() -> None:
    sentences = [f"Sentence number {i} has seven words." for i in range(9)]  # 7 with the full stop
    text = " ".join(sentences)
    passages = cut(Passage("a", text, source="a.md", metadata={"x": 1}), 21, 7, title="T")
    assert [p.id for p in passages] == [f"a#{i}" for i in range(math.ceil((9 - 3) / 2) + 1)]
    assert [p.text for p in passages[:2]] == [f"T\n{' '.join(sentences[i : i + 3])}" for i in (0, 2)]
    assert {(p.source, p.metadata["x"]) for p in passages} == {("a.md", 1)}
    assert {document_of(p.id) for p in passages} == {"a"} and document_of("a") == "a" and document_of("a#x") == "a#x"


def test_no_passage_is_longer_than_its_budget_and_no_word_is_lost() -> None:
    text = " ".join(f"w{i}{'.' if i % 17 == 3 and i < 200 else ''}" for i in range(500))
    passages = cut(Passage("a", text), 40, 10)
    assert max(count_words(p.text) for p in passages) <= 40
    assert {word.strip(".") for p in passages for word in p.text.split()} == {f"w{i}" for i in range(500)}
    assert [p.text for p in cut(Passage("a", "Short."), 40, 10)] == ["Short."]


# --- as_corpus


def test_as_corpus(tmp_path: Path) -> None:
    rules = (Rule("h", "b", confidence=0.5),)
    corpus = as_corpus(ROWS, rules)
    assert corpus is not None and corpus.rules() == rules and list(corpus.ids.to_pylist()) == ["a", "b"]
    assert as_corpus(None) is None and as_corpus(corpus) is corpus
    saved = as_corpus(corpus.save(tmp_path / "saved"))
    assert saved is not None and saved.fingerprint == corpus.fingerprint and saved.folder == tmp_path / "saved"
    other = as_corpus(saved, [Rule("h2", "b2")])
    assert other is not None and other.rules() == (Rule("h2", "b2"),)
    assert isinstance(as_corpus(["One."]), Corpus)


def test_as_corpus_warns_of_what_it_leaves_out(caplog: pytest.LogCaptureFixture) -> None:
    as_corpus(["One.", "", " "])
    assert "2 documents were not read: document 2 (no text in it); document 3 (no text in it)." in caplog.text
