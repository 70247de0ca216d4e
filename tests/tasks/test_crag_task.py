"""CRAG as lm_eval tasks, on the ten real records and on all questions, as far as they are at hand."""

from __future__ import annotations

import json
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.data.page_store import open_page_set, split_id
from lm_eval_rag.harness.data.sources import fetch
from lm_eval_rag.tasks.crag.build import RELEASES, SPECS, build, manifest
from lm_eval_rag.tasks.crag.graph import build_graph, graph_id
from lm_eval_rag.tasks.crag.task import TOKENIZER, questions

FOLDER = Path(str(files("lm_eval_rag.tasks.crag")))
DEV = "crag/dev_data.jsonl.bz2"
COLUMNS = [
    "id",
    "query",
    "time",
    "answers",
    "domain",
    "question_type",
    "static_or_dynamic",
    "popularity",
    "split",
    "corpus",
]


def manager(**metadata: Any) -> Any:
    from lm_eval.tasks import TaskManager

    return TaskManager(include_defaults=False, include_path=str(FOLDER), metadata=metadata)


def load(name: str, **metadata: Any) -> Any:
    return manager(**metadata).load([name])["tasks"][name]


@pytest.fixture(scope="module")
def dev(mirror: Path | None) -> str:
    """The ten full records that upstream gives as an example."""
    return str(fetch(manifest()[DEV]))


def test_names_and_yaml() -> None:
    assert set(manager().all_tasks) == {*SPECS, "crag"}
    assert yaml.safe_load((FOLDER / "crag.yaml").read_text())["task"] == sorted(SPECS)
    for name in SPECS:
        assert yaml.safe_load((FOLDER / f"{name}.yaml").read_text()) == {"include": "_crag", "task": name}


def test_the_manifest_has_every_file_of_every_task_and_the_graph() -> None:
    known = manifest()
    named = {name for spec in SPECS.values() for release in RELEASES for name in spec.sources(release)}
    graph = {name for name in known if name.startswith("crag/mock_api/cragkg/")}
    assert set(known) == named | graph | {DEV, TOKENIZER}
    assert (len(named), len(graph)) == (10, 19)
    assert sum(known[name].bytes for name in SPECS["crag_task3"].sources("v4")) == 7_724_333_269
    for source in known.values():
        assert source.lfs and source.url.startswith("https://github.com/facebookresearch/CRAG/raw/ad1518887d")


def test_the_manifest_agrees_with_the_mirrors_list(mirror: Path | None) -> None:
    if mirror is None or not (mirror / "crag/FULL_FILES.tsv").is_file():
        pytest.skip("the mirror's list of all files is not at hand")
    rows = [line.split("\t") for line in (mirror / "crag/FULL_FILES.tsv").read_text().splitlines()[1:]]
    known = manifest()
    assert {f"crag/{path}": (sha, int(size)) for path, sha, size in rows} == {
        name: (source.sha256, source.bytes) for name, source in known.items() if name not in (DEV, TOKENIZER)
    }


@pytest.mark.parametrize("name", sorted(SPECS))
def test_the_ten_real_records(name: str, dev: str) -> None:
    task = load(name, data_files=dev)
    docs = list(task.test_docs())
    assert [*docs[0]] == COLUMNS
    assert len(docs) == 10
    assert Counter(doc["domain"] for doc in docs) == {"finance": 3, "movie": 3, "open": 3, "sports": 1}
    first = docs[0]
    assert (first["id"], first["time"]) == ("3dbed55e-66a3-4dcd-907d-096f49387e41", "2024-02-28T10:04:54-08:00")
    assert first["answers"] == ["yes"] and first["popularity"] is None and first["split"] == 1
    assert max(len(json.dumps(doc)) for doc in docs) < 1000
    folder, question = split_id(first["corpus"])
    assert folder.startswith(f"{name}/") and question == first["id"]
    pages = [open_page_set(folder).pages(doc["id"]) for doc in docs]
    assert [len(found) for found in pages] == [5] * 10
    assert [len(page.html) for page in pages[0]] == [256530, 256530, 277252, 1551206, 168966]
    assert len({page.sha for found in pages for page in found if page.html}) == 36
    assert task.doc_to_text(first) == f"Asked at: {first['time']}\nQuestion: {first['query']}\nAnswer:"


