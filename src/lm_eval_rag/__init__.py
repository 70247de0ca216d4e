"""Retrieval-augmented generation for the lm-evaluation-harness.

Here are all names that a program or a method of one's own needs. They are loaded when they are first used, because this
file is imported whenever lm_eval is.
"""

import os.path

__version__ = "0.1.0"

TYPE_CHECKING = False  # typing's own would import typing
if TYPE_CHECKING:
    from lm_eval_rag._evaluate import evaluate as evaluate
    from lm_eval_rag._register import register as register
    from lm_eval_rag._run import run as run
    from lm_eval_rag.harness.common.errors import CallError as CallError
    from lm_eval_rag.harness.common.errors import UserError as UserError
    from lm_eval_rag.harness.core.asks import ask_system as ask_system
    from lm_eval_rag.harness.core.asks import calculate as calculate
    from lm_eval_rag.harness.core.asks import classify as classify
    from lm_eval_rag.harness.core.asks import embed as embed
    from lm_eval_rag.harness.core.asks import examples as examples
    from lm_eval_rag.harness.core.asks import facts as facts
    from lm_eval_rag.harness.core.asks import generate as generate
    from lm_eval_rag.harness.core.asks import has_graph as has_graph
    from lm_eval_rag.harness.core.asks import has_loglikelihood as has_loglikelihood
    from lm_eval_rag.harness.core.asks import log_probabilities as log_probabilities
    from lm_eval_rag.harness.core.asks import loglikelihood as loglikelihood
    from lm_eval_rag.harness.core.asks import lookup as lookup
    from lm_eval_rag.harness.core.asks import match_rules as match_rules
    from lm_eval_rag.harness.core.asks import pages as pages
    from lm_eval_rag.harness.core.asks import prepared as prepared
    from lm_eval_rag.harness.core.asks import rank as rank
    from lm_eval_rag.harness.core.asks import recognise as recognise
    from lm_eval_rag.harness.core.asks import retrieve as retrieve
    from lm_eval_rag.harness.core.asks import sample as sample
    from lm_eval_rag.harness.core.asks import together as together
    from lm_eval_rag.harness.core.parameters import Depth as Depth
    from lm_eval_rag.harness.core.parameters import Natural as Natural
    from lm_eval_rag.harness.core.parameters import Positive as Positive
    from lm_eval_rag.harness.core.prompts import Prompt as Prompt
    from lm_eval_rag.harness.core.types import Answer as Answer
    from lm_eval_rag.harness.core.types import Passage as Passage
    from lm_eval_rag.harness.core.types import Plan as Plan
    from lm_eval_rag.harness.core.types import Query as Query
    from lm_eval_rag.harness.core.types import Rule as Rule
    from lm_eval_rag.harness.core.types import Trace as Trace
    from lm_eval_rag.harness.core.types import WebPage as WebPage
    from lm_eval_rag.harness.core.written import Written as Written
    from lm_eval_rag.harness.data.corpus import Corpus as Corpus
    from lm_eval_rag.harness.plugin.own_task import OwnTask as OwnTask
    from lm_eval_rag.harness.retrieval.fusion import reciprocal_rank as reciprocal_rank
    from lm_eval_rag.harness.retrieval.fusion import round_robin as round_robin
    from lm_eval_rag.harness.rules.guided import rule_guided as rule_guided
    from lm_eval_rag.methods.prompts import template as template

_WHERE = {  # module of this package -> its names that stand here, as above
    "_evaluate": ("evaluate",),
    "_register": ("register",),
    "_run": ("run",),
    "harness.common.errors": ("CallError", "UserError"),
    "harness.core.asks": (
        "ask_system", "calculate", "classify", "embed", "examples", "facts", "generate", "has_graph",
        "has_loglikelihood", "log_probabilities", "loglikelihood", "lookup", "match_rules", "pages", "prepared",
        "rank", "recognise", "retrieve", "sample", "together",
    ),
    "harness.core.parameters": ("Depth", "Natural", "Positive"),
    "harness.core.prompts": ("Prompt",),
    "harness.core.types": ("Answer", "Passage", "Plan", "Query", "Rule", "Trace", "WebPage"),
    "harness.core.written": ("Written",),
    "harness.data.corpus": ("Corpus",),
    "harness.plugin.own_task": ("OwnTask",),
    "harness.retrieval.fusion": ("reciprocal_rank", "round_robin"),
    "harness.rules.guided": ("rule_guided",),
    "methods.prompts": ("template",),
}  # fmt: skip
_MODULES = {name: f"{__name__}.{module}" for module, names in _WHERE.items() for name in names}

if not os.path.isdir(os.path.join(__path__[0], "tasks")):  # a checkout without symlinks (Windows, zip archives)
    __path__.append(os.path.dirname(os.path.dirname(__path__[0])))


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
