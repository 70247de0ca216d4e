"""One small operation a library, to see whether what is installed works; each runs in a process of its own.

A trial calls what the library is needed for, as far as that takes about a second of CPU. Most of that is the import of
the library, so large Python packages (transformers' models, peft, trl) are left to the check of versions in
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


def torch() -> str:
    """A product and a gradient."""
    import torch as library

    device = "cuda" if library.cuda.is_available() else "cpu"
    ones = library.ones(2, 3, device=device, requires_grad=True)
    product = ones @ ones.T
    product.sum().backward()
    assert ones.grad is not None
    _expect((product.tolist(), ones.grad.tolist()), ([[3.0] * 2] * 2, [[4.0] * 3] * 2))
    return f"torch computes on {device}"


def tokenizers() -> str:
    """A text is split."""
    import tokenizers as library

    tokenizer = library.Tokenizer(library.models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    tokenizer.pre_tokenizer = library.pre_tokenizers.Whitespace()
    _expect(tokenizer.encode("b a").ids, [1, 0])
    return "tokenizers splits a text"


def faiss() -> str:
    """The nearest of three vectors, exact and by a graph."""
    import faiss as library
    import numpy as np

    vectors, query = np.eye(3, dtype=np.float32), np.array([[0, 0.1, 1]], np.float32)
    for index in (library.IndexFlatIP(3), library.IndexHNSWFlat(3, 8, library.METRIC_INNER_PRODUCT)):
        index.add(vectors)
        _expect(index.search(query, 2)[1].tolist(), [[2, 1]])
    return "FAISS finds the nearest of 3 vectors"


def faiss_gpu() -> str:
    """The same on all GPUs; on the CPU where FAISS sees none."""
    import faiss as library
    import numpy as np

    if not library.get_num_gpus():
        return f"{faiss()}, on the CPU: it sees no GPU"
    index = library.index_cpu_to_all_gpus(library.IndexFlatIP(3))
    index.add(np.eye(3, dtype=np.float32))
    _expect(index.search(np.array([[0, 0.1, 1]], np.float32), 2)[1].tolist(), [[2, 1]])
    return f"FAISS finds the nearest of 3 vectors, GPUs: {library.get_num_gpus()}"


def lucene() -> str:
    """Three documents are indexed and one is found, by Java."""
    from lm_eval_rag.harness.core.types import Passage
    from lm_eval_rag.harness.data.corpus import Corpus
    from lm_eval_rag.harness.retrieval.lucene import Lucene

    corpus = Corpus.of(Passage(text, text) for text in ("a cat sat", "ministers negotiated", "the rain"))
    _expect([row for row, _ in Lucene(corpus).search(["negotiations of a minister"], 2)[0]], [1])
    return "Lucene finds one of 3 documents"


def bitsandbytes() -> str:
    """Its native library is loaded; its Python side takes 5 s to import."""
    import ctypes
    from importlib.util import find_spec

    package = find_spec("bitsandbytes")
    folders = package.submodule_search_locations if package else None
    files = [file for folder in folders or () for file in Path(folder).glob("libbitsandbytes_cpu.*")]
    _expect(len(files), 1)
    ctypes.CDLL(str(files[0]))
    return "bitsandbytes' library is loaded"


def pages() -> str:
    """One page through each extractor, and its sentences."""
    from lm_eval_rag.harness.web.extract import EXTRACTORS, extract
    from lm_eval_rag.harness.web.sentences import sentences

    page = f"<html><body><main><p>{'A first sentence. A second one. ' * 20}</p></main></body></html>"
    for name in EXTRACTORS:
        read = extract(page, name)
        _expect(len(sentences(read.text)), 40)
    return f"{' and '.join(EXTRACTORS)} read a page of 40 sentences"


def markitdown() -> str:
    """A table of Excel as Markdown."""
    from io import BytesIO

    from markitdown import StreamInfo
    from markitdown.converters import XlsxConverter
    from openpyxl import Workbook

    book, file = Workbook(), BytesIO()
    book.active.append(["a cell"])
    book.save(file)
    read = XlsxConverter().convert(BytesIO(file.getvalue()), StreamInfo(extension=".xlsx"))
    _expect("a cell" in read.markdown, True)
    return "markitdown reads a table of Excel"


def matplotlib() -> str:
    """A figure as SVG."""
    from io import BytesIO

    from matplotlib.figure import Figure

    figure, svg = Figure(), BytesIO()
    figure.subplots().plot([0, 1])
    figure.savefig(svg, format="svg")
    _expect(b"</svg>" in svg.getvalue(), True)
    return "matplotlib draws a figure"


def fastapi() -> str:
    """An application with one route, and the server's settings for it."""
    import fastapi as library
    import uvicorn

    app = library.FastAPI()
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


def numba() -> str:
    """A loop is compiled and run."""
    import numba as library

    @library.njit  # type: ignore[untyped-decorator]
    def total(n: int) -> int:
        result = 0
        for i in range(n):
            result += i
        return result

    _expect(total(5), 10)
    return "numba compiles a loop"


def mixture() -> str:
    """Four points are divided into two clusters; UMAP, which compiles for half a minute, is left out."""
    import numpy as np
    from sklearn.mixture import GaussianMixture

    points = np.array([[0.0], [0.1], [9.0], [9.1]])
    near, _, far, _ = GaussianMixture(2, random_state=0).fit_predict(points).tolist()
    _expect(near != far, True)
    return "scikit-learn divides four points into two clusters"


def leiden() -> str:
    """Two triangles that one edge connects are two communities."""
    import graspologic_native as library

    edges = [("a", "b", 1.0), ("b", "c", 1.0), ("a", "c", 1.0), ("d", "e", 1.0), ("e", "f", 1.0), ("d", "f", 1.0)]
    found = library.hierarchical_leiden(edges=[*edges, ("c", "d", 0.1)], seed=0)
    of_node = {one.node: one.cluster for one in found}
    _expect([of_node[node] == of_node["a"] for node in "bcdef"], [True, True, False, False, False])
    return "Leiden finds two communities"


def ray() -> str:
    """A function's code is packed for a worker, and unpacked; no cluster is started, which takes half a minute."""
    from ray import cloudpickle as library

    function = library.loads(library.dumps(lambda number: number + 1))
    _expect(function(2), 3)
    return "Ray packs functions for its workers"


def mkdocs() -> str:
    """A page of the documentation's Markdown becomes HTML."""
    import markdown as library
    import mkdocs_autorefs  # noqa: F401  (mkdocstrings' links)
    import pymdownx.superfences  # noqa: F401

    html = library.markdown("```\na\n```", extensions=["pymdownx.superfences"])
    _expect("<code>" in html, True)
    return "mkdocs' Markdown becomes HTML"


TRIALS: dict[str, Callable[[], str]] = {
    trial.__name__: trial
    for trial in (
        torch, tokenizers, faiss, faiss_gpu, lucene, bitsandbytes, pages, markitdown, matplotlib, fastapi, vllm, openai,
        evaluate, numba, mixture, leiden, ray, mkdocs,
    )
}  # fmt: skip
