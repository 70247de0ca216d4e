"""Reading a table to reproduce from one TOML file.

A row with ``each`` stands for one row per combination of the values there: ``{name}`` in its texts is replaced by the
value, and ``{task}`` in its arguments by the task. Rows that differ only in ``seed`` are one line of the page: the
mean over seeds. An argument ``"@NAME"`` is the checkpoint of the training step ``[train.NAME]`` (see :mod:`.training`).
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cache
from itertools import chain, product
from pathlib import Path
from typing import Any, TypeVar

from lm_eval_rag.harness.common.errors import UserError, unknown
from lm_eval_rag.harness.report.run_report import HEADLINE
from lm_eval_rag.harness.reproduce.table_spec import OF, Claim, Plot, Row, Table, Values, fill

Part = TypeVar("Part")
SEED = "seed"  # rows that differ only in this are one line
KINDS_OF_PLOT = ("curve", "banks")
DEFAULTS = (
    "tasks",
    "sample",
    "corpora",
    "metadata",
    "gen_kwargs",
    "first",
    "include_path",
    "published_questions",
)  # keys at the top of a file that are defaults of every row
PARTS = ("row", "train", "claim", "plot")
TOP_KEYS = (
    "title", "source", "notes", "running", "metrics", "subset", "share_calls", "verdicts", "margin", *DEFAULTS, *PARTS
)  # fmt: skip
ROW_KEYS = ("each", *(one.name for one in fields(Row) if one.name not in ("line", "steps", "variables")))
CLAIM_KEYS = ("each", *(one.name for one in fields(Claim)))
PLOT_KEYS = tuple(one.name for one in fields(Plot))


def read_table(path: Path) -> Table:
    """Read a table's file.

    Raises:
        UserError: It is missing or not TOML, or has an unknown key, a value of a wrong type, a placeholder without a
            value, a name twice, a claim about an unknown line, or an unknown training step.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"The table {path} cannot be read: {error}.") from None
    _check_keys(f"key of {path.name}", data, TOP_KEYS)
    try:
        return _table(path, data)
    except UserError as error:
        text = str(error)
        raise UserError(text if text.startswith(path.name) else f"{path.name}: {text}") from None


def _table(path: Path, data: dict[str, Any]) -> Table:
    defaults = {key: data.pop(key) for key in DEFAULTS if key in data}
    if "include_path" in defaults:  # beside the file, wherever the command is run
        defaults["include_path"] = str(path.parent / str(defaults["include_path"]))
    steps = data.pop("train", {})
    _check_kind("train", steps, Mapping, "[train.NAME]")
    for name, step in steps.items():
        _check_kind(f"train.{name}", step, Mapping, f"[train.{name}]")
    parts = {
        "rows": [row for values in _tables(data, "row") for row in _rows({**defaults, **values}, steps)],
        "claims": [claim for values in _tables(data, "claim") for claim in _claims(values)],
        "plots": [_checked(Plot, values, f"Plot {values.get('title')!r}") for values in _tables(data, "plot")],
    }
    if not parts["rows"]:
        raise UserError("there is no row. Give at least one: [[row]], with name, model and tasks.")
    given = {"name": path.stem, "title": path.stem, "metrics": list(HEADLINE), **data, **parts}
    table = _build(Table, given, path.name)
    _check_names(table)
    _check_numbers(table)
    return table


def _tables(data: dict[str, Any], name: str) -> list[Values]:
    """The parts of one name, each a table of its own."""
    values = data.pop(name, [])
    _check_kind(name, values, list, f"[[{name}]] (with two brackets)")
    for value in values:
        _check_kind(name, value, Mapping, f"[[{name}]]")
    return list(values)


def _check_kind(key: str, value: Any, kind: type, allowed: str) -> None:
    if not isinstance(value, kind):
        raise UserError(f"{key} = {value!r} is not allowed. Write {allowed}.")


