"""The types of asks: what a method may ask for, each a frozen dataclass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lm_eval_rag.harness.common.loading import Loaded
from lm_eval_rag.harness.core.prompts import Prompt
from lm_eval_rag.harness.core.types import Plan

RuleOrder = Literal["confidence_support", "confidence"]
Logs = Literal["texts", "replies", ""]  # log-probabilities of any text, of own replies, or none
RuleControl = Literal["selected", "random", "shuffled", "permuted", "matched", "oracle"]


@dataclass(frozen=True, slots=True)
class Retrieve:
    """The ``k`` best passages of the query's corpus for ``text``, best first, ties by document id.

    Args:
        among: A table of the method's preparation that is searched in place of the corpus; "" is the corpus.
        sentences: Whether the passages come with their numbered sentences, which evidence is named by.
    """

    text: str
    k: int
    among: str = ""
    sentences: bool = False


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
            head, bodies of other rules), ``permuted`` and ``matched`` (the same head, bodies that subjects of the head
            have, with as many documents or of the same confidence), ``oracle`` (those whose body reaches a gold answer;
            an upper bound).
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
class Recognise:
    """The (subject, relation) that ``text`` asks about, as the rule bank recognises them; None where unknown."""

    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Which entities the facts of the query's whole corpus name, and how often: :class:`Stated`, most frequent first.

    They are the objects of the facts about ``subject`` with ``relation``; None stands for any. With ``inverse`` they
    are the subjects of the facts whose object is ``subject``. Ties are in alphabetical order.
    """

    subject: str | None = None
    relation: str | None = None
    inverse: bool = False


@dataclass(frozen=True, slots=True)
class Stated:
    """An entity that documents name.

    Args:
        documents: Number of these documents.
        last: The most recent time among them; None if they have none.
    """

    entity: str
    documents: int
    last: str | None = None


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
        thinking: Whether what a model thinks before its answer (``<think>``) stays in the sample, as it wrote it.
        alternatives: How many of the likeliest first tokens come with a :class:`.Written` sample, 0 to 20; other
            samples come without.
    """

    prompt: Prompt | str
    n: int = 1
    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] | None = None
    thinking: bool = False
    alternatives: int = 0


@dataclass(frozen=True, slots=True)
class Loglikelihood:
    """The natural-log probability of ``continuation`` after ``prompt``.

    One space at its beginning stands for what separates a prompt and a reply. It stays in raw text, and where the
    prompt has begun the reply. In a chat what the model's template has there replaces it: mostly nothing.
    """

    prompt: Prompt | str
    continuation: str


@dataclass(frozen=True, slots=True)
class HasLoglikelihood:
    """Which log-probabilities the run's generator gives.

    ``texts``: of any continuation of a prompt (:class:`Loglikelihood`). ``replies``: only of what it writes itself,
    with it (:class:`.Written`); a chat API with ``gen_logprobs=True``. "": none, such as other chat APIs.
    """


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

    function: str | Loaded | None = None
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
    | Recognise
    | Facts
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
