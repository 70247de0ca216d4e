"""How well an embedded generator follows CRAG's prompts: the table of its card.

    python scripts/tiny_crag/measure_crag.py tiny_crag [--prompts 100]

For each kind of prompt, over prompts that the ladder sent to the teacher in a world that training has not seen: the
share of greedy replies that can be read in the form that the prompt asks for, and the share whose content equals the
teacher's (the answer of the reasoning form, the value of an expression, the fields of a JSON object, the calls).
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from make_crag_rows import rows_of

from lm_eval_rag.harness.backends.calculation import CalculateBackend
from lm_eval_rag.harness.core.ask_types import Calculate
from lm_eval_rag.harness.core.types import Query
from lm_eval_rag.harness.generators.base import Decoding, Generator
from lm_eval_rag.harness.generators.lm import LMGenerator
from lm_eval_rag.harness.generators.spec import EMBEDDED, ModelSpec
from lm_eval_rag.harness.kg.calling import read_calls
from lm_eval_rag.harness.scoring.normalise import normalise
from lm_eval_rag.methods.crag.attribute_predictor import LABELS
from lm_eval_rag.methods.crag.crag_prompts import END
from lm_eval_rag.methods.crag.reasoning import read_reasoning
from lm_eval_rag.methods.crag.replies import answer_line, choice, code_line

UNSEEN = 900_001  # seed of a world; training takes 1,000 and the next few
NOTHING = "no expression"
Row = tuple[str, str, str]


def content(name: str, reply: str) -> str | None:
    """What counts of a reply, as a text; None if it is not in the form of its prompt."""
    if name in LABELS:
        return choice(reply, LABELS[name])
    if name == "calculator":
        return _value(code_line(reply))
    if name == "fields":
        return _fields(reply)
    if name == "calls":
        read = read_calls(reply)
        return None if read.refused or "[" not in reply else str(sorted(map(str, read.calls)))
    if name.startswith(("reasoning", "knowledge")):
        form = read_reasoning(reply)
        return None if form is None else normalise(form.answer)
    return normalise(answer_line(reply)) or None


def _value(line: str) -> str | None:
    if not line:
        return NOTHING
    (served,) = CalculateBackend().serve([(Query("q", ""), Calculate(line))])
    return None if served.value.refused else served.value.value


def _fields(reply: str) -> str | None:
    match = re.search(r"\{.*\}", reply)
    try:
        return json.dumps({key: value for key, value in json.loads(match[0]).items() if value}) if match else None
    except ValueError:
        return None


def table_of(generator: Generator, rows: Sequence[Row], most: int) -> Mapping[str, dict[str, int]]:
    """By kind of prompt: number of prompts, of readable replies, and of those with the teacher's content.

    Args:
        rows: (kind, prompt, reply of the teacher).
        most: Prompts of a kind, drawn.
    """
    by_name = defaultdict[str, list[tuple[str, str]]](list)
    for name, prompt, reply in rows:
        by_name[name].append((prompt, reply))
    table = {}
    for name, pairs in sorted(by_name.items()):
        drawn = random.Random(0).sample(pairs, min(most, len(pairs)))
        decoding = Decoding(max_tokens=128, stop=("\n\n\n", END))
        replies = generator.generate([prompt for prompt, _ in drawn], decoding, [0] * len(drawn))
        given = [content(name, str(reply)) for reply in replies]
        wanted = [content(name, reply) for _, reply in drawn]
        equal = [one is not None and one == other for one, other in zip(given, wanted, strict=True)]
        table[name] = {
            "prompts": len(drawn),
            "read": sum(one is not None for one in given),
            "equal": sum(equal),
            "most common": max(map(wanted.count, wanted)),
        }
    return table


def embedded(name: str) -> LMGenerator:
    """An embedded generator by name or folder."""
    return LMGenerator(ModelSpec("hf", {"pretrained": str(EMBEDDED.get(name, name))}), chat=False)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("generator", help="the name of an embedded generator, or a folder")
    parser.add_argument("--prompts", type=int, default=100, help="of each kind at most")
    args = parser.parse_args()
    logging.disable(logging.INFO)
    rows = list(dict.fromkeys(tuple(row) for group in rows_of(UNSEEN) for row in group["rows"]))
    table = table_of(embedded(args.generator), rows, args.prompts)
    print(
        "| prompt | prompts | readable, % | content equals, % | the most common content, % |\n|---|---:|---:|---:|---:|"
    )
    for name, row in table.items():
        shares = " | ".join(f"{100 * row[key] / row['prompts']:.0f}" for key in ("read", "equal", "most common"))
        print(f"| `{name}` | {row['prompts']} | {shares} |")


if __name__ == "__main__":
    main()
