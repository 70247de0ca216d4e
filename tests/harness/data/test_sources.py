"""Sources come from the mirror, the cache or the network, and are never handed out unchecked."""

import gzip
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.data import sources
from lm_eval_rag.harness.data.sources import Source, fetch, read_manifest, sha256_of

CONTENT = b"subject\trelation\tobject\n"
SOURCE = Source(
    path="graph/train.txt",
    repository="owner/name",
    commit="c0ffee",
    repository_path="data/my graph/train.txt",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    bytes=len(CONTENT),
    licence="CC0",
    terms="none",
)


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and logs nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LM_EVAL_RAG_MIRROR", raising=False)
    monkeypatch.setattr(sources, "HOST", "http://127.0.0.1:9")  # the discard port: nothing answers
    return tmp_path / "cache"


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The path at which a local server offers the source's file."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "www")))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setattr(sources, "HOST", f"http://127.0.0.1:{server.server_address[1]}")
    path = tmp_path / "www" / SOURCE.repository / SOURCE.commit / SOURCE.repository_path
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    yield path
    server.shutdown()
    server.server_close()


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_the_url_is_pinned_and_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert SOURCE.url == "https://raw.githubusercontent.com/owner/name/c0ffee/data/my%20graph/train.txt"


def test_a_download_is_kept_and_used_again(served: Path, cache_folder: Path) -> None:
    first = fetch(SOURCE)
    assert first.read_bytes() == CONTENT and cache_folder in first.parents
    served.unlink()
    assert fetch(SOURCE) == first
    assert files_in(cache_folder) == [first]


def test_a_damaged_cached_file_is_fetched_anew(served: Path) -> None:
    path = fetch(SOURCE)
    path.write_bytes(CONTENT[:-1] + b"?")
    assert fetch(SOURCE).read_bytes() == CONTENT


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT[:-1] + b"?", CONTENT + b"more"])
def test_a_wrong_download_leaves_nothing(served: Path, cache_folder: Path, content: bytes) -> None:
    served.write_bytes(content)
    with pytest.raises(UserError, match="different content") as error:
        fetch(SOURCE)
    assert_teaches(error.value)
    assert files_in(cache_folder) == []


def test_no_network_and_no_mirror(cache_folder: Path) -> None:
    with pytest.raises(UserError, match="download failed") as error:
        fetch(SOURCE)
    assert_teaches(error.value)
    assert not cache_folder.exists()


def test_a_missing_page(served: Path) -> None:
    served.unlink()
    with pytest.raises(UserError, match="404") as error:
        fetch(SOURCE)
    assert_teaches(error.value)


def test_the_mirror_comes_first_and_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_RAG_MIRROR", str(tmp_path / "mirror"))
    mirrored = tmp_path / "mirror" / SOURCE.path
    mirrored.parent.mkdir(parents=True)
    mirrored.write_bytes(CONTENT)
    assert fetch(SOURCE) == mirrored
    mirrored.write_bytes(CONTENT.swapcase())
    with pytest.raises(UserError, match="the mirror's") as error:
        fetch(SOURCE)
    assert_teaches(error.value)


