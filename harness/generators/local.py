"""Continuations of a transformers model, one batch at a time, by our own rules.

A checkpoint's ``generation_config.json`` names end tokens, and often limits and ways of sampling too, which
transformers prefers over what it is asked for. Here only its token ids count: limit, stop strings, temperature and seed
are those of the request. Each row has a random stream of its own, so that sample n of a prompt is the same in every
batch, and after a restart.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lm_eval_rag.harness.core.journal import digest
from lm_eval_rag.harness.generators.base import Completion, Decoding, cut
from lm_eval_rag.harness.generators.cpu_steps import quicken
from lm_eval_rag.harness.generators.extractive import Sources, Spans, extracting, spans_of
from lm_eval_rag.harness.generators.replies import local_completion
from lm_eval_rag.harness.generators.turn_end import stop_ids

# What stays of a checkpoint's generation_config.json; all else is about limits and sampling.
TOKENS = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "forced_bos_token_id")


@dataclass(frozen=True, slots=True)
class Continuation:
    """What a model wrote after a prompt.

    Args:
        text: Without the stop string that ended it.
        tokens: Its length, the end token not counted.
        finished: Whether it ended by itself; False when ``max_tokens`` cut it off.
    """

    text: str
    tokens: int
    finished: bool


def is_plain(lm: Any) -> bool:
    """Whether an lm_eval model is its ``hf``, or a kind of it that generates in the same way."""
    from lm_eval.models.huggingface import HFLM

    kept = ("generate_until", "_model_generate")
    return isinstance(lm, HFLM) and all(getattr(type(lm), name) is getattr(HFLM, name) for name in kept)


def batches(lm: Any, prompts: Sequence[str]) -> Iterator[list[int]]:
    """Positions of the prompts, the longest first, in batches of the model's size."""
    if lm.batch_size_per_gpu == "auto":
        lm.batch_size_per_gpu = lm._detect_batch_size()
    order = sorted(range(len(prompts)), key=lambda i: -len(prompts[i]))
    size = int(lm.batch_size_per_gpu)
    yield from (order[start : start + size] for start in range(0, len(order), size))


def complete_by_batches(
    lm: Any,
    prompts: Sequence[str],
    decoding: Decoding,
    seeds: Sequence[int],
    sources: Sequence[Sources | None],
    turn_ends: Sequence[int],
) -> list[Completion]:
    """One completion a prompt, in order, whatever the batches; arguments as those of :func:`continue_batch`."""
    completions: dict[int, Completion] = {}
    for positions in batches(lm, prompts):
        texts, allowed = [prompts[i] for i in positions], [sources[i] for i in positions]
        written = continue_batch(lm, texts, decoding, [seeds[i] for i in positions], allowed, turn_ends)
        completions |= {
            i: local_completion(one.text, decoding, "stop" if one.finished else "length", one.tokens)
            for i, one in zip(positions, written, strict=True)
        }
    return [completions[i] for i in range(len(prompts))]


def continue_batch(
    lm: Any,
    prompts: Sequence[str],
    decoding: Decoding,
    seeds: Sequence[int],
    sources: Sequence[Sources | None] | None = None,
    turn_ends: Sequence[int] = (),
) -> list[Continuation]:
    """One continuation a prompt, in order.

    Args:
        lm: lm_eval's ``hf``.
        seeds: One a prompt; with the prompt's text it decides what is drawn where the temperature is above 0.
        sources: One a prompt: what its continuation may be; None restricts nothing.
        turn_ends: Ids of tokens that end a reply beside the checkpoint's own (:mod:`.turn_end`).
    """
    import torch

    quicken(lm.model)
    ids, mask = _padded(lm, prompts, decoding.max_tokens)
    ends = _end_ids(lm, () if lm.think_end_token else decoding.stop, turn_ends)  # thoughts may hold stop strings
    start = ids.shape[1] if lm.backend == "causal" else 1  # an encoder-decoder writes after its start token
    rows = _spans(lm, prompts, decoding, sources or [None] * len(prompts))
    processors = [extracting(rows, start, ends)] if any(row is not None for row in rows) else []
    if decoding.temperature > 0:
        streams = [random.Random(digest([seed, prompt])) for seed, prompt in zip(seeds, prompts, strict=True)]
        processors.append(_drawing(streams, decoding.temperature))
    options: dict[str, Any] = {"logits_processor": processors} if processors else {}
    if decoding.sent and not lm.think_end_token:
        options["stopping_criteria"] = [_stopping(lm.tokenizer, decoding.sent, start)]
    casts = lm.mixed_precision_dtype
    with _own_rules(lm.model), torch.autocast(device_type=lm.device.type, dtype=casts, enabled=casts is not None):
        written = lm.model.generate(
            input_ids=ids,
            attention_mask=mask,
            max_new_tokens=decoding.max_tokens,
            do_sample=False,
            eos_token_id=ends or None,
            pad_token_id=lm.tokenizer.pad_token_id,
            use_cache=True,
            **options,
        )
    texts = [_read(lm, row[start:], decoding, ends) for row in written.tolist()]
    return [
        text if spans is None else _read_span(spans, row[start:], ends, text)
        for text, spans, row in zip(texts, rows, written.tolist(), strict=True)
    ]


