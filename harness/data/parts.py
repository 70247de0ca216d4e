"""Passages of long documents: their ids are ``<document>#<number>``."""

from __future__ import annotations

PART = "#"


def part_id(document: str, number: int) -> str:
    """The id of a passage of a document, by its number from 0."""
    return f"{document}{PART}{number}"


def document_of(passage: str) -> str:
    """The id of the document that a passage's id belongs to; its own, if it is not of this form."""
    document, mark, number = passage.rpartition(PART)
    return document if mark and number.isdigit() else passage
