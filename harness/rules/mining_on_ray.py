"""Rules of length 2 by the workers of Ray: each job mines the bodies that begin with some of the relations.

The facts and the finished blocks lie in a folder of ``$LM_EVAL_RAG_CACHE/rules`` whose name is a hash of the facts and
the settings. An interrupted command finds them there.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir, storing
from lm_eval_rag.harness.common.ray_engine import RayEngine
from lm_eval_rag.harness.rules.mining_paths import mine_graph
from lm_eval_rag.harness.rules.walks import closing_of, graph_of

if TYPE_CHECKING:
    import polars as pl

BLOCKS = 64  # at most: each worker makes the graph once, and then mines block after block
FACTS, FORMAT = "facts.parquet", 1


@dataclass(frozen=True, slots=True)
class Block:
    """A part of the work.

    Args:
        folder: Where the facts lie and the block is written.
        number: Of the block, from 0.
        first: Codes of the relations with which bodies begin.
        temporal: Whether times count.
        min_support: As :func:`~lm_eval_rag.harness.rules.mining_paths.mine_length2` has it.
    """

    folder: str
    number: int
    first: tuple[int, ...]
    temporal: bool
    min_support: int

    @property
    def file(self) -> Path:
        """The rules of the block."""
        return Path(self.folder) / f"{self.number:05}.parquet"


def mine_on_ray(engine: RayEngine, facts: pl.DataFrame, *, temporal: bool, min_support: int = 1) -> pl.DataFrame:
    """The table of :func:`~lm_eval_rag.harness.rules.mining_paths.mine_length2`.

    Raises:
        UserError: As :meth:`RayEngine.run`.
        MachineError: The cache cannot be written, or a worker was killed again and again.
    """
    import polars as pl

    facts = facts.select("subject", "relation", "object", *(["time"] if temporal else [])).unique().sort(pl.all())
    key = (FORMAT, temporal, min_support, facts.schema, hashlib.sha256(facts.write_csv().encode()).hexdigest())
    folder = (cache_dir() / "rules" / hashlib.sha256(repr(key).encode()).hexdigest()[:16]).absolute()
    with storing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        _write(facts, folder / FACTS)
    of_relation = facts.group_by("relation").len("edges").sort("relation")["edges"].to_list() * 2  # then the inverses
    count = min(BLOCKS, len(of_relation))
    codes = [tuple(range(number, len(of_relation), count)) for number in range(count)]
    blocks = [Block(str(folder), number, first, temporal, min_support) for number, first in enumerate(codes)]
    missing = [block for block in blocks if not block.file.exists()]
    sizes = [sum(of_relation[code] for code in block.first) for block in missing]
    if missing:
        engine.run("mining of rules", mine_block, missing, sizes, "edges")
    unseen = [block.file.name for block in blocks if not block.file.exists()]
    if unseen:
        raise UserError(
            f"Workers have mined {', '.join(unseen)}, and {folder} lacks them here: set LM_EVAL_RAG_CACHE to a folder "
            "on a disk that all machines share."
        )
    return pl.concat([pl.read_parquet(block.file) for block in blocks]).sort("head", "path")


def mine_block(block: Block) -> int:
    """Mine one block in a worker; returns the number of edges with which its bodies begin."""
    graph, closing = _graph(block.folder, block.temporal)
    rules = mine_graph(graph, closing, temporal=block.temporal, min_support=block.min_support, first=block.first)
    with storing(block.file):
        _write(rules, block.file)
    return sum(len(graph.edges_of(relation)) for relation in block.first)


@lru_cache(maxsize=1)
def _graph(folder: str, temporal: bool) -> tuple[Any, Any]:
    """It stays in the worker for the blocks that follow."""
    import polars as pl

    graph = graph_of(pl.read_parquet(Path(folder) / FACTS), temporal)
    return graph, closing_of(graph)


def _write(table: pl.DataFrame, path: Path) -> None:
    """Write a file whole or not at all."""
    beside = path.with_suffix(".new")
    table.write_parquet(beside)
    beside.replace(path)
