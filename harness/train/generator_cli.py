"""``lm-eval-rag train generator``: its options, and running it."""

from __future__ import annotations

import logging
import sys
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.common.paths import output_folder
from lm_eval_rag.harness.core.parameters import defaults, preset_of
from lm_eval_rag.harness.generators.spec import EMBEDDED, TINY
from lm_eval_rag.harness.plugin.arguments import Setup, read_arguments
from lm_eval_rag.harness.train.generator import train_generator
from lm_eval_rag.harness.train.generator_settings import NAMES, Settings
from lm_eval_rag.harness.train.presets import PRESETS, Preset
from lm_eval_rag.harness.train.training_prompts import UNSTATED

log = logging.getLogger(__name__)


def add_arguments(parser: ArgumentParser) -> None:
    """The options of ``lm-eval-rag train generator``."""
    add = parser.add_argument
    add("--task", action="append", required=True, help="task whose F_G to train on; may be repeated")
    add("--out", type=Path, help="folder of the checkpoint (default: in checkpoints/); an interrupted run is resumed")
    add("--base", default=TINY, help="tiny, a folder or a Hub id (default: tiny)")
    add("--mode", choices=("rgft", "ssft"), default="rgft", help="with rules (rgft) or without (ssft)")
    add("--preset", help=f"hyperparameters: {', '.join(PRESETS)} (default: tiny for tiny, else llama2_7b)")
    add("--method", default="rulerag_ft", help="method that builds the prompts (default: rulerag_ft)")
    add("--method-args", default="", help="its parameters, as in --model_args: k=10,join=replace")
    add("--retriever", help="retriever of the documents (default: the method's)")
    add("--retriever-adapter", help="checkpoint of the retriever (default: that of the mode)")
    add("--rows", default="2048", help="training questions per task, drawn by the seed, or 'all' (default: 2048)")
    add("--dev", type=int, default=200, help="held-out questions per task, to select the checkpoint (default: 200)")
    unstated = "training prompts whose documents do not state the answer: keep, drop or abstain (default: keep)"
    add("--unstated", choices=UNSTATED, default="keep", help=unstated)
    names = (
        "names of the entities in training prompts: original, or fresh (invented in half of them, others each epoch)"
    )
    add("--names", choices=NAMES, default="original", help=f"{names} (default: original)")
    add("--lora", action="store_true", default=None, help="train a LoRA adapter")
    add("--full", action="store_false", dest="lora", help="train all weights")
    add("--four-bit", action=BooleanOptionalAction, default=None, help="load the base model in 4 bits")
    add("--epochs", type=int, help="number of epochs (default: the preset's)")
    add("--patience", type=int, help="end after so many evaluations without a better dev EM (default: all epochs)")
    add("--max-steps", type=int, help="end after so many steps, for a trial (default: all epochs)")
    add("--eval-every", type=int, help="epochs between two evaluations on the dev questions (default: the preset's)")
    add("--learning-rate", type=float, help="peak learning rate (default: the preset's)")
    add("--batch-size", type=int, help="prompts per step, over all devices (default: the preset's)")
    add("--sequence-length", type=int, help="maximum tokens of prompt and answer (default: the preset's)")
    add("--accumulate", type=int, default=1, help="gradient accumulation steps (default: 1)")
    add("--dtype", choices=("bfloat16", "float32"), default="bfloat16", help="type for computing (default: bfloat16)")
    add("--device", choices=("cpu",), help="cpu (default: a GPU if there is one)")
    add("--trust-remote-code", action="store_true", help="run the code that the base model brings")
    add("--seed", type=int, default=0, help="seed of all random numbers (default: 0)")


def train_generator_main(args: Namespace, build: Callable[[str], str]) -> int:
    """Run ``lm-eval-rag train generator``.

    Args:
        build: Builds a task's corpus and returns its id.

    Raises:
        UserError: An unknown task, method or preset; errors of :func:`train_generator`.
    """
    settings = read_settings(args)
    settings.check()
    setup = read_setup(args)
    tasks = list(dict.fromkeys(args.task))
    out = output_folder(args.out or Path("checkpoints") / "-".join([Path(args.base).name, args.mode, *tasks]))
    corpora = {task: build(task) for task in tasks}
    results = train_generator(settings, setup, corpora, out)
    em, before, epoch = results["dev_em"], results["dev_em_before"], results["epoch"]
    sys.stdout.write(f"{out}: dev EM {em:.1f} at epoch {epoch:g}, {before:.1f} before training\n")
    return 0


def read_settings(args: Namespace) -> Settings:
    """The settings: those of the preset, replaced by the given options."""
    name = args.preset or ("tiny" if args.base in EMBEDDED else "llama2_7b")
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    overrides = {field.name: getattr(args, field.name, None) for field in fields(Preset)}
    if args.lora is False and args.four_bit is None:
        overrides["four_bit"] = False
    if args.rows != "all" and not args.rows.isdigit():
        raise UserError(f"--rows {args.rows} is not allowed. Give a whole number of 1 or more, or 'all'.")
    return Settings(
        base=args.base,
        mode=args.mode,
        preset=replace(PRESETS[name], **{key: value for key, value in overrides.items() if value is not None}),
        rows=None if args.rows == "all" else int(args.rows),
        dev=args.dev,
        accumulate=args.accumulate,
        dtype=args.dtype,
        device=args.device,
        seed=args.seed,
        unstated=args.unstated,
        names=args.names,
        patience=args.patience,
        max_steps=args.max_steps,
        trust_remote_code=args.trust_remote_code,
    )


def read_setup(args: Namespace) -> Setup:
    """The method with its parameters, and the retriever; without rules in mode ``ssft``."""
    from lm_eval._cli.utils import key_val_to_dict

    method = _method(args.method)
    arguments: dict[str, Any] = {**key_val_to_dict(args.method_args), "generator": TINY, "seed": args.seed}
    if args.retriever:
        arguments["retriever"] = args.retriever
    if args.retriever_adapter:
        arguments["retriever_adapter"] = args.retriever_adapter
    elif "retriever_adapter" in preset_of(method, arguments):
        arguments["retriever_adapter"] = args.mode
    only_retrieval = arguments.get("guide") == "retrieval"  # no rule is in the prompt then
    unruled = args.mode != "ssft" or only_retrieval or not arguments.setdefault("n_rules", 0)
    if not unruled or (args.mode == "ssft" and "n_rules" not in defaults(method)):
        raise UserError(
            f"--mode ssft trains without rules: remove n_rules={arguments.get('n_rules')} from --method-args or add "
            f"guide=retrieval, and give a --method with the parameter n_rules ({args.method} was given)."
        )
    return read_arguments(args.method, method, arguments)


def _method(name: str) -> Callable[..., Any]:
    """The generator function of a method, by its name in ``lm_eval --model``."""
    import lm_eval.models  # noqa: F401  (our models register after lm_eval's own)
    from lm_eval.api.registry import get_model, model_registry

    if name not in model_registry:
        raise unknown("method", name, model_registry.keys())
    method = getattr(get_model(name), "method", None)
    if method is None:
        raise UserError(f"--method {name} is a model of lm_eval, not one of our methods. Give rulerag_ft, for example.")
    function: Callable[..., Any] = method
    return function
