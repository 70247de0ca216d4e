"""Documents of other libraries, recognised by their attributes: none of these libraries is imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Fields = dict[str, Any]


def _langchain(document: Any) -> Fields:
    return {**document.metadata, **_known(id=getattr(document, "id", None)), "text": document.page_content}


def _llama_index(node: Any) -> Fields:
    text = node.get_content() if callable(getattr(node, "get_content", None)) else node.text
    return {**node.metadata, "id": node.node_id, "text": text}


def _haystack(document: Any) -> Fields:
    return {**(document.meta or {}), "id": document.id, "text": document.content}


def _known(**fields: Any) -> Fields:
    return {name: value for name, value in fields.items() if value is not None}


# library -> attributes of its documents, and how they become fields
LIBRARIES: dict[str, tuple[tuple[str, ...], Callable[[Any], Fields]]] = {
    "LangChain": (("page_content", "metadata"), _langchain),
    "LlamaIndex": (("node_id", "metadata"), _llama_index),
    "Haystack": (("content", "meta", "id"), _haystack),
}


def foreign_fields(document: Any) -> Mapping[str, Any] | None:
    """The fields of a document of LangChain, LlamaIndex or Haystack: metadata, id and text; None for other things."""
    for attributes, read in LIBRARIES.values():
        if all(hasattr(document, name) for name in attributes):
            return read(document)
    return None
