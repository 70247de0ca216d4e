"""``lm-eval-rag describe``: what a model, metric, task or retriever is, and its arguments."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from textwrap import shorten

from lm_eval_rag.describe.description import Description
from lm_eval_rag.describe.metrics import metric, metric_names
from lm_eval_rag.describe.models import installed, model, model_names
from lm_eval_rag.describe.page import page
from lm_eval_rag.describe.retrievers import retriever, retriever_names
from lm_eval_rag.describe.tasks import task, task_names
from lm_eval_rag.harness.common.errors import unknown

# kind -> its names, and the description of one
REGISTRIES: dict[str, tuple[Callable[[], tuple[str, ...]], Callable[[str], Description]]] = {
    "model": (model_names, model),
    "task": (task_names, task),
    "metric": (metric_names, metric),
    "retriever": (retriever_names, retriever),
}
WIDTH, NAMES = 110, 26  # characters of a line, and of a name in a list


def describe_main(argv: Sequence[str]) -> int:
    """Write what is known of a name, or list all names."""
    parser = argparse.ArgumentParser(prog="lm-eval-rag describe", description=__doc__)
    names = "of a model, metric, task or retriever, or a method as FILE.py:NAME; without it, all names are listed"
    parser.add_argument("names", nargs="*", metavar="NAME", help=names)
    chosen = parser.parse_args(argv).names
    sys.stdout.write("\n".join(page(about) for name in chosen for about in described(name)) if chosen else listed())
    return 0


def described(name: str) -> list[Description]:
    """Every entry of that name: a task may be called as a model is. A method of another package, or of a file, too.

    Raises:
        UserError: There is none.
    """
    if ":" in name or name in installed():
        return [model(name)]
    found = [one(name) for names, one in REGISTRIES.values() if name in names()]
    if not found:
        every = [known for names, _ in REGISTRIES.values() for known in names()]
        raise unknown("name", name, every, "`lm-eval-rag describe` lists all names.", listed=False)
    return found


def listed() -> str:
    """All names with their summaries, by kind."""
    kinds = [
        "\n".join([f"{kind}s:", *(_line(name, one(name).summary) for name in names())])
        for kind, (names, one) in REGISTRIES.items()
    ]
    return "\n\n".join([*kinds, "`lm-eval-rag describe NAME` says more."]) + "\n"


def _line(name: str, summary: str) -> str:
    return f"  {name:{NAMES}} {shorten(summary, WIDTH - NAMES, placeholder=' ...')}"
