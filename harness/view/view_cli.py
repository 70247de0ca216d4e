"""``lm-eval-rag view``."""

from __future__ import annotations

import argparse
import logging
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from lm_eval_rag.harness.common.errors import MachineError, UserError
from lm_eval_rag.harness.common.paths import full_disk
from lm_eval_rag.harness.report.report_cli import RUN_HELP
from lm_eval_rag.harness.report.run_files import read_runs
from lm_eval_rag.harness.view.view_page import page_of
from lm_eval_rag.harness.view.view_server import page_server, url_of

log = logging.getLogger(__name__)
DEFAULT = Path("view.html")


def view_main(argv: Sequence[str]) -> int:
    """Write the page of runs to a file, or serve it.

    Returns:
        0, also when ``--serve`` is ended with Ctrl-C.

    Raises:
        UserError: The runs cannot be read or shown side by side, or the page cannot be written or served.
    """
    parser = argparse.ArgumentParser(
        "lm-eval-rag view",
        description="One HTML page of runs: every question with passages, rules, prompts, replies, answer and scores.",
    )
    parser.add_argument("run", nargs="+", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--out", type=Path, metavar="FILE", help=f"the page (default: {DEFAULT}; with --serve, none)")
    parser.add_argument(
        "--task", help="the only task to show (default: all; needed if not all runs have the same tasks)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap (default: 0)")
    parser.add_argument("--serve", action="store_true", help="serve the page on 127.0.0.1 until Ctrl-C")
    parser.add_argument("--port", type=int, default=0, help="port of --serve (default: a free one)")
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    options = parser.parse_args(argv)
    out = options.out or (None if options.serve else DEFAULT)
    if out is not None:
        _check(out)
    page = page_of(read_runs(options.run), options.task, options.seed)
    if out is not None:
        _write(out, page)
        sys.stdout.write(f"{out}\n")
    if options.serve:
        return _serve(page, options.port, options.open)
    if options.open and out is not None:
        _open(out.resolve().as_uri())
    return 0


def _check(out: Path) -> None:
    """Raise for a path that no page can be written to, before the runs are read."""
    if out.is_dir() or not out.parent.is_dir():
        why = "it is a folder" if out.is_dir() else f"there is no folder {out.parent}"
        raise UserError(f"--out {out} cannot be written: {why}. Give a file in an existing folder, such as view.html.")


def _write(out: Path, page: str) -> None:
    try:
        out.write_text(page, encoding="utf-8", errors="replace")
    except OSError as error:
        kind = MachineError if full_disk(error) else UserError
        raise kind(f"--out {out} cannot be written: {error.strerror}. Give a file in a folder of yours.") from None


def _open(url: str) -> None:
    if not webbrowser.open(url):
        log.warning("There is no browser here. Open %s yourself.", url)


def _serve(page: str, port: int, browser: bool) -> int:
    with page_server(page, port) as server:
        sys.stdout.write(f"{url_of(server)} (Ctrl-C ends it)\n")
        sys.stdout.flush()
        if browser:
            _open(url_of(server))
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            sys.stdout.write("\n")
    return 0
