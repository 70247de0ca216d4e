"""Builds a RuleQA set on first use (:mod:`lm_eval_rag.tasks.ruleqa.making`); a set that is there costs no import of it.

The folder is ``$LM_EVAL_RAG_CACHE/<task>/<hash>``; the hash is of source files, parameters and code version. It is
written under a temporary name and then renamed, so a folder is either complete or absent.
"""

from __future__ import annotations

import logging
from importlib.resources import files
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, at_least, unknown
from lm_eval_rag.harness.data.folders import content_folder
from lm_eval_rag.harness.data.sources import read_manifest
from lm_eval_rag.tasks.ruleqa.source_files import FILES
from lm_eval_rag.tasks.ruleqa.specs import CorpusChoice, spec_of

logger = logging.getLogger(__name__)

VERSION = 4  # increase it when the built data change; it is part of the folder's hash
CORPORA = ("train", "train_valid")


def build(task: str, *, corpus: CorpusChoice = "train", seed: int = 0, inverse: bool = False) -> str:
    """The id ``<task>/<hash>`` of the set's folder, which is built if it does not exist.

    Args:
        task: ``ruleqa_i``, ``_y``, ``_w``, ``_f``, ``_n``, or one of these with ``_fresh``.
        corpus: ``train_valid`` adds the validation facts to D (temporal graphs only).
        seed: Seed of the halves, the held-out groups, the sample Q and the fresh names; 0 or more.
        inverse: Add inverse rules to the bank, ``[Entity2, body, Entity1] leads to [Entity1, head, Entity2]``. The
            paper has none. Slices always count them.

    Raises:
        UserError: Unknown task or corpus, an unavailable source, or a damaged folder.
    """
    spec = spec_of(task)
    if corpus not in CORPORA:
        raise unknown("corpus", corpus, CORPORA)
    if corpus != "train" and not spec.temporal:
        raise UserError(f"corpus={corpus!r} is only for temporal sets; {task} pools all splits. Leave it out.")
    at_least("seed", seed, 0)
    manifest = read_manifest(files(__package__) / "sources.toml")
    sources = {path: manifest[path] for path in FILES[spec.graph]}
    inputs = {
        "task": task,
        "version": VERSION,
        "parameters": {
            "corpus": corpus,
            "seed": seed,
            "bank": spec.bank,
            "min_support": spec.min_support,
            "queries": spec.published.queries,
            "inverse": inverse,
        },
        "sources": {path: source.sha256 for path, source in sources.items()},
    }

    def write(folder: Path) -> dict[str, Any]:
        from lm_eval_rag.tasks.ruleqa.making import make_set, write_set  # with polars, which takes a third of a second

        logger.info("building %s in %s", task, folder)
        return write_set(folder, make_set(spec, task, sources, corpus, seed, inverse), spec, inputs, sources)

    return content_folder(task, inputs, write)
