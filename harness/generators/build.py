"""Which lm_eval model generates, and building it.

``tiny`` is the embedded default: a small causal LM whose checkpoint lies beside this file. Every other name is one that
``lm_eval --model`` knows; its arguments are our ``gen_*`` arguments without the prefix.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.errors import UserError, at_least, unknown

TINY = "tiny"
TINY_FOLDER = Path(__file__).parent / "rulerag_tiny"
KEYS = {  # what needs a key, and the environment variable that holds it
    "openai-chat-completions": "OPENAI_API_KEY",
    "openai-completions": "OPENAI_API_KEY",
    "azure-openai-chat-completions": "AZURE_OPENAI_API_KEY",
    "anthropic-chat": "ANTHROPIC_API_KEY",
    "anthropic-chat-completions": "ANTHROPIC_API_KEY",
}
SECRETS = ("api_key", "apikey", "auth_token", "token", "header")  # would end up in the results file
SPEED_ONLY = ("num_concurrent", "max_retries", "retry_wait", "timeout", "batch_size")  # change no answer
HASHED_WHOLE = 64 << 20  # bytes; larger files of a local checkpoint are told by size and time


@dataclass(frozen=True)
class ModelSpec:
    """An lm_eval model that is not built yet.

    Args:
        name: ``tiny`` or a name of lm_eval's registry.
        arguments: Its arguments; never an API key, which comes from the environment alone.
        batch_size: Of local models; None for the default (32 for ``tiny``, else 1).
        device: Of local models; None for lm_eval's choice.
    """

    name: str = TINY
    arguments: Mapping[str, Any] = field(default_factory=dict)
    batch_size: int | str | None = None
    device: str | None = None

    @cached_property
    def is_chat_api(self) -> bool:
        """Whether it takes messages rather than text."""
        return "chat" in self.name

    @property
    def is_api(self) -> bool:
        """Whether its requests go over the network."""
        return "base_url" in self.arguments or self.is_chat_api or self.name in KEYS

    @property
    def width(self) -> int:
        """Prompts at once: threads behind an API (``gen_num_concurrent``, 8), else the batch size."""
        if self.is_api:
            return int(self.arguments.get("num_concurrent", 8))
        return self.batch_size if isinstance(self.batch_size, int) else 32

    @property
    def tries(self) -> int:
        """How often a request over the network is made at most (``gen_max_retries``, 6)."""
        return int(self.arguments.get("max_retries", 6))

    @property
    def retry_wait(self) -> float:
        """Seconds before a failed request is made again, doubled each time (``gen_retry_wait``, 0.5)."""
        return float(self.arguments.get("retry_wait", 0.5))

    def check(self) -> None:
        """Raise a UserError for a name that lm_eval does not know, or a key that is missing; builds nothing."""
        for given in SECRETS:
            if given in self.arguments:
                raise UserError(
                    f"gen_{given} is refused: arguments are written into the results file. Give the key in the "
                    f"environment variable {KEYS.get(self.name, 'OPENAI_API_KEY')}."
                )
        for counted in ("num_concurrent", "max_retries"):
            at_least(f"gen_{counted}", self.arguments.get(counted, 1))
        import lm_eval.models  # noqa: F401  (the built-in models register here)
        from lm_eval.api.registry import model_registry

        if self.name != TINY and self.name not in model_registry:
            raise unknown("generator", self.name, [TINY, *model_registry.keys()])
        if self.name in KEYS and not os.environ.get(KEYS[self.name]):
            raise UserError(f"generator={self.name} needs the environment variable {KEYS[self.name]}; it is not set.")

    @cached_property
    def identity(self) -> list[Any]:
        """All that its output depends on, JSON-able: name, arguments, and the content of local folders, read once."""
        arguments = {key: value for key, value in sorted(self.arguments.items()) if key not in SPEED_ONLY}
        folders = [TINY_FOLDER] if self.name == TINY else []
        folders += [Path(value) for value in arguments.values() if isinstance(value, str) and Path(value).is_dir()]
        return [self.name, arguments, [_content(folder) for folder in folders]]


def build(spec: ModelSpec) -> Any:
    """Build the lm_eval model.

    Raises:
        UserError: Unknown name, a missing package, checkpoint or API key.
    """
    from lm_eval.api.registry import get_model

    spec.check()
    name, arguments = spec.name, dict(spec.arguments)
    if name == TINY:
        _need_torch()
        name = "hf"
        arguments = {"pretrained": str(TINY_FOLDER), "dtype": "float32", **arguments}
    if name.startswith("hf"):
        _need_torch()
    extra = {"batch_size": spec.batch_size or spec.width, "device": spec.device or _device(spec)}
    if spec.is_api:  # its threads and its retries are ours, see LMGenerator
        arguments = {**arguments, "num_concurrent": 1, "max_retries": 1}
        arguments.pop("retry_wait", None)
        extra = {}
    try:
        return get_model(name).create_from_arg_obj(arguments, extra)
    except (TypeError, OSError, ValueError, ImportError) as error:
        raise UserError(
            f"generator={spec.name} with {arguments} cannot be built: {error}. Its arguments are those of "
            f"`lm_eval --model {name}`, written gen_NAME=VALUE."
        ) from error


def _device(spec: ModelSpec) -> str | None:
    return "cpu" if spec.name == TINY else None


def _need_torch() -> None:
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise UserError(
            "The generator needs torch and transformers, which are not installed. Install them with "
            '`pip install "lm-eval-rag[hf]"`, or use a generator behind an API (generator=local-chat-completions), '
            "or a method without generator (--model rule_vote)."
        )


def _content(folder: Path) -> list[list[Any]]:
    """Name and sha256 of each file; large ones by size and time of change."""
    found = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".md"):
        stat = path.stat()
        whole = stat.st_size <= HASHED_WHOLE
        mark = sha256(path.read_bytes()).hexdigest() if whole else [stat.st_size, stat.st_mtime_ns]
        found.append([str(path.relative_to(folder)), mark])
    return found
