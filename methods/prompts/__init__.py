"""The wording of the methods' prompts, and loading it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from lm_eval_rag.harness.core.prompts import Template, load_template


@cache
def template(prompt_file: str | None = None, name: str = "ruleqa") -> Template:
    """Our prompts of that name, with what the user's prompt file changes in them.

    Raises:
        UserError: The file is missing, or holds what is no part of a prompt.
    """
    ours = load_template(Path(str(files("lm_eval_rag.methods.prompts") / f"{name}.toml")))
    return load_template(prompt_file, ours) if prompt_file else ours
