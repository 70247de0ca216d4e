"""``lm-eval-rag train retriever|generator|attributes``."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import output_folder
from lm_eval_rag.harness.train.settings import DENSE_DEFAULTS, LORA_RATES, STATIC, STATIC_DEFAULTS, Settings

log = logging.getLogger(__name__)
Build = Callable[[str], str]


def train_main(argv: Sequence[str], *, build: Build) -> int:
    """Run ``lm-eval-rag train`` and return its exit status, 0.

    Args:
        build: Builds a task's corpus and returns its id.

    Raises:
        UserError: Bad input; see :func:`lm_eval_rag.harness.train.retriever.train_retriever`.
    """
    parser = argparse.ArgumentParser(
        prog="lm-eval-rag train", description="Train a retriever, generator or classifier."
    )
    commands = parser.add_subparsers(dest="what", required=True, metavar="retriever|generator|attributes")
    commands.add_parser("attributes", help="a classifier of CRAG's questions by attribute", add_help=False)
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

    def number(name: str, kind: type, text: str) -> None:
        field = name.replace("-", "_")
        default = f"(default: {getattr(static, field)} for static, {getattr(dense, field)} for transformers)"
        add(f"--{name}", type=kind, help=f"{text} {default}")

    rates = ", ".join(f"{rate:g} for {encoder} {mode}" for (encoder, mode), rate in LORA_RATES.items())
    add("--task", action="append", required=True, help="task whose F_R to train on; may be repeated")
    add("--out", type=Path, help="folder of the checkpoint (default: in checkpoints/); an interrupted run is resumed")
    add("--encoder", default=STATIC, help="static, a preset of the dense retriever (minilm, ...), a folder or a Hub id")
    add("--mode", choices=("rgft", "ssft"), default="rgft", help="with rules (rgft) or without (ssft)")
    add("--lora", action="store_true", default=None, help="train a LoRA adapter (default for transformers)")
    add("--full", action="store_false", dest="lora", help="train all weights")
    number("epochs", int, "number of epochs")
    number("batch-size", int, "examples per step, over all devices")
    number("learning-rate", float, f"initial learning rate, which decays linearly to 0; with LoRA {rates}")
    number("temperature", float, "temperature of the loss")
    number("hard", int, "BM25's hard negatives per example")
    number("n-rules", int, "maximum rules per question")
    number("rows", int, "maximum training questions per task")
    number("latest", int, "maximum oracle documents per question and rule, the last ones")
    number("dev", int, "held-out questions per task, to select the checkpoint")
    add("--max-steps", type=int, help="end after so many steps, for a trial (default: all epochs)")
    number("eval-every", int, "epochs between two evaluations on the held-out questions")
    number("lora-rank", int, "rank of the adapter")
    add("--device", choices=("cpu",), help="cpu (default: a GPU if there is one)")
    add("--seed", type=int, default=0, help="seed of all random numbers (default: 0)")


def train_retriever_main(args: argparse.Namespace, build: Build) -> int:
    """Run ``lm-eval-rag train retriever``."""
    settings = read_settings(args)
    settings.check()
    tasks = list(dict.fromkeys(args.task))
    out = output_folder(args.out or Path("checkpoints") / "-".join([Path(args.encoder).name, args.mode, *tasks]))
    from lm_eval_rag.harness.train.retriever import train_retriever

    results = train_retriever(settings, {task: build(task) for task in tasks}, out)
    sys.stdout.write(
        f"{out}: dev recall@10 {100 * results['mean']:.1f} at epoch {results['epoch']:g} "
        f"(before training {100 * results['before']:.1f}), {results['seconds']:.0f} s\n"
    )
    return 0


def read_settings(args: argparse.Namespace) -> Settings:
    """The settings: the defaults of the kind of encoder, replaced by the given options."""
    defaults = STATIC_DEFAULTS if args.encoder == STATIC else DENSE_DEFAULTS
    overrides = {field.name: getattr(args, field.name) for field in fields(Settings)}
    if not args.encoder:
        raise UserError("--encoder '' is not allowed. Give static, a preset, a folder or a Hub id.")
    chosen = replace(defaults, **{name: value for name, value in overrides.items() if value is not None})
    if chosen.lora and args.learning_rate is None:
        return replace(chosen, learning_rate=LORA_RATES.get((args.encoder, args.mode), chosen.learning_rate))
    return chosen
