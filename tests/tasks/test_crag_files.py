"""CRAG's files are streamed from every packing, and what is broken is named."""

import bz2
import io
import json
import subprocess
import sys
import tarfile
import textwrap
from pathlib import Path

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.tasks.crag import files
from lm_eval_rag.tasks.crag.files import find_files, read_lines

LINES = [json.dumps({"query": f"q{i}", "answer": "a" * (i % 50 + 1)}).encode() for i in range(300)]
TEXT = b"\n".join(LINES) + b"\n"


def archive(members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


SHARDS = archive({"d/": b"", "d/._x.jsonl": b"no", "d/README": b"no", "d/x_0.jsonl": TEXT[: len(LINES[0]) + 1],
                  "d/x_1.jsonl.bz2": bz2.compress(TEXT[len(LINES[0]) + 1 :])})  # fmt: skip


def lines_of(*paths):
    return [line.strip() for _, line in read_lines(paths)]


@pytest.mark.parametrize(
    "content",
    [
        TEXT,
        TEXT.rstrip(),
        b"\n\n" + TEXT.replace(b"\n", b"\r\n\n"),
        bz2.compress(TEXT),
        bz2.compress(TEXT[:999]) + bz2.compress(TEXT[999:]),
        SHARDS,
        bz2.compress(SHARDS),
    ],
)
def test_every_packing_gives_the_same_lines(tmp_path: Path, content):
    path = tmp_path / "any.name"
    path.write_bytes(content)
    assert lines_of(path) == LINES


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("parts", [2, 11])
def test_parts_are_read_as_one_file_in_the_order_of_their_numbers(tmp_path: Path, start, parts):
    packed = bz2.compress(SHARDS)
    size = len(packed) // parts + 1
    for i in range(parts):
        (tmp_path / f"c.tar.bz2.part{start + i}").write_bytes(packed[i * size : (i + 1) * size])
    (group,) = find_files(str(tmp_path / "c.tar.bz2.part*"))
    assert [int(path.name.rpartition("part")[2]) for path in group] == list(range(start, start + parts))
    assert lines_of(*group) == LINES


def test_a_missing_part_is_named(tmp_path: Path):
    for i in (1, 3):
        (tmp_path / f"c.part{i}").write_bytes(b"x")
    with pytest.raises(UserError, match=r"c\.part2 is missing"):
        find_files([str(tmp_path / "c.part*")])
    with pytest.raises(UserError, match=r"c\.part2 is missing"):
        find_files(str(tmp_path / "c.part3"))


@pytest.mark.parametrize("given", ["nothing-*.jsonl", [], ["."]])
def test_what_fits_no_file_is_named(given):
    with pytest.raises(UserError, match="data_files"):
        find_files(given)


PACKED = bz2.compress(SHARDS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (bz2.compress(TEXT)[:-20], "damaged or incomplete .*EOFError"),
        (bz2.compress(TEXT)[:20] + b"\0" * 99 + bz2.compress(TEXT)[119:], "damaged or incomplete .*OSError"),
        (PACKED[: len(PACKED) // 2], "damaged or incomplete"),
        (PACKED[:-8], "damaged or incomplete .*EOFError"),
        (SHARDS[: SHARDS.index(b"BZh") + 300], "damaged or incomplete"),
        (archive({"a.txt": b"x"}), "holds no file of JSON lines"),
    ],
)
def test_damage_is_named_with_the_last_good_line(tmp_path: Path, content, message):
    path = tmp_path / "broken.bz2"
    path.write_bytes(content)
    with pytest.raises(UserError, match=f"broken.bz2.*{message}"):
        lines_of(path)


def test_a_line_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(files, "MAX_LINE", 1 << 20)
    path = tmp_path / "bomb.bz2"
    path.write_bytes(bz2.compress(b"{}\n" + b"a" * (3 << 20)))
    with pytest.raises(UserError, match=r"bomb\.bz2, line 2: longer than 1 MiB"):
        lines_of(path)


MEASURE = """
    import json, re, sys
    from pathlib import Path
    from lm_eval_rag.harness.common.paths import cache_dir
    from lm_eval_rag.tasks.crag.build import build

    build("crag_task3", data_files=sys.argv[1])  # whatever is imported, is now
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    status = Path("/proc/self/status").read_text
    before = int(re.search(r"VmHWM:\\s*(\\d+)", status())[1])
    corpus = build("crag_task3", data_files=sys.argv[2])
    grown = (int(re.search(r"VmHWM:\\s*(\\d+)", status())[1]) - before) << 10
    print(json.dumps({"grown": grown, **json.loads((cache_dir() / corpus / "meta.json").read_text())["counts"]}))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux to measure memory")
def test_a_build_holds_a_record_in_memory_and_not_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Two shards of 12 records with 50 pages of 100 kB, 120 MB in all, in three parts; each record has 5 MB."""
    page = {"page_url": "u", "page_result": "x" * 100_000}
    shards = [b"", b""]
    for i in range(24):
        pages = [{**page, "page_result": f"<p>{i} {p}" + page["page_result"]} for p in range(50)]
        shards[i % 2] += json.dumps({"query": "q", "answer": "a", "search_results": pages}).encode() + b"\n"
    packed = bz2.compress(archive({f"t/t_{i}.jsonl": shard for i, shard in enumerate(shards)}))
    third = len(packed) // 3 + 1
    for i in range(3):
        (tmp_path / f"t.tar.bz2.part{i}").write_bytes(packed[i * third : (i + 1) * third])
    small = tmp_path / "small.tar.bz2"
    small.write_bytes(PACKED)
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    command = [sys.executable, "-c", textwrap.dedent(MEASURE), str(small), str(tmp_path / "t.tar.bz2.part*")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["questions"], told["pages"], told["distinct_pages"]) == (24, 1200, 1200)
    print(told)
    assert 0 < told["grown"] < sum(map(len, shards)) / 2
