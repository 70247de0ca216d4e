"""``lm-eval-rag``: what lm_eval's own command line has no place for. Evaluations are run with ``lm_eval``."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

from lm_eval_rag import __version__
from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.core.loop import INTERRUPTED, Terminated, in_a_call, leave

USAGE = """lm-eval-rag: retrieval-augmented generation for the lm-evaluation-harness.

Evaluations are run with lm_eval itself:  lm_eval --tasks ruleqa_demo --model rule_vote

usage: lm-eval-rag [--version] [--help] COMMAND ...

commands:
"""
FAILED = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Returns:
        0; 1 if ``doctor`` found something wrong or the machine failed, such as by a full disk; 2 on bad input; 130
        or 143 if it was interrupted (SIGINT, SIGTERM).
    """
    name, *rest = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    if name in ("-h", "--help"):
        sys.stdout.write(USAGE + "".join(f"  {known:12}{command.__doc__}\n" for known, command in COMMANDS.items()))
        return 0
    if name == "--version":
        sys.stdout.write(f"lm-eval-rag {__version__}\n")
        return 0
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        if name not in COMMANDS:
            raise unknown("command", name, COMMANDS, hint="`lm-eval-rag --help` says what each does.")
        status = COMMANDS[name](rest)
        sys.stdout.flush()
        return status
    except UserError as error:
        return _end(str(error), error.status)
    except KeyboardInterrupt as error:
        return _stopped(error, INTERRUPTED)
    except Terminated as error:
        return _stopped(error, int(str(error.code)))
    except BrokenPipeError:  # whoever read our output has read enough, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        return _end(f"{error}. This is a failure of the machine: see to it, and run the same command again.", FAILED)


def _stopped(error: BaseException, status: int) -> int:
    """Say that an interrupted command goes on; where a model still computes in a thread, the process ends here."""
    notes = " ".join(getattr(error, "__notes__", ()))
    _end(f"interrupted. The same command again goes on: the journal holds every finished call. {notes}".strip(), status)
    if in_a_call():
        leave(status)
    return status


def _end(message: str, status: int) -> int:
    sys.stderr.write(f"lm-eval-rag: {message}\n")
    return status


def build(argv: Sequence[str]) -> int:
    """Build the data of tasks ahead of their first use, or a corpus of your own documents."""
    from lm_eval_rag._build import build_main

    return build_main(list(argv))


def mine(argv: Sequence[str]) -> int:
    """Mine rules from a file of facts, on one machine or several."""
    from lm_eval_rag.harness.plugin.mine_cli import mine_main

    return mine_main(list(argv))


def retrieve(argv: Sequence[str]) -> int:
    """Save the best passages of every question of tasks as a retrieval run."""
    from lm_eval_rag._register import register
    from lm_eval_rag.harness.plugin.retrieve_cli import retrieve_main

    register()
    return retrieve_main(list(argv))


def encode(argv: Sequence[str]) -> int:
    """Encode the corpora of tasks for dense retrieval, ahead of their first use, on one machine or several."""
    from lm_eval_rag._register import register
    from lm_eval_rag.harness.plugin.encode_cli import encode_main

    register()
    return encode_main(list(argv))


def demo(argv: Sequence[str]) -> int:
    """Compare five methods on the embedded benchmark in a minute: one table, and a page to read."""
    from lm_eval_rag._demo import demo_main

    return demo_main(list(argv))


def evaluate(argv: Sequence[str]) -> int:
    """Compare methods on your own documents and questions."""
    from lm_eval_rag._evaluate import evaluate
    from lm_eval_rag.harness.plugin.evaluate_cli import evaluate_main

    return evaluate_main(list(argv), evaluate)


def report(argv: Sequence[str]) -> int:
    """Compare runs: intervals, slices, paired differences, costs, published numbers."""
    from lm_eval_rag.harness.report.report_cli import report_main

    return report_main(list(argv), published=Path(str(files("lm_eval_rag.leaderboards") / "published")))


