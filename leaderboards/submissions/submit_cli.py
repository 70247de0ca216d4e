"""``lm-eval-rag submit`` and ``lm-eval-rag verify``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import output_folder
from lm_eval_rag.leaderboards.submissions.form import CARD, PREDICTIONS
from lm_eval_rag.leaderboards.submissions.pull_request import added_entry
from lm_eval_rag.leaderboards.submissions.reading import RefusedError, is_claim, read_submission

if TYPE_CHECKING:
    from lm_eval_rag.leaderboards.submissions.board_judge import BoardJudge
    from lm_eval_rag.leaderboards.submissions.verifying import Verified

SHOWN = ("em", "token_f1", "recall@10", "acc_lm", "crag_score", "fever_score")
REFUSED = 1
SAID = (
    "name",
    "team",
    "method",
    "generator",
    "parameters",
    "revision",
    "retriever",
    "code",
    "training_data",
    "contamination",
)


def submit_main(argv: Sequence[str]) -> int:
    """Pack runs into a folder, verify it, and show what would be sent; with --repo, open a pull request.

    Raises:
        UserError: The runs may not be submitted, or the values of the card are not allowed.
    """
    from lm_eval_rag.harness.report.run_files import read_runs
    from lm_eval_rag.leaderboards.submissions.packing import card_of, of_predictions, of_runs, write_submission
    from lm_eval_rag.leaderboards.submissions.verifying import verify

    options = _submit_parser().parse_args(argv)
    if bool(options.run) == bool(options.predictions):
        raise UserError("Give folders of runs, or --from FILE with --task NAME; not both.")
    if options.predictions and not options.task:
        raise UserError("--from needs --task NAME: the task that the predictions answer.")
    runs = read_runs(options.run) if options.run else []
    about, lines = of_runs(runs) if runs else of_predictions(options.task, options.predictions, options.corpus)
    card = card_of(runs, about, {name: getattr(options, name) for name in SAID})
    if options.out.exists():
        raise UserError(f"{options.out} is there already. Give --out a folder that is not.")
    output_folder(options.out.parent)
    with TemporaryDirectory(dir=options.out.parent, prefix=".submission-") as place:
        packed = Path(place) / "packed"
        write_submission(packed, card, lines)
        verified = verify(packed)  # what is refused is not left behind
        packed.rename(options.out)
    sys.stdout.write(_summary(options.out, verified))
    if options.repo:
        from lm_eval_rag.leaderboards.submissions.sending import open_pull_request

        sys.stdout.write(open_pull_request(options.out, options.repo, card.name) + "\n")
    return 0


def verify_main(argv: Sequence[str]) -> int:
    """Verify a folder, or the submission of a pull request, and print the verdict as JSON.

    Returns:
        0 if it is accepted, 1 if it is refused.
    """
    options = _verify_parser().parse_args(argv)
    of_maintainer = bool(options.rerun) or options.clear is not None
    if of_maintainer != bool(options.by) or (options.pull_request and (of_maintainer or options.judge)):
        raise UserError(
            "--rerun and --clear need --by NAME, and --by one of them. "
            "With --pull-request, leave out --rerun, --judge and --clear."
        )
    try:
        verdict = (_recorded if of_maintainer else _verdict)(options)
    except RefusedError as error:
        verdict = {"accepted": False, "reason": str(error)}
    sys.stdout.write(json.dumps(verdict, indent=2, ensure_ascii=True) + "\n")
    return 0 if verdict["accepted"] else REFUSED


def _verdict(options: argparse.Namespace) -> dict[str, Any]:
    with TemporaryDirectory() as empty:
        path: Path = options.path
        if options.pull_request:
            base, head = options.pull_request
            path = added_entry(path, base, head, Path(empty))
        if is_claim(path):
            from lm_eval_rag.leaderboards.submissions.claims import read_claim, verdict_of

            return verdict_of(read_claim(path))
        submission = read_submission(path)  # before the scorer is imported: most refusals need none
    from lm_eval_rag.leaderboards.submissions.verifying import scored

    verified = scored(submission, _judge(path.resolve().parent) if options.judge else None)
    if options.beside is not None:
        from lm_eval_rag.leaderboards.submissions.near_copies import with_copies_flagged

        verified = with_copies_flagged(verified, options.beside)
    return verified.verdict()


def _judge(board: Path) -> BoardJudge:
    """The board's judge, which is asked for what is missing."""
    from lm_eval_rag.leaderboards.submissions.board_judge import SPEC, read_board_judge

    judge = read_board_judge(board, ask=True)
    if judge is None:
        raise UserError(f"There is no {board / SPEC}. It names the board's judge: docs/leaderboard.md.")
    return judge


