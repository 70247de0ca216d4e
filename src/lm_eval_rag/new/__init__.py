"""``lm-eval-rag new``: a method or a task of one's own that runs, as files to begin with."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from lm_eval_rag._register import METHODS
from lm_eval_rag.describe.tasks import names_in_files
from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.common.paths import output_folder, storing

NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Skeleton:
    """What is written for one kind.

    Args:
        files: Path below the folder -> file in ``skeletons``; ``NAME`` stands for the name in both.
        say: What to do next.
    """

    files: dict[str, str]
    say: str


SKELETONS = {
    "method": Skeleton(
        {
            "NAME.py": "method.py.txt",
            "NAME.toml": "prompts.toml.txt",
            "test_NAME.py": "test_method.py.txt",
        },
        "Run it:   lm_eval --tasks ruleqa_demo --model rag --model_args method={folder}NAME.py:NAME --limit 20\n"
        "Test it:  python -m pytest {folder}test_NAME.py    (pip install pytest)\n"
        "See it:   lm-eval-rag describe {folder}NAME.py:NAME\n",
    ),
    "task": Skeleton(
        {
            "NAME/NAME.yaml": "task.yaml.txt",
            "NAME/questions.jsonl": "questions.jsonl.txt",
            "NAME/corpus.jsonl": "corpus.jsonl.txt",
        },
        "Run it:   lm_eval --include_path {folder}NAME --tasks NAME --model standard_rag\n",
    ),
}


def new_main(argv: Sequence[str]) -> int:
    """Write the files and say how they are run; returns 0.

    Raises:
        UserError: Another kind, a name that cannot be one or is taken, or a file that is there already.
    """
    parser = argparse.ArgumentParser(prog="lm-eval-rag new", description="Write a method or a task that runs.")
    parser.add_argument("kind", metavar="KIND", help=" or ".join(SKELETONS))
    parser.add_argument("name", metavar="NAME", help="small letters, digits and _, beginning with a letter")
    parser.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="default: this folder")
    chosen = parser.parse_args(argv)
    if chosen.kind not in SKELETONS:
        raise unknown("kind", chosen.kind, SKELETONS)
    _check_name(chosen.kind, chosen.name)
    skeleton = SKELETONS[chosen.kind]
    texts = {
        chosen.out / path.replace("NAME", chosen.name): _text(source, chosen) for path, source in skeleton.files.items()
    }
    taken = [str(path) for path in texts if path.exists()]
    if taken:
        raise UserError(f"There is {', '.join(taken)} already, and nothing is overwritten. Take another name or --out.")
    for path, text in texts.items():
        output_folder(path.parent)
        with storing(path, "Give another --out."):
            path.write_text(text, encoding="utf-8")
    say = skeleton.say.format(folder=_prefix(chosen.out)).replace("NAME", chosen.name)
    sys.stdout.write("".join(f"{path}\n" for path in texts) + f"\n{say}")
    return 0


def _check_name(kind: str, name: str) -> None:
    if not NAME.fullmatch(name):
        raise UserError(f"The name {name!r} is not allowed: give small letters, digits and _, beginning with a letter.")
    if name in {"method": METHODS, "task": names_in_files()}[kind]:
        raise UserError(f"There is a {kind} {name!r} already (`lm-eval-rag describe {name}`). Take another name.")


def _text(source: str, chosen: argparse.Namespace) -> str:
    text = (files(__package__) / "skeletons" / source).read_text(encoding="utf-8")
    return text.replace("NAME", chosen.name)


def _prefix(folder: Path) -> str:
    """What stands before a file of the folder; "" for the current one."""
    return "" if folder == Path() else f"{folder.as_posix()}/"
