"""Prints the agreement of judges that are no judges with labelled pairs, to be read beside ``lm-eval-rag judge-check``.

    python scripts/trivial_judges.py pairs.jsonl

``always correct`` accepts all, ``em`` needs the gold answer itself, ``em_contains`` needs it somewhere in the text.
As with every judge, refusals and answers to invalid questions are decided by CRAG's rules first.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lm_eval_rag.harness.scoring import METRICS
from lm_eval_rag.harness.scoring.case import read_case
from lm_eval_rag.harness.scoring.judge import Item, Opinion
from lm_eval_rag.harness.scoring.judge.agreement import check, render
from lm_eval_rag.harness.scoring.judge.labels import read_labels
from lm_eval_rag.harness.scoring.judge.panel import Panel
from lm_eval_rag.harness.scoring.truncate import words_cut


def metric(name: str) -> Callable[[Item], float]:
    """The judge that accepts what a metric accepts."""
    return lambda item: METRICS[name].of(read_case({"answers": item.answers}, item.prediction, None))


JUDGES: dict[str, Callable[[Item], float]] = {
    "always correct": lambda item: 1.0,
    "em": metric("em"),
    "em_contains": metric("em_contains"),
}


@dataclass(frozen=True, slots=True)
class TrivialJudge:
    """One of :data:`JUDGES`; its fingerprint is its name."""

    name: str

    @property
    def fingerprint(self) -> str:
        return self.name

    def opinions(self, items: Sequence[Item]) -> list[Opinion]:
        return [Opinion(JUDGES[self.name](item)) for item in items]


def main() -> None:
    """Judge the file given on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", help="labelled pairs, as for judge-check")
    labelled = read_labels(parser.parse_args().file)
    for name in JUDGES:
        panel = Panel((TrivialJudge(name),), words_cut())
        print(render(check(labelled, panel), panel))


if __name__ == "__main__":
    main()
