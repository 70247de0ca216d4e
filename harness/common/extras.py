"""Optional packages: what an extra brings, what is missing, and the command that installs it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib import metadata
from importlib.metadata import PackageNotFoundError, distribution, requires
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from lm_eval_rag.harness.common.errors import UserError

if TYPE_CHECKING:
    from packaging.requirements import Requirement

DISTRIBUTION = "lm-eval-rag"
TORCH = "torch==2.13.0"  # named where torch is not installed yet: the version that everything was run with
SECOND = {  # extra -> the command that follows its own
    # The jar alone is used, and the requirements of pyserini's Python side include torch.
    "lucene": "pip install --no-deps pyserini==1.6.0",
}


def need(what: str, extra: str, *modules: str) -> None:
    """Raise a UserError that says how to install the extra unless all modules can be imported; imports none of them."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise UserError(
            f"{what} needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed. "
            f"Install with `{install_line(extra)}`."
        )


@cache
def version(name: str) -> str:
    """The version of a distribution; read once in a process, since fingerprints ask for each question.

    Raises:
        PackageNotFoundError: It is not installed.
    """
    return metadata.version(name)


def versions(*distributions: str) -> str:
    """``name=version`` of each distribution, joined by commas; those that are not installed are left out."""
    installed = []
    for name in distributions:
        try:
            installed.append(f"{name}={version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(installed)


def install_line(extra: str) -> str:
    """The command that installs an extra.

    It names the checkout that this package runs from or was installed from, else the extra's packages one by one. It
    never names this package itself: the name is not on the package index, so anybody could register it.
    """
    packages, source = requirements(extra), _source()
    pins = {"torch": TORCH} if find_spec("torch") is None else {}
    if source is not None:
        option, folder = source
        words = [f'{option}"{folder}[{extra}]"', *(pins[each.name] for each in packages if each.name in pins)]
    else:
        words = [pins.get(each.name, f'"{each.name}{each.specifier}"') for each in packages]
    lines = [f"pip install {' '.join(words)}"] if words else []
    return " && ".join([*lines, *([SECOND[extra]] if extra in SECOND else [])])


def requirements(extra: str) -> list[Requirement]:
    """The packages of an extra, those of extras within it included; none for an unknown extra.

    They are read from the checkout's ``pyproject.toml`` where there is one, else from the installed metadata.
    """
    packages: dict[str, Requirement] = {}
    for package in _declared(extra):
        within = [each for name in sorted(package.extras) for each in requirements(name)]
        for each in within if package.name == DISTRIBUTION else [package]:
            packages.setdefault(each.name, each)
    return list(packages.values())


def _declared(extra: str) -> Iterable[Requirement]:
    from packaging.requirements import Requirement

    source = _source()
    if source is not None:
        return map(Requirement, _project(source[1])["optional-dependencies"].get(extra, []))
    try:
        packages = map(Requirement, requires(DISTRIBUTION) or [])
    except PackageNotFoundError:
        return []
    return [each for each in packages if each.marker and each.marker.evaluate({"extra": extra})]


def _source() -> tuple[str, Path] | None:
    """The checkout with pip's option for its kind of install; None for an install from a wheel or an index."""
    here = Path(__file__).resolve().parents[2]
    if _project(here):
        return "-e ", here
    try:
        origin = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return None
    folder = Path(url2pathname(urlsplit(origin.get("url", "")).path))
    return ("", folder) if "dir_info" in origin and _project(folder) else None


def _project(folder: Path) -> dict[str, Any]:
    """What the folder's ``pyproject.toml`` says of this project; empty if there is none or it is another's."""
    try:
        return _parsed((folder / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


@lru_cache(maxsize=2)
def _parsed(text: str) -> dict[str, Any]:
    project = tomllib.loads(text).get("project", {})
    return dict(project) if project.get("name") == DISTRIBUTION else {}
