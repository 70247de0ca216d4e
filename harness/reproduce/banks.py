"""Parts of the rule bank, for training on some rules and testing on others (RuleRAG, section 7 and figure 5).

The bank is divided by the heads of its rules. So a question, which is about one relation, belongs to one part, and
training on another part has seen no rule for it. Heads are taken by descending number of rules, and each goes to the
part with the fewest rules so far: the parts are disjoint and of similar size (the paper's are of equal size).
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.core.types import Rule
from lm_eval_rag.harness.data.corpus import open_corpus
from lm_eval_rag.harness.data.folders import META, write_folder
from lm_eval_rag.harness.data.tables import read_parquet

PARTS = 4
RULES = "rules.parquet"
COLUMNS = ("head", "body", "support", "body_support", "confidence", "repeat")


def part_of_heads(rules: Iterable[Rule], n: int = PARTS) -> dict[str, str]:
    """Head -> its part, ``1/n`` to ``n/n``; ties go to the first part, and heads with equally many rules by name."""
    sizes, parts = [0] * n, {}
    counts = Counter(rule.head for rule in rules)
    for head in sorted(counts, key=lambda head: (-counts[head], head)):
        smallest = sizes.index(min(sizes))
        sizes[smallest] += counts[head]
        parts[head] = f"{smallest + 1}/{n}"
    return parts


def corpus_with_part(corpus_id: str, part: str) -> str:
    """The id of the same corpus with only the rules of one part; it is written if it does not exist.

    Raises:
        UserError: ``part`` is not written like ``2/4``, or holds no rule.
    """
    number, _, n = part.partition("/")
    if not (number.isdigit() and n.isdigit() and 1 <= int(number) <= int(n)):
        raise UserError(f"bank={part!r} is not allowed: give a part of the rule bank, such as 2/4.")
    id_ = f"{corpus_id}-rules-{number}of{n}"
    if (cache_dir() / id_ / META).is_file():
        return id_
    parts = part_of_heads(open_corpus(corpus_id).rules(), int(n))
    heads = {head for head, its_part in parts.items() if its_part == part}
    if not heads:
        raise UserError(f"Part {part} of the rule bank of {corpus_id} holds no rule: divide it into fewer parts.")
    whole = cache_dir() / corpus_id
    meta = json.loads((whole / META).read_text(encoding="utf-8"))

    def write(folder: Path) -> Mapping[str, Any]:
        _write_rules(whole / RULES, folder / RULES, heads)
        for file in whole.glob("*.parquet"):
            if file.name != RULES:
                shutil.copyfile(file, folder / file.name)
        return {**meta, "rules_of": whole.name}

    shutil.rmtree(cache_dir() / id_, ignore_errors=True)  # a folder without meta.json was not written to its end
    write_folder(cache_dir() / id_, f"{meta['hash']}, rules {part}", write)
    return id_


def _write_rules(source: Path, target: Path, heads: Collection[str]) -> None:
    """The rules with one of these heads."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = read_parquet(source, COLUMNS)
    pq.write_table(table.filter(pc.is_in(table["head"], pa.array(sorted(heads)))), target)
