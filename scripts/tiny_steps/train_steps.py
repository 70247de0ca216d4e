"""Trains the embedded generator for methods of several steps, from the weights of ``rulerag_tiny``.

    python scripts/tiny_steps/make_rows.py --out tiny-steps/rows.jsonl --groups 6000
    python scripts/tiny_steps/train_steps.py --rows tiny-steps/rows.jsonl --out harness/generators/reasoning_tiny

Only the replies are learned. Nine steps of ten are rows of the scripted teacher, the others reading exercises of the
first generator. An interrupted training resumes from ``--work``.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tiny"))

import attention
import torch
from exercises import exercise_rows
from packing import LIMIT, LONGEST, Tree, collate, tree_of
from torch.nn import functional
from train_tiny import optimizers, rate_at, save
from transformers import AutoTokenizer, LlamaForCausalLM

ROOT = Path(__file__).resolve().parents[2]
BASE = ROOT / "harness" / "generators" / "rulerag_tiny"
EXERCISES = 0.12  # share of trees that are exercises
PROGRESS = ("step", "seconds", "right", "loss")
METHODS = ("standard_rag", "iter_retgen", "ircot", "search_agent", "think_then_act", "chain_of_knowledge")
WEIGHTS = {  # of a reply's tokens: light where it is partly invented, heavy where one label decides
    "verify_and_edit.rationale": 0.1,
    "chain_of_knowledge.rationale": 0.2,
    "tree_of_thoughts.thought": 0.1,
    "static_or_dynamic": 8.0,
    "domain": 8.0,
    "calculator": 2.0,
    "fields": 3.0,
    "calls": 3.0,
}


def loss_of(model: LlamaForCausalLM, batch: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """The weighted mean loss over the tokens of replies, and the share of them that are predicted correctly."""
    hidden = model.model(
        input_ids=batch["ids"],
        attention_mask=attention.bias(batch["mask"], model.dtype),
        position_ids=batch["places"],
        use_cache=False,
    ).last_hidden_state
    rows, nodes = (batch["weight"] > 0).nonzero(as_tuple=True)
    logits = model.lm_head(hidden[rows, batch["parents"][rows, nodes]])
    wanted, weight = batch["ids"][rows, nodes], batch["weight"][rows, nodes]
    losses = functional.cross_entropy(logits.float(), wanted, reduction="none")
    right = (logits.argmax(-1) == wanted).float().mean()
    return (losses * weight).sum() / weight.sum(), right


class Run:
    """A training run: the model in full precision, its optimizers, and the progress."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.tokenizer = AutoTokenizer.from_pretrained(BASE)
        self.pieces = self.tokenizer.backend_tokenizer
        self.pieces.no_padding()
        self.model = LlamaForCausalLM.from_pretrained(BASE).float()
        self.twin = LlamaForCausalLM.from_pretrained(BASE).bfloat16()  # for forward and backward passes
        attention.use(self.twin)
        self.optimizers = optimizers(self.model, args.rate)
        self.step, self.seconds, self.right, self.loss = 0, 0.0, 0.0, 3.0
        self.file = args.work / "state.pt"

    def trees(self) -> Iterator[Tree]:
        """Endless trees, from the place where the run is."""
        while True:
            lines = self.args.rows.read_text(encoding="utf-8").splitlines()
            rng = random.Random(f"{self.args.seed} {self.step}")
            for line in rng.sample(lines, len(lines)):
                group = json.loads(line)
                if group["method"] not in self.args.methods:
                    continue
                if rng.random() < self.args.exercises:
                    yield tree_of(exercise_rows(rng.randrange(2**40)), self.pieces, WEIGHTS)
                rows = [(step, prompt, reply) for step, prompt, reply in group["rows"]]
                yield tree_of(rng.sample(rows, len(rows)), self.pieces, WEIGHTS, self.args.limit, self.args.longest)

    def batches(self) -> Iterator[list[dict[str, torch.Tensor]]]:
        """Each step's trees in two parts of like lengths."""
        trees = self.trees()
        while True:
            chosen: list[Tree] = []
            while sum(map(len, chosen)) < self.args.tokens:
                tree = next(trees)
                chosen += [tree] if len(tree) else []
            chosen.sort(key=len)
            half = -(-len(chosen) // 2)
            yield [collate(part) for part in (chosen[:half], chosen[half:]) if part]

    def learn(self, parts: list[dict[str, torch.Tensor]]) -> None:
        """One step."""
        with torch.no_grad():
            torch._foreach_copy_(list(self.twin.parameters()), list(self.model.parameters()))
        for part in parts:
            loss, right = loss_of(self.twin, part)
            (loss / len(parts)).backward()
            self.right += 0.02 / len(parts) * (right.item() - self.right)
            self.loss += 0.02 / len(parts) * (loss.item() - self.loss)
        for whole, half in zip(self.model.parameters(), self.twin.parameters(), strict=True):
            whole.grad, half.grad = half.grad.float(), None
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        rate = rate_at(self.seconds / (60 * self.args.minutes), self.step)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["initial_lr"] * rate
            optimizer.step()
        self.step += 1

    def keep(self) -> None:
        """Write the checkpoint and the training state."""
        state: dict[str, Any] = {name: getattr(self, name) for name in PROGRESS}
        weights = {"model": self.model.state_dict(), "optimizers": [o.state_dict() for o in self.optimizers]}
        torch.save({**state, **weights}, self.file)
        save(self.args.out, self.model, self.tokenizer)

    def resume(self) -> None:
        """Resume from the saved state, if there is one."""
        if self.file.exists():
            state = torch.load(self.file, weights_only=True)
            self.model.load_state_dict(state["model"])
            for optimizer, kept in zip(self.optimizers, state["optimizers"], strict=True):
                optimizer.load_state_dict(kept)
            for name in PROGRESS:
                setattr(self, name, state[name])


def train(args: argparse.Namespace) -> None:
    """The whole run; prints every 25 steps, saves its state every 150 s by the clock."""
    torch.set_num_threads(args.threads)
    args.work.mkdir(parents=True, exist_ok=True)
    run = Run(args)
    run.resume()
    since, saved = time.process_time(), time.time()
    for parts in run.batches():
        run.learn(parts)
        run.seconds, since = run.seconds + time.process_time() - since, time.process_time()
        if run.step % 25 == 0:
            print(f"step {run.step}, {run.seconds:.0f} s; loss {run.loss:.3f}, tokens {run.right:.3f}", flush=True)
        if time.time() - saved > 150:
            run.keep()
            saved = time.time()
        if run.seconds > 60 * args.minutes:
            break
    run.keep()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, required=True, help="what make_rows.py wrote")
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoint")
    parser.add_argument("--work", type=Path, default=Path("tiny-steps"), help="folder for the training state")
    parser.add_argument("--minutes", type=float, default=20, help="duration of the run, in minutes of CPU time")
    parser.add_argument("--tokens", type=int, default=3000, help="tokens per step, without padding")
    parser.add_argument("--rate", type=float, default=5e-4, help="peak learning rate")
    parser.add_argument("--exercises", type=float, default=EXERCISES, help="share of trees that are exercises")
    parser.add_argument("--longest", type=int, default=LONGEST, help="tokens of a row; longer ones are left out")
    parser.add_argument("--limit", type=int, default=LIMIT, help="tokens of a tree, after which it gets no further row")
    parser.add_argument("--methods", nargs="+", default=METHODS, help="methods whose rows are learned")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    train(parser.parse_args())


if __name__ == "__main__":
    main()