def _spans(
    lm: Any, prompts: Sequence[str], decoding: Decoding, sources: Sequence[Sources | None]
) -> list[Spans | None]:
    """The spans of each prompt, None for one that is not restricted."""
    return [
        None if one is None else spans_of(lm.tokenizer, one, prompt, decoding.max_tokens, decoding.stop)
        for prompt, one in zip(prompts, sources, strict=True)
    ]


def _read_span(spans: Spans, row: Sequence[int], ends: Sequence[int], read: Continuation) -> Continuation:
    """The span that a row of new token ids stands for, as it stands in its document."""
    ids = row[: next((i for i, id_ in enumerate(row) if id_ in ends), None)]
    return Continuation(spans.texts.get(spans.follow(ids), ""), read.tokens, finished=True)


def _padded(lm: Any, prompts: Sequence[str], max_tokens: int) -> tuple[Any, Any]:
    """Token ids and attention mask of shape (prompts, longest prompt), padded on the left."""
    import torch

    longest = max(1, lm.max_length - max_tokens) if lm.backend == "causal" else lm.max_length
    rows = [lm.tok_encode(prompt, left_truncate_len=longest) or [lm.prefix_token_id] for prompt in prompts]
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), lm.tokenizer.pad_token_id, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, width - len(row) :] = torch.tensor(row)
        mask[i, width - len(row) :] = 1
    return ids.to(lm.device), mask.to(lm.device)


def _end_ids(lm: Any, stops: Sequence[str], turn_ends: Sequence[int]) -> list[int]:
    """The checkpoint's end tokens, the tokenizer's, the turn's, and stop strings that are tokens of their own."""
    named = getattr(getattr(lm.model, "generation_config", None), "eos_token_id", None)
    found = named if isinstance(named, list) else [named]
    found = [*found, lm.eot_token_id, *turn_ends, *stop_ids(lm.tokenizer, stops)]
    return list(dict.fromkeys(int(id_) for id_ in found if id_ is not None))


def _read(lm: Any, row: Sequence[int], decoding: Decoding, ends: Sequence[int]) -> Continuation:
    """The text that a row of new token ids stands for."""
    length = next((i for i, id_ in enumerate(row) if id_ in ends), None)
    ids = list(row[:length])
    said, think = ids, None if decoding.thinking else lm.think_end_token
    if isinstance(think, int) and think in ids:
        said = ids[len(ids) - ids[::-1].index(think) :]
    whole = lm.tok_decode(said)
    if think is not None and length is None and said is ids and (isinstance(think, int) or think not in whole):
        return Continuation("", len(ids), finished=False)  # the limit cut off what it thought
    if think is not None:
        whole = (whole.split(think)[-1] if isinstance(think, str) else whole).lstrip()
    text = cut(whole, decoding)
    return Continuation(text, len(ids), finished=length is not None or text != whole)


@contextmanager
def _own_rules(model: Any) -> Iterator[None]:
    """Leave a checkpoint's own rules of generation aside, but for its tokens; they are back afterwards."""
    from transformers import GenerationConfig

    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    kept = [(one, one.generation_config) for one in dict.fromkeys((model, base))]
    for one, config in kept:
        one.generation_config = GenerationConfig(**{name: getattr(config, name, None) for name in TOKENS})
    try:
        yield
    finally:
        for one, config in kept:
            one.generation_config = config


def _drawing(streams: Sequence[random.Random], temperature: float) -> Any:
    """Draws each row's next token from softmax(logits / temperature) with that row's stream, and leaves no other."""
    import torch
    from transformers import LogitsProcessor

    class Drawing(LogitsProcessor):  # type: ignore[misc]
        def __call__(self, input_ids: Any, scores: Any) -> Any:
            wide = torch.float32 if scores.device.type == "mps" else torch.float64
            shares = torch.softmax(scores.to(wide) / temperature, dim=-1).cumsum(dim=-1)
            points = torch.tensor([[stream.random()] for stream in streams], dtype=wide, device=scores.device)
            drawn = torch.searchsorted(shares, points * shares[:, -1:], right=True).clamp(max=scores.shape[1] - 1)
            return torch.full_like(scores, float("-inf")).scatter_(1, drawn, 0.0)

    return Drawing()


def _stopping(tokenizer: Any, stops: Sequence[str], start: int) -> Any:
    """Ends each row at its first stop string; lm_eval's own rule waits until all rows hold the same one."""
    import torch
    from transformers import StoppingCriteria

    looked_at = max(len(stop.encode()) for stop in stops) + 2  # tokens: a stop string may be one token a byte

    class Stopping(StoppingCriteria):  # type: ignore[misc]
        def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
            texts = tokenizer.batch_decode(input_ids[:, start:][:, -looked_at:])
            done = [any(stop and stop in text for stop in stops) for text in texts]
            return torch.tensor(done, dtype=torch.bool, device=input_ids.device)

    return Stopping()
