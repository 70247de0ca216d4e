"""``lm-eval-rag train retriever|generator|attributes``."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.train.settings import DENSE_DEFAULTS, STATIC, STATIC_DEFAULTS, Settings

log = logging.getLogger(__name__)
Build = Callable[[str], str]


def train_main(argv: Sequence[str], *, build: Build) -> int:
    """Run ``lm-eval-rag train`` and return its exit status, 0.

    Args:
        build: Builds a task's corpus and returns its id.

    Raises:
        UserError: Bad input; see :func:`lm_eval_rag.harness.train.retriever.train_retriever`.
    """
    parser = argparse.ArgumentParser(prog="lm-eval-rag train", description="Tune a retriever or a generator on a task.")
    commands = parser.add_subparsers(dest="what", required=True, metavar="retriever|generator|attributes")
    commands.add_parser("attributes", help="a classifier of CRAG's questions", add_help=False)
    if list(argv[:1]) == ["attributes"]:
        from lm_eval_rag.harness.train.classifier_trainer import train_attributes_main

        return train_attributes_main(argv[1:])
    retriever = commands.add_parser("retriever", help="the query tower of a retriever, on F_R")
    add_arguments(retriever)
    if list(argv[:1]) == ["retriever"]:
        return train_retriever_main(parser.parse_args(argv), build)
    from lm_eval_rag.harness.train import generator_cli

    generator_cli.add_arguments(commands.add_parser("generator", help="a generator, on F_G"))
    return generator_cli.train_generator_main(parser.parse_args(argv), build)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``lm-eval-rag train retriever``; their defaults depend on the encoder."""
    static, dense = STATIC_DEFAULTS, DENSE_DEFAULTS
    add = parser.add_argument

    def number(name: str, kind: type, told: str) -> None:
        field = name.replace("-", "_")
        shown = f"{told} (default: {getattr(static, field)} for static, {getattr(dense, field)} for transformers)"
        add(f"--{name}", type=kind, help=shown)

    add("--task", action="append", required=True, help="whose F_R to learn from; may be given several times")
    add("--out", type=Path, help="the checkpoint's folder; a run that was cut off goes on there")
    add("--encoder", default=STATIC, help="static, a preset of the dense retriever (minilm, ...), a folder or a Hub id")
    add("--mode", choices=("rgft", "ssft"), default="rgft", help="with rules, or the same without them")
    add("--lora", action="store_true", default=None, help="tune an adapter (default for transformers)")
    add("--full", action="store_false", dest="lora", help="tune all weights")
    number("epochs", int, "times that every example is seen")
    number("batch-size", int, "examples a step, over all devices")
    number("learning-rate", float, "at the start; it falls linearly to 0")
    number("temperature", float, "scores are divided by it")
    number("hard", int, "hard negatives of BM25 for each example")
    number("n-rules", int, "rules for a question")
    number("rows", int, "questions of each task at most")
    number("latest", int, "oracle documents of a question and a rule at most, the last ones")
    number("dev", int, "questions of each task held out to choose the checkpoint")
    number("eval-every", int, "epochs between two looks at them")
    number("lora-rank", int, "rank of the adapter")
    add("--device", choices=("cpu",), help="(default: a GPU where there is one)")
    add("--seed", type=int, default=0)


def train_retriever_main(args: argparse.Namespace, build: Build) -> int:
    """Run ``lm-eval-rag train retriever``."""
    settings = read_settings(args)
    settings.check()
    tasks = list(dict.fromkeys(args.task))
    out = args.out or Path("checkpoints") / "-".join([Path(args.encoder).name, args.mode, *tasks])
    from lm_eval_rag.harness.train.retriever import train_retriever

    results = train_retriever(settings, {task: build(task) for task in tasks}, out)
    sys.stdout.write(
        f"{out}: dev recall@10 {100 * results['mean']:.1f} at epoch {results['epoch']} "
        f"(before training {100 * results['before']:.1f}), {results['seconds']:.0f} s\n"
    )
    return 0


def read_settings(args: argparse.Namespace) -> Settings:
    """What the options say, over the defaults of the kind of encoder."""
    defaults = STATIC_DEFAULTS if args.encoder == STATIC else DENSE_DEFAULTS
    given = {field.name: getattr(args, field.name) for field in fields(Settings)}
    if not args.encoder:
        raise UserError("--encoder '' is not allowed: give static, a preset, a folder or a Hub id.")
    return replace(defaults, **{name: value for name, value in given.items() if value is not None})
