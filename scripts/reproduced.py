"""Copies the pages of reproduced tables to ``leaderboards/reproduced`` and prints the table of claims for RESULTS.md.

    lm-eval-rag reproduce rulerag_figure5
    python scripts/reproduced.py reproduced/rulerag_figure5 ...

"Holds vs all controls" needs every control to have been run.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from markdown_table import table

from lm_eval_rag.harness.reproduce.claims import HOLDS, VERDICTS

KEPT = Path(__file__).resolve().parents[1] / "leaderboards" / "reproduced"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=Path, nargs="+", help="output folders of `lm-eval-rag reproduce`")
    rows = []
    for folder in parser.parse_args().pages:
        page = json.loads((folder / "page.json").read_text(encoding="utf-8"))["page"]
        name = page["table"]["name"]
        for suffix in ("txt", "html"):
            shutil.copyfile(folder / f"page.{suffix}", KEPT / f"{name}.{suffix}")
        lines = [line for claim, tests in page["claims"] for line in _claim(claim, tests)]
        rows += [[f"[{name}](leaderboards/reproduced/{name}.txt)" if i == 0 else "", *t] for i, t in enumerate(lines)]
    head = ["page", "claim", "score", *VERDICTS, "holds vs all controls"]
    print(table(head, rows).replace("---:", "---"))


def _claim(claim: Mapping[str, Any], tests: Iterable[Mapping[str, Any]]) -> Iterable[list[str]]:
    """One line per score that the claim was tested on."""
    tests = list(tests)
    for metric in dict.fromkeys(test["metric"] for test in tests):
        sets: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS}
        with_controls = []
        for test in tests:
            if test["metric"] != metric:
                continue
            set_ = test["task"].removeprefix("ruleqa_").removesuffix("_hard").upper()
            name = f"{set_} hard" if test["task"].endswith("_hard") else set_
            baseline, *controls = [one for one in test["comparisons"] if one["verdict"]]
            sets[baseline["verdict"]].append(name)
            if controls and not test["absent"] and all(one["verdict"] == HOLDS for one in (baseline, *controls)):
                with_controls.append(name)
        last = (", ".join(with_controls) or "none") if claim["controls"] else ""
        yield [claim["text"], metric, *(", ".join(names) for names in sets.values()), last]


if __name__ == "__main__":
    main()
