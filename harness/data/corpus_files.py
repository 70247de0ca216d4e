"""The files of a corpus folder: documents, rules, worked examples, and ``meta.json`` with the content's hash.

``corpus.parquet`` may have the columns ``source`` (text) and ``metadata`` (JSON) beside those that every corpus has.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.core.types import Rule
from lm_eval_rag.harness.data.folders import build_waiting
from lm_eval_rag.harness.data.tables import column_names, damaged, read_parquet

DOCUMENTS, RULES, EXAMPLES, META = "corpus.parquet", "rules.parquet", "generator_train.parquet", "meta.json"
NAMES = ("subject", "relation", "object")  # columns with few distinct values
OPTIONAL = ("source", "metadata")
RULE_COLUMNS = {  # name -> Arrow's name of its type
    **{"head": "string", "body": "string", "support": "int64", "body_support": "int64"},
    **{"confidence": "float64", "repeat": "bool_"},
}
OPTIONAL_OF_RULES = {"inverse": "bool_", "path": "strings"}
EXAMPLE_COLUMNS = {"id": "string", "text": "string", "time": "string", "answers": "strings"}
Example = tuple[str, str, str | None, list[str]]  # id, text, time, answers


@dataclass(frozen=True)
class CorpusFiles:
    """What a corpus folder holds, without its worked examples.

    Args:
        table: Arrow table of the documents.
        fingerprint: Hash of the content.
        rules: The rule bank, best first.
        sources: Where each document comes from; () if no document says so.
        metadata: Further fields of each document; () if none has any.
    """

    table: Any
    fingerprint: str
    rules: tuple[Rule, ...]
    sources: Sequence[str]
    metadata: Sequence[Mapping[str, Any]]


def is_corpus(folder: Path) -> bool:
    """Whether a folder holds a corpus."""
    return os.path.isfile(folder / DOCUMENTS)  # False, not an error, for a text that is no path


def built_folder(corpus_id: str) -> Path:
    """The folder of a corpus in the cache; one that waits to be built is built now.

    Raises:
        UserError: There is none, or it cannot be built.
    """
    if not is_corpus(cache_dir() / corpus_id):
        build_waiting(corpus_id)
    if not is_corpus(cache_dir() / corpus_id):
        task = corpus_id.split("/")[0]
        raise UserError(
            f"There is no corpus {corpus_id!r} in {cache_dir()}. Build it with `lm-eval-rag build {task}`, "
            f"or set LM_EVAL_RAG_CACHE to the folder in which it was built."
        )
    return cache_dir() / corpus_id


def read_files(folder: Path, columns: Sequence[str]) -> CorpusFiles:
    """Read a corpus folder.

    Raises:
        UserError: A file is missing or damaged.
    """
    try:
        fingerprint = json.loads((folder / META).read_text(encoding="utf-8"))["hash"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise damaged(folder / META, error) from None
    optional = [name for name in OPTIONAL if name in column_names(folder / DOCUMENTS)]
    table = read_parquet(folder / DOCUMENTS, (*columns, *optional), coded=NAMES)
    sources, metadata = (table.column(name).to_pylist() if name in optional else () for name in OPTIONAL)
    more = [name for name in OPTIONAL_OF_RULES if name in column_names(folder / RULES)]
    rows = read_parquet(folder / RULES, (*RULE_COLUMNS, *more)).to_pylist()
    rules = tuple(Rule(**{**row, "path": tuple(row.get("path") or ())}) for row in rows)
    return CorpusFiles(
        table=table.select(list(columns)),
        fingerprint=fingerprint,
        rules=rules,
        sources=[source or "" for source in sources],
        metadata=[json.loads(text) if text else {} for text in metadata],
    )


def read_examples(folder: Path) -> list[Example]:
    """The worked examples of a corpus folder."""
    table = read_parquet(folder / EXAMPLES, tuple(EXAMPLE_COLUMNS))
    return [(row["id"], row["text"], row["time"], row["answers"]) for row in table.to_pylist()]


def write_files(
    folder: Path,
    columns: Mapping[str, Any],
    sources: Sequence[str],
    metadata: Sequence[Mapping[str, Any]],
    rules: Sequence[Rule],
    examples: Sequence[Example],
) -> None:
    """Write all files of a corpus but ``meta.json``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    documents = dict(columns)
    if sources:
        documents["source"] = pa.array(sources, pa.string())
    if metadata:
        documents["metadata"] = pa.array([json.dumps(one) if one else None for one in metadata], pa.string())
    pq.write_table(pa.table(documents), folder / DOCUMENTS, compression="zstd")
    write_banks(folder, rules, examples)


def write_banks(folder: Path, rules: Sequence[Rule], examples: Sequence[Example]) -> None:
    """Write the rules and the worked examples of a corpus."""
    import pyarrow.parquet as pq

    more = {name: kind for name, kind in OPTIONAL_OF_RULES.items() if any(getattr(rule, name) for rule in rules)}
    columns_of_rules = {**RULE_COLUMNS, **more}
    values = [tuple(getattr(rule, name) for name in columns_of_rules) for rule in rules]
    pq.write_table(_table(columns_of_rules, values), folder / RULES)
    pq.write_table(_table(EXAMPLE_COLUMNS, examples), folder / EXAMPLES)


def write_meta(folder: Path, fingerprint: str) -> None:
    """Write ``meta.json``, last: a folder without it is not complete."""
    (folder / META).write_text(json.dumps({"hash": fingerprint}), encoding="utf-8")


def _table(types: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> Any:
    import pyarrow as pa

    columns = list(zip(*rows, strict=True)) or [()] * len(types)
    arrow = {name: pa.list_(pa.string()) if kind == "strings" else getattr(pa, kind)() for name, kind in types.items()}
    return pa.table({name: pa.array(values, arrow[name]) for name, values in zip(types, columns, strict=True)})
