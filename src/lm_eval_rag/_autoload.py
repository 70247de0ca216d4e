"""Shows lm_eval our models and tasks as soon as it is imported, without any flag.

``lm_eval_rag.pth`` leaves a finder at every start of Python, which finds nothing and calls :func:`install` once lm_eval
is looked for; until then nothing of this package is read. In Python 3.15 ``lm_eval_rag.start`` calls it at the start,
so this module imports what ``site`` has imported already and nothing else. The rest is loaded with lm_eval.
``LM_EVAL_RAG_AUTOLOAD=0`` switches it off; ``lm-eval-rag doctor`` says what it did.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes longer to import than all of this
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

# module of lm_eval -> what is called with it once it was executed, as "module:function"
AFTER = {
    "lm_eval.utils": "lm_eval_rag._printed_table:print_headline",
    "lm_eval.models": "lm_eval_rag._register:add_models",
    "lm_eval.tasks.manager": "lm_eval_rag._lazy_tasks:add_tasks",
    "lm_eval.evaluator": "lm_eval_rag._startup:defer_torch",
    "lm_eval._cli": "lm_eval_rag._errors:plain_endings",
}
START = "LmEvalRagStart"  # what lm_eval_rag.pth calls its finder
OFF = ("0", "false", "no", "off")
failures: dict[str, str] = {}  # module of lm_eval -> what went wrong, for the doctor


def enabled() -> bool:
    """Whether ``LM_EVAL_RAG_AUTOLOAD`` allows it."""
    return os.environ.get("LM_EVAL_RAG_AUTOLOAD", "1").strip().lower() not in OFF


def installed() -> bool:
    """Whether the hook waits for lm_eval in this process."""
    return HOOK in sys.meta_path


def waiting() -> bool:
    """Whether the hook, or the start file's finder, waits for lm_eval in this process."""
    return installed() or (enabled() and any(type(finder).__name__ == START for finder in sys.meta_path))


def install() -> None:
    """Wait for lm_eval's modules; a second call, or ``LM_EVAL_RAG_AUTOLOAD=0``, changes nothing. Never raises."""
    if not enabled() or installed():
        return
    sys.meta_path.insert(0, HOOK)
    for name in AFTER:
        if name in sys.modules:
            _call(name, sys.modules[name])


class Hook:
    """A finder that finds nothing by itself: it lets the others find, and has the loader report once it is done."""

    def find_spec(self, name: str, path: "Any" = None, target: "ModuleType | None" = None) -> "ModuleSpec | None":
        """The spec the other finders give for a module in ``AFTER``; None for every other module."""
        if name not in AFTER:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec:
                _report_after_execution(name, spec.loader)
                return spec
        return None


HOOK = Hook()


def _report_after_execution(name: str, loader: "Any") -> None:
    """Make one loader call ours after it executed the module ``name``."""
    execute = loader.exec_module

    def exec_module(module: "ModuleType") -> None:
        execute(module)
        if module.__name__ == name:  # a loader of an archive serves many modules
            _call(name, module)

    try:
        loader.exec_module = exec_module
    except AttributeError as error:  # a loader that cannot be changed
        _warn(name, error)


def _call(name: str, module: "ModuleType") -> None:
    try:
        target, _, function = AFTER[name].partition(":")
        getattr(__import__(target, fromlist=[function]), function)(module)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong here, a stock lm_eval must run on
        _warn(name, error)


def _warn(name: str, error: Exception) -> None:
    """Say it once per process: the first failure is logged, the doctor tells the others."""
    if not failures:
        import logging

        logging.getLogger("lm_eval_rag").warning(
            "lm-eval-rag could not show itself to %s (%s: %s); lm_eval goes on without it. `lm-eval-rag doctor` says "
            "more, LM_EVAL_RAG_AUTOLOAD=0 switches this off.",
            name,
            type(error).__name__,
            error,
        )
    failures[name] = f"{type(error).__name__}: {error}"
