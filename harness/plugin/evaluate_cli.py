"""``lm-eval-rag evaluate``: methods on documents and questions of one's own, as one table."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.quiet import quiet
from lm_eval_rag.harness.documents.intake import OVERLAP, TOKENS
from lm_eval_rag.harness.documents.rule_files import MIN_SUPPORT
from lm_eval_rag.harness.plugin.evaluation import Evaluation
from lm_eval_rag.harness.report.run_files import TaskRun

LOG = "log.txt"  # in the folder of the results
UNSCORED = 3  # exit status
EMBEDDED = "tiny"  # how the names of the embedded generators begin
FORM = "Give it as lm_eval's: '{\"judge\": ...}'."


def evaluate_main(argv: Sequence[str], evaluate: Callable[..., Evaluation]) -> int:
    """Run the command.

    Args:
        evaluate: :func:`lm_eval_rag.evaluate`.

    Returns:
        0; 3 if some questions are unscored.

    Raises:
        UserError: Bad input.
    """
    chosen = vars(_parser().parse_args(list(argv)))
    arguments = {name: _pairs(f"--{name}", chosen.pop(name)) for name in ("model_args", "gen_kwargs")}
    metadata = _metadata(chosen.pop("metadata"))
    verbose = chosen.pop("verbose") or "LMEVAL_LOG_LEVEL" in os.environ
    with nullcontext() if verbose else quiet() as log:
        evaluation = evaluate(**chosen, **arguments, metadata=metadata)
    if log is not None:
        shutil.move(log, evaluation.out / LOG)
    sys.stdout.write(
        f"\n{evaluation.table()}\n\nIn percent, with 95 % intervals over questions (none where all values are equal).\n"
        f"Results, samples{'' if log is None else f' and {LOG}'}: {evaluation.out}\n"
        f"All scores, costs and paired differences: lm-eval-rag report {evaluation.out}\n"
        f"Every question with passages and answers, in a browser: lm-eval-rag view {evaluation.out}\n"
    )
    embedded = [run.label for run in evaluation.runs if _is_embedded(run)]
    if embedded:
        sys.stdout.write(
            f"{', '.join(embedded)} answered with the embedded generator, which was trained to copy names of facts and "
            "says little on other documents. --generator takes any model of lm_eval.\n"
        )
    if evaluation.unscored:
        sys.stderr.write(
            f"lm-eval-rag: {len(evaluation.unscored)} questions stay unscored: {', '.join(evaluation.unscored[:10])}. "
            "The same command again asks only what is missing: the journal holds every finished call.\n"
        )
        return UNSCORED
    return 0


def _is_embedded(run: TaskRun) -> bool:
    """Whether a run asked a generator, and it was the embedded one."""
    record = run.results["config"].get("rag") or {}
    asked = record.get("counts", {}).get("Generate", 0)
    return bool(asked and record.get("generator") and str(record["generator"][0]).startswith(EMBEDDED))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lm-eval-rag evaluate", description="Compare methods on your own documents and questions."
    )
    add = parser.add_argument
    add("--documents", required=True, metavar="WHERE", help="a folder, a file, or hub:ORG/NAME")
    add("--questions", required=True, metavar="WHERE", help="a file with the column question, or hub:ORG/NAME")
    add("--rules", metavar="WHERE", help="a file of rules or facts, or mine: from the documents' facts (default: none)")
    methods = "names, FILE.py:NAME, external=FILE.py:NAME; LABEL= before one names its run (default: standard_rag)"
    add("--methods", default="standard_rag", help=methods)
    add("--retrievers", default="", help="names joined by commas (default: each method's own, mostly bm25)")
    add("--generator", metavar="NAME", help="tiny, hf, vllm, local-chat-completions, ... (default: each method's own)")
    add("--model_args", default="", metavar="ARGS", help="as lm_eval's: k=5,gen_pretrained=PATH (default: none)")
    add("--gen_kwargs", default="", metavar="ARGS", help="as lm_eval's (default: max_gen_toks=64, greedy, one line)")
    add("--metadata", default="{}", metavar="JSON", help="as lm_eval's, such as a judge (default: none)")
    add("--out", type=Path, metavar="DIR", help="where results and samples go (default: runs/NAME)")
    add("--name", help="name of the task in the results (default: the questions' file)")
    add("--limit", type=int, metavar="N", help="only the first N questions (default: all)")
    add("--verbose", action="store_true", help=f"show what other libraries write; else it is in {LOG} of --out")
    add("--passage_tokens", type=int, default=TOKENS, metavar="N", help=f"words of a passage (default: {TOKENS})")
    add("--overlap", type=int, default=OVERLAP, metavar="N", help=f"words that neighbours share (default: {OVERLAP})")
    support = f"facts that a mined rule holds for at least (default: {MIN_SUPPORT})"
    add("--min_support", type=int, default=MIN_SUPPORT, metavar="N", help=support)
    length = "relations in a mined body at most: 1, 2, or 3, which are sampled (default: 1)"
    add("--rule_length", type=int, default=1, metavar="N", help=length)
    return parser


def _pairs(option: str, text: str) -> dict[str, Any]:
    from lm_eval._cli.utils import key_val_to_dict

    try:
        pairs: dict[str, Any] = key_val_to_dict(text)
    except ValueError as error:
        raise UserError(f"{option} {text!r} cannot be read: {error}. Give NAME=VALUE pairs joined by commas.") from None
    return pairs


def _metadata(text: str) -> dict[str, Any]:
    try:
        metadata = json.loads(text)
    except ValueError as error:
        raise UserError(f"--metadata {text!r} is not JSON ({error}). {FORM}") from None
    if not isinstance(metadata, dict):
        raise UserError(f"--metadata {text!r} is no object. {FORM}")
    return metadata
