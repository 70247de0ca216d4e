"""Preparations: what a method makes of a whole corpus before the first question over it.

A preparation is a generator function of a corpus's passages. It asks as a method does, and returns a :class:`Product`:
tables, which are stored and opened by later runs. A method names it by a decorator::

    @prepared_by(grow_tree, version="raptor-1", estimate=estimated, embeds=True)
    def raptor(query: Query, *, leaf_tokens: Positive = 100, ...) -> Plan[Answer]:
        tree = yield from prepared(Tree.of)
        nodes = yield from retrieve(query.text, 20, "nodes")

Its keyword parameters are among the method's, by name, and have their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from lm_eval_rag.harness.common.errors import CallError, PermanentError, UserError
from lm_eval_rag.harness.core.asks import together
from lm_eval_rag.harness.core.parameters import defaults
from lm_eval_rag.harness.core.types import Passage, Plan

S = TypeVar("S")
T = TypeVar("T")
Method = TypeVar("Method", bound=Callable[..., Any])
Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]
SLICE = 1024  # plans that are under way at once
FAILURES = 0.01  # share of plans that may fail: a filtered reply must not cost the work of a whole corpus


@dataclass(frozen=True, slots=True)
class Product:
    """What a preparation returns.

    Args:
        tables: Rows by the table's name. The rows of a table have the same columns, with JSON values. A table whose
            columns ``id`` (unique) and ``text`` are texts can be retrieved from.
        notes: How often each fallback was taken, by name.
    """

    tables: Tables
    notes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a preparation will about need.

    Args:
        chunks: Chunks of text that it reads.
        calls: Calls of the model.
        seconds: Of its own computing beside these calls, on one core.
    """

    chunks: int
    calls: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Preparation:
    """A method's preparation.

    Args:
        function: The generator function.
        version: Of its code and prompts; products of another version are not opened.
        estimate: Of some of the passages, with the function's keyword parameters.
        embeds: Whether it asks Embed, so that its product depends on the run's encoder.
    """

    function: Callable[..., Plan[Product]]
    version: str
    estimate: Callable[..., Estimate]
    embeds: bool = False

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__


def prepared_by(
    function: Callable[..., Plan[Product]], *, version: str, estimate: Callable[..., Estimate], embeds: bool = False
) -> Callable[[Method], Method]:
    """Gives a method a preparation; the arguments are those of :class:`Preparation`."""

    def mark(method: Method) -> Method:
        method.preparation = Preparation(function, version, estimate, embeds)  # type: ignore[attr-defined]
        return method

    return mark


def preparation_of(method: Callable[..., Any]) -> Preparation | None:
    """The preparation of a method, bound or not; None if it has none."""
    while isinstance(method, partial):
        method = method.func
    return getattr(method, "preparation", None)


def options_of(preparation: Preparation, method: Callable[..., Any]) -> dict[str, Any]:
    """The preparation's keyword parameters, with the values that the method has for them.

    Raises:
        UserError: It has one that the method lacks.
    """
    values, names = defaults(method), defaults(preparation.function)
    missing = sorted(set(names) - set(values))
    if missing:
        raise UserError(
            f"The preparation {preparation.name!r} has the parameters {', '.join(missing)}, which its method lacks. "
            "Give the method keyword parameters of these names."
        )
    return {name: values[name] for name in names}


def for_each(items: Sequence[S], ask: Callable[[S], Plan[T]]) -> Plan[list[T | CallError]]:
    """``ask`` of every item, in order, with a bounded number under way at once.

    Returns:
        What each returned. A CallError stands for one that failed.

    Raises:
        CallError: More have failed than :func:`check_failures` allows.
    """
    replies: list[T | CallError] = []
    for start in range(0, len(items), SLICE):
        replies += yield from together(_caught(ask(item)) for item in items[start : start + SLICE])
        check_failures([reply for reply in replies if isinstance(reply, CallError)], len(items))
    return replies


def check_failures(failures: Sequence[CallError], all: int) -> None:
    """Raise one of the failures if they are more than ``FAILURES`` of all.

    One that another run would meet again, a PermanentError, is allowed however few there are in all.
    """
    passing = [failure for failure in failures if not isinstance(failure, PermanentError)]
    if len(failures) > FAILURES * all and (passing or len(failures) > 1):
        raise (passing or failures)[0]


def _caught(plan: Plan[T]) -> Plan[T | CallError]:
    try:
        return (yield from plan)
    except CallError as error:
        return error


def checked_product(preparation: Preparation, product: Any) -> Product:
    """The product, if it is one that can be stored.

    Raises:
        UserError: It is none, a table's rows differ in their columns, or its ids are not unique texts.
    """
    name = preparation.name
    if not isinstance(product, Product):
        raise UserError(
            f"The preparation {name!r} returns a {type(product).__name__}. End it with `return Product(...)`."
        )
    for table, rows in product.tables.items():
        if not table.isidentifier():
            raise UserError(f"The preparation {name!r} names a table {table!r}. Give letters, digits and _ alone.")
        if len({tuple(sorted(row)) for row in rows}) > 1:
            raise UserError(f"The preparation {name!r} returns rows of {table!r} that differ in their columns.")
        for text in ("id", "text"):
            if any(text in row and not isinstance(row[text], str) for row in rows):
                raise UserError(f"The preparation {name!r} returns rows of {table!r} whose {text} is no text.")
        ids = [row["id"] for row in rows if "id" in row]
        if len(set(ids)) < len(ids):
            raise UserError(f"The preparation {name!r} returns rows of {table!r} that share an id.")
    return product


@dataclass(frozen=True, slots=True)
class Part(Sequence[Passage]):
    """Some passages of a long sequence, evenly spaced, for an estimate."""

    whole: Sequence[Passage]
    most: int

    def __len__(self) -> int:
        return min(self.most, len(self.whole))

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[i] for i in range(len(self))[place]]
        return self.whole[range(len(self))[place] * len(self.whole) // len(self)]

    def __iter__(self) -> Iterator[Passage]:
        return (self[i] for i in range(len(self)))


def estimated(preparation: Preparation, passages: Sequence[Passage], options: Mapping[str, Any], most: int) -> Estimate:
    """About what a preparation will need, from at most ``most`` of the passages."""
    part = Part(passages, most)
    estimate = preparation.estimate(part, **options)
    scale = len(passages) / len(part) if len(part) else 0
    return Estimate(round(estimate.chunks * scale), round(estimate.calls * scale), estimate.seconds * scale)
