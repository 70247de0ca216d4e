"""What others write to standard error is kept in a file; what is ours is shown."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.quiet import console, quiet

PROGRAM = """
import logging, os, sys, warnings
from lm_eval_rag.harness.common.quiet import console, quiet
logging.basicConfig(level=logging.INFO, stream=sys.stderr)
with quiet() as log:
    os.system("echo of a child >&2")
    warnings.warn("of a library")
    logging.getLogger("lm_eval").error("of lm_eval")
    logging.getLogger("lm_eval_rag.here").info("ours")
    console().write("a bar\\n")
os.write(2, b"after\\n")
sys.stdout.write(log.read_text())
log.unlink()
"""


def test_a_command_shows_what_is_ours() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stderr == "ours\na bar\nafter\n"
    assert all(text in done.stdout for text in ("of a child", "of a library", "of lm_eval", "ours"))


def test_a_level_hides_our_remarks(capsys: pytest.CaptureFixture[str]) -> None:
    with quiet(logging.ERROR) as log:
        for level in (logging.WARNING, logging.ERROR):
            logging.getLogger("lm_eval_rag.here").log(level, "level %d", level)
        sys.stderr.write("a library\n")
    assert capsys.readouterr().err == "level 40\n" and console() is sys.stderr
    assert log.read_text() == "a library\n"
    log.unlink()


def test_bad_input_leaves_no_file_and_another_error_names_it(tmp_path: Path) -> None:
    files: list[Path] = []
    with pytest.raises(UserError), quiet() as log:
        files.append(log)
        raise UserError("k=0")
    assert not files[0].exists()
    with pytest.raises(ZeroDivisionError) as crash, quiet() as log:
        os.write(2, b"why")
        _ = 1 / 0
    assert log.read_text() == "why" and str(log) in crash.value.__notes__[0]
    log.unlink()
