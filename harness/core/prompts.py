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
    """A rendered prompt that knows its parts: system message, user message, the beginning of the reply.

    It is the whole prompt for every model that takes text. A chat template gets the two messages, and the beginning of
    the reply stands after what it makes of them, where the model goes on. An empty line follows a system message.
    """

    __slots__ = ("begun_at", "system_end", "user_end")
    system_end: int
    user_end: int
    begun_at: int

    def __new__(cls, system: str, user: str, begun: str = "", gap: str = "") -> Messages:
        """The prompt of its parts; "" for one that it lacks.

        Args:
            gap: What stands before the reply in the whole text, and is part of no message.
        """
        before = f"{system}\n\n{user}" if system else user
        text = super().__new__(cls, f"{before}{gap}{begun}")
        text.system_end, text.user_end, text.begun_at = len(system), len(before), len(before) + len(gap)
        return text

    def __reduce__(self) -> tuple[type[Messages], tuple[str, str, str, str]]:
        """For copies and other processes."""
        return type(self), (self.system, self.user, self.begun, self[self.user_end : self.begun_at])

    @property
    def system(self) -> str:
        """The system message."""
        return self[: self.system_end]

    @property
    def user(self) -> str:
        """The user message."""
        return self[self._user_begin : self.user_end]

    @property
    def begun(self) -> str:
        """The beginning of the reply."""
        return self[self.begun_at :]

    @property
    def user_and_begun(self) -> str:
        """All but the system message, for a model that cannot go on in a reply."""
        return self[self._user_begin :]

    @property
    def _user_begin(self) -> int:
        return self.system_end + 2 if self.system_end else 0


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt that still knows its passages (best first), so that the lowest-ranked can be dropped to fit.

    Args:
        order: ``best_first`` or ``best_last``: where the best passage stands in the text.
        reasoning: What was said and read so far, told to the model: it stands trimmed after the answer's cue, in the
            user message of a chat; it is never dropped.
        begun: What the model has said so far of a reply in which it goes on, for methods that retrieve between steps
            of reasoning (IRCoT, arXiv:2212.10509). It stands as it is, after a space where the text before it does not
            end in white space; in a chat it begins the model's turn (:class:`Messages`). It is never dropped.
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
    begun: str = ""
    reminder: str = ""
    apart: bool = False

    def render(self, keep: int | None = None) -> str:
        """The whole prompt as text, with only the ``keep`` best passages of the query and of each shot.

        It is a :class:`Messages` where its parts are apart or a reply is begun.
        """
        parts: tuple[Prompt | Shot, ...] = (self, *self.shots)
        head = self.template.instruction if any(part.passages for part in parts) else self.template.instruction_closed
        if any(part.rules for part in parts):
            head = self.template.instruction_rules
        worked = [
            self._block(shot.query, shot.passages[:keep], shot.rules) + f" {shot.answer}\n" for shot in self.shots
        ]
        begun = f" {self.reasoning.strip()}" if self.reasoning.strip() else ""
        block = self._block(self.query, self.passages[:keep], self.rules, self.reminder) + begun
        gap = "" if not self.begun or block[-1:].isspace() else " "
        if self.apart:
            return Messages("\n".join([head, *worked]).rstrip(), block, self.begun, gap)
        text = "\n".join([*([head] if head else []), *worked, block])
        return Messages("", text, self.begun, gap) if self.begun else text

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
