"""A function by its name: ``FILE.py:NAME``, or ``PACKAGE.MODULE:NAME``. The file's code runs."""

from __future__ import annotations

import hashlib
import inspect
import logging
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

from lm_eval_rag.harness.common.errors import UserError, unknown

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Loaded:
    """A function that was loaded.

    Args:
        name: Its own name.
        function: The function, or whatever stands under this name and can be called.
        identity: Name and hash of the file that holds it. What that file imports is not in it.
    """

    name: str
    function: Callable[..., Any] = field(compare=False)  # the identity tells it, and an object may have no hash
    identity: str


def load_function(target: str, argument: str) -> Loaded:
    """Load a function.

    Args:
        target: ``FILE.py:NAME`` or ``PACKAGE.MODULE:NAME``.
        argument: What the user gave it as, for messages.

    Raises:
        UserError: There is no such file, module or function, or its code raises an error.
    """
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise UserError(f"{argument}={target!r} is not allowed: give FILE.py:NAME or PACKAGE.MODULE:NAME.")
    try:
        module = _from_file(Path(place)) if place.endswith(".py") else import_module(place)
    except (FileNotFoundError, ModuleNotFoundError) as error:
        raise UserError(f"{argument}={target!r} cannot be loaded: {error}. Give FILE.py:NAME, with a path.") from None
    except Exception as error:
        raise UserError(f"{argument}={target!r}: its code ends with {type(error).__name__}: {error}.") from error
    function = getattr(module, name, None)
    if not callable(function):
        functions = [key for key, value in vars(module).items() if inspect.isfunction(value)]
        raise unknown(f"function of {place}", name, functions)
    file = Path(module.__file__) if module.__file__ else None
    return Loaded(name, function, _identity(name, file) if file else f"{name} of {place} (no file)")


def loaded_function(function: Callable[..., Any]) -> Loaded:
    """A function object, or an object that can be called.

    A function at the top of a file is known by its name and file, as by :func:`load_function`. Of any other, such as
    a lambda, a method of an object or a function of a notebook, it cannot be known whether it is the same as before:
    each has an identity that is never used again.

    Raises:
        UserError: It takes no argument.
    """
    name = re.sub(r"\W+", "_", str(getattr(function, "__name__", type(function).__name__))).strip("_")
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # some functions of C
        parameters = {"question": None}  # type: ignore[assignment]
    if not parameters:
        raise UserError(f"The function {name} takes no argument. Write it as `def {name}(question): ...`.")
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    if inspect.isfunction(function) and file and vars(module).get(function.__name__) is function:
        return Loaded(name, function, _identity(name, Path(file)))
    log.info(
        "%s is not a function at the top of a file, so the journal does not serve its replies to later runs.", name
    )
    return Loaded(name, function, f"{name} {uuid4().hex}")


def _identity(name: str, file: Path) -> str:
    return f"{name} of {file.name} ({hashlib.sha256(file.read_bytes()).hexdigest()[:16]})"


def _from_file(path: Path) -> ModuleType:
    """The module of a file, run once while it is the same; its folder can be imported from, as by ``python FILE``."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    content = str(path.resolve()).encode() + path.read_bytes()
    name = f"{path.stem}_{hashlib.sha256(content).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)  # dataclasses look for it there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
