"""Retrieval-augmented generation for the lm-evaluation-harness."""

import os.path

__version__ = "0.1.0"

if not os.path.isdir(os.path.join(__path__[0], "tasks")):  # a checkout without symlinks (Windows, zip archives)
    __path__.append(os.path.dirname(os.path.dirname(__path__[0])))


def __getattr__(name: str) -> object:
    """``run`` and ``register``, loaded when they are first used: this file is imported at every start of Python."""
    if name == "run":
        from lm_eval_rag._run import run

        return run
    if name == "register":
        from lm_eval_rag._register import register

        return register
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
