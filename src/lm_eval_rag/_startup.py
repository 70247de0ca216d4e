"""What is changed around an evaluation so that it starts fast; nothing of it touches a score.

lm_eval imports torch (1 s) in every run only to seed it, and at the end it and transformers to describe the machine
(another 1 s). Here torch is seeded when something does import it, and the machine is described without it when a method
of ours ran and nothing imported it.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from lm_eval_rag import _autoload
from lm_eval_rag._register import MODELS

_seeds: list[int] = []  # the seed torch gets when it is imported; at most one


def defer_torch(evaluator: Any) -> None:
    """Change ``lm_eval.evaluator``: seed torch when it is imported, describe the machine without importing it."""
    evaluator.set_torch_seed = _seed_later(evaluator.set_torch_seed)
    evaluator.add_env_info = _describe_light(evaluator.add_env_info)


def _seed_later(stock: Callable[[int], None]) -> Callable[[int], None]:
    def set_torch_seed(seed: int) -> None:
        if "torch" in sys.modules or not _autoload.installed():
            return stock(seed)
        _seeds[:] = [seed]
        _autoload.AFTER["torch"] = f"{__name__}:seed_torch"

    return set_torch_seed


def seed_torch(torch: Any) -> None:
    """Give torch, just imported, the seed lm_eval set before; nothing has drawn from it yet."""
    if _seeds:
        torch.manual_seed(_seeds.pop())


def _describe_light(stock: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, Any]], None]:
    def add_env_info(storage: dict[str, Any]) -> None:
        if "torch" in sys.modules or storage.get("config", {}).get("model") not in MODELS:
            return stock(storage)
        import lm_eval.utils as utils

        kept = utils.is_torch_available, utils.is_transformers_available
        utils.is_torch_available = utils.is_transformers_available = bool  # False: neither is there
        try:
            stock(storage)
        finally:
            utils.is_torch_available, utils.is_transformers_available = kept
        storage["pretty_env_info"] = (
            f"torch: {installed_version('torch') or 'not installed'}, not imported by this run\n"
            f"OS: {platform.platform()}\nPython version: {sys.version}\n"
            f"CPU: {platform.processor() or platform.machine()}, {os.cpu_count()} cores"
        )
        storage["transformers_version"] = installed_version("transformers") or "N/A"

    return add_env_info


def installed_version(distribution: str) -> str | None:
    """The version of an installed distribution, without importing it; None when it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
