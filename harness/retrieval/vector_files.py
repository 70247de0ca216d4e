"""Files of vectors: FAISS indexes, ``.npy`` and ``.safetensors``. Pickles run code and are never loaded."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from lm_eval_rag.harness.common.errors import UserError

EMBEDDINGS = (".npy", ".safetensors")
INDEXES = (".faiss", ".index", ".idx")
PYSERINI = "index"  # its name for the index in a folder
PICKLES = (".bin", ".ckpt", ".joblib", ".npz", ".pickle", ".pkl", ".pt", ".pth")
SAMPLES, SAMPLE = 16, 1 << 20  # pieces of a file that its hash is of, and their bytes


def vector_file(path: Path) -> Path:
    """The file itself, or the one file of vectors in a folder.

    Raises:
        UserError: There is none, or several.
    """
    if path.is_file():
        return path
    if not path.is_dir():
        raise UserError(f"retriever_index={path} does not exist. Give a FAISS file, embeddings, or their folder.")
    known = (*EMBEDDINGS, *INDEXES)
    files = [file for file in sorted(path.iterdir()) if file.suffix in known or file.name == PYSERINI]
    if len(files) != 1:
        listed = ", ".join(file.name for file in files) or "none"
        raise UserError(
            f"The folder {path} must hold one file of vectors: {', '.join(f'*{suffix}' for suffix in known)} or "
            f"{PYSERINI}. It holds {listed}. Give the file itself; join embeddings that are in several files."
        )
    return files[0]


def read_vectors(file: Path) -> tuple[Any, Any]:
    """(vectors, None) or (None, FAISS's index): vectors (N, D), float16 to float64, of which ``.npy`` is memory-mapped.

    Raises:
        UserError: It is a pickle, damaged, or of another form.
    """
    if file.suffix.lower() in PICKLES:
        raise UserError(f"{file} may be a pickle, which runs code when it is loaded. Save a .npy or .safetensors file.")
    try:
        if file.suffix == ".npy":
            return _matrix(np.load(file, mmap_mode="r", allow_pickle=False), file), None
        if file.suffix == ".safetensors":
            return _matrix(_tensor(file), file), None
        return _faiss(file)
    except (OSError, ValueError, EOFError, RuntimeError) as error:
        if isinstance(error, UserError):
            raise
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(f"{file} cannot be read as vectors ({why}).") from None


def _matrix(vectors: Any, file: Path) -> Any:
    if vectors.ndim != 2 or vectors.dtype not in (np.float16, np.float32, np.float64):
        raise UserError(
            f"{file} holds {vectors.dtype} numbers of shape {vectors.shape}. Needed: float16 or float32, "
            "(documents, dimensions)."
        )
    return vectors


def _tensor(file: Path) -> Any:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="numpy") as tensors:
            names = list(tensors.keys())
            if len(names) != 1:
                raise UserError(f"{file} must hold one tensor, and holds {', '.join(names) or 'none'}.")
            return tensors.get_tensor(names[0])
    except (SafetensorError, TypeError) as error:  # TypeError: bfloat16, which numpy lacks
        raise ValueError(str(error)) from None


def _faiss(file: Path) -> tuple[Any, Any]:
    import faiss

    index: Any = faiss.read_index(str(file))
    inner = without_ids(index)
    if inner is not index and not np.array_equal(faiss.vector_to_array(index.id_map), np.arange(index.ntotal)):
        raise UserError(f"{file} has ids of its own (IndexIDMap). Write the index without them, and an id file.")
    if isinstance(inner, faiss.IndexFlat) and inner.metric_type == faiss.METRIC_INNER_PRODUCT and inner.ntotal:
        return faiss.rev_swig_ptr(inner.get_xb(), inner.ntotal * inner.d).reshape(-1, inner.d).copy(), None
    if index.metric_type not in (faiss.METRIC_INNER_PRODUCT, faiss.METRIC_L2):
        raise UserError(f"{file} measures neither inner products nor Euclidean distances.")
    return None, index


def without_ids(index: Any) -> Any:
    """The index within an IndexIDMap (or IndexIDMap2), which must outlive it; any other index itself."""
    import faiss

    return faiss.downcast_index(index.index) if isinstance(index, faiss.IndexIDMap) else index


def sampled_hash(file: Path) -> str:
    """Hash of the size and of pieces all over the file: whole indexes have tens of gigabytes."""
    size = file.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with file.open("rb") as content:
        for i in range(SAMPLES):
            content.seek(max(0, size - SAMPLE) * i // (SAMPLES - 1))
            digest.update(content.read(SAMPLE))
    return digest.hexdigest()[:16]
