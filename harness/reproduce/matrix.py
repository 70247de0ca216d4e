"""A table to reproduce, as one TOML file says it: rows of method, arguments and training, claims, and plots.

A row stands for as many rows as its ``each`` has combinations: ``{name}`` in any of its texts is then the value of the
moment, and ``{task}`` in its arguments the task. Rows that differ in ``seed`` alone are shown as one line, their mean.
An argument ``"@NAME"`` is the checkpoint that the training step ``[train.NAME]`` makes (or made: see :mod:`.training`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain, product
from pathlib import Path
from typing import Any, TypeVar

from lm_eval_rag.harness.common.errors import UserError, unknown

SEED = "seed"  # rows that differ in this alone are one line
Values = Mapping[str, Any]
Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Train:
    """One training step, ready to run.

    Args:
        what: ``retriever`` or ``generator``.
        options: Those of ``lm-eval-rag train``, names without dashes; a value may be another step's checkpoint.
        bank: ``2/4`` trains on the second of four disjoint parts of the rule bank; "" on all of it.
    """

    what: str
    options: tuple[tuple[str, Any], ...]
    bank: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of runs, over its tasks.

    Args:
        name: Unique; the line's name and the seed.
        line: What it is shown as, with rows of other seeds.
        label: What the line is called in the page.
        model: Name of the method; "" for a line that stands there with published numbers alone.
        arguments: As in ``--model_args``; texts may hold ``{task}`` and ``@NAME``.
        tasks: Names of the tasks.
        sample: Task -> number of questions, drawn by seed 0; a task that is not named is run in full.
        chat: Whether prompts go through the generator's chat template (``--apply_chat_template``).
        needs: What it takes that is not at hand, such as a GPU; such a row is run only when it is named.
        published: What names its numbers in the paper: ``method``, and ``retriever``, ``generator``, ``note``.
        series: Curve that it is a point of, or "".
        x: Its place on the curve.
        bank: The part of the rule bank it was trained on, such as ``2/4``, or "".
        trains: The table's training steps, unresolved.
        variables: What its placeholders stand for.
    """

    name: str
    line: str
    label: str
    model: str
    arguments: Values
    tasks: tuple[str, ...]
    sample: Mapping[str, int] = field(default_factory=dict)
    chat: bool = False
    needs: str = ""
    published: Mapping[str, str] = field(default_factory=dict)
    series: str = ""
    x: float | None = None
    bank: str = ""
    trains: Mapping[str, Values] = field(default_factory=dict)
    variables: Values = field(default_factory=dict)

    def of(self, task: str) -> dict[str, Any]:
        """The arguments on one task; checkpoints to be trained are :class:`Train`."""
        return {key: self._resolved(value, {**self.variables, "task": task}) for key, value in self.arguments.items()}

    def _resolved(self, value: Any, variables: Values) -> Any:
        value = fill(value, variables, self.name)
        if not (isinstance(value, str) and value.startswith("@")):
            return value
        if value[1:] not in self.trains:
            raise unknown(f"training step in row {self.name!r}:", value[1:], self.trains)
        step = dict(self.trains[value[1:]])
        what, bank = step.pop("what", ""), fill(step.pop("bank", ""), variables, self.name)
        if what not in ("retriever", "generator"):
            raise unknown(f"'what' in training step {value[1:]!r}:", str(what), ("retriever", "generator"))
        options = sorted((key, self._resolved(option, variables)) for key, option in step.items())
        return Train(what, tuple((key, tuple(v) if isinstance(v, list) else v) for key, v in options), bank)


@dataclass(frozen=True, slots=True)
class Claim:
    """Something the paper says that rows can test: the lines ``better`` score higher than the lines ``worse``.

    Args:
        text: The claim.
        paper: Where it says so, and by how much.
        better: Names of lines; a question's score is their mean.
        worse: The same.
        controls: Name of a control -> lines that ``better`` must beat too, if it is the rules that help.
        bounds: Name of an upper bound -> lines shown beside, tested for nothing.
        metrics: Scores it is tested on.
        tasks: Tasks; () for all on which both have been run.
        slice: Questions of this slice alone; "" for all.
        bank: ``own`` or ``other``: a row counts on the questions of the rules it was trained on, or of all others.
    """

    text: str
    better: tuple[str, ...]
    worse: tuple[str, ...]
    metrics: tuple[str, ...]
    paper: str = ""
    controls: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bounds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tasks: tuple[str, ...] = ()
    slice: str = ""
    bank: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """Curves over the rows that have ``x``, or (kind ``banks``) gains over ``baseline`` by training and test bank.

    Args:
        metric: Name of a score; ``{x}`` in it is the point's x.
        relative: Whether values are shown in percent of the curve's best.
        log: Whether the x axis is logarithmic.
    """

    title: str
    metric: str
    kind: str = "curve"
    baseline: str = ""
    x_label: str = ""
    relative: bool = False
    log: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A whole file.

    Args:
        name: Of the file.
        title: Shown above the page.
        source: Table or figure of the paper, as in the published CSV.
        notes: In what ways ours is another measurement than the paper's.
        metrics: Scores shown, one table each.
        rows: All rows, in order.
        claims: What is tested.
        plots: What is drawn.
        subset: ``degenerated`` counts only questions that the best rule turns into one about stated facts; "" all.
        share_calls: Whether rows take over each other's finished calls (see :mod:`.sharing`).
    """

    name: str
    title: str
    source: str
    notes: tuple[str, ...]
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]
    claims: tuple[Claim, ...]
    plots: tuple[Plot, ...]
    subset: str = ""
    share_calls: bool = False

    def lines(self) -> dict[str, tuple[Row, ...]]:
        """Line -> its rows, which differ in the seed alone."""
        names = dict.fromkeys(row.line for row in self.rows)
        return {name: tuple(row for row in self.rows if row.line == name) for name in names}


TABLE = (
    "title", "source", "notes", "metrics", "tasks", "sample", "row", "train", "claim", "plot", "subset", "share_calls",
)  # fmt: skip
ROW = (*(one.name for one in fields(Row) if one.name not in ("line", "trains", "variables")), "each")


def read_table(path: Path) -> Table:
    """Read a table's file.

    Raises:
        UserError: It is missing, is no TOML, or has an unknown key, a placeholder that nothing fills, a name twice, a
            claim about a line that is not there, or a training step that is not there.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"The table {path} cannot be read: {error}.") from None
    _known(f"key of {path.name}", data, TABLE)
    common = {"tasks": data.get("tasks", []), "sample": data.get("sample", {})}
    rows = [row for one in data.get("row", []) for row in _rows({**common, **one}, data.get("train", {}))]
    table = Table(
        name=path.stem,
        title=data.get("title", path.stem),
        source=data.get("source", ""),
        notes=tuple(data.get("notes", ())),
        metrics=tuple(data.get("metrics", ())),
        rows=tuple(rows),
        claims=tuple(claim for one in data.get("claim", []) for claim in _made(Claim, one)),
        plots=tuple(plot for one in data.get("plot", []) for plot in _made(Plot, one)),
        subset=data.get("subset", ""),
        share_calls=data.get("share_calls", False),
    )
    _check_names(table)
    return table


