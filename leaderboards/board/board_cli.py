"""``lm-eval-rag board``: build the site of a board, and show it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.ports import HOST, local_server, serve_until_interrupted


def board_main(argv: Sequence[str]) -> int:
    """Build or serve a board.

    Raises:
        UserError: The folder of submissions is not there, or the site cannot be written or served.
    """
    parser = argparse.ArgumentParser("lm-eval-rag board", description="A board of submissions, as a static site.")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="score all submissions anew, rank them, and write the site")
    build.add_argument("entries", type=Path, metavar="ENTRIES", help="the folder that holds the folders of submissions")
    build.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder of the site")
    kept = "a folder of Parquet files that keeps all results by version of data and scorer; rows are only added"
    build.add_argument("--history", type=Path, metavar="DIR", help=kept)
    serve = commands.add_parser("serve", help="show a site at http://127.0.0.1:PORT")
    serve.add_argument("site", type=Path, metavar="DIR")
    serve.add_argument("--port", type=int, default=8000)
    options = parser.parse_args(argv)
    return (
        _build(options.entries, options.out, options.history)
        if options.command == "build"
        else _serve(options.site, options.port)
    )


def _build(entries: Path, out: Path, history: Path | None) -> int:
    from lm_eval_rag.leaderboards.board.entries import read_entries
    from lm_eval_rag.leaderboards.board.history import keep
    from lm_eval_rag.leaderboards.board.overall import board_of
    from lm_eval_rag.leaderboards.board.site import write_site
    from lm_eval_rag.leaderboards.submissions.claims import claims_in

    accepted, refused = read_entries(entries)
    board = board_of(accepted, refused, list(claims_in(entries).values()))
    write_site(board, out, keep(board, history) if history else ())
    sys.stdout.write(f"{len(accepted)} entries, {len(refused)} not on the board.\n{out / 'index.html'}\n")
    return 0


def _serve(site: Path, port: int) -> int:
    if not (site / "index.html").is_file():
        raise UserError(f"{site} has no index.html. Build it with `lm-eval-rag board build ENTRIES --out {site}`.")
    server = local_server(partial(SimpleHTTPRequestHandler, directory=str(site)), port)
    sys.stdout.write(f"http://{HOST}:{server.server_port} (Ctrl-C ends it)\n")
    sys.stdout.flush()
    serve_until_interrupted(server)
    return 0
