"""The processes that ``accelerate launch`` or ``torchrun`` starts: which one this is, and what they tell each other.

The questions are shared out whatever the generator, so that a method without one, or with one behind an API, asks no
question twice; a local generator is loaded once a process and never spans several. Beside a process alone, torch and
accelerate are needed, which such a launch brings.
"""

from __future__ import annotations

import atexit
import os
from datetime import timedelta
from typing import Any, Protocol

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.extras import install_line

SPANNING = ("ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED")  # set by accelerate when processes share one model

PATIENCE = timedelta(weeks=52)  # as lm_eval's hf: one rank may be done long before another


class Ranks(Protocol):
    """What lm_eval asks a model about its processes.

    Attributes:
        rank: Which one this is, from 0.
        world_size: How many there are.
        device: Where the tensors lie that are gathered; None when alone.
    """

    @property
    def rank(self) -> int: ...

    @property
    def world_size(self) -> int: ...

    @property
    def device(self) -> Any: ...

    def all_gather(self, tensor: Any) -> Any:
        """The tensors of all ranks, one after the other."""
        ...

    def gather_object(self, obj: Any, dst: int = 0) -> list[Any] | None:
        """On rank ``dst`` the objects of all ranks in their order; None on the others."""
        ...

    def share(self, obj: Any) -> list[Any]:
        """The objects of all ranks in their order, on every rank."""
        ...

    def barrier(self) -> None:
        """Wait for all ranks."""
        ...


class Alone:
    """One process."""

    rank = 0
    world_size = 1
    device = None

    def all_gather(self, tensor: Any) -> Any:
        """The tensor itself."""
        return tensor

    def gather_object(self, obj: Any, dst: int = 0) -> list[Any] | None:
        """The object alone."""
        return [obj]

    def share(self, obj: Any) -> list[Any]:
        """The object alone."""
        return [obj]

    def barrier(self) -> None:
        """Nothing to wait for."""


class Launched:
    """One of several processes, in accelerate's process group, which an hf generator then shares."""

    def __init__(self) -> None:
        try:
            from accelerate import PartialState
        except ImportError:
            raise UserError(
                f"WORLD_SIZE={os.environ.get('WORLD_SIZE')} says that several processes were launched; they need "
                f"accelerate to share the questions. Install it with `{install_line('hf')}`, or launch one."
            ) from None
        from accelerate.utils import parse_flag_from_env

        state = PartialState(cpu=parse_flag_from_env("ACCELERATE_USE_CPU"), timeout=PATIENCE)
        if state.num_processes == 1:  # accelerate knows of no device for these processes, and was not told to use CPUs
            PartialState._reset_state()
            state = PartialState(cpu=True, timeout=PATIENCE)
        atexit.register(state.destroy_process_group)  # threads of gloo that still run at the exit may abort the process
        self._state = state
        self.rank: int = self._state.process_index
        self.world_size: int = self._state.num_processes
        self.device: Any = self._state.device

    def all_gather(self, tensor: Any) -> Any:
        """The tensors of all ranks, one after the other; numbers become a tensor of one dimension."""
        from accelerate.utils import gather

        return gather(tensor)

    def gather_object(self, obj: Any, dst: int = 0) -> list[Any] | None:
        """On rank ``dst`` the objects of all ranks in their order; None on the others."""
        from torch import distributed

        gathered = [None] * self.world_size if self.rank == dst else None
        distributed.gather_object(obj, gathered, dst=dst)
        return gathered

    def share(self, obj: Any) -> list[Any]:
        """The objects of all ranks in their order, on every rank."""
        from torch import distributed

        shared: list[Any] = [None] * self.world_size
        distributed.all_gather_object(shared, obj)
        return shared

    def barrier(self) -> None:
        """Wait for all ranks."""
        self._state.wait_for_everyone()


def launched_rank() -> int:
    """The number of this process by its environment; 0 when alone."""
    return int(os.environ.get("RANK", "0"))


def ranks(*, tensor_parallel: bool = False) -> Ranks:
    """The processes of this run, by its environment.

    Args:
        tensor_parallel: Whether the generator would be cut into as many parts as there are processes.

    Raises:
        UserError: The processes would share one model, or accelerate is missing.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        return Alone()
    spanning = [f"{name}=true" for name in SPANNING if os.environ.get(name, "").lower() in ("1", "true")]
    spanning += ["gen_tp_plan"] if tensor_parallel else []
    if spanning:
        raise UserError(
            f"{spanning[0]} spreads one model over the processes, which must then ask in step; here each answers its "
            "own questions at its own pace. Launch without it; for a model that is too large for one device give "
            "generator=hf,gen_parallelize=True in one process, or generator=vllm."
        )
    return Launched()
