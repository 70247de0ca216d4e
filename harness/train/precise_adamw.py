"""AdamW for weights of low precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def precise_adamw(weights: Sequence[Any], learning_rate: float) -> Any:
    """AdamW that updates in float32 whatever the weights' type, because bfloat16 would lose small updates.

    The trainer's schedule scales the optimizer's own learning rate: it does not read that of the trainer's arguments.
    The optimizer has float32 originals, and the model's weights are rounded copies of them after every step.
    """
    import torch

    class PreciseAdamW(torch.optim.AdamW):  # type: ignore[misc]
        def __init__(self) -> None:
            self.copies = list(weights)
            originals = [weight.detach().float().clone() for weight in weights]
            super().__init__(originals, lr=learning_rate, weight_decay=0.0)

        @property
        def originals(self) -> list[Any]:
            parameters: list[Any] = self.param_groups[0]["params"]
            return parameters

        @torch.no_grad()  # type: ignore[untyped-decorator]
        def step(self, closure: Any = None) -> None:
            for original, copy in zip(self.originals, self.copies, strict=True):
                original.grad = None if copy.grad is None else copy.grad.float()
            super().step(closure)
            torch._foreach_copy_(self.copies, self.originals)

        def zero_grad(self, set_to_none: bool = True) -> None:
            for weight in (*self.originals, *self.copies):
                weight.grad = None

        def state_dict(self) -> dict[str, Any]:
            return {**super().state_dict(), "originals": [original.detach() for original in self.originals]}

        def load_state_dict(self, state_dict: dict[str, Any]) -> None:
            rest = dict(state_dict)
            stored = rest.pop("originals")
            super().load_state_dict(rest)
            with torch.no_grad():
                for original, copy, value in zip(self.originals, self.copies, stored, strict=True):
                    original.copy_(value)
                    copy.copy_(value)

    return PreciseAdamW()
