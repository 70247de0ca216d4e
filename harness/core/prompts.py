"""Prompts in the paper's five parts: instruction, documents, rules, query, answer (RuleRAG, figure 2 and A.9).

A :class:`Template` is a TOML file with the keys ``version``, ``instruction`` (documents alone), ``instruction_rules``
(rules too), ``instruction_closed`` (neither), ``documents``, ``rules``, ``query`` and ``answer``; users load their own
with ``prompt_file=``, which may leave out what it does not change. A part whose content is missing is left out whole.
The wording is ours.
"""

from __future__ import annotations

import json
import string
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import read_text
from lm_eval_rag.harness.core.types import Passage, Rule

NEEDED = {"documents": "documents", "rules": "rules", "query": "query"}  # part -> the field it must hold


@dataclass(frozen=True, slots=True)
class Template:
    """The wording of the parts, with three instructions: documents alone, documents and rules, neither."""

    version: str
    instruction: str
    instruction_rules: str
    instruction_closed: str
    documents: str
    rules: str
    query: str
    answer: str


@dataclass(frozen=True, slots=True)
class Shot:
    """A worked example in front of the query; ``answer`` may begin with the reasoning that leads to it."""

    query: str
    answer: str
    passages: tuple[Passage, ...] = ()
    rules: tuple[Rule, ...] = ()


class Messages(str):
    """A rendered prompt that knows where its system message ends: that many characters, then an empty line.

    It is the whole prompt for every model that takes text. A chat template gets the two messages.
    """

    __slots__ = ("system_length",)
    system_length: int

    def __new__(cls, system: str, user: str) -> Messages:
        """The prompt of a system message and a user message."""
        text = super().__new__(cls, f"{system}\n\n{user}")
        text.system_length = len(system)
        return text

    def __reduce__(self) -> tuple[type[Messages], tuple[str, str]]:
        """For copies and other processes."""
        return type(self), (self.system, self.user)

    @property
    def system(self) -> str:
        """The system message."""
        return self[: self.system_length]

    @property
    def user(self) -> str:
        """The user message."""
        return self[self.system_length + 2 :]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt that still knows its passages (best first), so that the lowest-ranked can be dropped to fit.

    Args:
        order: ``best_first`` or ``best_last``: where the best passage stands in the text.
        reasoning: What the model has said so far, for methods that retrieve between steps of reasoning (IRCoT,
            arXiv:2212.10509). It stands after the answer's cue, where the model goes on; it is never dropped.
        reminder: Stands between the query and the answer's cue, for example the most important rules once more.
        apart: Whether instruction and examples are a system message, and all else the user message.
    """

    template: Template
    query: str
    passages: tuple[Passage, ...] = ()
    rules: tuple[Rule, ...] = ()
    shots: tuple[Shot, ...] = ()
    order: str = "best_first"
    reasoning: str = ""
    reminder: str = ""
    apart: bool = False

    def render(self, keep: int | None = None) -> str:
        """The whole prompt as text, with only the ``keep`` best passages of the query and of each shot."""
        parts: tuple[Prompt | Shot, ...] = (self, *self.shots)
        head = self.template.instruction if any(part.passages for part in parts) else self.template.instruction_closed
        if any(part.rules for part in parts):
            head = self.template.instruction_rules
        worked = [
            self._block(shot.query, shot.passages[:keep], shot.rules) + f" {shot.answer}\n" for shot in self.shots
        ]
        begun = f" {self.reasoning.strip()}" if self.reasoning.strip() else ""
        block = self._block(self.query, self.passages[:keep], self.rules, self.reminder) + begun
        return Messages("\n".join([head, *worked]).rstrip(), block) if self.apart else "\n".join([head, *worked, block])

    def _block(self, query: str, passages: tuple[Passage, ...], rules: tuple[Rule, ...], reminder: str = "") -> str:
        shown = passages if self.order == "best_first" else passages[::-1]
        parts = [self.template.query.format(query=query), self.template.answer]
        if reminder:
            parts.insert(1, f"\n{reminder}")
        if rules:
            parts.insert(0, self.template.rules.format(rules="\n".join(rule.text for rule in rules)))
        if shown:
            parts.insert(0, self.template.documents.format(documents="\n".join(passage.text for passage in shown)))
        return "\n".join(parts)


def load_template(path: str | Path, base: Template | None = None) -> Template:
    """Read a prompt file.

    Args:
        base: What fills in the parts that the file leaves out; None wants all of them. A file that changes a part and
            names no version has one of its own, so that no checkpoint takes it for the version it was tuned on.

    Raises:
        UserError: The file is missing, is not TOML, or lacks a part or a field.
    """
    path, data = Path(path), read_prompt_file(path)
    names = [field.name for field in fields(Template)]
    ours = asdict(base) if base else {}
    parts = ours | data
    wrong = [name for name in names if not isinstance(parts.get(name), str)]
    if wrong or set(data) - set(names):
        raise UserError(
            f"Prompt file {path} {'may' if base else 'must'} hold the texts {', '.join(names)} and no others; missing "
            f"or no text: {', '.join(wrong) or 'none'}; not known: "
            f"{', '.join(sorted(set(data) - set(names))) or 'none'}."
        )
    for part, needed in NEEDED.items():
        _check_fields(path, part, parts[part], needed)
    if "version" not in data:
        parts["version"] = changed_version(ours, parts)
    return Template(**parts)


def read_prompt_file(path: str | Path) -> dict[str, Any]:
    """What a prompt file holds.

    Raises:
        UserError: The file cannot be read, or is not TOML.
    """
    text = read_text(Path(path), "Give prompt_file= the path of a TOML file.")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"Prompt file {path} is not a TOML text: {error}.") from None


def changed_version(ours: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    """The version of prompts that name none: that of ``ours`` if nothing changed, else it and a hash of the change."""
    changes = {name: part for name, part in parts.items() if part != ours[name]}
    if not changes:
        return str(ours["version"])
    return f"{ours['version']}+{sha256(json.dumps(changes, sort_keys=True).encode()).hexdigest()[:8]}"


def _check_fields(path: Path, part: str, text: str, needed: str) -> None:
    """Raise unless ``{needed}`` is the one field of a part."""
    try:
        names = {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
    except ValueError as error:
        raise UserError(f"Prompt file {path}, {part!r}: {error}. Write a literal brace twice.") from None
    if names != {needed}:
        raise UserError(
            f"Prompt file {path}, {part!r}: needs the field {{{needed}}} and no other; found {sorted(names) or 'none'}."
        )
