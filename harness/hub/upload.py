"""A publication: its description for the dry run, and its upload as one commit and an optional tag."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.checkpoints.download import Kind
from lm_eval_rag.harness.checkpoints.failures import LOG_IN, explained, failures
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.hub.contents import Item

logger = logging.getLogger(__name__)

CARD = "README.md"
KEPT = (".gitattributes",)  # the Hub's own file


@dataclass(frozen=True, slots=True)
class Publication:
    """A publication.

    Args:
        repo: ``ORG/NAME``.
        kind: Type of the repository.
        items: All files, including the card.
        message: Commit message.
        tag: Tag of this version, or None.
        private: Whether a new repository is private.
        replace: Whether to delete all other files of the repository.
        left_out: Files in the folder that are not published.
    """

    repo: str
    kind: Kind
    items: Sequence[Item]
    message: str
    tag: str | None = None
    private: bool = False
    replace: bool = False
    left_out: Sequence[str] = ()

    def __str__(self) -> str:
        """Every file with its size and sha256, then the card."""
        total = sum(item.size for item in self.items)
        card = next(item.content for item in self.items if item.path == CARD)
        lines = [
            f"{self.kind} {self.repo}{' (private)' if self.private else ''}{f', tag {self.tag}' if self.tag else ''}: "
            f"{len(self.items)} files, {total:,} bytes. {self.message}",
            *(f"{item.size:>13,}  {item.sha256}  {item.path}" for item in self.items),
            *([f"Left out: {', '.join(self.left_out)}"] if self.left_out else []),
            f"----- {CARD}",
            card.decode() if isinstance(card, bytes) else card.read_text(encoding="utf-8"),
            "-----",
        ]
        return "\n".join(lines)


def upload(publication: Publication) -> str:
    """Publish, and return the URL of the commit.

    The repository is created if needed. Large files are uploaded first, and a second attempt does not upload them
    again. The version is one commit, so it is published completely or not at all.

    Raises:
        UserError: No token, or a token without write access; the tag exists; the repository has other files; the
            repository is public but ``private`` is set; the Hub could not be reached or the connection was lost.
    """
    from huggingface_hub import HfApi, get_token

    if get_token() is None:
        raise UserError(f"Publishing {publication.repo} needs a token of the Hub. {LOG_IN}")
    expected: tuple[type[Exception], ...] = (*failures(), RuntimeError)
    try:
        return _upload(HfApi(), publication)
    except expected as error:
        cause = error.__cause__ if isinstance(error, RuntimeError) else None  # of an interrupted large upload
        raise UserError(
            f"{explained(cause or error, publication.repo, kind=publication.kind)} Large files that were uploaded are "
            "not sent again. The version is one commit, so it is published completely or not at all."
        ) from None


def _upload(api: Any, publication: Publication) -> str:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    repo, kind, tag = publication.repo, publication.kind, publication.tag
    others = _others(api, publication)
    changes = [CommitOperationAdd(item.path, _content(item.content)) for item in publication.items]
    removed = [CommitOperationDelete(path) for path in others]
    commit = api.create_commit(repo, [*changes, *removed], commit_message=publication.message, repo_type=kind)
    if tag:
        api.create_tag(repo, tag=tag, revision=commit.oid, repo_type=kind, tag_message=publication.message)
    logger.info("published %s %s, commit %s%s", kind, repo, commit.oid, f", tag {tag}" if tag else "")
    return str(commit.commit_url)


def _others(api: Any, publication: Publication) -> list[str]:
    """Files of the repository that are not in this publication; creates the repository if it does not exist."""
    from huggingface_hub.errors import RepositoryNotFoundError

    repo, kind = publication.repo, publication.kind
    try:
        info = api.repo_info(repo, repo_type=kind)
    except RepositoryNotFoundError:
        api.create_repo(repo, repo_type=kind, private=publication.private, exist_ok=True)
        return []
    if publication.private and not info.private:
        raise UserError(f"The {kind} repository {repo} is already public. Leave out --private, or use another --repo.")
    tags = [tag.name for tag in api.list_repo_refs(repo, repo_type=kind).tags]
    if publication.tag in tags:
        raise UserError(f"{repo} already has the tag {publication.tag!r}, and versions do not change. Use another tag.")
    published = {item.path for item in publication.items}
    others = sorted({file.rfilename for file in info.siblings or ()} - published - set(KEPT))
    if others and not publication.replace:
        raise UserError(
            f"The {kind} repository {repo} contains files that are not in this publication: {', '.join(others[:10])}"
            f"{' ...' if others[10:] else ''}. Use another --repo, or add --replace to delete them in the same commit."
        )
    return others


def _content(content: Path | bytes) -> str | bytes:
    return content if isinstance(content, bytes) else str(content)
