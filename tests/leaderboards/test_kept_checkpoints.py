"""The kept checkpoints of the table rulerag_smollm2: what its training steps with seed 0 write, as their card says."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from lm_eval_rag.harness.checkpoints.note import read_note
from lm_eval_rag.harness.reproduce.table_file import read_table
from lm_eval_rag.harness.reproduce.training import arguments
from lm_eval_rag.harness.train import generator_cli

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "leaderboards" / "checkpoints"
ROWS = {row.name: row for row in read_table(ROOT / "leaderboards" / "reproduce" / "rulerag_smollm2.toml").rows}


@pytest.mark.parametrize(("mode", "row"), [("rgft", "ft/seed0"), ("ssft", "ssft/seed0")])
def test_a_kept_checkpoint_is_the_finished_training_of_its_row(mode: str, row: str) -> None:
    folder = KEPT / f"smollm2_{mode}"
    parser = ArgumentParser()
    generator_cli.add_arguments(parser)
    given = parser.parse_args(arguments(ROWS[row].arguments_for("ruleqa_i")["gen_peft"], str)[1:])
    asked = {**generator_cli.read_settings(given).recorded(), "parameters": {"documents": 5, "seed": 0}}
    asked |= {"method": "rulerag_ft", "retriever": ["static", {"adapter": mode}]}
    if mode == "ssft":
        asked["parameters"]["n_rules"] = 0
    note = read_note(folder)
    assert note is not None and note.finished and note.mode == mode
    assert {key: note.settings[key] for key in asked} == json.loads(json.dumps(asked))
    shipped = read_note(ROOT / "harness" / "generators" / f"rulerag_tiny_{mode}")
    assert shipped is not None and set(note.corpora) < set(shipped.corpora)  # one version of the data
    rows, left_out = note.results["rows"], note.results["rows_without_the_answer"]
    card = (KEPT / "README.md").read_text(encoding="utf-8")
    assert f"| `smollm2_{mode}` | {rows - left_out:,} of {rows:,} |" in card


@pytest.mark.parametrize("mode", ["rgft", "ssft"])
def test_a_kept_adapter_is_whole_and_has_learned(mode: str) -> None:
    folder = KEPT / f"smollm2_{mode}"
    config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    assert (config["r"], config["base_model_name_or_path"]) == (8, "checkpoints/smollm2")
    weights = load_file(folder / "adapter_model.safetensors")
    down, up = ([name for name in weights if part in name] for part in ("lora_A", "lora_B"))
    assert len(weights) == len(down) + len(up) and len(down) == len(up) > 0
    assert all(weights[name].shape[0] == 8 for name in down) and all(weights[name].shape[1] == 8 for name in up)
    assert all(np.isfinite(value).all() for value in weights.values())
    assert all(weights[name].any() for name in up)  # LoRA begins with zeros there
