"""What is said of one model, metric, task or retriever."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("model", "metric", "task", "retriever")


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument.

    Args:
        name: As it is written on the command line.
        type: What it takes, in words.
        default: As it would be written; "" if it has none.
        meaning: What it does.
    """

    name: str
    type: str
    default: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Description:
    """One entry of a registry.

    Args:
        kind: One of ``KINDS``.
        name: As it is written on the command line.
        summary: What it is, in one line.
        usage: A command that uses it.
        text: Paragraphs on what it does.
        sources: Papers and other sources, such as ``arXiv:2212.10509``.
        departures: Paragraphs on how it differs from its source.
        arguments: Its own arguments.
        shared: Arguments that it shares with all of its kind.
        notes: Further (title, text) pairs, such as the terms of data.
    """

    kind: str
    name: str
    summary: str
    usage: str
    text: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    departures: tuple[str, ...] = ()
    arguments: tuple[Argument, ...] = ()
    shared: tuple[Argument, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
