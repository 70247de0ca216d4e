"""Trains the embedded generator from nothing on made-up reading exercises, and writes its folder.

    python scripts/train_tiny.py --out harness/generators/rulerag_tiny

The defaults reproduce the shipped checkpoint. Training resumes from ``--work`` when it was cut off. Documents come
once a prompt, followed by several questions that see the documents but not each other (a block mask), so that one
reading serves many answers. The loss covers the answers and, with less weight, all other tokens that repeat a pair of
tokens seen before: these can be predicted by copying, which is what is to be learnt; the names themselves cannot.
"""

from __future__ import annotations

import argparse
import bisect
import itertools
import math
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from tiny_init import plant_copying
from tiny_prompts import ANY, BODIES, FIRST, LANDS, Asked, Exercise, Sampler
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn import functional
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from lm_eval_rag.harness.prompts import Template, load_template

END = "<|end|>"
POOL = 8  # steps whose exercises are drawn together, so that those of one length can share a step
# digits by year or part of a date, words with the space before them, punctuation one by one
SPLIT = r"-\d\d(?!\d)| ?\d{1,4}| ?\p{L}+\p{M}*| ?[^\s\p{L}\d]|\s"
ROOT = Path(__file__).resolve().parents[1]


def make_tokenizer(template: Template, size: int, seed: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer of our own words and of made-up exercises."""
    sampler, rng = Sampler(seed), random.Random(seed)
    words = sorted(set(ANY + BODIES + FIRST + LANDS))
    lines = [f" {word} {word.capitalize()}" for word in words for _ in range(40)]
    lines += [f" {year}" for year in range(1800, 2050) for _ in range(200)]
    lines += [f"-{part:02}" for part in range(32) for _ in range(2000)]
    lines += [" " + sampler.strange() + " " + rng.choice(words) for _ in range(40000)]
    for _ in range(3000):
        exercise = sampler.exercise()
        lines.append(exercise.shared(template) + exercise.own(template, exercise.asked[0]))
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(SPLIT), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    inner.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = [AddedToken(END, special=True)]
    inner.train_from_iterator(
        lines, trainers.BpeTrainer(vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
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
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=0,
    )
    model = LlamaForCausalLM(config)
    plant_copying(model, seed)
    return model


def batches(
    template: Template, tokenizer: Tokenizer, *, seed: int, steps: int, start: int, tokens: int, ramp: int
) -> Iterator[dict[str, torch.Tensor]]:
    """Batches of about ``tokens`` tokens; documents, names and rules grow over the first ``ramp`` steps."""
    for first in range(start - start % POOL, steps, POOL):
        sampler = Sampler((seed << 24) + first)
        grown = min(1.0, first / ramp)
        most = 2 + round(8 * grown**1.5)
        rows: list[Row] = []
        while sum(len(row.ids) for row in rows) < POOL * tokens:
            docs = sampler.rng.randint(max(1, most // 3), most) if sampler.rng.random() < 0.97 else 0
            rows.append(encode(sampler.exercise(docs=docs, questions=5, hard=grown), template, tokenizer))
        rows.sort(key=lambda row: len(row.ids))
        bounds = [tokens_before(rows, share / POOL) for share in range(POOL + 1)]
        parts = [rows[low:high] for low, high in itertools.pairwise(bounds)]
        sampler.rng.shuffle(parts)
        for part in parts[start - first if start > first else 0 :]:
            yield collate(part)


def tokens_before(rows: list[Row], share: float) -> int:
    """How many rows hold ``share`` of all tokens."""
    ends = list(itertools.accumulate(len(row.ids) for row in rows))
    return bisect.bisect_left(ends, share * ends[-1]) if share < 1 else len(rows)


class Row:
    """One exercise in tokens: ``group`` is 0 for what all see and n for question n; ``weight`` is that of the loss."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.places: list[int] = []
        self.group: list[int] = []
        self.weight: list[float] = []

    def add(self, ids: list[int], group: int, first_place: int, weight: list[float]) -> None:
        self.ids += ids
        self.places += range(first_place, first_place + len(ids))
        self.group += [group] * len(ids)
        self.weight += weight


COPIED, ANSWERED = 0.1, 1.0  # weights in the loss


def encode(exercise: Exercise, template: Template, tokenizer: Tokenizer) -> Row:
    """Documents once, then each question with its answer."""
    texts = [exercise.shared(template)]
    for asked in exercise.asked:
        texts += [exercise.own(template, asked), f" {asked.answer}"]
    shared, *rest = (piece.ids for piece in tokenizer.encode_batch_fast(texts))
    row, seen = Row(), set[tuple[int, int]]()
    row.add(shared, 0, 0, copied(shared, seen))
    for number, (question, answer) in enumerate(zip(rest[::2], rest[1::2], strict=True), 1):
        answer = [*answer, 0]
        weight = copied([shared[-1], *question], set(seen))[1:]
        row.add(question + answer, number, len(shared), weight + [ANSWERED] * len(answer))
    return row


def copied(ids: list[int], seen: set[tuple[int, int]]) -> list[float]:
    """The weight of each token: that of copying where the pair with the token before it was ``seen`` (grows)."""
    weight = [0.0] * len(ids)
    for place in range(1, len(ids)):
        pair = (ids[place - 1], ids[place])
        weight[place] = COPIED if pair in seen else 0.0
        seen.add(pair)
    return weight


def collate(rows: list[Row]) -> dict[str, torch.Tensor]:
    """Padded tensors; ``mask`` [row, 1, to, from] is true where a token sees another."""
    widest = max(len(row.ids) for row in rows)

    def padded(lists: list[list[Any]], fill: float) -> torch.Tensor:
        return torch.tensor([values + [fill] * (widest - len(values)) for values in lists])

    group = padded([row.group for row in rows], -1)
    sees = (group[:, None, :] == 0) | (group[:, None, :] == group[:, :, None])
    mask = sees & torch.ones(widest, widest, dtype=torch.bool).tril()
    return {
        "ids": padded([row.ids for row in rows], 0),
        "places": padded([row.places for row in rows], 0),
        "weight": padded([row.weight for row in rows], 0.0),
        "group": group,
        "mask": mask[:, None],
    }


def loss_of(model: LlamaForCausalLM, batch: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """The weighted mean loss, and the share of answer tokens that are right (teacher-forced).

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
    answers = weight == ANSWERED
    right = (logits[answers].argmax(-1) == wanted[answers]).float().mean()
    return (each * weight).sum() / weight.sum(), right


def optimizers(model: LlamaForCausalLM, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the layers, AdamW for embeddings and norms."""
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    return [
        torch.optim.Muon(matrices, lr=rate, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]


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


def train(args: argparse.Namespace) -> None:
    """The whole run."""
    torch.set_num_threads(args.threads)
    template = load_template(ROOT / "methods" / "prompts" / "ruleqa.toml")
    args.work.mkdir(parents=True, exist_ok=True)
    state_file = args.work / "state.pt"
    tokenizer = make_tokenizer(template, args.vocabulary, args.seed)
    model = make_model(len(tokenizer), args.seed)
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {len(tokenizer)} tokens", flush=True)
    twin = make_model(len(tokenizer), args.seed).bfloat16()  # computes; ``model`` keeps the weights in full precision
    chosen = optimizers(model, args.rate)
    start, before = 0, 0.0
    if state_file.exists():
        state = torch.load(state_file, weights_only=True)
        model.load_state_dict(state["model"])
        for optimizer, kept in zip(chosen, state["optimizers"], strict=True):
            optimizer.load_state_dict(kept)
        start, before = state["step"], state["seconds"]
    began = saved = time.time()
    source = batches(
        template, tokenizer.backend_tokenizer, seed=args.seed, steps=args.steps, start=start, tokens=args.tokens, ramp=args.ramp
    )
    sums = [0.0, 0.0, 0.0]
    for step, batch in enumerate(source, start):
        for optimizer in chosen:
            for group in optimizer.param_groups:
                group["lr"] = args.rate * rate_at(step, args.steps, 60)
        with torch.no_grad():
            torch._foreach_copy_(list(twin.parameters()), list(model.parameters()))
        loss, right = loss_of(twin, batch)
        loss.backward()
        for whole, half in zip(model.parameters(), twin.parameters(), strict=True):
            whole.grad, half.grad = half.grad.float(), None
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in chosen:
            optimizer.step()
            optimizer.zero_grad()
        sums = [a + b for a, b in zip(sums, (loss.item(), right.item(), float((batch["group"] >= 0).sum())), strict=True)]
        if (step + 1) % 25 == 0:
            seconds = before + time.time() - began
            print(f"step {step + 1} loss {sums[0] / 25:.4f} answers {sums[1] / 25:.4f} tokens {sums[2] / 25:.0f} seconds {seconds:.0f}", flush=True)
            sums = [0.0, 0.0, 0.0]
        if time.time() - saved > 150 or step + 1 == args.steps:
            saved = time.time()
            state = {"model": model.state_dict(), "optimizers": [o.state_dict() for o in chosen]}
            torch.save({**state, "step": step + 1, "seconds": before + saved - began}, state_file)
            save(args.out, model, tokenizer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoint")
    parser.add_argument("--work", type=Path, default=Path("tiny-work"), help="folder for the state that a run resumes from")
    parser.add_argument("--steps", type=int, default=2600)
    parser.add_argument("--ramp", type=int, default=900, help="steps until the exercises are at full size")
    parser.add_argument("--tokens", type=int, default=3072, help="tokens a step, with padding")
    parser.add_argument("--rate", type=float, default=3e-3, help="peak learning rate")
    parser.add_argument("--vocabulary", type=int, default=4096)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    train(parser.parse_args())


if __name__ == "__main__":
    main()
