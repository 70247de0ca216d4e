"""Docstrings read: what a thing is, its paragraphs, its papers, its departures, and the meaning of each parameter."""

from __future__ import annotations

import re
from dataclasses import dataclass

SECTION = re.compile(r"^(Args|Returns|Raises|Yields|Attributes):$")
PARAMETER = re.compile(r"^ {4}(\w+): (.*)$")
ROLE = re.compile(r":\w+:`~?([^`]+)`")
PAPER = re.compile(
    r"\b(?:arXiv:\d{4}\.\d{4,5}|doi:[\w./-]*\w|[A-Z]\w+(?:, [A-Z]\w+)*(?: et al\.| and [A-Z]\w+), [A-Z]+ \d{4})"
)
DEPARTURES = "Departures:"
OWN = "our own"  # how a docstring says that a score or method has no paper


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring in parts.

    Args:
        summary: The first paragraph.
        text: The other paragraphs, without departures; one that begins with spaces is a formula.
        departures: The paragraphs that begin with, or end in, ``Departures: ...``; of a list, its points.
        parameters: Meaning by name.
    """

    summary: str = ""
    text: tuple[str, ...] = ()
    departures: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def papers(self) -> tuple[str, ...]:
        """The papers that are named, each once."""
        return papers(self.summary, *self.text, *self.departures)


def read_docstring(docstring: str | None) -> Docstring:
    """The parts of a docstring as ``inspect.getdoc`` returns it; Google style."""
    blocks, sections = _split(docstring or "")
    paragraphs = [plain(block) for block in blocks]
    text: list[str] = []
    departures: list[str] = []
    for paragraph in paragraphs[1:]:
        before, mark, after = paragraph.partition(DEPARTURES)
        text += [before.strip()] if before.strip() and mark else [] if mark else [paragraph]
        departures += _items(after.strip()) if mark else []
    summary = paragraphs[0] if paragraphs else ""
    return Docstring(summary, tuple(text), tuple(departures), tuple(_parameters(sections.get("Args", []))))


def _items(text: str) -> list[str]:
    """The points of a list, each on one line; another text as it is."""
    if not text.startswith("- "):
        return [text]
    return [" ".join(item.split()) for item in f"\n{text}".split("\n- ")[1:]]


def plain(block: str) -> str:
    """One paragraph without roles and double backticks; lines are joined, but not those of a formula or a list."""
    block = ROLE.sub(lambda role: f"`{role[1].rpartition('.')[2]}`", block).replace("``", "`")
    if any(line.startswith((" ", "- ", "1. ")) for line in block.splitlines()):
        return block
    return " ".join(block.split())


def papers(*texts: str) -> tuple[str, ...]:
    """The papers that texts name, each once."""
    return tuple(dict.fromkeys(paper for text in texts for paper in PAPER.findall(text)))


def _split(docstring: str) -> tuple[list[str], dict[str, list[str]]]:
    """(paragraphs before the first section, lines by section)."""
    head: list[str] = []
    sections: dict[str, list[str]] = {}
    lines = head
    for line in docstring.splitlines():
        if title := SECTION.match(line):
            lines = sections.setdefault(title[1], [])
        else:
            lines.append(line)
    return [block.strip("\n") for block in re.split(r"\n\s*\n", "\n".join(head)) if block.strip()], sections


def _parameters(lines: list[str]) -> list[tuple[str, str]]:
    meanings: list[tuple[str, list[str]]] = []
    for line in lines:
        if parameter := PARAMETER.match(line):
            meanings.append((parameter[1], [parameter[2]]))
        elif meanings and line.strip():
            meanings[-1][1].append(line.strip())
    return [(name, plain(" ".join(words))) for name, words in meanings]
