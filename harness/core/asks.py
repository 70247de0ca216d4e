"""The one-line helpers by which a method asks; what they yield is in :mod:`lm_eval_rag.harness.core.ask_types`.

Each is a generator that yields one ask and returns its reply, so that a method reads ``passages = yield from
retrieve(query.text, 10)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from lm_eval_rag.harness.core.ask_types import Ask as Ask
from lm_eval_rag.harness.core.ask_types import AskSystem as AskSystem
from lm_eval_rag.harness.core.ask_types import Calculate as Calculate
from lm_eval_rag.harness.core.ask_types import Classify as Classify
from lm_eval_rag.harness.core.ask_types import Embed as Embed
from lm_eval_rag.harness.core.ask_types import Examples as Examples
from lm_eval_rag.harness.core.ask_types import Facts as Facts
from lm_eval_rag.harness.core.ask_types import Generate as Generate
from lm_eval_rag.harness.core.ask_types import HasGraph as HasGraph
from lm_eval_rag.harness.core.ask_types import HasLoglikelihood as HasLoglikelihood
from lm_eval_rag.harness.core.ask_types import Loglikelihood as Loglikelihood
from lm_eval_rag.harness.core.ask_types import Logs as Logs
from lm_eval_rag.harness.core.ask_types import Lookup as Lookup
from lm_eval_rag.harness.core.ask_types import MatchRules as MatchRules
from lm_eval_rag.harness.core.ask_types import Pages as Pages
from lm_eval_rag.harness.core.ask_types import Prepared as Prepared
from lm_eval_rag.harness.core.ask_types import Rank as Rank
from lm_eval_rag.harness.core.ask_types import Recognise as Recognise
from lm_eval_rag.harness.core.ask_types import Retrieve as Retrieve
from lm_eval_rag.harness.core.ask_types import RuleControl as RuleControl
from lm_eval_rag.harness.core.ask_types import RuleOrder as RuleOrder
from lm_eval_rag.harness.core.ask_types import Stated as Stated
from lm_eval_rag.harness.core.ask_types import System as System
from lm_eval_rag.harness.core.ask_types import Together as Together
from lm_eval_rag.harness.core.calculate_values import Calculation
from lm_eval_rag.harness.core.prompts import Prompt
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query, Rule, WebPage

T = TypeVar("T")


def retrieve(text: str, k: int, among: str = "", *, sentences: bool = False) -> Plan[tuple[Passage, ...]]:
    """Ask for the ``k`` best passages for ``text``, of the corpus or of a prepared table; options as in Retrieve."""
    reply: tuple[Passage, ...] = yield Retrieve(text, k, among, sentences)
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


def recognise(text: str) -> Plan[tuple[str | None, str | None]]:
    """Ask which subject and relation a question is about."""
    reply: tuple[str | None, str | None] = yield Recognise(text)
    return reply


def facts(
    subject: str | None = None, relation: str | None = None, *, inverse: bool = False
) -> Plan[tuple[Stated, ...]]:
    """Ask which entities the facts of the whole corpus name; nothing of an unknown subject and relation."""
    if subject is None and relation is None:
        return ()
    reply: tuple[Stated, ...] = yield Facts(subject, relation, inverse)
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
    return (yield from log_probabilities()) == "texts"


def log_probabilities() -> Plan[Logs]:
    """Ask which log-probabilities there are: of any text, of the model's own replies, or none ("")."""
    reply: Logs = yield HasLoglikelihood()
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
