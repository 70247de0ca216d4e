"""Function calling: the functions as a model sees them, and its reply parsed, checked and run.

See arXiv:2408.05141, 4.5 and D.4. The model replies with a JSON list of calls. A call runs only if it names a function
of the table and its arguments fit; other calls are refused with the reason. The number of calls is limited.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.core.asks import Lookup
from lm_eval_rag.harness.core.types import Plan
from lm_eval_rag.harness.kg.facts import Collector, GraphFacts, json_values
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

MOST = 8  # calls of one reply
NAMES = ("function_name", "function", "name", "tool")
ARGUMENTS = ("args", "arguments", "parameters", "params")
LISTS = ("calls", "function_calls", "tool_calls")


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls that may run, each once, and why others were refused."""

    calls: tuple[Lookup, ...] = ()
    refused: tuple[str, ...] = ()


def signatures(domains: Iterable[str] = DOMAINS) -> list[dict[str, Any]]:
    """The functions of some domains as JSON schemas, in the form of a chat API's tools.

    Raises:
        UserError: There is no such domain.
    """
    chosen = list(domains)
    for domain in chosen:
        if domain not in DOMAINS:
            raise unknown("domain", domain, DOMAINS)
    return [_schema(function) for function in FUNCTIONS.values() if function.domain in chosen]


def listing(domains: Iterable[str] = DOMAINS) -> str:
    """The functions of some domains for a prompt: one line each, ``name(parameters): what it is for``."""
    functions = [FUNCTIONS[schema["function"]["name"]] for schema in signatures(domains)]
    return "\n".join(f"{usage(function)}: {function.about}" for function in functions)


def read_calls(text: str, most: int = MOST) -> Calls:
    """The calls in a model's reply.

    The reply may hold a list, an object with such a list, or single objects. The name and the arguments may have any of
    the usual keys, and arguments may be by name or in order. Calls beyond ``most`` are refused.
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


def facts_by_calls(calls: Calls) -> Plan[GraphFacts]:
    """Run the calls of a model's reply."""
    collector = Collector()
    collector.failures += calls.refused
    for call in calls.calls:
        arguments = dict(call.arguments)
        shown = ", ".join(str(value) for value in arguments.values())
        value = yield from collector.call(call.function, **arguments)
        collector.add(f"{call.function}({shown})", value)
    return collector.result()


def _items(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    inner = [value[key] for key in LISTS if isinstance(value, dict) and isinstance(value.get(key), list)]
    return inner[0] if inner else [value]


def _call(item: Any) -> Lookup:
    if isinstance(item, dict) and isinstance(item.get("function"), dict):  # {"type": "function", "function": {...}}
        item = item["function"]
    name = _first_of(item, NAMES)
    if not isinstance(name, str):
        raise UserError(f"Not a call: {str(item)[:100]!r}. Write objects with function_name and args.")
    function = function_named(name.strip())
    arguments = bind_arguments(function, _arguments(_first_of(item, ARGUMENTS)))
    return Lookup(function.name, tuple(sorted(arguments.items())))


def _arguments(value: Any) -> Mapping[str, Any] | list[Any]:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):  # arguments as a JSON text, as chat APIs send them
        value = next(json_values(value), value)
    if value is None:
        return []
    return value if isinstance(value, dict | list) else [value]


def _first_of(item: Any, keys: Iterable[str]) -> Any:
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
