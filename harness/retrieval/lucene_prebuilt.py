"""Lucene indexes made elsewhere: Pyserini's prebuilt ones by name, and folders of Anserini or Pyserini.

Addresses, sizes and md5 are those of pyserini 1.6.0 (``prebuilt_index_info.py``, and the tables in its jar). An index
is downloaded once, checked, and unpacked into ``$LM_EVAL_RAG_CACHE/lucene``.
"""

from __future__ import annotations

import gzip
import hashlib
import logging
import shutil
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.common.paths import cache_dir, written_whole
from lm_eval_rag.harness.common.progress import Meter, written
from lm_eval_rag.harness.data.sources import PIECE, UNVERIFIED, Source, fetch

log = logging.getLogger(__name__)
Naming = Literal["id", "title"]
BEIR = "castorini/prebuilt-indexes-beir"
TERMS = "as stated by its publishers, the Anserini and Pyserini projects"


@dataclass(frozen=True, slots=True)
class Prebuilt:
    """An index that is downloaded.

    Args:
        source: The archive.
        documents: How many documents it has.
        corpus: Which of our corpora has the same documents.
        named_by: What is the id in that corpus: the index's own id, or the title in the stored document.
    """

    source: Source
    documents: int
    corpus: str
    named_by: Naming


def _beir(name: str, md5: str, size: int) -> Source:
    file = f"lucene-inverted.beir-v1.0.0-{name}.flat.20221116.505594.tar.gz"
    return Source(
        f"lucene/{file}", BEIR, "main", f"lucene-inverted/flat/{file}", UNVERIFIED, size,
        "CC BY-SA 4.0", TERMS, host="hub", md5=md5,
    )  # fmt: skip


_DPR = "lucene-index.wikipedia-dpr-100w.20210120.d1b9e6.tar.gz"
PREBUILT: dict[str, Prebuilt] = {
    # Its ids are DPR's passage numbers, as in our corpus.
    "wikipedia-dpr-100w": Prebuilt(
        Source(
            f"lucene/{_DPR}", "University of Waterloo", "20210120",
            f"https://rgw.cs.uwaterloo.ca/pyserini/indexes/{_DPR}", UNVERIFIED, 9_177_917_732,
            "CC BY-SA 3.0", TERMS, host="web", md5="7b58c08da992b2ea7e96667f0b176651",
        ),
        21_015_324, "wiki18_100w", "id",
    ),
    # Its ids are numbers of Wikipedia's pages; our corpus names a page by its title, as HotpotQA's evidence does.
    "beir-v1.0.0-hotpotqa.flat": Prebuilt(
        _beir("hotpotqa", "3f41d640a8ebbcad4f598140750c24f8", 2_019_088_696), 5_233_329, "hotpotqa_fullwiki", "title"
    ),
    # Its ids are FEVER's names of pages, as in our corpus.
    "beir-v1.0.0-fever.flat": Prebuilt(
        _beir("fever", "30b5a338f9f16669ed3dae3bae4e7b32", 3_880_157_241), 5_416_568, "fever_beir", "id"
    ),
}  # fmt: skip


def index_folder(name: str) -> Path:
    """The folder of an index: the unpacked download of a name in :data:`PREBUILT`, or the folder itself.

    Raises:
        UserError: Neither a known name nor a folder with a Lucene index; or the download failed.
    """
    if name in PREBUILT:
        return _downloaded(name, PREBUILT[name])
    folder = Path(name).expanduser()
    if not folder.is_dir():
        raise unknown("prebuilt index", name, PREBUILT, hint="Or give the folder of a Lucene index.")
    if not any(folder.glob("segments_*")):
        raise UserError(
            f"retriever_index={name} is a folder without a Lucene index (no file segments_*). Give the folder that "
            f"Anserini or Pyserini wrote, or a name: {', '.join(PREBUILT)}."
        )
    return folder


def identity(folder: Path) -> str:
    """Hash of an index: of its list of segments, which have random ids."""
    files = sorted(folder.glob("segments_*"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def _downloaded(name: str, prebuilt: Prebuilt) -> Path:
    folder = cache_dir() / "lucene" / f"{name}.{prebuilt.source.pinned[1][:12]}"
    if folder.is_dir():
        return folder
    log.warning(
        "The index %s (%.1f GB) is downloaded and unpacked into %s: about three times its size is needed there.",
        name, prebuilt.source.bytes / 1e9, folder,
    )  # fmt: skip
    archive = fetch(prebuilt.source)
    _unpack(archive, folder)
    if archive.is_relative_to(cache_dir()):
        archive.unlink(missing_ok=True)
    return folder


def _unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive into one folder; an index has no folders within, so paths in it are ignored."""
    try:
        with (
            tarfile.open(archive) as tar,
            written_whole(folder) as temporary,
            Meter(f"unpacking of {archive.name}", beside=written(temporary)),
        ):
            for member in tar:
                content = tar.extractfile(member) if member.isfile() else None
                if content is not None:
                    with (temporary / PurePosixPath(member.name).name).open("xb") as file:
                        shutil.copyfileobj(content, file, PIECE)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, FileExistsError) as error:
        raise UserError(f"{archive} cannot be unpacked ({error}). Delete it and run again.") from None