def _rows(values: Values, steps: Mapping[str, Values]) -> Iterable[Row]:
    _check_keys(f"key of row {values.get('name')!r}", values, ROW_KEYS)
    if not values.get("name"):
        raise UserError("A row has no name. Give each row a unique name.")
    for key in ("arguments", "metadata", "gen_kwargs", "sample", "corpora", "published", "published_questions"):
        _check_kind(f"{key} of row {values['name']!r}", values.get(key, {}), Mapping, f"{key} = {{ NAME = VALUE }}")
    texts = {key: value for key, value in values.items() if key not in ("arguments", "each")}
    for variables in _combinations(values):
        filled = fill(texts, variables, values["name"])
        line = filled["name"]
        own = {
            "name": f"{line}/{SEED}{variables[SEED]}" if SEED in variables else line,
            "line": line,
            "arguments": values.get("arguments", {}),
            "steps": steps,
            "variables": variables,
        }
        row = _build(Row, {"label": line, "model": "", **filled, **own}, f"row {line!r}")
        for task in row.tasks:
            row.arguments_for(task)  # raises where a placeholder or a training step is missing
        yield row


def _claims(values: Values) -> Iterable[Claim]:
    """One claim for each combination."""
    texts = {key: value for key, value in values.items() if key != "each"}
    for variables in _combinations(values):
        filled = fill(texts, variables, str(values.get("text")))
        yield _checked(Claim, filled, f"Claim {values.get('text')!r}")


def _combinations(values: Values) -> Iterable[dict[str, Any]]:
    each: Mapping[str, Iterable[Any]] = values.get("each", {})
    _check_kind("each", each, Mapping, "each = { NAME = [VALUE, ...] }")
    for name, choices in each.items():
        _check_kind(f"each.{name}", choices, list, f"a list, such as {name} = [1, 2]")
    return (dict(zip(each, chosen, strict=True)) for chosen in product(*each.values()))


def _checked(kind: type[Part], values: Values, where: str) -> Part:
    _check_keys(f"key of a {kind.__name__.lower()}", values, [one.name for one in fields(kind)])  # type: ignore[arg-type]
    return _build(kind, values, where)


def _build(kind: type[Part], values: Values, where: str) -> Part:
    """The dataclass ``kind`` with these values; lists become tuples."""
    from pydantic import ValidationError

    try:
        return _adapter(kind).validate_python(values)  # type: ignore[no-any-return, arg-type]
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {_said(one)}" for one in error.errors())
        raise UserError(f"{where}: {wrong}.") from None


def _said(error: Mapping[str, Any]) -> str:
    """What pydantic says, in words of TOML."""
    is_text = error["type"] == "tuple_type" and isinstance(error["input"], str)
    return f"write a list, [{json.dumps(error['input'])}]" if is_text else str(error["msg"])


@cache
def _adapter(kind: type[Any]) -> Any:
    """What checks a dataclass; it takes pydantic some milliseconds to make."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _check_keys(kind: str, names: Iterable[str], allowed: Iterable[str]) -> None:
    for name in names:
        if name not in allowed:
            raise unknown(kind, name, allowed)


def _check_names(table: Table) -> None:
    for name, number in Counter(row.name for row in table.rows).items():
        if number > 1:
            raise UserError(f"{table.name}: {number} rows are named {name!r}. Give each row a unique name.")
    lines = table.lines()
    for claim in table.claims:
        for name in chain(claim.better, claim.worse, *claim.controls.values(), *claim.bounds.values()):
            if claim.of not in OF:
                raise unknown(f"'of' in the claim {claim.text!r}:", claim.of, OF)
            if name not in lines:
                raise unknown(f"row in the claim {claim.text!r}:", name, lines)
    for plot in table.plots:
        if plot.kind not in KINDS_OF_PLOT:
            raise unknown("kind of plot", plot.kind, KINDS_OF_PLOT)
        if plot.baseline and plot.baseline not in lines:
            raise unknown(f"row in the plot {plot.title!r}:", plot.baseline, lines)


def _check_numbers(table: Table) -> None:
    if not table.margin >= 0:
        raise UserError(f"margin = {table.margin} is not allowed. Give a number of points, 0 or more.")
    for row in table.rows:
        for task, number in row.published_questions.items():
            if number < 1:
                raise UserError(
                    f"row {row.name!r}: published_questions of {task} = {number} is not allowed. Give the number of "
                    "questions of the published run, 1 or more, or leave the task out."
                )
