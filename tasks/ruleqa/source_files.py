"""The source files of each knowledge graph, by their paths in ``sources.toml``."""

from __future__ import annotations

from lm_eval_rag.tasks.ruleqa.wiki_names import FILES as WIKI_NAMES
from lm_eval_rag.tasks.ruleqa.wiki_names import FREEBASE

SPLITS = ("train", "valid", "test")
_TEMPORAL = tuple(f"{name}.txt" for name in ("entity2id", "relation2id", *SPLITS))
_STATIC = tuple(f"{name}2id.txt" for name in ("entity", "relation", *SPLITS))
_FOLDERS = {
    "icews14": _TEMPORAL,
    "yago": _TEMPORAL,
    "wiki": _TEMPORAL,
    "fb15k237": (*_STATIC, "entity2text.txt"),
    "nell995": _STATIC,
}
_SHARED = {"wiki": WIKI_NAMES, "fb15k237": (FREEBASE,)}
FILES = {folder: (*(f"{folder}/{name}" for name in own), *_SHARED.get(folder, ())) for folder, own in _FOLDERS.items()}
