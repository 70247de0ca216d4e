"""What is written of records is what the page store gives back, and damage to it is named."""

import json
from pathlib import Path

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.data.page_store import PageStore, open_page_set, read_meta, split_id
from lm_eval_rag.tasks.crag.build import build
from lm_eval_rag.tasks.crag.schema import CUT, MAX_PAGE, Page, Record, parse
from lm_eval_rag.tasks.crag.store import BATCH, write_store


def record(id, *htmls, **more):
    pages = tuple(Page(f"name {i}", f"u{i}", "s", "m", html) for i, html in enumerate(htmls))
    return Record(id, "q", ("a",), pages=pages, **more)


def test_pages_come_back_in_order_and_equal_ones_are_kept_once(tmp_path: Path):
    odd = "<p>caf\u00e9 \ud800 \x00 \U0001f6a2</p>"  # JSON allows a lone surrogate
    said = write_store(
        tmp_path, [record("a", "<p>1</p>", "", "<p>2</p>", "<p>1</p>"), record("b"), record("c", odd, "<p>1</p>")]
    )
    store = PageStore(tmp_path)
    assert [page.html for page in store.pages("a", 50)] == ["<p>1</p>", "", "<p>2</p>", "<p>1</p>"]
    assert [page.html for page in store.pages("a", 2)] == ["<p>1</p>", ""]
    assert store.pages("b", 50) == []
    first, second = store.pages("c", 50)
    assert (first.html, first.name, first.url, first.snippet, first.modified, first.number) == (
        odd,
        "name 0",
        "u0",
        "s",
        "m",
        0,
    )
    assert second.sha == store.pages("a", 1)[0].sha != first.sha
    assert said["counts"] == {"questions": 3, "pages": 6, "distinct_pages": 3}
    assert said["notes"] == {"empty page": 1}


def test_many_rows_are_written_in_batches(tmp_path: Path):
    count = 2 * BATCH + 3
    write_store(tmp_path, (record(f"i{i}", f"<p>{i}</p>", "<p>same</p>") for i in range(count)))
    store = PageStore(tmp_path)
    assert len(store) == count
    for i in (0, BATCH // 2, BATCH, count - 1):
        assert [page.html for page in store.pages(f"i{i}", 5)] == [f"<p>{i}</p>", "<p>same</p>"]


def test_ids_are_made_and_told_apart_and_notes_counted(tmp_path: Path):
    records = [record(""), record("x"), record("x", notes=("odd",)), record("a#b"), record("", "1", "1")]
    said = write_store(tmp_path, records)
    store = PageStore(tmp_path)
    assert [len(store.pages(id, 9)) for id in ("q00000", "x", "x~2", "a-b", "q00004")] == [0, 0, 0, 0, 2]
    assert said["notes"] == {"interaction_id repeated": 1, "odd": 1}


def test_no_record_is_an_error(tmp_path: Path):
    with pytest.raises(UserError, match="no record"):
        write_store(tmp_path, [])


def test_a_page_of_100_mb_is_cut_and_counted(tmp_path: Path):
    page = {"page_result": "<p>begin</p>" + "x" * (100 << 20), "page_url": "u"}
    line = json.dumps({"query": "q", "answer": "a", "interaction_id": "i", "search_results": [page]})
    said = write_store(tmp_path, [parse(line, "w")])
    (stored,) = PageStore(tmp_path).pages("i", 5)
    assert (len(stored.html), stored.note, said["notes"]) == (MAX_PAGE, CUT, {CUT: 1})
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 1 << 20


@pytest.mark.parametrize("name", ["questions.parquet", "pages.arrow", "pages.zst"])
@pytest.mark.parametrize("harm", ["missing", "empty", "spoiled"])
def test_damage_is_named(tmp_path: Path, name, harm):
    write_store(tmp_path, [record("a", "<p>1</p>" * 99)])
    path = tmp_path / name
    if harm == "missing":
        path.unlink()
    else:
        path.write_bytes(b"" if harm == "empty" else bytes(len(path.read_bytes())))
    with pytest.raises(UserError, match=f"{name} is missing or damaged"):
        PageStore(tmp_path).pages("a", 5)


def test_an_unknown_question_is_named(tmp_path: Path):
    write_store(tmp_path, [record("a")])
    with pytest.raises(UserError, match="holds no question 'b'"):
        PageStore(tmp_path).pages("b", 5)


@pytest.fixture
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    pages = [{"page_result": f"<p>{i}</p>", "page_url": "u"} for i in range(60)]
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps({"interaction_id": "i", "query": "q", "answer": "a", "search_results": pages}))
    return path


def test_tasks_share_a_store_and_show_their_number_of_pages(own_file: Path):
    ids = {task: build(task, data_files=str(own_file)) for task in ("crag_task1", "crag_task2", "crag_task3")}
    metas = {task: read_meta(id) for task, id in ids.items()}
    assert len({meta["pages"] for meta in metas.values()}) == 1
    assert [len(open_page_set(id).pages("i")) for id in ids.values()] == [5, 5, 50]
    assert metas["crag_task1"]["kg"] is None
    assert metas["crag_task2"]["kg"] == metas["crag_task3"]["kg"]
    assert str(metas["crag_task2"]["kg"]).startswith("crag_kg/")
    assert build("crag_task1", data_files=[str(own_file)]) == ids["crag_task1"]
    assert "60 pages" in (cache_dir() / ids["crag_task1"] / "README.md").read_text()


def test_another_content_is_another_folder_and_a_failed_build_leaves_none(own_file: Path):
    first = build("crag_task1", data_files=str(own_file))
    own_file.write_text(own_file.read_text().replace("<p>7</p>", "<p>seven</p>"))
    assert build("crag_task1", data_files=str(own_file)) != first
    own_file.write_text(own_file.read_text() + "\n{")
    before = set(cache_dir().rglob("*"))
    with pytest.raises(UserError, match=r"own\.jsonl, line 2: not JSON"):
        build("crag_task1", data_files=str(own_file))
    assert set(cache_dir().rglob("*")) == before


def test_a_damaged_folder_is_named(own_file: Path):
    id = build("crag_task1", data_files=str(own_file))
    (cache_dir() / str(read_meta(id)["pages"]) / "pages.zst").write_bytes(b"")
    with pytest.raises(UserError, match=r"damaged: pages\.zst"):
        build("crag_task1", data_files=str(own_file))


def test_what_cannot_be_built_is_named(own_file: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(UserError, match="Unknown CRAG task 'crag_task4'"):
        build("crag_task4")
    with pytest.raises(UserError, match="Unknown release 'v6'"):
        build("crag_task1", release="v6")
    monkeypatch.setenv("LM_EVAL_RAG_MIRROR", str(own_file.parent))
    wrong = own_file.parent / "crag/data/crag_task_3_dev_v5.tar.bz2.part0"
    wrong.parent.mkdir(parents=True)
    wrong.write_bytes(b"another file")
    with pytest.raises(UserError, match=r"part0 is not available: the mirror's .*12 bytes.*0220e4b4"):
        build("crag_task3", release="v5")


def test_ids():
    assert split_id("crag_task1/ab#i-1") == ("crag_task1/ab", "i-1")
    assert split_id("ruleqa_i/ab") == ("ruleqa_i/ab", None)