def test_stored_pages_are_the_files_own(dev: str) -> None:
    import bz2

    folder = build("crag_task1", data_files=dev)
    found = open_page_set(folder)
    with bz2.open(dev, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            given = [
                (page["page_name"].strip(), page["page_url"], page["page_result"]) for page in row["search_results"]
            ]
            assert [(page.name, page.url, page.html) for page in found.pages(row["interaction_id"])] == given


def test_the_cut_is_that_of_the_benchmarks_tokenizer(mirror: Path | None, dev: str) -> None:
    pytest.importorskip("tokenizers")
    cut = load("crag_task1", data_files=dev).cut()
    assert cut.name == "tokenizer.json 8eea70c4 75"
    assert len(cut("word " * 100).split()) == 75


@pytest.fixture(scope="module")
def all_questions(mirror: Path | None) -> str:
    path = (mirror or Path("none")) / "crag/crag_dev_v4_qa_2706.jsonl"
    if not path.is_file():
        pytest.skip("the file of all questions without pages is no upstream file, and not in the mirror")
    return str(path)


def test_all_questions_of_v4(all_questions: str) -> None:
    docs = list(load("crag_task1", data_files=all_questions).test_docs())
    assert len(docs) == len({doc["id"] for doc in docs}) == 2706
    assert Counter(doc["split"] for doc in docs) == {0: 1371, 1: 1335}
    assert Counter(doc["domain"] for doc in docs if doc["domain"]) == {
        "finance": 50,
        "movie": 2,
        "open": 2,
        "sports": 1,
    }
    assert (docs[0]["id"], docs[0]["answers"]) == ("q00000", ["4 3-points attempts per game"])
    given = [json.loads(line) for line in Path(all_questions).read_text(encoding="utf-8").splitlines()]
    assert [doc["query"] for doc in docs] == [row["query"].strip() for row in given]
    assert [doc["answers"] for doc in docs] == [[str(row["answer"]).strip()] for row in given]
    assert sum(isinstance(row["answer"], int) for row in given) == 6


@pytest.mark.parametrize(("split", "count"), [(0, 1371), ("1", 1335)])
def test_a_split_is_chosen(all_questions: str, split: Any, count: int) -> None:
    docs = list(load("crag_task2", data_files=all_questions, split=split).test_docs())
    assert len(docs) == count and {doc["split"] for doc in docs} == {int(split)}


def test_a_split_that_is_not_there_is_named(dev: str) -> None:
    corpus = build("crag_task1", data_files=dev)
    with pytest.raises(UserError, match=r"no question of split 0.*all 10"):
        questions(corpus, 0)
    with pytest.raises(UserError, match="split=2"):
        questions(corpus, 2)


def test_the_official_file_is_asked_for_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path))
    monkeypatch.setenv("LM_EVAL_RAG_MIRROR", str(tmp_path))
    monkeypatch.setattr("lm_eval_rag.harness.data.sources.LFS_HOST", "http://127.0.0.1:9")
    with pytest.raises(UserError, match=r"crag_task_3_dev_v5\.tar\.bz2\.part0 is not available.*2147483648 bytes"):
        load("crag_task3", release="v5")


def test_the_graph_is_linked_from_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib
    from dataclasses import replace

    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LM_EVAL_RAG_MIRROR", str(tmp_path))
    known = {}
    for name, source in manifest().items():
        if name.startswith("crag/mock_api/cragkg/"):
            content = name.encode()
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(content)
            known[name] = replace(source, sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
    for _ in range(2):
        id = build_graph(known)
        found = {path.relative_to(tmp_path / "cache" / id).as_posix(): path.read_text()
                 for path in (tmp_path / "cache" / id).rglob("*") if path.is_file()}  # fmt: skip
        assert found == {name.removeprefix("crag/mock_api/cragkg/"): name for name in known}
    assert id == graph_id(known) != graph_id(manifest())
