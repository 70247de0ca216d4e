"""Which lm_eval model generates, with which arguments.

``tiny`` is the embedded default: a small causal LM whose checkpoint lies beside this file; ``tiny_rgft`` is the same
after rule-guided fine-tuning, ``tiny_ssft`` after fine-tuning without rules, ``tiny_steps`` after training for methods
of several steps, ``tiny_crag`` for the modules of CRAG's hybrid. Every other name is one that ``lm_eval --model``
knows; its arguments are our ``gen_*`` arguments without the prefix. ``gen_pretrained=`` takes a folder or a Hub id
(``ORG/NAME@REVISION``), and so does ``gen_peft=``, whose base model is the one that the adapter names unless
``gen_pretrained=`` names another. For vLLM ``gen_lora_local_path=``, lm_eval's own name of it, is the same.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.checkpoints.contents import contents
from lm_eval_rag.harness.checkpoints.download import fetch_folder
from lm_eval_rag.harness.checkpoints.locate import checkpoint
from lm_eval_rag.harness.checkpoints.note import NOTE, Note, read_note
from lm_eval_rag.harness.common.errors import UserError, at_least, unknown
from lm_eval_rag.harness.generators.addresses import addresses, check_address
from lm_eval_rag.harness.generators.lora import base_of, hf_arguments, vllm_arguments
from lm_eval_rag.harness.generators.on_ray import check_ray
from lm_eval_rag.harness.generators.own_arguments import (
    check_adapter,
    check_extractive,
    check_folders,
    check_known,
    check_logprobs,
    check_max_stops,
    extra_body,
)
from lm_eval_rag.harness.generators.packages import LITELLM, check_packages
from lm_eval_rag.harness.generators.prices import PRICES, read_prices
from lm_eval_rag.harness.generators.thinking import THOUGHT_END

TINY = "tiny"
EMBEDDED = {  # name -> the folder of its checkpoint
    TINY: Path(__file__).parent / "rulerag_tiny",
    "tiny_rgft": Path(__file__).parent / "rulerag_tiny_rgft",
    "tiny_ssft": Path(__file__).parent / "rulerag_tiny_ssft",
    "tiny_steps": Path(__file__).parent / "reasoning_tiny",
    "tiny_crag": Path(__file__).parent / "crag_tiny",
}
NO_GENERATOR = "dummy"  # lm_eval's model with meaningless answers: a run with it measures only retrieval
KEYS = {  # what needs a key, and the environment variable that holds it
    "openai-chat-completions": "OPENAI_API_KEY",
    "openai-completions": "OPENAI_API_KEY",
    "azure-openai-chat-completions": "AZURE_OPENAI_API_KEY",
    "anthropic-chat": "ANTHROPIC_API_KEY",
    "anthropic-chat-completions": "ANTHROPIC_API_KEY",
}
SECRETS = ("api_key", "apikey", "auth_token", "token", "header")  # would end up in the results file
OURS = (  # arguments that are not lm_eval's
    "extractive", "logprobs", "thinking_tokens", "extra_body", "max_stops", "retry_wait", "rpm", "tpm", "ray",
    "ray_cpus", "prices", *PRICES,
)  # fmt: skip
SPEED_ONLY = (
    "num_concurrent",
    "max_retries",
    "retry_wait",
    "timeout",
    "batch_size",
    *PRICES,
    "prices",
    "rpm",
    "tpm",
    "ray",
    "ray_cpus",
)  # change no answer


@dataclass(frozen=True)
class ModelSpec:
    """An lm_eval model that is not built yet.

    Args:
        name: ``tiny``, ``tiny_rgft``, ``tiny_ssft``, ``tiny_steps``, ``tiny_crag`` or a name of lm_eval's registry.
        arguments: Its arguments; never an API key, which comes from the environment alone.
        batch_size: Of local models; None for the default (32 for embedded ones, else 1).
        device: Of local models; None for lm_eval's choice.
    """

    name: str = TINY
    arguments: Mapping[str, Any] = field(default_factory=dict)
    batch_size: int | str | None = None
    device: str | None = None

    @cached_property
    def is_chat_api(self) -> bool:
        """Whether it takes messages rather than text."""
        return "chat" in self.name or self.name == "litellm"

    @property
    def is_api(self) -> bool:
        """Whether its requests go over the network."""
        return "base_url" in self.arguments or self.is_chat_api or self.name in KEYS

    @property
    def is_hf(self) -> bool:
        """Whether transformers runs it in this process."""
        return self.name in EMBEDDED or self.name.startswith(("hf", "huggingface"))

    @property
    def is_vllm(self) -> bool:
        """Whether vLLM runs it on this machine."""
        return self.name.startswith("vllm")

    @property
    def is_stepped(self) -> bool:
        """Whether one vLLM engine in this process runs it, which takes new requests while it answers others."""
        return self.name == "vllm" and int(self.arguments.get("data_parallel_size", 1)) == 1

    @property
    def extractive(self) -> bool:
        """Whether a continuation must be a span of the prompt's documents (``gen_extractive``)."""
        return self.arguments.get("extractive") is True

    @property
    def logprobs(self) -> bool:
        """Whether its replies come with their log-probabilities (``gen_logprobs``)."""
        return self.arguments.get("logprobs") is True

    @cached_property
    def extra_body(self) -> Mapping[str, Any]:
        """Fields of one's own in every request of a generation (``gen_extra_body``)."""
        return extra_body(self.name, self.arguments, is_api=self.is_api)

    @property
    def thinking_tokens(self) -> int:
        """Tokens for what the model thinks before it answers, beyond a reply's own; 0 for one that does not."""
        return int(self.arguments.get("thinking_tokens", 0))

    @property
    def width(self) -> int:
        """Prompts at once: requests (``gen_num_concurrent``, 8, to each server), else the batch size."""
        if self.is_api:
            return int(self.arguments.get("num_concurrent", 8)) * max(1, len(self.urls))
        return self.batch_size if isinstance(self.batch_size, int) else 32

    @cached_property
    def urls(self) -> tuple[str, ...]:
        """The addresses of ``gen_base_url=``: of one server or of several; () where it is not given."""
        return addresses(self.arguments.get("base_url"))

    @property
    def ray(self) -> str | None:
        """The address of the cluster whose workers hold the model (``gen_ray``); None for this process."""
        return None if self.arguments.get("ray") is None else str(self.arguments["ray"])

    @property
    def tries(self) -> int:
        """How often a request over the network is made at most (``gen_max_retries``, 6)."""
        return int(self.arguments.get("max_retries", 6))

    @property
    def retry_wait(self) -> float:
        """Seconds before a failed request is made again, doubled each time (``gen_retry_wait``, 0.5)."""
        return float(self.arguments.get("retry_wait", 0.5))

    @cached_property
    def prices(self) -> tuple[float, float] | None:
        """US dollars per million prompt tokens and completion tokens, or None where they are not known."""
        return read_prices(self.arguments, self.model)

    @property
    def model(self) -> str:
        """The name of the model that generates, for tables."""
        given = (self.arguments.get(name) for name in ("model", "pretrained", "peft"))
        return str(next(filter(None, given), self.name))

    def check(self) -> None:
        """Raise a UserError for a name that lm_eval does not know, or a key that is missing; builds nothing."""
        for given in SECRETS:
            if given in self.arguments:
                raise UserError(
                    f"gen_{given} is refused: arguments are written into the results file. Give the key in the "
                    f"environment variable {KEYS.get(self.name, 'OPENAI_API_KEY')}."
                )
        if self.name in LITELLM and "base_url" in self.arguments:
            raise UserError(
                f"gen_base_url is not used by generator={self.name}: litellm finds the server by the prefix of "
                "gen_model and by its provider's environment variables (OPENAI_API_BASE for openai/...). For a server "
                "of your own give generator=local-chat-completions."
            )
        check_folders(self.arguments)
        check_adapter(self.name, self.arguments, is_vllm=self.is_vllm, is_api=self.is_api)
        check_extractive(self.name, self.arguments, is_hf=self.is_hf)
        check_logprobs(self.name, self.arguments, is_chat_api=self.is_chat_api)
        check_max_stops(self.name, self.arguments, is_api=self.is_api)
        check_ray(self.name, self.arguments, self.is_hf)
        for counted in ("num_concurrent", "max_retries", "rpm", "tpm", "ray_cpus", "thinking_tokens", "max_stops"):
            at_least(f"gen_{counted}", self.arguments.get(counted, 1))
        self.prices, self.extra_body  # noqa: B018 - raise
        import lm_eval.models  # noqa: F401  (the built-in models register here)
        from lm_eval.api.registry import model_registry

        if self.name not in (*EMBEDDED, *model_registry.keys()):
            raise unknown("generator", self.name, [*EMBEDDED, *model_registry.keys()])
        if self.is_api and self.name not in (*LITELLM, *EMBEDDED):
            check_known(self.name, self.arguments, OURS)
        for url in self.urls or (None,):
            check_address(self.name, url)
        if self.name in EMBEDDED and not EMBEDDED[self.name].is_dir():
            raise UserError(
                f"generator={self.name} is not in this installation: it lacks the folder {EMBEDDED[self.name]}. Give "
                "gen_pretrained= or gen_peft= a checkpoint (`lm-eval-rag train generator` makes one), or another "
                "generator=."
            )
        if self.name in KEYS and not os.environ.get(KEYS[self.name]):
            raise UserError(f"generator={self.name} needs the environment variable {KEYS[self.name]}; it is not set.")
        if self.is_api and not (self.arguments.get("model") or self.arguments.get("pretrained")):
            raise UserError(f"generator={self.name} needs gen_model=: the name by which its server knows the model.")

    def check_packages(self) -> None:
        """Raise a UserError that says what to install where a package is missing that the model needs."""
        check_packages(self.name, is_hf=self.is_hf)

    @cached_property
    def adapter(self) -> Path | None:
        """The folder of the PEFT adapter, downloaded if need be; None without one."""
        given = self.arguments.get("peft") or self.arguments.get("lora_local_path")
        return checkpoint(str(given), "adapter gen_peft").folder if given else None

    @cached_property
    def resolved(self) -> dict[str, Any]:
        """The arguments as lm_eval takes them: folders for names of ours, the adapter with its base, the revision.

        Raises:
            UserError: The adapter is none, or vLLM cannot run it.
        """
        arguments = dict(self.arguments)
        if self.thinking_tokens and (self.is_hf or self.is_vllm):
            arguments.setdefault("think_end_token", THOUGHT_END)
        base = self.name if self.name in EMBEDDED else None
        if self.adapter is not None:
            arguments = (vllm_arguments if self.is_vllm else hf_arguments)(self.adapter, arguments)
            base = base or base_of(self.adapter)
        if base is not None:
            folder = EMBEDDED.get(base)
            found = {"pretrained": str(folder), "dtype": "float32"} if folder else {"pretrained": base}
            arguments = {**found, **arguments}
        if "@" in str(arguments.get("pretrained", "")) and not Path(arguments["pretrained"]).is_dir():
            arguments["pretrained"], arguments["revision"] = _revised(arguments)
        return arguments

    @property
    def tokenizer(self) -> str | None:
        """Folder or Hub id (with ``@revision``) of its tokenizer; None where the arguments name none."""
        name, revision = self.resolved.get("tokenizer"), self.resolved.get("revision")
        if name is None and self.resolved.get("pretrained"):
            name = self.resolved["pretrained"]
            name = f"{name}@{revision}" if revision and not Path(str(name)).is_dir() else name
        return None if name is None else str(name)

    @cached_property
    def note(self) -> Note | None:
        """What ``lm-eval-rag train generator`` noted in the checkpoint; None for a checkpoint of another origin."""
        if self.adapter is not None:
            return read_note(self.adapter)
        given = self.arguments.get("pretrained") or EMBEDDED.get(self.name)
        if given is None or self.is_api:
            return None
        return read_note(Path(given)) if Path(given).is_dir() else _hub_note(*_revised(self.arguments))

    @cached_property
    def identity(self) -> list[Any]:
        """All that its output depends on, JSON-able: name, arguments, and the content of local folders, read once.

        The addresses of several servers are no part of it: a run that was interrupted may go on with others.
        """
        arguments = {key: value for key, value in sorted(self.arguments.items()) if key not in SPEED_ONLY}
        if not self.logprobs:
            arguments.pop("logprobs", None)
        if len(self.urls) > 1:
            arguments["base_url"] = "several servers"
        folders = [EMBEDDED[self.name]] if self.name in EMBEDDED else []
        folders += [Path(value) for value in arguments.values() if isinstance(value, str) and Path(value).is_dir()]
        return [self.name, arguments, [contents(folder) for folder in folders]]


def _revised(arguments: Mapping[str, Any]) -> tuple[str, str | None]:
    """Hub id and revision of ``gen_pretrained=ORG/NAME@REVISION``, or of that and ``gen_revision=``."""
    name, _, revision = str(arguments.get("pretrained", "")).partition("@")
    return name, revision or arguments.get("revision")


def _hub_note(name: str, revision: str | None) -> Note | None:
    """The note of a checkpoint on the Hub; None where it has none, or the Hub does not say."""
    try:
        return read_note(fetch_folder(f"{name}@{revision}" if revision else name, only=[NOTE]))
    except UserError:
        return None  # building the model says what is wrong with its name