def fill(value: Any, variables: Values, where: str) -> Any:
    """``value`` with its placeholders filled; a text that is one placeholder becomes the value itself, of any type."""
    if isinstance(value, Mapping):
        return {key: fill(one, variables, where) for key, one in value.items()}
    if isinstance(value, list):
        return [fill(one, variables, where) for one in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    if value[1:-1] in variables and value == f"{{{value[1:-1]}}}":
        return variables[value[1:-1]]
    try:
        return value.format(**variables)
    except (KeyError, IndexError, ValueError) as error:
        known = ", ".join(variables) or "none"
        raise UserError(f"{where}: {value!r} has a placeholder that nothing fills ({error}); known: {known}.") from None


def _rows(given: Values, trains: Mapping[str, Values]) -> Iterable[Row]:
    _known(f"key of row {given.get('name')!r}", given, ROW)
    if not given.get("name"):
        raise UserError("A row has no name. Give each row a name of its own.")
    for variables in _combinations(given):
        told = fill({key: v for key, v in given.items() if key not in ("arguments", "each")}, variables, given["name"])
        line = told["name"]
        row = Row(
            name=f"{line}/{SEED}{variables[SEED]}" if SEED in variables else line,
            line=line,
            label=told.get("label", line),
            model=told.get("model", ""),
            arguments=given.get("arguments", {}),
            tasks=tuple(told["tasks"]),
            x=None if told.get("x") is None else float(told["x"]),
            trains=trains,
            variables=variables,
            **{key: told[key] for key in ("sample", "chat", "needs", "published", "series", "bank") if key in told},
        )
        for task in row.tasks:
            row.of(task)  # raises where a placeholder or a step is missing
        yield row


def _combinations(given: Values) -> Iterable[dict[str, Any]]:
    each: Mapping[str, Sequence[Any]] = given.get("each", {})
    for values in product(*each.values()):
        yield dict(zip(each, values, strict=True))


def _made(kind: type[Part], given: Values) -> Iterable[Part]:
    """A claim or a plot for each combination."""
    known = [one.name for one in fields(kind)]  # type: ignore[arg-type]
    _known(f"key of a {kind.__name__.lower()}", given, (*known, "each"))
    for variables in _combinations(given):
        own = {key: value for key, value in given.items() if key != "each"}
        told = own if kind is Plot else fill(own, variables, str(given.get("text")))
        try:
            yield kind(**{key: _frozen(value) for key, value in told.items()})
        except TypeError as error:
            raise UserError(f"{kind.__name__} {given.get('text') or given.get('title')!r}: {error}.") from None


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _frozen(one) for key, one in value.items()}
    return tuple(value) if isinstance(value, list) else value


def _known(kind: str, given: Iterable[str], allowed: Iterable[str]) -> None:
    for name in given:
        if name not in allowed:
            raise unknown(kind, name, allowed)


def _check_names(table: Table) -> None:
    seen: set[str] = set()
    for row in table.rows:
        if row.name in seen:
            raise UserError(f"{table.name}: two rows are named {row.name!r}. Give each row a name of its own.")
        seen.add(row.name)
    lines = table.lines()
    for claim in table.claims:
        for name in chain(claim.better, claim.worse, *claim.controls.values(), *claim.bounds.values()):
            if name not in lines:
                raise unknown(f"row in the claim {claim.text!r}:", name, lines)
    for plot in table.plots:
        if plot.kind not in ("curve", "banks"):
            raise unknown("kind of plot", plot.kind, ("curve", "banks"))
        if plot.baseline and plot.baseline not in lines:
            raise unknown(f"row in the plot {plot.title!r}:", plot.baseline, lines)
