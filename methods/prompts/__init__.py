"""The wording of the methods' prompts, and loading it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from lm_eval_rag.harness.core.prompts import Template, load_template


@cache
def template(prompt_file: str | None = None, name: str = "ruleqa") -> Template:
    """The user's prompt file, or ours of that name.

    Raises:
        UserError: The file is missing or lacks a part.
    """
    return load_template(prompt_file or Path(str(files("lm_eval_rag.methods.prompts") / f"{name}.toml")))