def _recorded(options: argparse.Namespace) -> dict[str, Any]:
    """Record a re-run, or a clearance, or both beside the entry; its verdict."""
    from lm_eval_rag.harness.report.run_files import read_runs
    from lm_eval_rag.leaderboards.submissions.clearances import add_clearance
    from lm_eval_rag.leaderboards.submissions.tiers import RE_RUN, add_rerun, rerun_of
    from lm_eval_rag.leaderboards.submissions.verifying import verify

    folder = options.path.resolve()
    verified = verify(folder)
    verdict = verified.verdict()
    if options.rerun:
        record = rerun_of(folder, verified, read_runs(options.rerun), options.by)
        add_rerun(folder, record)
        verdict |= {"tier": RE_RUN, "rerun": record.model_dump()}
    if options.clear is not None:
        verdict |= {"cleared": add_clearance(folder, options.by, options.clear).model_dump()}
    return verdict


def _summary(folder: Path, verified: Verified) -> str:
    """What was written, with the scores that a board would compute."""
    from lm_eval_rag.leaderboards.submissions.verifying import FOREIGN

    lines = [f"{folder / CARD}"]
    for task, result in verified.tasks.items():
        path = folder / PREDICTIONS / f"{task}.jsonl"
        means = ", ".join(f"{name} {100 * result.means[name]:.1f}" for name in SHOWN if name in result.means)
        count = len(verified.submission.predictions[task])
        lines.append(f"{path}: {count} predictions, {path.stat().st_size / 1e6:.1f} MB. Scored anew: {means}")
        lines += [f"  {FOREIGN}"] if verified.is_foreign(task) else []
        lines += [f"  flag: {flag}" for flag in result.flags]
    return (
        "\n".join([*lines, "The folder has no scores: a board computes them. `lm-eval-rag verify` shows its verdict."])
        + "\n"
    )


def _verify_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("lm-eval-rag verify", description="Score a submission from its predictions alone.")
    parser.add_argument("path", type=Path, metavar="PATH", help="the folder that `lm-eval-rag submit` wrote")
    git = "PATH is a Git repository, and the submission is what HEAD adds to BASE; nothing of it is checked out"
    parser.add_argument("--pull-request", nargs=2, metavar=("BASE", "HEAD"), help=git)
    beside = "a board's folder of entries: a submission whose wrong answers are those of an entry gets a flag"
    parser.add_argument("--beside", type=Path, metavar="DIR", help=beside)
    of = parser.add_argument_group("of a board's maintainer")
    runs = "runs of the same system: records in reruns.json beside PATH that their scores are those of PATH"
    of.add_argument("--rerun", nargs="+", type=Path, metavar="RUN", help=runs)
    clear = "records in cleared.json beside PATH that it is ranked in spite of its flags, and why"
    of.add_argument("--clear", metavar="REASON", help=clear)
    of.add_argument("--by", metavar="NAME", help="of --rerun and --clear: who ran it, or looked at it")
    of.add_argument("--judge", action="store_true", help="ask the board's judge (judge.json beside PATH) for Acc-LM")
    return parser


def _submit_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "lm-eval-rag submit", description="Pack runs of lm_eval, or predictions of another program, into a submission."
    )
    parser.add_argument("run", nargs="*", type=Path, metavar="RUN", help="folders of lm_eval's results and samples")
    parser.add_argument(
        "--from", dest="predictions", type=Path, metavar="FILE",
        help="JSON Lines with id and answer (and retrieved, k, abstained ...), or FlashRAG's intermediate_data.json",
    )  # fmt: skip
    parser.add_argument("--task", help="the task of --from")
    parser.add_argument(
        "--corpus", metavar="PATH", help="of --from: the passages that were searched, if not those of the task"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to write")
    parser.add_argument("--repo", metavar="ORG/NAME", help="a dataset on the Hub: opens a pull request there")
    helps = {
        "name": "of the entry, unique on the board",
        "team": "who submits it",
        "method": "default: the model of the run",
        "generator": "default: that of the run",
        "parameters": "number of the generator's parameters",
        "revision": "of the generator's weights",
        "retriever": "default: that of the run",
        "code": "address of the code, https://...",
        "training_data": "what the system was trained on",
        "contamination": "what is known of test questions in training data",
    }
    for name, text in helps.items():
        kind = int if name == "parameters" else str
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, help=text, required=name in ("name", "team"))
    return parser
