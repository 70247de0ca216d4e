"""Training with TRL: batches of similar length, weights updated in full precision, dev evaluation, resuming."""

from __future__ import annotations

import logging
import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.common.paths import storing
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.scoring import METRICS
from lm_eval_rag.harness.scoring.case import read_case
from lm_eval_rag.harness.train.answer_loss import answer_loss, computes_logits_at
from lm_eval_rag.harness.train.generator_model import Loaded
from lm_eval_rag.harness.train.generator_outcome import Outcome
from lm_eval_rag.harness.train.precise_adamw import precise_adamw
from lm_eval_rag.harness.train.training_prompts import Row

if TYPE_CHECKING:
    from lm_eval_rag.harness.train.generator_settings import Settings

log = logging.getLogger(__name__)
SAVE_EVERY = 120.0  # minimum seconds between two saved states
POOL = 50  # number of batches that are sorted by length together


def fit_model(
    settings: Settings, loaded: Loaded, rows: Sequence[Sequence[Row]], dev: Sequence[Row], outcome: Outcome
) -> dict[str, Any]:
    """Train the model and return the measured results.

    Args:
        rows: The training rows of each epoch, equally many; a single list serves all epochs.

    Raises:
        UserError: The loss is not finite, or the folder cannot be written.
    """
    from datasets import Dataset

    encoded = [loaded.encode(row) for epoch in rows for row in epoch]
    evaluation = _dev_evaluation(settings, loaded, dev, outcome)
    trainer = _trainer(settings, len(rows[0]))(
        model=loaded.model,
        args=_arguments(settings, outcome, math.ceil(len(rows[0]) / settings.preset.batch_size)),
        train_dataset=Dataset.from_list(encoded),  # all epochs, of which the sampler takes one at a time
        processing_class=loaded.tokenizer,
        callbacks=[evaluation],
        optimizers=(
            precise_adamw([p for p in loaded.model.parameters() if p.requires_grad], settings.preset.learning_rate),
            None,
        ),
    )
    evaluation.trainer = trainer
    state = outcome.last_state()
    if state:
        log.info("Resuming from %s.", state.name)
    with storing(outcome.out, lambda: outcome.advice):
        if trainer.is_world_process_zero():
            outcome.begin()
        trainer.train(resume_from_checkpoint=str(state) if state else None)
        trainer.accelerator.wait_for_everyone()
        results: dict[str, Any] = evaluation.results()
        if not trainer.is_world_process_zero():
            return results
        outcome.curves(evaluation.curve())
        return outcome.finish(results)


def length_grouped(lengths: Sequence[int], batch: int, seed: int) -> list[int]:
    """All positions once, in shuffled batches of ``batch`` positions of similar length; ``seed`` sets the order."""
    import random

    rng = random.Random(seed)
    order = rng.sample(range(len(lengths)), len(lengths))
    batches, size = [], POOL * batch
    for start in range(0, len(order), size):
        pool = sorted(order[start : start + size], key=lambda i: lengths[i])
        batches += [pool[i : i + batch] for i in range(0, len(pool), batch)]
    rng.shuffle(batches)
    batches.sort(key=lambda part: len(part) < batch)  # incomplete batches last, so that no other is split
    return [position for part in batches for position in part]


def per_device(batch_size: int, devices: int, accumulate: int) -> int:
    """Prompts of one device in one pass, so that a step has ``batch_size`` prompts on any number of devices.

    Raises:
        UserError: The batch cannot be divided so.
    """
    share, rest = divmod(batch_size, devices * accumulate)
    if rest or not share:
        raise UserError(
            f"--batch-size {batch_size} cannot be divided among {devices} devices with --accumulate {accumulate}. Give "
            "an --accumulate with which devices x accumulate divides the batch size."
        )
    return share


def is_stuck(scores: Sequence[float], patience: int | None) -> bool:
    """Whether the last ``patience`` scores are no better than the best before them; never without a patience."""
    return patience is not None and len(scores) > patience and max(scores[-patience:]) <= max(scores[:-patience])


def dev_scores(hits: Iterable[tuple[str, float]]) -> tuple[float, dict[str, float]]:
    """Exact match in percent, over all questions and per task.

    Every question counts the same. With a mean over tasks, a small task of 15 questions would choose the checkpoint.

    Args:
        hits: (task, 1 or 0) of each question, in any order.
    """
    by_task: dict[str, list[float]] = defaultdict(list)
    for task, hit in sorted(hits):
        by_task[task].append(hit)
    every = [hit for part in by_task.values() for hit in part]
    percent = {task: round(100 * sum(part) / len(part), 2) for task, part in by_task.items()}
    return round(100 * sum(every) / len(every), 2), percent


