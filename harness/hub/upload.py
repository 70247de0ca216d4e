"""A publication as it would be, in words; and its upload, as one commit and, if wanted, a tag."""

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
    """What is to be published.

    Args:
        repo: ``ORG/NAME``.
        kind: Of the repository.
        items: Every file, the card among them.
        message: Of the commit.
        tag: For this version, or None.
        private: Whether a new repository is private.
        replace: Whether the repository's other files are deleted.
        left_out: Files that lie there but are not published.
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
    """Publish and return the address of the commit.

    The repository is made if need be. Big files are sent first; those that arrived are not sent again by a second try.
    The version itself is one commit, so it is there whole or not at all.

    Raises:
        UserError: No token or one that may not write; the tag exists; the repository holds other files; the repository
            is public though a private one was asked for; the Hub could not be reached or broke off.
    """
    from huggingface_hub import HfApi, get_token

    if get_token() is None:
        raise UserError(f"To publish {publication.repo}, the Hub must know who you are. {LOG_IN}")
    expected: tuple[type[Exception], ...] = (*failures(), RuntimeError)
    try:
        return _upload(HfApi(), publication)
    except expected as error:
        hidden = error.__cause__ if isinstance(error, RuntimeError) else None  # what cut off a big file
        raise UserError(
            f"{explained(hidden or error, publication.repo, kind=publication.kind)} Big files that arrived are not "
            "sent again. The version itself is one commit: it is there whole or not at all."
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
    """Files of the repository that this publication does not replace; the repository is made where it is not there."""
    from huggingface_hub.errors import RepositoryNotFoundError

    repo, kind = publication.repo, publication.kind
    try:
        info = api.repo_info(repo, repo_type=kind)
    except RepositoryNotFoundError:
        api.create_repo(repo, repo_type=kind, private=publication.private, exist_ok=True)
        return []
    if publication.private and not info.private:
        raise UserError(f"The {kind} repository {repo} is public already. Leave out --private, or take another --repo.")
    tags = [tag.name for tag in api.list_repo_refs(repo, repo_type=kind).tags]
    if publication.tag in tags:
        raise UserError(f"{repo} has a tag {publication.tag!r} already, and a version does not change. Take another.")
    published = {item.path for item in publication.items}
    others = sorted({file.rfilename for file in info.siblings or ()} - published - set(KEPT))
    if others and not publication.replace:
        raise UserError(
            f"The {kind} repository {repo} holds files that are not of this publication: {', '.join(others[:10])}"
            f"{' ...' if others[10:] else ''}. Take another --repo, or add --replace to delete them in the same commit."
        )
    return others


def _content(content: Path | bytes) -> str | bytes:
    return content if isinstance(content, bytes) else str(content)