def test_a_mirror_without_the_file_is_passed_over(
    tmp_path: Path, served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LM_EVAL_RAG_MIRROR", str(tmp_path / "nowhere"))
    assert fetch(SOURCE).read_bytes() == CONTENT


def assert_teaches(error: UserError) -> None:
    """The message names the file, the URL, the hash and the variable."""
    for part in (SOURCE.path, SOURCE.url, SOURCE.sha256, "LM_EVAL_RAG_MIRROR"):
        assert part in str(error)


@pytest.mark.parametrize(
    ("host", "endpoint", "url"),
    [
        ("hub", "", "https://huggingface.co/datasets/owner/name/resolve/c0ffee/data/my%20graph/train.txt"),
        ("hub", "http://hub.local/", "http://hub.local/datasets/owner/name/resolve/c0ffee/data/my%20graph/train.txt"),
        ("web", "", "data/my graph/train.txt"),
        ("mirror", "", "https://github.com/owner/name"),
    ],
)
def test_other_hosts(host: str, endpoint: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    assert replace(SOURCE, host=host).url == url  # type: ignore[arg-type]


UNCHECKED = replace(SOURCE, sha256="UNVERIFIED", bytes=0)


def test_an_unverified_file_is_downloaded_once_with_a_warning(
    served: Path, cache_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = fetch(UNCHECKED)
    assert "UNVERIFIED" in caplog.text and SOURCE.sha256 in caplog.text and first.read_bytes() == CONTENT
    served.unlink()
    assert fetch(UNCHECKED) == first and sha256_of(UNCHECKED) == SOURCE.sha256
    assert sorted(path.name for path in files_in(cache_folder)) == ["train.txt", "train.txt.sha256"]


def test_an_unverified_file_must_not_change(served: Path) -> None:
    first = fetch(UNCHECKED)
    first.write_bytes(b"damaged")
    assert fetch(UNCHECKED).read_bytes() == CONTENT
    first.write_bytes(b"damaged")
    served.write_bytes(CONTENT.swapcase())
    with pytest.raises(UserError, match="has changed since"):
        fetch(UNCHECKED)


def test_an_unverified_file_of_another_size(served: Path) -> None:
    with pytest.raises(UserError, match="different content"):
        fetch(replace(UNCHECKED, bytes=3))


def test_two_unverified_files_of_one_name_are_kept_apart(served: Path) -> None:
    other = replace(UNCHECKED, commit="decaf")
    beside = Path(str(served).replace("c0ffee", "decaf"))
    beside.parent.mkdir(parents=True)
    beside.write_bytes(b"other")
    assert fetch(UNCHECKED) != fetch(other) and fetch(other).read_bytes() == b"other"


def test_a_derived_file_is_in_the_mirror_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    derived = replace(SOURCE, host="mirror")
    with pytest.raises(UserError, match="only a mirror has it"):
        fetch(derived)
    monkeypatch.setenv("LM_EVAL_RAG_MIRROR", str(tmp_path))
    (tmp_path / "graph").mkdir()
    (tmp_path / SOURCE.path).write_bytes(CONTENT)
    assert fetch(derived).read_bytes() == CONTENT


def test_a_gzipped_file_is_checked_unpacked(served: Path, cache_folder: Path) -> None:
    served.write_bytes(gzip.compress(CONTENT))
    assert fetch(replace(SOURCE, gzip=True)).read_bytes() == CONTENT
    fetch(SOURCE).unlink()
    for content in (gzip.compress(CONTENT)[:-6], CONTENT, gzip.compress(CONTENT.swapcase())):
        served.write_bytes(content)
        with pytest.raises(UserError, match=r"different content|download failed"):
            fetch(replace(SOURCE, gzip=True))
    assert files_in(cache_folder) == []


ENTRY = '["a.txt"]\nrepository = "o/n"\ncommit = "c"\nrepository_path = "a.txt"\nlicence = "CC0"\nterms = "none"\n'


def test_manifest(tmp_path: Path) -> None:
    path = tmp_path / "sources.toml"
    path.write_text(ENTRY + 'sha256 = "00"\nbytes = 1\n')
    assert read_manifest(path) == {"a.txt": Source("a.txt", "o/n", "c", "a.txt", "00", 1, "CC0", "none")}


@pytest.mark.parametrize(
    "text",
    [
        "not = [toml",
        ENTRY,
        ENTRY + 'sha256 = "0"\nbytes = 1\ncolour = "red"\n',
        ENTRY + 'sha256 = "0"\nbytes = 1\nhost = "ftp"\n',
        "a = 1\n",
    ],
)
def test_bad_manifest(tmp_path: Path, text: str) -> None:
    path = tmp_path / "sources.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"sources\.toml"):
        read_manifest(path)


def test_missing_manifest(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_manifest(tmp_path / "none.toml")


def cut_off(monkeypatch: pytest.MonkeyPatch, most: int) -> list[str | None]:
    """The server ends every answer after ``most`` bytes, as one that goes away does; returns the ranges asked for."""
    asked: list[str | None] = []

    def get(self: Quiet) -> None:
        asked.append(self.headers.get("Range"))
        content = Path(self.translate_path(self.path)).read_bytes()
        start = int((asked[-1] or "bytes=0-")[6:-1])
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start : start + most])

    monkeypatch.setattr(Quiet, "do_GET", get)
    return asked


def test_a_large_download_is_resumed(served: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytes(range(256)) * 40
    served.write_bytes(content)
    hash = hashlib.md5(content).hexdigest()
    source = replace(SOURCE, sha256="UNVERIFIED", md5=hash, bytes=len(content))
    monkeypatch.setattr(sources, "RESUMED", 1000)
    monkeypatch.setattr(sources, "PIECE", 512)
    asked = cut_off(monkeypatch, 4000)
    for held in (4000, 8000):
        with pytest.raises(UserError, match=f"ended after {held:,} of 10,240 bytes.*again to continue.*md5 {hash}"):
            fetch(source)
        assert [path.stat().st_size for path in files_in(cache_folder)] == [held]
    path = fetch(source)
    assert path.read_bytes() == content and files_in(cache_folder) == [path]
    assert asked == [None, "bytes=4000-", "bytes=8000-"]


def test_a_resumed_download_is_checked_as_a_whole(
    served: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = bytes(range(256)) * 40
    served.write_bytes(content)
    source = replace(SOURCE, sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
    monkeypatch.setattr(sources, "RESUMED", 1000)
    cut_off(monkeypatch, 4000)
    with pytest.raises(UserError, match="ended after"):
        fetch(source)
    (begun,) = files_in(cache_folder)
    begun.write_bytes(b"?" * 4000)
    cut_off(monkeypatch, 1 << 60)
    with pytest.raises(UserError, match="different content"):
        fetch(source)
    assert files_in(cache_folder) == []
    assert fetch(source).read_bytes() == content


def test_a_server_without_ranges_begins_anew(served: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytes(range(256)) * 40
    served.write_bytes(content)
    source = replace(SOURCE, sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
    path = fetch(source)
    path.unlink()
    path.with_name(f".begun-{path.name}").write_bytes(b"?" * 5000)
    assert fetch(source).read_bytes() == content and files_in(cache_folder) == [path]
