"""``lm-eval-rag demo``: two trivial baselines and five methods on the embedded benchmark, a table and a page."""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from statistics import fmean

from lm_eval_rag.harness.common.errors import at_least
from lm_eval_rag.harness.common.extras import need
from lm_eval_rag.harness.common.paths import output_folder
from lm_eval_rag.harness.common.quiet import console, quiet
from lm_eval_rag.harness.plugin.evaluate_cli import LOG
from lm_eval_rag.harness.report.cells import NOT_SIGNIFICANT, SIGNIFICANT, cell, signed
from lm_eval_rag.harness.report.content import difference_of
from lm_eval_rag.harness.report.run_files import TaskRun, read_runs
from lm_eval_rag.harness.report.stats import Difference, interval
from lm_eval_rag.harness.report.table import table

METHODS = ("link_vote", "copy_vote", "rule_vote", "standard_rag", "rulerag_icl", "rulerag_ft", "rulerag_ft_extractive")
TASK, QUESTIONS, LEVEL = "ruleqa_demo", 100, 0.05
GARBLED = 1 / 3  # share of the wrong answers that is worth a sentence
HEAD = ("", "em", "token_f1", "recall@10", "tokens a question")


def demo_main(argv: Sequence[str]) -> int:
    """Run the demo; returns 0.

    Raises:
        UserError: torch is not installed, or the folder cannot be written.
    """
    parser = argparse.ArgumentParser("lm-eval-rag demo", description=__doc__)
    parser.add_argument("--out", type=Path, help="folder of results, samples and page (default: demo_results/DATE)")
    limit_help = f"first questions, at most 200 (default: {QUESTIONS})"
    parser.add_argument("--limit", type=int, default=QUESTIONS, help=limit_help)
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    verbose_help = f"show what other libraries write; else it is in {LOG} of --out"
    parser.add_argument("--verbose", action="store_true", help=verbose_help)
    options = parser.parse_args(argv)
    at_least("--limit", options.limit)
    need("The demo", "hf", "torch", "transformers")
    began = time.perf_counter()
    out = output_folder(options.out or Path("demo_results") / time.strftime("%Y%m%d-%H%M%S"))
    runs = {}
    with nullcontext() if options.verbose else quiet(logging.ERROR) as log:
        for method in METHODS:
            console().write(f"{method} answers {options.limit} questions of {TASK} ...\n")
            runs[method] = _run(method, out / method, options.limit)
    if log is not None:
        shutil.move(log, out / LOG)
    sys.stdout.write(f"\n{score_table(runs)}\n\n{interpretation(runs)}\n\n")
    page = _page(list(runs.values()), out / "demo.html")
    sys.stdout.write(f"{page}  (every question with passages, rules, prompts and answers)\n")
    sys.stdout.write(f"{time.perf_counter() - began:.0f} s. All scores: lm-eval-rag report {out}\n")
    if options.open:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
    return 0


def score_table(runs: Mapping[str, TaskRun]) -> str:
    """Method by score, in percent with 95 % intervals over questions."""
    rows = []
    for method, run in runs.items():
        values = ((name, list(run.scores.get(name, {}).values())) for name in HEAD[1:-1])
        scores = [cell(interval(column) if column else None, name) for name, column in values]
        records = [sample["doc"]["_rag"] for sample in run.samples]
        tokens = fmean(record["prompt_tokens"] + record["completion_tokens"] for record in records)
        rows.append([method, *scores, f"{tokens:,.0f}"])
    return table(HEAD, rows)


def interpretation(runs: Mapping[str, TaskRun]) -> str:
    """What the table says, by paired tests on the same questions."""
    pairs = (("rule_vote", "copy_vote"), ("rulerag_ft", "standard_rag"), ("rulerag_ft", "link_vote"))
    votes, tuned, looked_up = (difference_of(runs[one], runs[other], "em") for one, other in pairs)
    copied = difference_of(runs["rulerag_ft_extractive"], runs["standard_rag"], "em")
    found = difference_of(runs["rulerag_ft"], runs["standard_rag"], "recall@10")
    read = {name: _documents(runs[name]) for name in ("rule_vote", "copy_vote")}
    lines = [
        f"Rules lead to the answers: a vote of the facts that they find has {_gain(votes, 'em')}",
        f"over copy_vote, a vote without rules ({read['rule_vote']} and {read['copy_vote']} documents a question).",
        f"rulerag_ft retrieves by the same rules. Over standard_rag it has {_gain(found, 'recall@10')}",
        f"and {_gain(tuned, 'em')}; over link_vote, a look-up without a model, {_gain(looked_up, 'em')}.",
        f"If it may only copy names from its passages (rulerag_ft_extractive), it has {_gain(copied, 'em')}",
        "over standard_rag.",
    ]
    garbled, wrong = garbled_answers(runs["rulerag_ft"])
    if garbled > GARBLED * wrong:
        lines.append(
            f"{garbled} of its {wrong} wrong answers stand in no passage that it read: its generator\n"
            "of 3.7 M parameters garbles names."
        )
    return "\n".join(lines)


def _documents(run: TaskRun) -> str:
    """How many documents a question was answered from, on average."""
    return f"{fmean(len(sample['doc']['_rag']['passages']) for sample in run.samples):.0f}"


def garbled_answers(run: TaskRun) -> tuple[int, int]:
    """How many wrong answers stand in none of the passages; how many are wrong."""
    wrong = [sample for id, sample in run.questions.items() if not run.scores["em"][id]]
    texts = [
        (sample["filtered_resps"][0], " ".join(one["text"] for one in sample["doc"]["_rag"]["passages"]))
        for sample in wrong
    ]
    return sum(answer not in text for answer, text in texts), len(wrong)


def _run(method: str, folder: Path, limit: int) -> TaskRun:
    from lm_eval.tasks import TaskManager

    from lm_eval_rag import tasks
    from lm_eval_rag._evaluate import model_of
    from lm_eval_rag.harness.plugin.saved_run import save_run

    manager = TaskManager(include_path=tasks.__path__[0], include_defaults=False)
    model = model_of(method).create_from_arg_obj({})
    (run,) = read_runs([save_run(model, {}, [TASK], folder, task_manager=manager, limit=limit)])
    return run


def _page(runs: Sequence[TaskRun], path: Path) -> Path:
    from lm_eval_rag.harness.view.view_page import page_of

    path.write_text(page_of(runs), encoding="utf-8", errors="replace")
    return path


def _gain(one: Difference | None, metric: str) -> str:
    if one is None:
        return f"no {metric}"
    return f"{signed(one.interval, metric)} {metric} ({SIGNIFICANT if one.p < LEVEL else NOT_SIGNIFICANT})"
