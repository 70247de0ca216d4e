"""The runs that an evaluation of one's own consists of: each method with each retriever, as lm_eval models."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.common.loading import load_function
from lm_eval_rag.harness.core.contract import function_of, name_of
from lm_eval_rag.harness.core.parameters import defaults
from lm_eval_rag.harness.plugin.arguments import OURS
from lm_eval_rag.harness.plugin.model import RagLM, model_class
from lm_eval_rag.harness.plugin.own_data import OwnData

log = logging.getLogger(__name__)
EXTERNAL, OWN_METHOD = "external", "rag"
WITHOUT_RETRIEVER = (EXTERNAL, "standard_prompting", "tree_of_thoughts", "crag_llm_baseline", "crag_kg_baseline")
OF_EXTERNAL = ("journal", "trace", "window")  # arguments of models that an external system has too
OPTIONS = ("gen_", "retriever_")
Find = Callable[[str], type[RagLM]]  # the lm_eval model of a name


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A method with a retriever.

    Args:
        name: Of its folder.
        model: The lm_eval model.
        arguments: The model's.
    """

    name: str
    model: RagLM
    arguments: Mapping[str, Any]


def planned_runs(
    methods: Sequence[str | Callable[..., Any]],
    retrievers: Sequence[str],
    arguments: Mapping[str, Any],
    find: Find,
    data: OwnData,
) -> list[PlannedRun]:
    """The runs, whose arguments are checked; nothing is computed yet.

    Args:
        methods: Names of methods, ``FILE.py:NAME``, ``rag=FILE.py:NAME``, ``external=FILE.py:NAME`` or
            ``external=http://...``; or generator functions.
        retrievers: Names; () gives each method its own.
        arguments: Model arguments; each method gets those that it has.
        find: Gives the lm_eval model of a name.

    Raises:
        UserError: An unknown method or argument, a wrong value, a method that cannot answer over these documents, or
            two equal runs.
    """
    chosen = [_model_of(method, find) for method in methods]
    if not chosen:
        raise UserError("There are no methods. Give at least one, such as standard_rag.")
    known = {name for cls, given in chosen for name in _taken(cls, given, arguments)}
    strange = [name for name in arguments if name not in known]
    if strange:
        names = {name for cls, given in chosen for name in defaults(_function(cls, given))}
        raise unknown("argument", strange[0], [*names, *OURS, *(f"{prefix}*" for prefix in OPTIONS)])
    runs: dict[str, PlannedRun] = {}
    for cls, given in chosen:
        check_answerable(cls.__name__, _function(cls, given), data)
        for retriever in _retrievers(cls, retrievers):
            options = {**_taken(cls, given, arguments), **retriever, **given}
            name = _folder(cls, given, retriever)
            if name in runs:
                raise UserError(f"Two runs are {name}. Name every method and retriever once.")
            runs[name] = PlannedRun(name, cls.create_from_arg_obj(dict(options)), options)
    return list(runs.values())


# trivial baselines, which answer from facts
COPIERS = ("mode_of_relation", "mode_of_subject", "last_object", "link_vote", "copy_vote")


def check_answerable(name: str, method: Callable[..., Any], data: OwnData) -> None:
    """Raise a UserError if a method needs facts or rules that there are not; warn if it only loses by that."""
    rules = len(data.corpus.rules())
    if name == "rule_vote" and not (data.facts and rules):
        lacking = "no passage states a fact" if not data.facts else "there are no rules"
        raise UserError(
            f"rule_vote cannot answer over these documents: it votes by facts that rules lead to, and {lacking}. "
            "Give documents with the columns subject, relation and object, and --rules mine (or a file of rules); or "
            "leave rule_vote out."
        )
    if name in COPIERS and not data.facts:
        raise UserError(
            f"{name} cannot answer over these documents: it copies from facts, and no passage states one. Give "
            f"documents with the columns subject, relation and object; or leave {name} out."
        )
    if "n_rules" in defaults(method) and not rules and defaults(method)["n_rules"]:
        log.warning("%s gets no rules, since there are none; give --rules FILE or --rules mine.", name)


def _model_of(method: str | Callable[..., Any], find: Find) -> tuple[type[RagLM], dict[str, Any]]:
    """The lm_eval model of a method, and the arguments that name the method."""
    if not isinstance(method, str):
        _check_plan(method, name_of(method))
        return model_class(name_of(method), method), {}
    name, named, target = method.partition("=")
    if (named and name not in (EXTERNAL, OWN_METHOD)) or (named and not target) or method == EXTERNAL:
        raise UserError(
            f"The method {method!r} is not allowed: give a method's name, FILE.py:NAME, external=FILE.py:NAME or "
            "external=http://ADDRESS."
        )
    if name == EXTERNAL:
        url = re.match(r"https?://", target) is not None
        if not url:
            load_function(target, "function")  # a misspelt name ends it before any other run has begun
        return find(EXTERNAL), {"url" if url else "function": target}
    if named or method.endswith(".py") or ".py:" in method:
        _check_plan(load_function(target or method, "method").function, target or method)
        return find(OWN_METHOD), {"method": target or method}
    return find(method), {}


def _check_plan(function: Callable[..., Any], name: str) -> None:
    """Raise for a plain function, which is no method but a whole system."""
    written = function_of(function)
    if inspect.isfunction(written) and not inspect.isgeneratorfunction(written):
        raise UserError(
            f"{name} is a plain function; a method yields what it asks for. A function that takes a question and "
            "returns an answer is a system of your own: write external=FILE.py:NAME."
        )


def _function(cls: type[RagLM], given: Mapping[str, Any]) -> Callable[..., Any]:
    return cls._method_of(dict(given))[1]


def _taken(cls: type[RagLM], given: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that a method has: its own parameters, and what runs it."""
    own = defaults(_function(cls, given))
    if cls.__name__ == EXTERNAL:
        return {name: value for name, value in arguments.items() if name in (*own, *OF_EXTERNAL)}
    return {name: value for name, value in arguments.items() if name in (*own, *OURS) or name.startswith(OPTIONS)}


def _retrievers(cls: type[RagLM], retrievers: Sequence[str]) -> Iterator[dict[str, str]]:
    if cls.__name__ in WITHOUT_RETRIEVER or not retrievers:
        yield {}
    else:
        yield from ({"retriever": name} for name in retrievers)


def _folder(cls: type[RagLM], given: Mapping[str, str], retriever: Mapping[str, str]) -> str:
    parts = (cls.__name__, *given.values(), *retriever.values())
    return "-".join(re.sub(r"[^\w.]+", "-", part).strip("-") for part in parts)
