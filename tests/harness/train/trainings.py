"""Small trainings: a made corpus and quick settings for retrievers, a tiny Llama on ruleqa_demo for generators."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from lm_eval_rag.harness.plugin.arguments import read_arguments
from lm_eval_rag.harness.train import settings as retriever_settings
from lm_eval_rag.harness.train.generator import train_generator
from lm_eval_rag.harness.train.generator_settings import Settings
from lm_eval_rag.harness.train.presets import Preset
from lm_eval_rag.methods.rulerag_ft import rulerag_ft
from lm_eval_rag.tasks.ruleqa_demo.build import build as build_demo

QUICK = retriever_settings.Settings(epochs=3, batch_size=16, hard=2, dev=20, eval_every=1, device="cpu")
RELATIONS = {"w30": "w31", "w32": "w33", "w34": "w35"}  # head: body, in words that little_bert knows
DENSE = replace(QUICK, epochs=1, hard=0, learning_rate=1e-2, eval_every=1)


def write_corpus(cache: Path, n: int = 120, seed: int = 0) -> str:
    """A corpus in which an answer is never stated through the head, and other relations distract."""
    draw = np.random.default_rng(seed)
    folder = cache / "made" / f"seed{seed}"
    folder.mkdir(parents=True)
    names = [f"w{i % 20} w{20 + i % 7}" for i in range(40)]
    facts, asked = [], []
    for i in range(n):
        head = list(RELATIONS)[i % 3]
        subject, answer, wrong = draw.choice(names, 3, replace=False)
        facts += [(subject, RELATIONS[head], answer), (subject, head, wrong), (wrong, RELATIONS[head], subject)]
        asked.append(
            {"text": f"what does {subject} {head} ?", "subject": subject, "relation": head, "answers": [answer]}
        )
    facts = sorted(set(facts))
    documents = [
        {"id": f"d{i:04}", "text": f"{s} {r} {o}.", "subject": s, "relation": r, "object": o, "time": None}
        for i, (s, r, o) in enumerate(facts)
    ]
    rules = [
        {"head": h, "body": b, "support": 9, "body_support": 10, "confidence": 0.9, "repeat": False}
        for h, b in RELATIONS.items()
    ]
    pl.DataFrame(documents, schema_overrides={"time": pl.String}).write_parquet(folder / "corpus.parquet")
    pl.DataFrame(rules).write_parquet(folder / "rules.parquet")
    pl.DataFrame(asked).write_parquet(folder / "retriever_train.parquet")
    (folder / "meta.json").write_text(json.dumps({"task": "made", "hash": f"seed{seed}"}))
    return f"made/seed{seed}"


PRESET = Preset(5e-3, warmup=1, batch_size=4, epochs=2, lora=False, four_bit=False, eval_every=1)


def settings_of(base, **changes):
    own = ("rows", "dev", "seed", "mode", "dtype", "unstated", "names", "patience", "max_steps")
    options = {key: changes.pop(key) for key in own if key in changes}
    given = {"rows": 8, "dev": 3, "dtype": "float32", "mode": "rgft", **options}
    return Settings(base=str(base), preset=replace(PRESET, **changes), device="cpu", **given)


def train(base, out, **changes):
    given = {"retriever": "bm25", "generator": "tiny", "documents": 2, "n_rules": 1}
    setup = read_arguments("rulerag_ft", rulerag_ft, given)
    return train_generator(settings_of(base, **changes), setup, {"ruleqa_demo": build_demo()}, out)


def weights(folder):
    from safetensors.torch import load_file

    return load_file(next(folder.glob("*model.safetensors")))
