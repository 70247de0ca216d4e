"""``lm-eval-rag doctor``: what is loaded and from where, what the extras give, where data lies, and what is wrong."""

from __future__ import annotations

import argparse
import importlib.metadata as metadata
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from lm_eval_rag import __file__ as package_file
from lm_eval_rag import __version__, _autoload
from lm_eval_rag._register import ENTRY_POINTS, MODELS, tasks_folder
from lm_eval_rag.doctor.finding import Finding
from lm_eval_rag.doctor.optional import extras
from lm_eval_rag.harness.common.extras import DISTRIBUTION
from lm_eval_rag.harness.common.paths import cache_dir, mirror_dir

LM_EVAL_FROM, LM_EVAL_BELOW = (0, 4, 13), (0, 5)


def doctor_main(argv: Sequence[str]) -> int:
    """Write the report; 1 when something is wrong, else 0."""
    parser = argparse.ArgumentParser(prog="lm-eval-rag doctor", description=__doc__.partition(":")[2])
    parser.add_argument("--quick", action="store_true", help="do not try the extras out, which takes most of its time")
    findings = list(examine(trials=not parser.parse_args(argv).quick))
    for finding in findings:
        text = finding.text.replace("\n", f"\n{'':15}")
        sys.stdout.write(f"{finding.title:14} {text}\n")
    wrong = [finding.wrong for finding in findings if finding.wrong]
    sys.stdout.write("\n" + "".join(f"WRONG: {each}\n" for each in wrong) if wrong else "\nNothing is wrong.\n")
    return int(bool(wrong))


def examine(*, trials: bool = True) -> Iterator[Finding]:
    """Everything the report says, in its order.

    Args:
        trials: Whether installed extras are tried out, each in a process of its own.
    """
    yield Finding("python", f"{platform.python_version()} ({sys.executable})")
    yield from _package()
    yield _lm_eval()
    yield from _autoloading()
    yield from extras(trials=trials)
    yield from _data()


def _package() -> Iterator[Finding]:
    folder = Path(package_file).parent
    yield Finding("lm-eval-rag", f"{__version__} in {folder}")
    # A folder may be on the path twice, and an editable install also has metadata in site-packages: count versions.
    places = {Path(str(each.locate_file(""))).resolve() for each in metadata.distributions(name=DISTRIBUTION)}
    roots = {Path(entry or ".").resolve() / "lm_eval_rag" for entry in sys.path}
    copies = sorted(str(root) for root in roots if (root / "__init__.py").is_file())
    if len(places) > 1 or len(copies) > 1:
        found = ", ".join(copies if len(copies) > 1 else sorted(map(str, places)))
        yield Finding("copies", found, f"More than one copy is installed ({found}): pip uninstall until one is left.")
    if not places:
        fix = "It is imported but not installed, so lm_eval cannot find it: pip install . (or pip install -e .)."
        yield Finding("installed", "no", fix)


def _lm_eval() -> Finding:
    try:
        held = metadata.distribution("lm_eval")
    except metadata.PackageNotFoundError:
        return Finding("lm_eval", "not installed", 'lm_eval is not installed: pip install "lm-eval[api]>=0.4.13,<0.5".')
    numbers = tuple(int(part) for part in held.version.split(".")[:3] if part.isdigit())
    fits = numbers >= LM_EVAL_FROM and numbers[:2] < LM_EVAL_BELOW
    fix = f'lm_eval {held.version} is outside of >=0.4.13,<0.5: pip install "lm-eval[api]>=0.4.13,<0.5".'
    return Finding("lm_eval", f"{held.version} in {held.locate_file('lm_eval')}", "" if fits else fix)


def _autoloading() -> Iterator[Finding]:
    pth = [file for entry in dict.fromkeys(sys.path) if (file := Path(entry or ".") / "lm_eval_rag.pth").is_file()]
    fix = "lm_eval_rag.pth is not in site-packages, so nothing is loaded at start: install the package again."
    yield Finding("start file", ", ".join(map(str, pth)) or "none", "" if pth else fix)
    state = "waits for lm_eval in every Python" if _autoload.waiting() else "not active in this Python"
    fix = ""
    if not _autoload.enabled():
        value = os.environ["LM_EVAL_RAG_AUTOLOAD"]
        state = f"off (LM_EVAL_RAG_AUTOLOAD={value})"
        fix = (
            f"Autoload is off by LM_EVAL_RAG_AUTOLOAD={value}: lm_eval does not know our tasks and models. Unset it; "
            f"or give lm_eval --include_path {tasks_folder()} for the tasks, and call lm_eval_rag.register() in Python."
        )
    elif not _autoload.waiting():
        fix = "The hook is not active: Python was started without site (-S), or the start file was not read."
    yield Finding("autoload", state, fix)
    if _autoload.waiting():
        yield from _shown()
    declared = {
        group: [point.name for point in metadata.entry_points(group=group) if point.value.startswith("lm_eval_rag.")]
        for group in ENTRY_POINTS
    }
    text = "; ".join(f"{group}: {', '.join(sorted(set(names))) or 'none'}" for group, names in declared.items())
    yield Finding("entry points", text + " (read by lm-eval after 0.4.13)")


def _shown() -> Iterator[Finding]:
    """Whether lm_eval, once imported, does know our models and tasks."""
    try:
        import lm_eval.models
        import lm_eval.tasks.manager  # noqa: F401 - and this, our tasks
        from lm_eval.api.registry import model_registry
        from lm_eval.tasks._index import TaskIndex
    except ImportError as error:
        yield Finding("models", "lm_eval cannot be imported", f"lm_eval cannot be imported: {error}.")
        return
    missing = [name for name in MODELS if name not in model_registry]
    fix = f"lm_eval does not know the models {', '.join(missing)}." if missing else ""
    yield Finding("models", ", ".join(name for name in MODELS if name not in missing), fix)
    tasks = sorted(TaskIndex.build([tasks_folder()]))
    yield Finding("tasks", ", ".join(tasks) or "none", "" if tasks else f"There is no task in {tasks_folder()}.")
    for name, failure in _autoload.failures.items():
        yield Finding("failure", f"{name}: {failure}", f"The hook failed after {name}: {failure}.")


def _data() -> Iterator[Finding]:
    cache = cache_dir()
    nearest = next(folder for folder in (cache, *cache.absolute().parents) if folder.exists())
    writable = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    fix = f"{cache} cannot be written: set LM_EVAL_RAG_CACHE to a folder that can."
    yield Finding("data", f"{cache} ({_size(cache)}); LM_EVAL_RAG_CACHE moves it", "" if writable else fix)
    for folder in sorted(cache.iterdir() if cache.is_dir() else ()):
        if folder.is_dir():
            yield Finding("", f"{folder.name}: {_size(folder)}")
    mirror = mirror_dir()
    fix = f"LM_EVAL_RAG_MIRROR={mirror} is not a folder." if mirror and not mirror.is_dir() else ""
    yield Finding("mirror", f"{mirror or 'none (LM_EVAL_RAG_MIRROR is not set): data is downloaded'}", fix)


def _size(folder: Path) -> str:
    if not folder.exists():
        return "not there yet"
    files = [file.stat().st_size for file in folder.rglob("*") if file.is_file()]
    return f"{sum(files) / 1e6:,.1f} MB in {len(files)} file{'' if len(files) == 1 else 's'}"
