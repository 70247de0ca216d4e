"""Parts of the rule bank, for training on some rules and testing on others (RuleRAG, section 7 and figure 5).

The bank is cut by the rules' heads, so that a question, which is about one relation, belongs to one part, and no rule
for it was seen in training on another. Heads are dealt out in order of their number of rules, each to the part with the
fewest so far: the parts are disjoint, and of about one size (the paper's are of one size).
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.core.types import Rule
from lm_eval_rag.harness.data.corpus import open_corpus, read_parquet

PARTS = 4


def parts(rules: Iterable[Rule], n: int = PARTS) -> dict[str, str]:
    """Head -> its part, ``1/n`` to ``n/n``; of equally small parts the first, of equal heads the first by name."""
    sizes, dealt = [0] * n, {}
    counts = Counter(rule.head for rule in rules)
    for head in sorted(counts, key=lambda head: (-counts[head], head)):
        least = sizes.index(min(sizes))
        sizes[least] += counts[head]
        dealt[head] = f"{least + 1}/{n}"
    return dealt


def restricted(corpus_id: str, part: str) -> str:
    """The id of the same corpus with the rules of one part alone, made when it is not there.

    Raises:
        UserError: ``part`` is not written ``2/4``, or holds no rule.
    """
    number, _, n = part.partition("/")
    if not (number.isdigit() and n.isdigit() and 1 <= int(number) <= int(n)):
        raise UserError(f"bank={part!r} is not allowed: give a part of the rule bank, such as 2/4.")
    made = f"{corpus_id}-rules-{number}of{n}"
    folder = cache_dir() / made
    if (folder / "meta.json").is_file():  # written last
        return made
    corpus = open_corpus(corpus_id)
    dealt = parts(corpus.rules(), int(n))
    kept = {head for head, its in dealt.items() if its == part}
    if not kept:
        raise UserError(f"Part {part} of the rule bank of {corpus_id} holds no rule: give fewer parts.")
    folder.mkdir(parents=True, exist_ok=True)
    _write(cache_dir() / corpus_id, folder, kept, part)
    return made


def _write(whole: Path, folder: Path, kept: set[str], part: str) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    names = ("head", "body", "support", "body_support", "confidence", "repeat")
    table = read_parquet(whole / "rules.parquet", names)
    pq.write_table(table.filter(pc.is_in(table["head"], pa.array(sorted(kept)))), folder / "rules.parquet")
    for file in whole.glob("*.parquet"):
        if not (folder / file.name).exists():
            shutil.copyfile(file, folder / file.name)
    meta = json.loads((whole / "meta.json").read_text(encoding="utf-8"))
    meta = {**meta, "hash": f"{meta['hash']}, rules {part}", "rules_of": whole.name}
    (folder / "meta.json").write_text(json.dumps(meta, indent=1), encoding="utf-8")