def view(argv: Sequence[str]) -> int:
    """Make one HTML page of runs: every question with passages, prompts, answers and scores."""
    from lm_eval_rag.harness.view.view_cli import view_main

    return view_main(list(argv))


def rescore(argv: Sequence[str]) -> int:
    """Recompute every score of a run from its samples alone."""
    from lm_eval_rag.harness.report.rescore_cli import rescore_main

    return rescore_main(list(argv))


def train(argv: Sequence[str]) -> int:
    """Train a retriever or a generator by rules (RGFT), or without them (SSFT)."""
    from lm_eval_rag._build import corpus_of
    from lm_eval_rag.harness.train.train_cli import train_main

    return train_main(list(argv), build=corpus_of)


def reproduce(argv: Sequence[str]) -> int:
    """Run a table of your own, or a paper's beside its published numbers."""
    from lm_eval_rag._build import corpus_of
    from lm_eval_rag.harness.reproduce.reproduce_cli import reproduce_main

    boards = Path(str(files("lm_eval_rag.leaderboards")))
    return reproduce_main(list(argv), tables=boards / "reproduce", published=boards / "published", build=corpus_of)


def publish(argv: Sequence[str]) -> int:
    """Publish sets, trained models and retrieval runs to the Hugging Face Hub."""
    from lm_eval_rag.harness.hub.publish import publish_main
    from lm_eval_rag.tasks.ruleqa.published import offered

    return publish_main(list(argv), offered=offered())


def submit(argv: Sequence[str]) -> int:
    """Pack runs into a submission for a leaderboard."""
    from lm_eval_rag.leaderboards.submissions.submit_cli import submit_main

    return submit_main(list(argv))


def verify(argv: Sequence[str]) -> int:
    """Score a submission from its predictions alone."""
    from lm_eval_rag.leaderboards.submissions.submit_cli import verify_main

    return verify_main(list(argv))


def board(argv: Sequence[str]) -> int:
    """Build a leaderboard of submissions as a static site, or serve it."""
    from lm_eval_rag.leaderboards.board.board_cli import board_main

    return board_main(list(argv))


def every_eval(argv: Sequence[str]) -> int:
    """Write runs in the form of Every Eval Ever."""
    from lm_eval_rag.harness.report.every_eval_cli import every_eval_main

    return every_eval_main(list(argv))


def serve_kg(argv: Sequence[str]) -> int:
    """Serve a folder of CRAG's knowledge graphs over HTTP."""
    from lm_eval_rag.harness.kg.server import serve_kg_main

    return serve_kg_main(list(argv))


def judge_check(argv: Sequence[str]) -> int:
    """Measure how far a judge agrees with labelled answers."""
    from lm_eval_rag.harness.scoring.judge.agreement import judge_check_main

    return judge_check_main(list(argv))


def export(argv: Sequence[str]) -> int:
    """Write a task's corpus and questions as files, to index them."""
    from lm_eval_rag._register import register
    from lm_eval_rag.export import export_main

    register()
    return export_main(list(argv))


def new(argv: Sequence[str]) -> int:
    """Write a method or a task of your own that runs, to begin with."""
    from lm_eval_rag.new import new_main

    return new_main(list(argv))


def describe(argv: Sequence[str]) -> int:
    """Say what a model, metric, task or retriever is, and its arguments."""
    from lm_eval_rag.describe import describe_main

    return describe_main(list(argv))


def doctor(argv: Sequence[str]) -> int:
    """Say what is loaded and from where, what the extras give, where data lies, and what is wrong."""
    from lm_eval_rag.doctor import doctor_main

    return doctor_main(list(argv))


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "demo": demo,
    "evaluate": evaluate,
    "build": build,
    "mine": mine,
    "encode": encode,
    "retrieve": retrieve,
    "report": report,
    "view": view,
    "rescore": rescore,
    "train": train,
    "reproduce": reproduce,
    "publish": publish,
    "submit": submit,
    "verify": verify,
    "board": board,
    "every-eval": every_eval,
    "judge-check": judge_check,
    "serve-kg": serve_kg,
    "export": export,
    "new": new,
    "describe": describe,
    "doctor": doctor,
}
