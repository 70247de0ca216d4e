"""Keeps the pages of reproduced tables in ``leaderboards/reproduced`` and prints the README's summary of their claims.

    lm-eval-rag reproduce rulerag_figure5
    python scripts/reproduced.py reproduced/rulerag_figure5 ...

A claim holds against every control only where every control was run.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from results import table

from lm_eval_rag.harness.reproduce.claims import FAILS, HOLDS, UNCLEAR

KEPT = Path(__file__).resolve().parents[1] / "leaderboards" / "reproduced"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=Path, nargs="+", help="what `lm-eval-rag reproduce` wrote")
    rows = []
    for folder in parser.parse_args().pages:
        page = json.loads((folder / "page.json").read_text(encoding="utf-8"))["page"]
        name = page["table"]["name"]
        for suffix in ("txt", "html"):
            shutil.copyfile(folder / f"page.{suffix}", KEPT / f"{name}.{suffix}")
        told = [line for claim, tests in page["claims"] for line in _claim(claim, tests)]
        rows += [[f"[{name}](leaderboards/reproduced/{name}.txt)" if i == 0 else "", *t] for i, t in enumerate(told)]
    head = ["page", "claim", "score", "holds", "does not hold", "cannot tell", "holds against every control"]
    print(table(head, rows).replace("---:", "---"))


def _claim(claim: Mapping[str, Any], tests: Iterable[Mapping[str, Any]]) -> Iterable[list[str]]:
    """One line for each score that a claim was tested by."""
    tests = list(tests)
    for metric in dict.fromkeys(test["metric"] for test in tests):
        told: dict[str, list[str]] = {HOLDS: [], FAILS: [], UNCLEAR: []}
        through = []
        for test in tests:
            if test["metric"] != metric:
                continue
            set_ = test["task"].removeprefix("ruleqa_").removesuffix("_hard").upper()
            name = f"{set_} hard" if test["task"].endswith("_hard") else set_
            ours, *controls = [one for one in test["comparisons"] if one["verdict"]]
            told[ours["verdict"]].append(name)
            if controls and not test["absent"] and all(one["verdict"] == HOLDS for one in (ours, *controls)):
                through.append(name)
        last = (", ".join(through) or "none") if claim["controls"] else ""
        yield [claim["text"], metric, *(", ".join(told[v]) for v in (HOLDS, FAILS, UNCLEAR)), last]


if __name__ == "__main__":
    main()
