"""Folders by name: a local folder, or a Hub repository that is downloaded once into the Hub's cache."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from lm_eval_rag.harness.checkpoints.failures import explained, failures
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.progress import Meter, counting

Kind = Literal["model", "dataset"]
HUB_ID = re.compile(r"(?P<repo>(?:[\w.-]+/)?[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
UNUSED = (  # weights for other libraries and training states, often larger than the rest of the repository
    "*.h5", "*.msgpack", "*.ot", "*.tflite", "*.onnx", "onnx/*", "openvino/*", "coreml/*", "runs/*", "checkpoint-*/*",
)  # fmt: skip


def fetch_folder(name_or_path: str | Path, *, kind: Kind = "model", only: Sequence[str] = ()) -> Path:
    """A local folder unchanged, or the local copy of a Hub repository ``ORG/NAME[@revision]``.

    A repository is downloaded into the Hub's cache (``HF_HOME``). Cached files are not downloaded again, and are used
    without a network or with ``HF_HUB_OFFLINE=1``. An interrupted download is resumed. The last part of the returned
    path is the commit, so it identifies the version that a branch such as ``main`` pointed to.

    Args:
        name_or_path: A folder (preferred over a repository of the same name), or ``ORG/NAME`` or ``ORG/NAME@revision``
            with a tag, a branch or a commit; the default branch if no revision is given.
        kind: Type of the repository.
        only: Patterns of the files to download; () downloads everything but weights for other libraries.

    Raises:
        UserError: Neither a folder nor a Hub id; no such repository or revision; a private or gated repository without
            a valid token; no network and not in the cache; an interrupted download.
    """
    path = Path(name_or_path).expanduser()
    if path.is_dir():
        return path
    match = HUB_ID.fullmatch(str(name_or_path))
    if match is None:
        raise UserError(
            f"{str(name_or_path)!r} is not a folder on this machine and not a Hub id. Give an existing folder, or "
            f"ORG/NAME or ORG/NAME@revision with a tag, a branch or a commit of a {kind} repository."
        )
    from huggingface_hub import snapshot_download

    repo, revision = match["repo"], match["revision"]
    try:
        with _shown(repo) as tqdm_class:
            return Path(
                snapshot_download(
                    repo,
                    repo_type=kind,
                    revision=revision,
                    allow_patterns=list(only) or None,
                    ignore_patterns=list(UNUSED),
                    tqdm_class=tqdm_class,
                )
            )
    except failures() as error:
        raise explained(error, repo, kind=kind, revision=revision) from None


@contextmanager
def _shown(repo: str) -> Iterator[type[Any] | None]:
    """The tqdm class for a download: the Hub's own on a terminal, elsewhere a plain line every 30 seconds."""
    if sys.stderr.isatty():
        yield None
        return
    with Meter(f"download of {repo}", unit="bytes") as meter:
        yield counting(meter)
