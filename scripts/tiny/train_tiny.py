"""Trains the embedded generator from scratch on generated reading exercises, and writes its folder.

    python scripts/tiny/train_tiny.py --out harness/generators/rulerag_tiny

An interrupted training resumes from ``--work``. A prompt has documents, followed by several questions that attend to
the documents but not to each other (a block mask), so the documents are encoded once for many answers. The loss covers
the answers and, with a smaller weight, all other tokens that repeat an earlier pair of tokens: these can be predicted
by copying, which the model should learn, while new names cannot be predicted.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

import torch
from tiny_batches import FIRST, batch
from tiny_init import BASE, plant_reading
from tiny_names import ANY, BODIES, GIVEN_NAMES, LANDS, Namer
from tiny_prompts import Sampler
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn import functional
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from lm_eval_rag.harness.core.prompts import Template, load_template

END = "<|end|>"
# up to four digits (a year) or part of a date; words with the space before them; single punctuation marks
SPLIT = r"-\d\d(?!\d)| ?\d{1,4}| ?\p{L}+\p{M}*| ?[^\s\p{L}\d]|\s"
ROOT = Path(__file__).resolve().parents[2]


def make_tokenizer(template: Template, size: int, seed: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer, trained on our words and on generated exercises."""
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


def make_model(vocabulary: int, bracket: int, seed: int) -> LlamaForCausalLM:
    """At most 4 M parameters; ``bracket`` is the token id of "]"."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=320,
        intermediate_size=192,
        num_hidden_layers=4,
        num_attention_heads=5,
        num_key_value_heads=5,
        max_position_embeddings=2048,
        rope_parameters={"rope_type": "default", "rope_theta": BASE},
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=0,
    )
    model = LlamaForCausalLM(config)
    plant_reading(model, bracket, seed)
    return model


def loss_of(model: LlamaForCausalLM, batch: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """The weighted mean loss, and the share of answers whose first token is correct.

    The first token of a question is left out, because in the row it does not follow the documents' last token.
    """
    hidden = model.model(
        input_ids=batch["ids"], attention_mask=batch["mask"], position_ids=batch["places"], use_cache=False
    ).last_hidden_state
    weight = batch["weight"][:, 1:] * (batch["group"][:, 1:] == batch["group"][:, :-1])
    counted = weight > 0
    logits = model.lm_head(hidden[:, :-1][counted])
    wanted, weight = batch["ids"][:, 1:][counted], weight[counted]
    losses = functional.cross_entropy(logits.float(), wanted, reduction="none")
    firsts = weight == FIRST
    right = (logits[firsts].argmax(-1) == wanted[firsts]).float().mean()
    return (losses * weight).sum() / weight.sum(), right


def optimizers(model: LlamaForCausalLM, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the layers, AdamW at half the rate for embeddings and norms."""
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    both = [
        torch.optim.Muon(matrices, lr=rate, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=rate / 2, betas=(0.9, 0.98), weight_decay=0.0),
    ]
    for optimizer in both:
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"]
    return both


def rate_at(done: float, step: int) -> float:
    """Learning rate as a share of its peak: 40 steps of warm-up, constant, linear decay to 2 % in the last 40 %."""
    return min((step + 1) / 40, 1.0, max(0.02, (1 - done) / 0.4))


def save(out: Path, model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast) -> None:
    """Write the folder in Hugging Face format, with weights in bfloat16."""
    copy = LlamaForCausalLM(model.config)
    copy.load_state_dict(model.state_dict())
    copy.bfloat16()
    copy.generation_config = GenerationConfig(eos_token_id=0, pad_token_id=0, do_sample=False, max_new_tokens=48)
    copy.save_pretrained(out)
    tokenizer.save_pretrained(out)


