"""The state of a retriever training run, so that a killed run can be resumed and a failed run keeps its best tower.

Until the run is finished, the state is in ``state.pt`` in the checkpoint's folder, which is replaced atomically. All
random numbers depend on seed and position only, so a resumed run has the same result as an uninterrupted one.
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
FILE, NEW = "state.pt", "state.new"  # the second while it is written
EVERY = 60.0  # minimum seconds between two saved states within an epoch
LOGGED = 10  # steps between two points of the loss curve


class State:
    """Position, curves and best result of a run.

    Args:
        folder: Folder of the checkpoint.
        settings: Settings of the run; a state with other settings is refused.
        corpora: Ids of the corpora; a state with other corpora is refused.
        steps: Number of steps of the whole run, for the progress bar.
        began: When this process began the training, by ``time.monotonic``.
        save: Writes the current tower into the folder.
        writes: Whether this process writes files (only the main process does).

    Raises:
        UserError: The folder has an unfinished run with other settings, or a damaged state.
    """

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        corpora: list[str],
        *,
        steps: int,
        began: float,
        save: Callable[[], None],
        writes: bool = True,
    ) -> None:
        self._path, self._save, self._writes, self._last = folder / FILE, save, writes, time.monotonic()
        self._key = {**asdict(settings), "corpora": corpora}
        self._restored = _read(self._path, self._key)
        self.position: tuple[int, int] = tuple(self._restored.get("position", (0, 0)))
        self._stored = self.position
        self.rows: list[dict[str, float]] = self._restored.get("rows", [])
        self.best: dict[str, Any] = self._restored.get("best", {})
        self.rates: list[float] = []
        self._began, self._earlier = began, float(self._restored.get("seconds", 0.0))
        self._bar = tqdm(total=steps, desc="training", unit="step", disable=not writes)

    @property
    def seconds(self) -> float:
        """Seconds of the run so far, with those of the interrupted parts up to their last saved state."""
        return self._earlier + time.monotonic() - self._began

    @property
    def advice(self) -> str:
        """What to do where the folder cannot be written, by what it holds."""
        kept = "The best tower so far is kept" if self.best else "No tower is kept yet"
        goes_on = "resumes" if self._stored > (0, 0) else "starts again"
        return f"Free space there. {kept}, and the same command {goes_on}."

    def begin(self) -> None:
        """Write a state without weights: from here on the folder is that of this run."""
        if self._writes:
            self._write(self._content())

    def restore(self, module: Any | None, optimizer: Any) -> None:
        """Read the initial learning rates; with a module, also restore its weights and the optimizer's state."""
        self.rates = [group["lr"] for group in optimizer.param_groups]
        if module is not None:
            module.load_state_dict(self._restored["module"], strict=False)
            optimizer.load_state_dict(self._restored["optimizer"])
            self._bar.update(self._restored["done"])
            log.info("Resuming at epoch %d, step %d.", *self.position)

    def log(self, done: int, loss: float) -> None:
        """Record the loss of every ``LOGGED``-th step, and advance the progress bar."""
        if done % LOGGED == 0:
            self.rows.append({"step": done, "loss": loss})
        self._bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
        self._bar.update()

    def evaluated(self, epoch: float, recalls: Mapping[str, float]) -> None:
        """Record dev recalls after ``epoch`` epochs; save the tower if the mean is the best so far."""
        mean = sum(recalls.values()) / len(recalls)
        named = {f"dev recall@10 {task}": value for task, value in recalls.items()}
        self.rows.append({"step": self.rows[-1]["step"] if self.rows else 0, "epoch": epoch, **named})
        log.info("epoch %g: dev recall@10 %s", epoch, ", ".join(f"{t} {100 * v:.1f}" for t, v in recalls.items()))
        if not self.best or (epoch and mean > self.best["mean"]) or (epoch and not self.best["epoch"]):
            before = self.best.get("before", mean)
            if self._writes:
                self._save()
            self.best = {"epoch": epoch, "mean": mean, "recalls": dict(recalls), "before": before}

    def keep(self, module: Any, optimizer: Any, *, now: bool) -> None:
        """Write the state if ``now``, or if the last one is ``EVERY`` seconds old."""
        if not self._writes or (not now and time.monotonic() - self._last < EVERY):
            return
        trained = {name for name, weight in module.named_parameters() if weight.requires_grad}
        weights = {name: value for name, value in module.state_dict().items() if name in trained}
        self._write({**self._content(), "module": weights, "optimizer": optimizer.state_dict()})
        self._stored = self.position
        write_curves(self._path.parent, self.rows)
        self._last = time.monotonic()

    def _content(self) -> dict[str, Any]:
        return {
            "key": self._key,
            "position": self.position,
            "rows": self.rows,
            "best": self.best,
            "done": self._bar.n,
            "seconds": self.seconds,
        }

    def _write(self, content: Mapping[str, Any]) -> None:
        import torch

        temporary = self._path.with_name(NEW)
        try:
            torch.save(dict(content), temporary)
            temporary.replace(self._path)
        finally:
            temporary.unlink(missing_ok=True)

    def failed(self, done: int, loss: float) -> str:
        """The message for a loss that is not finite; writes the curves and keeps the last state."""
        if self._writes:
            write_curves(self._path.parent, self.rows)
        return (
            f"Training stopped: the loss is {'NaN' if math.isnan(loss) else loss} at step {done}. The best tower so "
            f"far, after {self.best['epoch']} epochs, is in {self._path.parent}. Give a lower --learning-rate or a "
            f"higher --temperature, and another --out."
        )

    def close(self) -> None:
        """Close the progress bar, so that a message after it has its own line."""
        self._bar.close()

    def finish(self) -> dict[str, Any]:
        """Write the curves; return the best result and the seconds of the run."""
        if self._writes:
            write_curves(self._path.parent, self.rows)
        return {**self.best, "seconds": round(self.seconds, 1)}


def _read(path: Path, key: Mapping[str, Any]) -> dict[str, Any]:
    if not path.is_file():
        return {}
    import torch

    try:
        content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        other = content["key"]
    except (OSError, RuntimeError, KeyError, EOFError, ValueError) as error:
        raise UserError(f"{path} is damaged ({error}). Delete {path.parent} to start again.") from None
    different = [name for name in key if other.get(name) != key[name]]
    if different:
        listed = ", ".join(f"{name}={other.get(name)!r}, now {key[name]!r}" for name in different)
        raise UserError(
            f"{path.parent} contains an unfinished run with other settings ({listed}). Give the same settings to "
            "resume it, give another --out, or delete the folder."
        )
    return content
