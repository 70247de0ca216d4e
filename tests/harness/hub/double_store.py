"""What the Hub double keeps: repositories with their commits and tags, and what it says of a file."""

import hashlib
import re
from dataclasses import dataclass, field
from urllib.parse import unquote

LARGE = re.compile(r".*\.(parquet|safetensors|bin|arrow)")  # what the Hub's own .gitattributes sends to LFS
FIRST = {".gitattributes": b"*.parquet filter=lfs diff=lfs merge=lfs -text\n"}


@dataclass
class Repository:
    """Commits (id -> path -> content), oldest first, and names for some."""

    private: bool
    commits: dict = field(default_factory=dict)
    messages: list = field(default_factory=list)
    tags: dict = field(default_factory=dict)

    def __post_init__(self):
        self.commit(dict(FIRST), "initial commit")

    @property
    def head(self):
        return list(self.commits)[-1]

    @property
    def files(self):
        return self.commits[self.head]

    def commit(self, files, message):
        oid = hashlib.sha1(f"{len(self.commits)} {message} {sorted(files)}".encode()).hexdigest()
        self.commits[oid] = files
        self.messages.append(message)
        return oid

    def resolve(self, revision):
        """The commit of a revision, or None."""
        names = {"main": self.head, **self.tags, **{oid: oid for oid in self.commits}}
        return names.get(unquote(revision))


def oid_of(path, data):
    """What the Hub calls a file's content: sha256 of a large one, git's blob id of another."""
    if LARGE.fullmatch(path):
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def entry(path, data):
    """A file of a tree listing."""
    large = {"lfs": {"oid": oid_of(path, data), "size": len(data), "pointerSize": 134}} if LARGE.fullmatch(path) else {}
    return {"type": "file", "path": path, "size": len(data), "oid": hashlib.sha1(data).hexdigest(), **large}