def _trainer(settings: Settings, size: int) -> Any:
    """TRL's trainer with our order of the ``size`` rows of an epoch and a check that the loss is finite."""
    from torch.utils.data import Sampler
    from trl import SFTTrainer

    class Grouped(Sampler):  # type: ignore[misc]
        def __init__(self, lengths: Sequence[int]) -> None:
            self.lengths, self.epoch = lengths, 0

        def set_epoch(self, epoch: int) -> None:
            self.epoch = epoch

        def __len__(self) -> int:
            return size

        def __iter__(self) -> Iterator[int]:
            first = self.epoch * size % len(self.lengths)
            lengths, seed = self.lengths[first : first + size], (settings.seed << 16) + self.epoch
            return (first + place for place in length_grouped(lengths, settings.preset.batch_size, seed))

    class Trainer(SFTTrainer):  # type: ignore[misc]
        def _get_train_sampler(self, train_dataset: Any = None) -> Any:
            return Grouped([len(ids) for ids in self.train_dataset["input_ids"]])

        def compute_loss(
            self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            """TRL's loss, without logits of prompt tokens: for a small model they cost as much as all of its layers."""
            if not computes_logits_at(self.accelerator.unwrap_model(model)):
                return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
            loss = answer_loss(model, inputs, num_items_in_batch)
            if num_items_in_batch is None or not self.args.average_tokens_across_devices:
                return loss
            return loss * self.accelerator.num_processes  # the mean over devices divides by their number once more

        def training_step(self, *args: Any, **kwargs: Any) -> Any:
            loss = super().training_step(*args, **kwargs)
            if not math.isfinite(float(loss)):
                raise UserError(
                    f"Training stops, because the loss at step {self.state.global_step + 1} is {float(loss)}. The "
                    "folder keeps the best checkpoint so far, if an epoch was finished. Give a lower --learning-rate "
                    f"than {settings.preset.learning_rate:g} or --dtype float32, and another --out."
                )
            return loss

    return Trainer


def _arguments(settings: Settings, outcome: Outcome, steps: int) -> Any:
    """The trainer's arguments; ``steps`` is the number of steps per epoch."""
    import os

    from trl import SFTConfig

    preset, world = settings.preset, int(os.environ.get("WORLD_SIZE", "1"))
    return SFTConfig(
        output_dir=str(outcome.state),
        num_train_epochs=preset.epochs,
        max_steps=min(settings.max_steps, steps * preset.epochs) if settings.max_steps else -1,
        learning_rate=preset.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=preset.warmup,
        per_device_train_batch_size=per_device(preset.batch_size, world, settings.accumulate),
        gradient_accumulation_steps=settings.accumulate,
        bf16=False,  # the model already has the type for computing
        fp16=False,
        use_cpu=settings.device == "cpu",
        seed=settings.seed,
        max_length=None,
        gradient_checkpointing=preset.four_bit,
        save_strategy="no",  # the callback decides when
        save_total_limit=1,
        logging_steps=max(1, min(10, steps * preset.epochs // 50)),
        logging_nan_inf_filter=False,
        report_to="none",
    )


def _dev_evaluation(settings: Settings, loaded: Loaded, dev: Sequence[Row], outcome: Outcome) -> Any:
    """The callback that evaluates on the dev split, keeps the best checkpoint, and triggers saving of states."""
    from accelerate.utils import gather_object
    from transformers import TrainerCallback

    class DevEvaluation(TrainerCallback):  # type: ignore[misc]
        trainer: Any = None
        saved = began = time.monotonic()
        earlier = 0.0  # seconds of the interrupted runs

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self.saved = self.began = time.monotonic()
            self.earlier = max((row.get("seconds", 0.0) for row in state.log_history), default=0.0)
            if not any("dev_em" in row for row in state.log_history):
                self._evaluate(state)

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if time.monotonic() - self.saved > SAVE_EVERY:
                control.should_save = True

        def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self.saved = time.monotonic()

        def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            epoch = round(state.epoch)
            if epoch % settings.preset.eval_every == 0 or state.global_step >= state.max_steps:
                self._evaluate(state)
                control.should_save = True
                scores = [row["dev_em"] for row in state.log_history if "dev_em" in row and row["step"]]
                if is_stuck(scores, settings.patience):
                    log.info("No better dev EM in %s evaluations: training ends.", settings.patience)
                    control.should_training_stop = True

        def _evaluate(self, state: Any) -> None:
            """Answer the dev split; keep the checkpoint if it is the best since training began."""
            em, scores = self._scores()
            seconds = round(self.earlier + time.monotonic() - self.began, 1)
            row = {"epoch": round(state.epoch or 0.0, 4), "step": state.global_step, "dev_em": em, "seconds": seconds}
            row |= {f"dev_em_{task}": score for task, score in scores.items()}
            previous = [old["dev_em"] for old in state.log_history if "dev_em" in old and old["step"]]
            state.log_history.append(row)
            log.info("epoch %g: dev EM %.1f", row["epoch"], em)
            if not state.is_world_process_zero:
                return
            outcome.curves(self.curve())
            if state.global_step and em > max(previous, default=-1.0):
                outcome.keep(loaded.model, loaded.tokenizer, self.results())

        def _scores(self) -> tuple[float, dict[str, float]]:
            """The scores of :func:`dev_scores`; the questions are divided among the processes."""
            share = dev[self.trainer.args.process_index :: self.trainer.args.world_size]
            texts = loaded.answer(share, Decoding())
            hits = [
                (row.question.task, METRICS["em"].of(read_case({"answers": row.question.answers}, text, None)))
                for row, text in zip(share, texts, strict=True)
            ]
            return dev_scores(gather_object(hits))

        def curve(self) -> list[dict[str, Any]]:
            """Losses and dev scores by step."""
            names = ("step", "epoch", "loss", "learning_rate", "seconds")
            rows = [row for row in self.trainer.state.log_history if "loss" in row or "dev_em" in row]
            return [{k: v for k, v in row.items() if k in names or k.startswith("dev_em")} for row in rows]

        def results(self) -> dict[str, Any]:
            """The best evaluation after training began, and the score before training."""
            evaluations = [row for row in self.trainer.state.log_history if "dev_em" in row]
            best = max((row for row in evaluations if row["step"]), key=lambda row: (row["dev_em"], -row["step"]))
            start = next(row["dev_em"] for row in evaluations if not row["step"])
            scores = {key: value for key, value in best.items() if key not in ("seconds",)}
            return {
                **scores,
                "dev_em_before": start,
                "seconds": evaluations[-1]["seconds"],
                "device": loaded.model.device.type,
            }

    return DevEvaluation()
