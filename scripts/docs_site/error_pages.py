"""The page of all errors: every message of the source, with what to do, read from the code by its syntax tree."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

FOLDERS = ("harness", "tasks", "methods", "src/lm_eval_rag")
CLASSES = ("UserError", "MachineError", "UnavailableError", "CallError")
HEAD = """# Errors

Bad input ends a command with one line and exit status 2: what was given, what is allowed, what to do. A failure of the
machine, such as a full disk, ends it with status 1. Unscored questions end it with status 3
([Running](running.md#failures)).

These are all messages of the source, by the part of the project that raises them; `…` stands for a value. An unknown
name (of a method, task, argument, file format ...) also ends in: *Unknown … '…'. Did you mean '…'? Allowed: …*"""


def errors_page(root: Path) -> str:
    """The page in Markdown."""
    by_part: dict[str, list[str]] = defaultdict(list)
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.py")):
            if not any(part.is_symlink() for part in file.parents):
                part = "/".join(file.relative_to(root).parts[:2])
                by_part[part] += messages(file.read_text(encoding="utf-8"))
    parts = [
        f"## {part}\n\n" + "\n".join(f"- {text}" for text in dict.fromkeys(texts))
        for part, texts in by_part.items()
        if texts
    ]
    return "\n\n".join([HEAD, *parts]) + "\n"


def messages(source: str) -> list[str]:
    """The messages of the errors that a file raises, in source order; values are ``…``."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and node.args]
    calls = [node for node in calls if isinstance(node.func, ast.Name) and node.func.id in CLASSES]
    texts = [_text(node.args[0]) for node in sorted(calls, key=lambda node: node.lineno)]
    return [_escaped(text) for text in texts if len(text.replace("…", "").split()) > 2]


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_text(value) for value in values)
        case ast.BinOp(left=left, right=right):
            return _text(left) + _text(right)
        case _:
            return "…"


def _escaped(text: str) -> str:
    """A message as Markdown shows it unchanged."""
    text = " ".join(text.split()).replace("\\", "\\\\")
    for sign in "*_[]<>#|":
        text = text.replace(sign, f"\\{sign}")
    return text
