"""One small operation an extra, to see whether what is installed works; each runs in a process of its own.

A trial calls what the extra's packages are needed for, as far as that takes about a second of CPU. Most of that is the
import of the packages, so large Python packages (transformers' models, peft, trl) are left to the check of versions in
:mod:`lm_eval_rag.doctor.optional`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def main(name: str) -> None:
    """Run one trial here and write what it says; an exception of a library ends the process with its message."""
    sys.stdout.write(f"{TRIALS[name]()}\n")


def _expect(result: Any, expected: Any) -> None:
    if result != expected:
        raise AssertionError(f"its trial gave {result!r}, not {expected!r}")


def _torch() -> str:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    ones = torch.ones(2, 3, device=device)
    _expect((ones @ ones.T).tolist(), [[3.0, 3.0], [3.0, 3.0]])
    return f"torch multiplies on {device}"


def hf() -> str:
    """A product by torch, and a text through a tokenizer."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    said = _torch()
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    _expect(tokenizer.encode("b a").ids, [1, 0])
    return said


def faiss() -> str:
    """The nearest of three vectors, exact and by a graph."""
    import faiss
    import numpy as np

    vectors, query = np.eye(3, dtype=np.float32), np.array([[0, 0.1, 1]], np.float32)
    for index in (faiss.IndexFlatIP(3), faiss.IndexHNSWFlat(3, 8, faiss.METRIC_INNER_PRODUCT)):
        index.add(vectors)
        _expect(index.search(query, 2)[1].tolist(), [[2, 1]])
    return "FAISS finds the nearest of 3 vectors"


def dense() -> str:
    """What encodes and what searches."""
    return f"{_torch()}, {faiss()}"


def gpu() -> str:
    """The nearest of three vectors on a GPU; on the CPU where FAISS sees none."""
    import faiss as library
    import numpy as np

    if not library.get_num_gpus():
        return f"{dense()}, but sees no GPU here, so it searches on the CPU"
    index = library.index_cpu_to_all_gpus(library.IndexFlatIP(3))
    index.add(np.eye(3, dtype=np.float32))
    _expect(index.search(np.array([[0, 0.1, 1]], np.float32), 2)[1].tolist(), [[2, 1]])
    return f"{_torch()}, FAISS finds the nearest of 3 vectors on {library.get_num_gpus()} GPU(s)"


def lucene() -> str:
    """Three documents are indexed and one is found, by Java."""
    from lm_eval_rag.harness.core.types import Passage
    from lm_eval_rag.harness.data.corpus import Corpus
    from lm_eval_rag.harness.retrieval.lucene import Lucene

    corpus = Corpus.of(Passage(text, text) for text in ("a cat sat", "ministers negotiated", "the rain"))
    _expect([row for row, _ in Lucene(corpus).search(["negotiations of a minister"], 2)[0]], [1])
    return "Lucene finds one of 3 documents"


def train() -> str:
    """A gradient by torch, a figure, and the native library of bitsandbytes, whose Python side takes 5 s to import."""
    import ctypes
    from importlib.util import find_spec

    import torch
    from matplotlib.figure import Figure

    weight = torch.ones(3, requires_grad=True)
    (weight * weight).sum().backward()
    assert weight.grad is not None
    _expect(weight.grad.tolist(), [2.0, 2.0, 2.0])
    Figure().subplots().plot([0, 1])
    bitsandbytes = find_spec("bitsandbytes")
    folders = bitsandbytes.submodule_search_locations if bitsandbytes else None
    libraries = [file for folder in folders or () for file in Path(folder).glob("libbitsandbytes_cpu.*")]
    _expect(len(libraries), 1)
    ctypes.CDLL(str(libraries[0]))
    return "torch differentiates, bitsandbytes is loaded"


def web() -> str:
    """One page through each extractor, and its sentences."""
    from lm_eval_rag.harness.web.extract import EXTRACTORS, extract
    from lm_eval_rag.harness.web.sentences import sentences

    page = f"<html><body><main><p>{'A first sentence. A second one. ' * 20}</p></main></body></html>"
    for name in EXTRACTORS:
        read = extract(page, name)
        _expect(len(sentences(read.text)), 40)
    return f"{' and '.join(EXTRACTORS)} read a page of 40 sentences"


def serve() -> str:
    """An application with one route, and the server's settings for it."""
    import fastapi
    import uvicorn

    app = fastapi.FastAPI()
    app.add_api_route("/trial", lambda: 1)
    _expect(list(app.openapi()["paths"]), ["/trial"])
    uvicorn.Config(app).load()
    return "FastAPI and uvicorn hold a route"


def vllm() -> str:
    """Its settings of one generation; loading an engine takes minutes."""
    import vllm as library

    _expect(library.SamplingParams(max_tokens=3).max_tokens, 3)
    return "vLLM is imported; no engine was started"


def openai() -> str:
    """One completion from a server in this process."""
    import json
    from http.server import BaseHTTPRequestHandler, HTTPServer

    import openai as library

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"}}]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = library.OpenAI(api_key="none", base_url=f"http://127.0.0.1:{server.server_port}", max_retries=0)
    reply = client.chat.completions.create(model="none", messages=[{"role": "user", "content": "?"}])
    _expect(reply.choices[0].message.content, "yes")
    server.shutdown()
    return "the client reads a completion of a local server"


def evaluate() -> str:
    """A metric of our own by the library; those of the Hub need a network."""
    sys.modules["transformers"] = None  # type: ignore[assignment]  # its import takes 5 s and is not needed here
    import datasets
    import evaluate as library

    del sys.modules["transformers"]

    class Share(library.Metric):  # type: ignore[misc]
        def _info(self) -> Any:
            features = datasets.Features(
                {"predictions": datasets.Value("string"), "references": datasets.Value("string")}
            )
            return library.MetricInfo(description="", citation="", features=features)

        def _compute(self, predictions: Sequence[str], references: Sequence[str]) -> dict[str, float]:
            same = [one == other for one, other in zip(predictions, references, strict=True)]
            return {"share": sum(same) / len(same)}

    _expect(Share(keep_in_memory=True).compute(predictions=["a", "b"], references=["a", "c"]), {"share": 0.5})
    return "a metric is computed"


def fast() -> str:
    """A loop is compiled and run."""
    import numba

    @numba.njit  # type: ignore[untyped-decorator]
    def total(n: int) -> int:
        result = 0
        for i in range(n):
            result += i
        return result

    _expect(total(5), 10)
    return "numba compiles a loop"


TRIALS: dict[str, Callable[[], str]] = {
    trial.__name__: trial for trial in (hf, faiss, dense, gpu, lucene, train, web, serve, vllm, openai, evaluate, fast)
}
