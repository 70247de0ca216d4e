"""The runs that an evaluation of one's own consists of: each method with each retriever, as lm_eval models."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.core.parameters import defaults
from lm_eval_rag.harness.plugin.arguments import OURS
from lm_eval_rag.harness.plugin.chosen_methods import Chosen, Find, Methods, chosen_methods
from lm_eval_rag.harness.plugin.model import RagLM
from lm_eval_rag.harness.plugin.own_data import OwnData
from lm_eval_rag.harness.report.trivial_baselines import TRIVIAL_BASELINES

log = logging.getLogger(__name__)
WITHOUT_RETRIEVER = ("standard_prompting", "tree_of_thoughts", "crag_llm_baseline", "crag_kg_baseline")
OF_EXTERNAL = ("journal", "trace", "window")  # arguments of models that an external system has too
OPTIONS = ("gen_", "retriever_")


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A method with a retriever.

    Args:
        name: Of its folder.
        model: The lm_eval model.
        arguments: The model's.
        label: Its name in tables; "" for the model's, with the arguments in which runs differ.
    """

    name: str
    model: RagLM
    arguments: Mapping[str, Any]
    label: str = ""


def planned_runs(
    methods: Methods,
    retrievers: Sequence[str],
    arguments: Mapping[str, Any],
    find: Find,
    data: OwnData,
) -> list[PlannedRun]:
    """The runs, whose arguments are checked; nothing is computed yet.

    Args:
        methods: As :func:`~lm_eval_rag.harness.plugin.chosen_methods.chosen_methods` takes them.
        retrievers: Names; () gives each method its own.
        arguments: Model arguments; each method gets those that it has.
        find: Gives the lm_eval model of a name.

    Raises:
        UserError: An unknown method or argument, a wrong value, a method that cannot answer over these documents, or
            two equal runs.
    """
    chosen = chosen_methods(methods, find)
    known = {name for one in chosen for name in _taken(one, arguments)}
    strange = [name for name in arguments if name not in known]
    if strange:
        names = {name for one in chosen for name in defaults(_function(one))}
        raise unknown("argument", strange[0], [*names, *OURS, *(f"{prefix}*" for prefix in OPTIONS)])
    runs: dict[str, PlannedRun] = {}
    for one in chosen:
        check_answerable(one.model.__name__, _function(one), data)
        for retriever in _retrievers(one, retrievers):
            options = {**_taken(one, arguments), **retriever, **one.named}
            label = " ".join([one.label, *(retriever.values() if len(retrievers) > 1 else ())]) if one.label else ""
            name = _folder([label] if label else [one.model.__name__, *one.named.values(), *retriever.values()])
            if name in runs:
                raise UserError(
                    f"Two runs are {name}. Name every method and retriever once, or give runs names of their own: "
                    "LABEL=METHOD, or methods={LABEL: METHOD} in Python."
                )
            runs[name] = PlannedRun(name, one.model.create_from_arg_obj(dict(options)), options, label)
    return list(runs.values())


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
    if name in TRIVIAL_BASELINES and not data.facts:
        raise UserError(
            f"{name} cannot answer over these documents: it copies from facts, and no passage states one. Give "
            f"documents with the columns subject, relation and object; or leave {name} out."
        )
    if "n_rules" in defaults(method) and not rules and defaults(method)["n_rules"]:
        log.warning("%s gets no rules, since there are none; give --rules FILE or --rules mine.", name)


def _function(one: Chosen) -> Callable[..., Any]:
    return one.model._method_of(dict(one.named))[1]


def _taken(one: Chosen, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that a method has: its own parameters, and what runs it."""
    own = defaults(_function(one))
    if one.is_system:
        return {name: value for name, value in arguments.items() if name in (*own, *OF_EXTERNAL)}
    return {name: value for name, value in arguments.items() if name in (*own, *OURS) or name.startswith(OPTIONS)}


def _retrievers(one: Chosen, retrievers: Sequence[str]) -> Iterator[dict[str, str]]:
    if one.is_system or one.model.__name__ in WITHOUT_RETRIEVER or not retrievers:
        yield {}
    else:
        yield from ({"retriever": name} for name in retrievers)


def _folder(parts: Iterable[str]) -> str:
    return "-".join(re.sub(r"[^\w.]+", "-", part).strip("-") for part in parts)
