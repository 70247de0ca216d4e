"""Building the lm_eval model that generates, and its errors in one line."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.generators.quantization import config, quantised, split
from lm_eval_rag.harness.generators.spec import EMBEDDED, OURS, ModelSpec

SHOWN = 400  # characters of an error of a library
COMPLETIONS = ("local-completions", "openai-completions")  # lm_eval's classes send token ids by default
BUILDING = (TypeError, OSError, ValueError, ImportError, RuntimeError, AssertionError, KeyError)


def build(spec: ModelSpec) -> Any:
    """Build the lm_eval model.

    Raises:
        UserError: Unknown name, a missing package, checkpoint or API key, or the library that runs it fails.
    """
    from lm_eval.api.registry import get_model

    spec.check()
    spec.check_packages()
    name = "hf" if spec.name in EMBEDDED else spec.name
    arguments, bits = split({key: value for key, value in spec.resolved.items() if key not in OURS})
    if bits and not spec.is_hf:
        raise UserError(
            f"{', '.join(f'gen_{key}' for key in bits)}: only transformers takes these (generator=hf). "
            "vLLM has gen_quantization=bitsandbytes; a server holds its weights as it was started."
        )
    extra = {"batch_size": spec.batch_size or spec.width, "device": spec.device or _device(spec)}
    if spec.is_api:  # its threads and its retries are ours, see LMGenerator
        text = {"tokenized_requests": False} if spec.name in COMPLETIONS else {}  # ids are refused by many servers
        first = {"base_url": spec.urls[0]} if spec.urls else {}  # it has one address; `Server` has all
        arguments = {**text, **arguments, **first, "num_concurrent": 1, "max_retries": 1}
        extra = {}
    quantization = config(bits, arguments.get("dtype")) if bits else None
    try:
        model = get_model(name)
        model = model if quantization is None else quantised(model, quantization)
        return model.create_from_arg_obj(arguments, extra)
    except building_errors() as error:
        raise UserError(
            f"generator={spec.name} with {spec.resolved} cannot be built: {one_line(error)}. Its arguments are those "
            f"of `lm_eval --model {name}`, written gen_NAME=VALUE."
        ) from error


def building_errors() -> tuple[type[Exception], ...]:
    """What the libraries raise for a model that cannot be built."""
    return (*BUILDING, *_library_errors())


def engine_errors(spec: ModelSpec) -> tuple[type[Exception], ...]:
    """What ends a run while a local model generates: vLLM's errors of any kind, and a GPU that is full."""
    torch = sys.modules.get("torch")
    full = (torch.OutOfMemoryError,) if torch else ()
    return (*full, *((RuntimeError, ValueError, *_library_errors()) if spec.is_vllm else ()))


def stopped(spec: ModelSpec, error: BaseException) -> UserError:
    """The one line for such an error."""
    return UserError(
        f"generator={spec.name} stopped: {one_line(error)}. Where memory is short, give a smaller --batch_size (vllm: "
        "gen_gpu_memory_utilization, gen_max_model_len). The same command again asks only what is missing."
    )


def one_line(error: BaseException) -> str:
    """What an error says, in one line; its type where it says nothing."""
    return " ".join(str(error).split())[:SHOWN].rstrip(" .") or type(error).__name__


def instance(kind: str, arguments: tuple[Any, ...]) -> Any:
    """A request as lm_eval's models take it."""
    from lm_eval.api.instance import Instance

    return Instance(request_type=kind, doc={}, arguments=arguments, idx=0)


def quiet(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call without its own progress bar, where it has that option."""
    if "disable_tqdm" in inspect.signature(call).parameters:
        return lambda requests: call(requests, disable_tqdm=True)
    return call


def _library_errors() -> tuple[type[Exception], ...]:
    """Errors of the libraries that are loaded which are none of Python's."""
    named = (
        ("safetensors", ("SafetensorError",)),
        ("vllm.v1.engine.exceptions", ("EngineDeadError", "EngineGenerateError")),
    )
    loaded = [(sys.modules[module], names) for module, names in named if module in sys.modules]
    return tuple(getattr(module, name) for module, names in loaded for name in names if hasattr(module, name))


def _device(spec: ModelSpec) -> str | None:
    if spec.name in EMBEDDED:
        return "cpu"
    if not spec.is_hf:
        return None
    import torch

    return None if torch.cuda.is_available() else "cpu"  # lm_eval's own default is cuda
