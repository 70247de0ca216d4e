"""Where a run of retriever training stands, so that a killed one goes on and a failed one leaves its best tower.

The state lies beside the checkpoint as ``state.pt`` (written aside, then renamed) until the run is finished. All draws
follow from seed and position, so a resumed run gives what an uninterrupted one gives.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm import tqdm

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.train.curves import write_curves
from lm_eval_rag.harness.train.settings import Settings

log = logging.getLogger(__name__)
FILE = "state.pt"
EVERY = 60.0  # seconds between two states, beside those at the end of an epoch
LOGGED = 10  # steps between two points of the loss curve


class State:
    """Position, curves and the best tower so far.

    Args:
        folder: Of the checkpoint.
        settings: A state of other settings is refused.
        corpora: Ids of the corpora, for the same reason.
        steps: Of the whole run, for the progress bar.
        save: Writes the tower as it is into the folder.
        writes: Whether this process writes (one of several does).

    Raises:
        UserError: The folder holds an unfinished run with other settings, or a damaged state.
    """

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        corpora: list[str],
        *,
        steps: int,
        save: Callable[[], None],
        writes: bool = True,
    ) -> None:
        self._path, self._save, self._writes, self._last = folder / FILE, save, writes, time.monotonic()
        self._key = {**asdict(settings), "corpora": corpora}
        self._found = _read(self._path, self._key)
        self.position: tuple[int, int] = tuple(self._found.get("position", (0, 0)))
        self.rows: list[dict[str, float]] = self._found.get("rows", [])
        self.best: dict[str, Any] = self._found.get("best", {})
        self.rates: list[float] = []
        self._bar = tqdm(total=steps, desc="training", unit="step", disable=not writes)

    def restore(self, module: Any | None, optimizer: Any) -> None:
        """Take the learning rates to start from, and with a module its weights and the optimizer's state."""
        self.rates = [group["lr"] for group in optimizer.param_groups]
        if module is not None:
            module.load_state_dict(self._found["module"], strict=False)
            optimizer.load_state_dict(self._found["optimizer"])
            self._bar.update(self._found["done"])
            log.info("Going on at epoch %d, step %d.", *self.position)

    def log(self, done: int, loss: float) -> None:
        """Note the loss of a step (every ``LOGGED``-th is kept) and move the bar."""
        if done % LOGGED == 0:
            self.rows.append({"step": done, "loss": loss})
        self._bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
        self._bar.update()

    def look(self, epoch: int, loss: float, recalls: Mapping[str, float]) -> None:
        """Note dev recalls after ``epoch`` epochs; the best mean (of equals the first) is saved as the checkpoint."""
        mean = sum(recalls.values()) / len(recalls)
        named = {f"dev recall@10 {task}": value for task, value in recalls.items()}
        self.rows.append({"step": self.rows[-1]["step"] if self.rows else 0, "epoch": epoch, **named})
        log.info("epoch %d: dev recall@10 %s", epoch, ", ".join(f"{t} {100 * v:.1f}" for t, v in recalls.items()))
        if not self.best or (epoch and mean > self.best["mean"]) or (epoch and not self.best["epoch"]):
            before = self.best.get("before", mean)
            self.best = {"epoch": epoch, "mean": mean, "recalls": dict(recalls), "before": before}
            if self._writes:
                self._save()

    def keep(self, module: Any, optimizer: Any, *, now: bool) -> None:
        """Write the state, if it is time to or ``now``."""
        if not self._writes or (not now and time.monotonic() - self._last < EVERY):
            return
        import torch

        trained = {name for name, weight in module.named_parameters() if weight.requires_grad}
        content = {
            "key": self._key,
            "position": self.position,
            "rows": self.rows,
            "best": self.best,
            "done": self._bar.n,
            "module": {name: value for name, value in module.state_dict().items() if name in trained},
            "optimizer": optimizer.state_dict(),
        }
        aside = self._path.with_suffix(".new")
        torch.save(content, aside)
        aside.replace(self._path)
        write_curves(self._path.parent, self.rows)
        self._last = time.monotonic()

    def failed(self, done: int, loss: float) -> str:
        """What to say when the loss is no number; the curves are written, the state of the last good step stays."""
        if self._writes:
            write_curves(self._path.parent, self.rows)
        return (
            f"The loss is {'NaN' if math.isnan(loss) else loss} at step {done}: training stopped. The best tower so "
            f"far, after {self.best['epoch']} epochs, is in {self._path.parent}. Give a lower --learning-rate or a "
            f"higher --temperature, and another --out."
        )

    def finish(self) -> dict[str, Any]:
        """Close the bar, write the curves, remove the state; returns what was measured."""
        self._bar.close()
        if self._writes:
            write_curves(self._path.parent, self.rows)
            self._path.unlink(missing_ok=True)
        return self.best


def _read(path: Path, key: Mapping[str, Any]) -> dict[str, Any]:
    if not path.is_file():
        return {}
    import torch

    try:
        found: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        other = found["key"]
    except (OSError, RuntimeError, KeyError, EOFError, ValueError) as error:
        raise UserError(f"{path} is damaged ({error}). Delete it to start anew.") from None
    wrong = [name for name in key if other.get(name) != key[name]]
    if wrong:
        told = ", ".join(f"{name}={other.get(name)!r}, now {key[name]!r}" for name in wrong)
        raise UserError(
            f"{path.parent} holds an unfinished run with other settings ({told}). Give the same settings to go on, "
            f"another --out, or delete {path.name}."
        )
    return found
