"""Functions of the user's files: a file is run once while it is the same, and anew when it changed or failed."""

from __future__ import annotations

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.loading import load_function


def test_a_file_is_run_once_while_it_is_the_same(tmp_path, capsys):
    """Loading may build an index: it must not be built for the check and again for the run."""
    file = tmp_path / "mine.py"
    file.write_text("print('built')\n\ndef answer(question):\n    return 1\n")
    first, second = load_function(f"{file}:answer", "function"), load_function(f"{file}:answer", "function")
    assert capsys.readouterr().out == "built\n" and first == second
    file.write_text("print('anew')\n\ndef answer(question):\n    return 2\n")
    changed = load_function(f"{file}:answer", "function")
    assert capsys.readouterr().out == "anew\n" and changed.function("") == 2 and first.function("") == 1
    assert changed.identity != first.identity


def test_a_file_that_failed_is_tried_again(tmp_path):
    file = tmp_path / "broken.py"
    file.write_text(f"from pathlib import Path\nPath({str(tmp_path / 'index')!r}).read_text()\n\ndef answer(q): ...\n")
    for _ in range(2):
        with pytest.raises(UserError, match="index"):
            load_function(f"{file}:answer", "function")
    (tmp_path / "index").write_text("")
    assert load_function(f"{file}:answer", "function").name == "answer"
