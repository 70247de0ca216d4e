"""Room on a GPU: local models take turns, so that a judge and a generator need not fit beside each other.

A generator builds its model when it is first asked, and keeps it. What comes after it in the same process (a judge, the
next row of a table) may need the same memory. A model that was released is built again when it is next needed.
"""

from __future__ import annotations

import gc
import logging
import sys
from typing import Any
from weakref import WeakSet

from lm_eval_rag.harness.generators.spec import EMBEDDED

log = logging.getLogger(__name__)
BUILT: WeakSet[Any] = WeakSet()  # the generators that hold a model


def release(generator: Any) -> None:
    """Let go of a generator's model if it is on a GPU; on a CPU it stays, since memory is seldom short there."""
    if not _on_gpu(generator):
        return
    log.info("The model of generator=%s leaves the GPU.", generator.spec.name)
    lm = vars(generator).pop("lm")
    BUILT.discard(generator)
    core = getattr(getattr(getattr(lm, "model", None), "llm_engine", None), "engine_core", None)
    if core is not None:  # vLLM's engine runs in processes of its own, which end with it
        core.shutdown()
    del lm, core
    gc.collect()  # models are held in cycles
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def release_all() -> None:
    """Let go of all models on a GPU."""
    for generator in list(BUILT):
        release(generator)


def make_room(generator: Any) -> None:
    """Let go of all other models on a GPU, before a model is built that may go there."""
    spec = getattr(generator, "spec", None)
    if spec is None or spec.is_api or spec.name in EMBEDDED or spec.device == "cpu" or generator in BUILT:
        return
    for other in list(BUILT):
        release(other)


def _on_gpu(generator: Any) -> bool:
    """Whether it holds a model, and not on the CPU."""
    spec, lm = getattr(generator, "spec", None), getattr(generator, "__dict__", {}).get("lm")
    if spec is None or lm is None or spec.is_api:
        return False
    device = getattr(lm, "device", None)
    return spec.is_vllm or str(getattr(device, "type", device)).split(":")[0] not in ("cpu", "None")
