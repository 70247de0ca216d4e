"""``lm-eval-rag every-eval``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lm_eval_rag.harness.common.paths import output_folder
from lm_eval_rag.harness.report.every_eval import RELATIONSHIPS, SCHEMA, converted
from lm_eval_rag.harness.report.report_cli import RUN_HELP
from lm_eval_rag.harness.report.run_files import read_runs


def every_eval_main(argv: Sequence[str]) -> int:
    """Write runs in the form of Every Eval Ever; returns 0.

    Raises:
        UserError: The runs cannot be read, or a task is not ours.
    """
    parser = argparse.ArgumentParser(
        "lm-eval-rag every-eval", description=f"Write runs in the form of Every Eval Ever, schema {SCHEMA}."
    )
    parser.add_argument("run", nargs="+", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="its folder of data")
    parser.add_argument("--organization", required=True, help="who ran the evaluation")
    parser.add_argument(
        "--relationship", choices=RELATIONSHIPS, default="first_party", help="to the developer of the method"
    )
    options = parser.parse_args(argv)
    records = [converted(run, options.organization, options.relationship) for run in read_runs(options.run)]
    output_folder(options.out)
    sys.stdout.write("".join(f"{record.write(options.out)}\n" for record in records))
    return 0
