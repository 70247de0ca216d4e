"""Optional packages: what is missing is named, and how to install it.

Our name is not on the package index, where anybody could register it, so no line asks the index for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

from lm_eval_rag.harness.common.errors import UserError

NAME = "lm-eval-rag"
_PLAIN = re.compile(r"[\w./:@+=-]+")  # what a shell takes without quotes


def need(what: str, extra: str, *modules: str, besides: str = "") -> None:
    """Raise a UserError that says how to install the extra unless all modules can be imported; imports none of them.

    Args:
        besides: What else there is to do, when the extra alone does not do it.
    """
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise UserError(
            f"{what} needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed. "
            f"Install with `{install_line(extra)}`{besides}."
        )


def install_line(extra: str, *others: str) -> str:
    """The command that installs an extra of ours: ``pip install "/path/of/checkout[hf]"``.

    Where the package was not installed from a folder that is still there, the command names the packages of the extra,
    as the installed metadata list them.

    Args:
        others: Further packages for the same command, such as ``torch==2.13.0``.
    """
    folder = _checkout()
    wanted = [f"{folder}[{extra}]"] if folder else list(dict.fromkeys(_requirements(extra)))
    quoted = [name if _PLAIN.fullmatch(name) else f'"{name}"' for name in (*others, *wanted)]
    return " ".join(["pip install", *quoted])


def _checkout() -> Path | None:
    """The folder that pip installed the package from (PEP 610), if it is still there."""
    try:
        told = json.loads(distribution(NAME).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return Path(".")  # imported from a checkout that was never installed
    url = urlparse(str(told.get("url", "")))
    folder = Path(url2pathname(url.path))
    return folder if url.scheme == "file" and (folder / "pyproject.toml").is_file() else None


def _requirements(extra: str) -> Iterator[str]:
    """The packages of an extra, with their versions; an extra that it names is taken apart too."""
    from packaging.requirements import Requirement

    for line in distribution(NAME).requires or ():
        one = Requirement(line)
        if one.marker is None or one.marker.evaluate({"extra": ""}) or not one.marker.evaluate({"extra": extra}):
            continue
        if one.name == NAME:
            for inner in sorted(one.extras):
                yield from _requirements(inner)
        else:
            yield f"{one.name}{'[' + ','.join(sorted(one.extras)) + ']' if one.extras else ''}{one.specifier}"


def versions(*distributions: str) -> str:
    """``name=version`` of each distribution, joined by commas; those that are not installed are left out."""
    found = []
    for name in distributions:
        try:
            found.append(f"{name}={version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)