class Run:
    """A training run: the model in full precision, its optimizers, and the progress."""

    def __init__(self, args: argparse.Namespace, tokenizer: PreTrainedTokenizerFast) -> None:
        self.args, self.tokenizer = args, tokenizer
        bracket = tokenizer.convert_tokens_to_ids("]")
        self.model = make_model(len(tokenizer), bracket, args.seed)
        self.twin = make_model(len(tokenizer), bracket, args.seed).bfloat16()  # for forward and backward passes
        self.optimizers = optimizers(self.model, args.rate)
        self.right = {"short": 0.0, "full": 0.0}  # running means: share of answers with a correct first token
        self.step, self.seconds = 0, 0.0
        self.file = args.work / "state.pt"

    def learn(self, parts: list[dict[str, torch.Tensor]]) -> float:
        """One step; returns the share of answers with a correct first token."""
        with torch.no_grad():
            torch._foreach_copy_(list(self.twin.parameters()), list(self.model.parameters()))
        right = 0.0
        for part in parts:
            loss, begun = loss_of(self.twin, part)
            (loss / len(parts)).backward()
            right += begun.item() / len(parts)
        for whole, half in zip(self.model.parameters(), self.twin.parameters(), strict=True):
            whole.grad, half.grad = half.grad.float(), None
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        rate = rate_at(self.seconds / (60 * self.args.minutes), self.step)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["initial_lr"] * rate
            optimizer.step()
        self.step += 1
        return right

    def keep(self) -> None:
        """Write the checkpoint and the training state."""
        state = {"model": self.model.state_dict(), "optimizers": [o.state_dict() for o in self.optimizers]}
        torch.save({**state, "step": self.step, "seconds": self.seconds, "right": self.right}, self.file)
        save(self.args.out, self.model, self.tokenizer)

    def resume(self) -> None:
        """Resume from the saved state, if there is one."""
        if self.file.exists():
            state = torch.load(self.file, weights_only=True)
            self.model.load_state_dict(state["model"])
            for optimizer, kept in zip(self.optimizers, state["optimizers"], strict=True):
                optimizer.load_state_dict(kept)
            self.step, self.seconds = state["step"], state["seconds"]
            self.right = state["right"]

    def status(self) -> str:
        """The progress in one line."""
        right = ", ".join(f"{kind} {share:.3f}" for kind, share in self.right.items())
        return f"step {self.step}, {self.seconds:.0f} s; answers with a correct first token: {right}"


def train(args: argparse.Namespace) -> None:
    """The whole run; prints every 25 steps, saves its state every 150 s."""
    torch.set_num_threads(args.threads)
    template = load_template(ROOT / "methods" / "prompts" / "ruleqa.toml")
    args.work.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer(template, args.vocabulary, args.seed)
    pieces = tokenizer.backend_tokenizer
    pieces.no_padding()
    run = Run(args, tokenizer)
    run.resume()
    print(f"{sum(p.numel() for p in run.model.parameters())} parameters, {len(tokenizer)} tokens", flush=True)
    since = saved = time.time()
    while run.seconds < 60 * args.minutes:
        seed = (args.seed << 24) + run.step
        kind = "full" if random.Random(seed).random() < 0.85 else "short"
        begun = run.learn(batch(kind, seed, template, pieces, args.tokens))
        run.right[kind] = 0.95 * run.right[kind] + 0.05 * begun
        run.seconds, since = run.seconds + time.time() - since, time.time()
        if run.step % 25 == 0:
            print(run.status(), flush=True)
        if since - saved > 150:
            run.keep()
            saved = since
    run.keep()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoint")
    parser.add_argument("--work", type=Path, default=Path("tiny-work"), help="folder for the training state")
    parser.add_argument("--minutes", type=float, default=20, help="duration of the run")
    parser.add_argument("--tokens", type=int, default=4096, help="tokens per step, with padding")
    parser.add_argument("--rate", type=float, default=6e-4, help="peak learning rate")
    parser.add_argument("--vocabulary", type=int, default=4096)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    train(parser.parse_args())


if __name__ == "__main__":
    main()
