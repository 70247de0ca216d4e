"""What a method may ask for, and the one-line helpers it asks with.

Each ask is a frozen dataclass; each helper is a generator that yields one ask and returns its reply, so that a method
reads ``passages = yield from retrieve(query.text, 10)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from lm_eval_rag.harness.core.calculate_values import Calculation
from lm_eval_rag.harness.core.prompts import Prompt
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query, Rule, WebPage

T = TypeVar("T")
RuleOrder = Literal["confidence_support", "confidence"]
RuleControl = Literal["selected", "random", "shuffled", "oracle"]


@dataclass(frozen=True, slots=True)
class Retrieve:
    """The ``k`` best passages of the query's corpus for ``text``, best first, ties by document id.

    Args:
        among: A table of the method's preparation that is searched in place of the corpus; "" is the corpus.
    """

    text: str
    k: int
    among: str = ""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the method's preparation made of the query's corpus.

    Args:
        read: Makes of the tables (rows by name) what the method needs; called once a corpus. Name a function, no
            lambda: its results are kept by it.
    """

    read: Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Embed:
    """A vector for each text: float32 (texts, dimensions), by the run's retriever if it is an encoder.

    Other runs take the untrained tower of the embedded encoder ``static``.
    """

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages that come with the query, read: without repeated ones, in the search's order."""


@dataclass(frozen=True, slots=True)
class Rank:
    """The ``k`` best of ``texts`` for ``text``, by the run's retriever over these alone; blank ones are left out."""

    text: str
    texts: tuple[str, ...]
    k: int


@dataclass(frozen=True, slots=True)
class MatchRules:
    """At most ``k`` rules whose head is the relation recognised in ``text``, best first.

    Args:
        order: ``confidence_support`` ranks by confidence x sqrt(support), ``confidence`` by confidence alone.
        control: ``selected`` (those rules), or a control: ``random`` (as many, another head), ``shuffled`` (the same
            head, bodies of other rules), ``oracle`` (those whose body reaches a gold answer; an upper bound).
        repeat: Whether identity rules may be among them.
        seed: Of the random controls.
    """

    text: str
    k: int
    order: RuleOrder = "confidence_support"
    control: RuleControl = "selected"
    repeat: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Examples:
    """``n`` fixed, seeded (query, answer) pairs of the corpus's generator training set F_G, never of its test set."""

    n: int
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Generate:
    """``n`` continuations of a prompt.

    Args:
        prompt: Text, or a :class:`Prompt` whose lowest-ranked passages may be dropped to fit the context.
        n: Number of samples; draws of one request are numbered, so that the journal can tell them apart.
        temperature: 0 is greedy; None leaves it to the task.
        max_tokens: Per sample; None leaves it to the task (``max_gen_toks``).
        stop: Strings that end a sample; None leaves them to the task (``until``).
    """

    prompt: Prompt | str
    n: int = 1
    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Loglikelihood:
    """The natural-log probability of ``continuation`` after ``prompt``."""

    prompt: Prompt | str
    continuation: str


@dataclass(frozen=True, slots=True)
class HasLoglikelihood:
    """Whether the run's generator gives log-probabilities of a prompt's continuation; chat APIs do not."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """A call of a knowledge-graph API function (:mod:`lm_eval_rag.harness.kg.functions`), arguments by name."""

    function: str
    arguments: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class HasGraph:
    """Whether the query comes with a knowledge graph, so that looking up is worth a thought."""


@dataclass(frozen=True, slots=True)
class Calculate:
    """The value of an expression a model wrote, or why it is refused (:mod:`~lm_eval_rag.harness.core.calculate`)."""

    expression: str


@dataclass(frozen=True, slots=True)
class Classify:
    """The label of ``text`` for one attribute, by a classifier (:mod:`lm_eval_rag.harness.retrieval.classifier`).

    Args:
        attribute: Such as ``domain``.
        model: The classifier's folder.
    """

    text: str
    attribute: str
    model: str


@dataclass(frozen=True, slots=True)
class System:
    """A system of the user's, as the parameters of the method ``external`` describe it."""

    function: str | None = None
    url: str | None = None
    model: str = ""
    key_env: str | None = None
    batch: int = 1
    concurrency: int = 8
    timeout: float = 300.0
    tries: int = 5


@dataclass(frozen=True, slots=True)
class AskSystem:
    """The whole answer of a system of the user's to the question."""

    system: System


@dataclass(frozen=True, slots=True)
class Together:
    """What several plans return, in their order; the driver runs them at once, so that their asks meet in batches."""

    plans: tuple[Plan[Any], ...]


