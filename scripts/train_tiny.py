"""Trains the embedded generator from nothing on made-up reading exercises, and writes its folder.

    python scripts/train_tiny.py --out harness/generators/rulerag_tiny

The defaults reproduce the shipped checkpoint. Training resumes from ``--work`` when it was cut off. Documents come
once a prompt, followed by several questions that see the documents but not each other (a block mask), so that one
reading serves many answers. The loss covers the answers and, with less weight, all other tokens that repeat a pair of
tokens seen before: these can be predicted by copying, which is what is to be learnt; the names themselves cannot.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

import torch
from tiny_batches import FIRST, batches
from tiny_init import BASE, plant_copying
from tiny_names import ANY, BODIES, GIVEN_NAMES, LANDS, Namer
from tiny_prompts import Sampler
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn import functional
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from lm_eval_rag.harness.prompts import Template, load_template

END = "<|end|>"
# digits by year or part of a date, words with the space before them, punctuation one by one
SPLIT = r"-\d\d(?!\d)| ?\d{1,4}| ?\p{L}+\p{M}*| ?[^\s\p{L}\d]|\s"
ROOT = Path(__file__).resolve().parents[1]


def make_tokenizer(template: Template, size: int, seed: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer of our own words and of made-up exercises."""
    sampler, rng = Sampler(seed), random.Random(seed)
    namer = Namer(sampler.rng)
    words = sorted(set(ANY + BODIES + GIVEN_NAMES + LANDS))
    lines = [f" {word} {word.capitalize()}" for word in words for _ in range(40)]
    lines += [f" {year}" for year in range(1800, 2050) for _ in range(200)]
    lines += [f"-{part:02}" for part in range(32) for _ in range(2000)]
    lines += [" " + namer.strange() + " " + rng.choice(words) for _ in range(40000)]
    for _ in range(3000):
        exercise = sampler.exercise()
        lines.append(exercise.shared(template) + exercise.own(template, exercise.asked[0]))
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = [AddedToken(END, special=True)]
    inner.train_from_iterator(
        lines,
        trainers.BpeTrainer(vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        eos_token=END,
        pad_token=END,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=2048,
    )


def make_model(vocabulary: int, seed: int) -> LlamaForCausalLM:
    """At most 4 M parameters."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=256,
        intermediate_size=256,
        num_hidden_layers=5,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=2048,
        rope_parameters={"rope_type": "default", "rope_theta": BASE},
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=0,
    )
    model = LlamaForCausalLM(config)
    plant_copying(model, seed)
    return model


def loss_of(model: LlamaForCausalLM, batch: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """The weighted mean loss, and the share of answers whose first token is right.

    A question's first token follows the documents' last one for no group but the first, so it is not counted.
    """
    hidden = model.model(
        input_ids=batch["ids"], attention_mask=batch["mask"], position_ids=batch["places"], use_cache=False
    ).last_hidden_state
    weight = batch["weight"][:, 1:] * (batch["group"][:, 1:] == batch["group"][:, :-1])
    counted = weight > 0
    logits = model.lm_head(hidden[:, :-1][counted])
    wanted, weight = batch["ids"][:, 1:][counted], weight[counted]
    each = functional.cross_entropy(logits.float(), wanted, reduction="none")
    firsts = weight == FIRST
    right = (logits[firsts].argmax(-1) == wanted[firsts]).float().mean()
    return (each * weight).sum() / weight.sum(), right


def optimizers(model: LlamaForCausalLM, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the layers, AdamW at half the rate for embeddings and norms."""
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    found = [
        torch.optim.Muon(matrices, lr=rate, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=rate / 2, betas=(0.9, 0.98), weight_decay=0.0),
    ]
    for optimizer in found:
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"]
    return found


def rate_at(step: int, steps: int, warm: int) -> float:
    """Share of the peak rate: linear up, flat, and over the last 40 % linear down to 2 %."""
    return min((step + 1) / warm, 1.0, max(0.02, (steps - step) / (0.4 * steps)))


def save(out: Path, model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast) -> None:
    """The folder in Hugging Face form, weights in bfloat16."""
    copy = LlamaForCausalLM(model.config)
    copy.load_state_dict(model.state_dict())
    copy.bfloat16()
    copy.generation_config = GenerationConfig(eos_token_id=0, pad_token_id=0, do_sample=False, max_new_tokens=48)
    copy.save_pretrained(out)
    tokenizer.save_pretrained(out)


class Run:
    """A training run: the model in full precision, its optimizers, and how far it has come."""

    def __init__(self, args: argparse.Namespace, tokenizer: PreTrainedTokenizerFast) -> None:
        self.args, self.tokenizer = args, tokenizer
        self.model = make_model(len(tokenizer), args.seed)
        self.twin = make_model(len(tokenizer), args.seed).bfloat16()  # what computes
        self.optimizers = optimizers(self.model, args.rate)
        self.step, self.seconds = 0, 0.0
        self.file = args.work / "state.pt"

    def learn(self, batch: dict[str, torch.Tensor]) -> tuple[float, float]:
        """One step; the loss and the share of answers begun right."""
        with torch.no_grad():
            torch._foreach_copy_(list(self.twin.parameters()), list(self.model.parameters()))
        loss, right = loss_of(self.twin, batch)
        loss.backward()
        for whole, half in zip(self.model.parameters(), self.twin.parameters(), strict=True):
            whole.grad, half.grad = half.grad.float(), None
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["initial_lr"] * rate_at(self.step, self.args.steps, 60)
            optimizer.step()
        self.step += 1
        return loss.item(), right.item()

    def keep(self) -> None:
        """Write the checkpoint, and the state that a run resumes from."""
        state = {"model": self.model.state_dict(), "optimizers": [o.state_dict() for o in self.optimizers]}
        torch.save({**state, "step": self.step, "seconds": self.seconds}, self.file)
        save(self.args.out, self.model, self.tokenizer)

    def resume(self) -> None:
        """Go on from the kept state, if there is one."""
        if self.file.exists():
            state = torch.load(self.file, weights_only=True)
            self.model.load_state_dict(state["model"])
            for optimizer, kept in zip(self.optimizers, state["optimizers"], strict=True):
                optimizer.load_state_dict(kept)
            self.step, self.seconds = state["step"], state["seconds"]


def train(args: argparse.Namespace) -> None:
    """The whole run; prints every 25 steps, keeps its state every 150 s."""
    torch.set_num_threads(args.threads)
    template = load_template(ROOT / "methods" / "prompts" / "ruleqa.toml")
    args.work.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer(template, args.vocabulary, args.seed)
    run = Run(args, tokenizer)
    run.resume()
    print(f"{sum(p.numel() for p in run.model.parameters())} parameters, {len(tokenizer)} tokens", flush=True)
    source = batches(
        template,
        tokenizer.backend_tokenizer,
        seed=args.seed,
        steps=args.steps,
        start=run.step,
        tokens=args.tokens,
        ramp=args.ramp,
    )
    since = saved = time.time()
    seen: list[tuple[float, float]] = []
    for batch in source:
        seen.append(run.learn(batch))
        run.seconds, since = run.seconds + time.time() - since, time.time()
        if run.step % 25 == 0:
            loss, right = (sum(column) / len(seen) for column in zip(*seen, strict=True))
            print(f"step {run.step} loss {loss:.4f} begun right {right:.4f} seconds {run.seconds:.0f}", flush=True)
            seen = []
        last = run.step == min(args.stop, args.steps)
        if last or since - saved > 150:
            run.keep()
            saved = since
        if last:
            break


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoint")
    parser.add_argument(
        "--work", type=Path, default=Path("tiny-work"), help="folder for the state that a run resumes from"
    )
    parser.add_argument("--steps", type=int, default=2200, help="steps of the rate's whole schedule")
    parser.add_argument("--stop", type=int, default=867, help="step after which the run ends, before the schedule does")
    parser.add_argument("--ramp", type=int, default=900, help="steps until the exercises are at full size")
    parser.add_argument("--tokens", type=int, default=3072, help="tokens a step, with padding")
    parser.add_argument("--rate", type=float, default=2e-3, help="peak learning rate")
    parser.add_argument("--vocabulary", type=int, default=4096)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    train(parser.parse_args())


if __name__ == "__main__":
    main()
