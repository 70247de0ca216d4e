"""A folder by its name: a local one as it is, or a repository of the Hub, downloaded once into the Hub's own cache."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from lm_eval_rag.harness.checkpoints.failures import explained, failures
from lm_eval_rag.harness.common.errors import UserError

Kind = Literal["model", "dataset"]
HUB_ID = re.compile(r"(?P<repo>(?:[\w.-]+/)?[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
UNUSED = (  # weights for other libraries and states of training, often bigger than all the rest of a repository
    "*.h5", "*.msgpack", "*.ot", "*.tflite", "*.onnx", "onnx/*", "openvino/*", "coreml/*", "runs/*", "checkpoint-*/*",
)  # fmt: skip


def fetch_folder(name_or_path: str | Path, *, kind: Kind = "model", only: Sequence[str] = ()) -> Path:
    """A local folder as it is, or the folder of a Hub repository ``ORG/NAME[@revision]``.

    A repository is downloaded into the Hub's cache (``HF_HOME``); what is there already is not downloaded again, and is
    used without a network or under ``HF_HUB_OFFLINE=1``. An interrupted download goes on where it was. The last part of
    the returned path is the commit: it says which version a moving name such as ``main`` stood for.

    Args:
        name_or_path: A folder (it wins over a repository of the same name), or ``ORG/NAME`` or ``ORG/NAME@revision``
            with a tag, a branch or a commit; without one the default branch.
        kind: Of the repository.
        only: Patterns of the files that are wanted; () takes all but weights for other libraries.

    Raises:
        UserError: Neither a folder nor a Hub id; no such repository or revision; a private or gated one without a token
            that opens it; no network and not in the cache; a download that broke off.
    """
    path = Path(name_or_path).expanduser()
    if path.is_dir():
        return path
    found = HUB_ID.fullmatch(str(name_or_path))
    if found is None:
        raise UserError(
            f"{str(name_or_path)!r} is no folder on this machine and no Hub id. Give an existing folder, or "
            f"ORG/NAME or ORG/NAME@revision with a tag, a branch or a commit of a {kind} repository."
        )
    from huggingface_hub import snapshot_download

    repo, revision = found["repo"], found["revision"]
    try:
        return Path(
            snapshot_download(
                repo, repo_type=kind, revision=revision, allow_patterns=list(only) or None, ignore_patterns=list(UNUSED)
            )
        )
    except failures() as error:
        raise explained(error, repo, kind=kind, revision=revision) from None
