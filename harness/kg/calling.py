"""Function calling: what a model is told, and its answer read, checked and run (arXiv:2408.05141, 4.5 and D.4).

The model answers with a JSON list of calls. Nothing that it writes is run as it is: a call must name a function of the
table and carry arguments that fit it; the others are refused with the reason, and no more than a few run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.core.asks import Lookup
from lm_eval_rag.harness.core.types import Plan
from lm_eval_rag.harness.kg.facts import Found, Gathering, json_values
from lm_eval_rag.harness.kg.functions import (
    DOMAINS,
    FUNCTIONS,
    MAX_TEXT,
    MAX_TEXTS,
    Function,
    Parameter,
    bind_arguments,
    function_named,
    usage,
)

MOST = 8  # calls of one answer that are run
NAMES = ("function_name", "function", "name", "tool")
ARGUMENTS = ("args", "arguments", "parameters", "params")
LISTS = ("calls", "function_calls", "tool_calls")


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls that may run, each once, and why the others may not."""

    calls: tuple[Lookup, ...] = ()
    refused: tuple[str, ...] = ()


def signatures(domains: Iterable[str] = DOMAINS) -> list[dict[str, Any]]:
    """The functions of some domains as JSON schemas, in the form that chat APIs take as tools.

    Raises:
        UserError: There is no such domain.
    """
    chosen = list(domains)
    for domain in chosen:
        if domain not in DOMAINS:
            raise unknown("domain", domain, DOMAINS)
    return [_schema(function) for function in FUNCTIONS.values() if function.domain in chosen]


def listing(domains: Iterable[str] = DOMAINS) -> str:
    """The same for a prompt: one line a function, ``name(parameters): what it is for``."""
    functions = [FUNCTIONS[schema["function"]["name"]] for schema in signatures(domains)]
    return "\n".join(f"{usage(function)}: {function.about}" for function in functions)


def read_calls(text: str, most: int = MOST) -> Calls:
    """The calls in a model's answer.

    Read are a list, an object with such a list, or single objects; the name and the arguments may be under any of the
    usual keys, the arguments by name or in order. At most ``most`` are kept; what is beyond is refused.
    """
    calls: dict[Lookup, None] = {}
    refused: list[str] = []
    for item in (item for value in json_values(text) for item in _items(value)):
        try:
            call = _call(item)
        except UserError as error:
            refused.append(str(error))
            continue
        if len(calls) < most or call in calls:
            calls[call] = None
        else:
            refused.append(f"{call.function}: more than {most} calls")
    return Calls(tuple(calls), tuple(refused))


def facts_by_calls(calls: Calls) -> Plan[Found]:
    """Run the calls of a model's answer."""
    gathering = Gathering()
    gathering.failures += calls.refused
    for call in calls.calls:
        arguments = dict(call.arguments)
        shown = ", ".join(str(value) for value in arguments.values())
        value = yield from gathering.call(call.function, **arguments)
        gathering.add(f"{call.function}({shown})", value)
    return gathering.found()


def _items(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    inner = [value[key] for key in LISTS if isinstance(value, dict) and isinstance(value.get(key), list)]
    return inner[0] if inner else [value]


def _call(item: Any) -> Lookup:
    if isinstance(item, dict) and isinstance(item.get("function"), dict):  # {"type": "function", "function": {...}}
        item = item["function"]
    name = _first(item, NAMES)
    if not isinstance(name, str):
        raise UserError(f"No call: {str(item)[:100]!r}. Write objects with function_name and args.")
    function = function_named(name.strip())
    arguments = bind_arguments(function, _arguments(_first(item, ARGUMENTS)))
    return Lookup(function.name, tuple(sorted(arguments.items())))


def _arguments(given: Any) -> Mapping[str, Any] | list[Any]:
    if isinstance(given, str) and given.lstrip()[:1] in ("{", "["):  # arguments as a JSON text, as chat APIs send them
        given = next(json_values(given), given)
    if given is None:
        return []
    return given if isinstance(given, dict | list) else [given]


def _first(item: Any, keys: Iterable[str]) -> Any:
    return next((item[key] for key in keys if key in item), None) if isinstance(item, dict) else None


def _schema(function: Function) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {p.name: _property(p) for p in function.parameters},
        "required": [p.name for p in function.parameters if p.required],
        "additionalProperties": False,
    }
    described = {"name": function.name, "description": function.about, "parameters": parameters}
    return {"type": "function", "function": described}


def _property(parameter: Parameter) -> dict[str, Any]:
    text: dict[str, Any] = {"type": "string", "maxLength": MAX_TEXT}
    kinds: dict[str, dict[str, Any]] = {
        "text": text,
        "integer": {"type": "integer"},
        "texts": {"type": "array", "items": text, "maxItems": MAX_TEXTS},
    }
    return {"type": "string", "enum": list(parameter.choices)} if parameter.choices else kinds[parameter.type]
