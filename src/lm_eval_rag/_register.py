"""The one table of what lm_eval gets from us: a new method is one line here (and its twin in pyproject.toml).

pyproject.toml declares the same names as entry points, which lm-eval 0.4.13 ignores and later releases resolve; a test
holds the two together. Nothing is imported before lm_eval asks for it: the targets are strings.

There are no groups for filters, metrics and aggregations, since there is nothing for them: our tasks bring their scores
themselves (they need the record beside an answer, which lm_eval's metrics do not see), averaged by lm_eval's own mean.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lm_eval_rag.harness.common.loading import Loaded

log = logging.getLogger(__name__)

# name of the model -> the method's generator function; _models.py makes an lm_eval model of it
METHODS = {
    "standard_prompting": "lm_eval_rag.methods.standard_prompting:standard_prompting",
    "standard_rag": "lm_eval_rag.methods.standard_rag:standard_rag",
    "rulerag_icl": "lm_eval_rag.methods.rulerag_icl:rulerag_icl",
    "rule_vote": "lm_eval_rag.methods.rule_vote:rule_vote",
    "mode_of_relation": "lm_eval_rag.methods.mode_of_relation:mode_of_relation",
    "mode_of_subject": "lm_eval_rag.methods.mode_of_subject:mode_of_subject",
    "last_object": "lm_eval_rag.methods.last_object:last_object",
    "link_vote": "lm_eval_rag.methods.link_vote:link_vote",
    "copy_vote": "lm_eval_rag.methods.copy_vote:copy_vote",
    "rulerag_ft": "lm_eval_rag.methods.rulerag_ft:rulerag_ft",
    "rulerag_ft_extractive": "lm_eval_rag.methods.rulerag_ft:rulerag_ft_extractive",
    "rulerag_gpt35": "lm_eval_rag.methods.rulerag_gpt35:rulerag_gpt35",
    "crag_llm_baseline": "lm_eval_rag.methods.crag_llm_baseline:crag_llm_baseline",
    "crag_rag_baseline": "lm_eval_rag.methods.crag_rag_baseline:crag_rag_baseline",
    "crag_kg_baseline": "lm_eval_rag.methods.crag_kg_baseline:crag_kg_baseline",
    "crag_hybrid": "lm_eval_rag.methods.crag_hybrid:crag_hybrid",
    "iter_retgen": "lm_eval_rag.methods.iter_retgen:iter_retgen",
    "ircot": "lm_eval_rag.methods.ircot:ircot",
    "tree_of_thoughts": "lm_eval_rag.methods.tree_of_thoughts:tree_of_thoughts",
    "think_then_act": "lm_eval_rag.methods.think_then_act:think_then_act",
    "self_rag": "lm_eval_rag.methods.self_rag:self_rag",
    "verify_and_edit": "lm_eval_rag.methods.verify_and_edit:verify_and_edit",
    "chain_of_knowledge": "lm_eval_rag.methods.chain_of_knowledge:chain_of_knowledge",
    "search_agent": "lm_eval_rag.methods.search_agent:search_agent",
    "raptor": "lm_eval_rag.methods.raptor:raptor",
    "graphrag": "lm_eval_rag.methods.graphrag:graphrag",
    "crp_rag": "lm_eval_rag.methods.crp_rag:crp_rag",
    "external": "lm_eval_rag.methods.external:external",
}

OWN = "rag"  # the model that takes a method from any file or package: --model rag --model_args method=my.py:two_step
MODELS = (*METHODS, OWN)
OTHERS = "lm_eval_rag.methods"  # the group of entry points under which other packages name their methods
TASKS = "lm_eval_rag.tasks"  # the package of our YAML files

# entry point group of lm_eval -> name -> target, exactly as in pyproject.toml
ENTRY_POINTS = {
    "lm_eval.models": {name: f"lm_eval_rag._models:{name}" for name in MODELS},
    "lm_eval.tasks": {"lm_eval_rag": TASKS},
}


def tasks_folder() -> Path:
    """The folder of our YAML files."""
    return Path(str(files(TASKS)))


def method_of(name: str) -> Callable[..., Any]:
    """The generator function of a method; imported here.

    Raises:
        KeyError: There is no method of that name.
    """
    module, _, function = METHODS[name].partition(":")
    method: Callable[..., Any] = getattr(import_module(module), function)
    return method


def find_method(target: str) -> Loaded:
    """A method by name, of ours or of another package, or by ``FILE.py:NAME`` or ``PACKAGE.MODULE:NAME``.

    Raises:
        UserError: There is none, or its code raises an error.
    """
    from lm_eval_rag.harness.common.errors import unknown
    from lm_eval_rag.harness.common.loading import Loaded, load_function

    if target in METHODS:
        return Loaded(target, method_of(target), target)
    others = {point.name: point.value for point in entry_points(group=OTHERS)}
    if target not in others and ":" not in target:
        raise unknown("method", target, (*METHODS, *others), "A method of your own is FILE.py:NAME.")
    return load_function(others.get(target, target), "method")


def register() -> None:
    """Make lm_eval know our models and tasks in this process, where the start file does not (LM_EVAL_RAG_AUTOLOAD=0).

    ``lm_eval_rag.register()`` stands before ``lm_eval.simple_evaluate(...)``; a second call changes nothing. lm_eval's
    own command has no place for it: there ``--include_path`` finds our tasks, and no flag finds a model. The endings of
    the command (one line for bad input, status 3 for unscored questions) and the faster start come with the start file.
    """
    import lm_eval.models
    import lm_eval.tasks.manager

    from lm_eval_rag._lazy_tasks import add_tasks

    add_models(lm_eval.models)
    add_tasks(lm_eval.tasks.manager)


def add_models(models: ModuleType) -> None:
    """Register our models once ``lm_eval.models`` has registered its own.

    Not earlier: ``get_model`` imports lm_eval's own models only while the registry is empty.
    """
    from lm_eval.api.registry import model_registry

    for name, target in ENTRY_POINTS["lm_eval.models"].items():
        _add(model_registry, name, target)


def _add(registry: Any, name: str, target: str) -> None:
    """Register one name, silently when upstream found our entry point, with a warning when it is somebody else's."""
    held = dict(registry.items()).get(name)
    if held is None:
        registry.register(name, target=target)
    elif not _is_ours(held):
        log.warning("The model %r is already registered as %r; ours (%s) is left out.", name, held, target)


def _is_ours(held: object) -> bool:
    """Whether a registry's value (a string, an entry point or the class itself) comes from this package."""
    source = held.value if isinstance(held, EntryPoint) else held if isinstance(held, str) else held.__module__
    return source.startswith("lm_eval_rag.")