Ask = (
    Retrieve
    | Prepared
    | Embed
    | Pages
    | Rank
    | MatchRules
    | Examples
    | Generate
    | Loglikelihood
    | HasLoglikelihood
    | Lookup
    | HasGraph
    | Calculate
    | Classify
    | AskSystem
    | Together
)


def retrieve(text: str, k: int, among: str = "") -> Plan[tuple[Passage, ...]]:
    """Ask for the ``k`` best passages for ``text``, of the corpus or of a prepared table."""
    reply: tuple[Passage, ...] = yield Retrieve(text, k, among)
    return reply


def prepared(read: Callable[[Mapping[str, Any]], T]) -> Plan[T]:
    """Ask for what the method's preparation made, as ``read`` makes it of the tables."""
    reply: T = yield Prepared(read)
    return reply


def embed(texts: Iterable[str]) -> Plan[Any]:
    """Ask for the vectors of texts: float32 (texts, dimensions)."""
    reply: Any = yield Embed(tuple(texts))
    return reply


def pages() -> Plan[tuple[WebPage, ...]]:
    """Ask for the query's own pages; () where it comes with none."""
    reply: tuple[WebPage, ...] = yield Pages()
    return reply


def rank(text: str, texts: Iterable[str], k: int) -> Plan[tuple[tuple[int, float], ...]]:
    """Ask which ``k`` of the texts fit best: (place, score), best first, ties by place."""
    reply: tuple[tuple[int, float], ...] = yield Rank(text, tuple(texts), k)
    return reply


def match_rules(text: str, k: int, **options: Any) -> Plan[tuple[Rule, ...]]:
    """Ask for at most ``k`` rules for the relation in ``text``; options as in :class:`MatchRules`."""
    if not k:
        return ()
    reply: tuple[Rule, ...] = yield MatchRules(text, k, **options)
    return reply


def examples(n: int, seed: int = 0) -> Plan[tuple[tuple[Query, str], ...]]:
    """Ask for ``n`` worked examples of the generator training set; for none, nothing is asked."""
    if not n:
        return ()
    reply: tuple[tuple[Query, str], ...] = yield Examples(n, seed)
    return reply


def generate(prompt: Prompt | str, **options: Any) -> Plan[str]:
    """Ask for one continuation; options as in :class:`Generate`."""
    reply: tuple[str, ...] = yield Generate(prompt, **options)
    return reply[0]


def sample(prompt: Prompt | str, n: int, temperature: float, **options: Any) -> Plan[tuple[str, ...]]:
    """Ask for ``n`` sampled continuations."""
    reply: tuple[str, ...] = yield Generate(prompt, n=n, temperature=temperature, **options)
    return reply


def loglikelihood(prompt: Prompt | str, continuation: str) -> Plan[float]:
    """Ask how probable a continuation is (natural log)."""
    reply: float = yield Loglikelihood(prompt, continuation)
    return reply


def has_loglikelihood() -> Plan[bool]:
    """Ask whether ``loglikelihood`` can be served; if not, a method takes a proxy and names it in its notes."""
    reply: bool = yield HasLoglikelihood()
    return reply


def lookup(function: str, **arguments: Any) -> Plan[Any]:
    """Ask the knowledge graph; None or an empty list when it knows nothing, a CallError when the call fails."""
    reply: Any = yield Lookup(function, tuple(sorted(arguments.items())))
    return reply


def has_graph() -> Plan[bool]:
    """Ask whether the query comes with a knowledge graph."""
    reply: bool = yield HasGraph()
    return reply


def calculate(expression: str) -> Plan[Calculation]:
    """Ask for the value of an expression; a refusal is a reply, never an error."""
    reply: Calculation = yield Calculate(expression)
    return reply


def classify(text: str, attribute: str, model: str) -> Plan[str]:
    """Ask a trained classifier for the label of a text."""
    reply: str = yield Classify(text, attribute, model)
    return reply


def ask_system(system: System) -> Plan[Answer]:
    """Ask a system of the user's."""
    reply: Answer = yield AskSystem(system)
    return reply


def together(plans: Iterable[Plan[T]]) -> Plan[tuple[T, ...]]:
    """Run several plans at once, as in ``yield from together(retrieve(hop, 5) for hop in hops)``.

    Raises:
        CallError: Of the first plan in order that did not handle one, once all plans have ended.
    """
    reply: tuple[T, ...] = yield Together(tuple(plans))
    return reply
