"""The types that pass between tasks, methods and backends: all a stranger must know to write a method.

A method is a generator function over one :class:`Query`. It yields asks (:mod:`lm_eval_rag.harness.core.asks`) and
returns an :class:`Answer`; the driver serves the asks and records a :class:`Trace`. A query holds no gold answer.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")
CALLS = ("Generate", "Loglikelihood", "AskSystem")  # asks that call a model, or a system of one's own
INVERSE_STEP = "^"  # before a step of a rule's path that leads from object to subject, as in SPARQL's property paths
ENTITY, SHORT = ANSWER_FORMS = ("entity", "short")  # what form a task's answers have


@dataclass(frozen=True, slots=True)
class Query:
    """A question as a method sees it.

    Args:
        id: Unique within its task.
        text: The question in words.
        time: ISO date or year the question is about, on CRAG the ISO time at which it was asked; None for neither.
        corpus: Id of the corpus it is asked over (``ruleqa_i/<hash>``; with ``#<question>`` that of the question's own
            pages), or None when there is nothing to retrieve.
        repeat: How often it was asked before in this run (lm_eval's ``repeats``): its samples are drawn anew.
        answer_form: What form the task's answers have: ``entity``, the name of one; or ``short``, any short answer: a
            name, a date, yes or no, a label that the task's instruction names.
    """

    id: str
    text: str
    time: str | None = None
    corpus: str | None = None
    repeat: int = 0
    answer_form: str = ENTITY


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrieved document.

    Args:
        id: Its id in the corpus.
        text: What is put into a prompt.
        score: The retriever's score, higher is better; not comparable between retrievers.
        time: ISO date or year of the fact, or None.
        source: Where it comes from (corpus id, page URL), or "".
        fact: (subject, relation, object) when the document states one fact, else None.
        metadata: Further fields of the document, as JSON values by name; they are not searched and not in prompts.
        sentences: The text in the sentences that evidence is named by, without the title; some may be blank. () if they
            were not asked for (``retrieve(text, k, sentences=True)``), or if the corpus has none; then the passage is
            one piece of evidence, with the index 0. Built corpora have them; a corpus in memory keeps none.
    """

    id: str
    text: str
    score: float = 0.0
    time: str | None = None
    source: str = ""
    fact: tuple[str, str, str] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page that a search returned for a question, as it was read.

    Args:
        number: Its place in the search's order, from 0.
        name: Its title.
        url: Its address.
        snippet: What the search engine says of it.
        modified: When it was last changed, as the search engine says.
        text: Its main text, one paragraph a line, without tables; "" when there is none.
        tables: Its tables in Markdown, each with the page's name above.
        notes: Every fallback that was taken and every cut that was made, by name.
    """

    number: int
    name: str
    url: str
    snippet: str
    modified: str
    text: str
    tables: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: [Entity1, body, Entity2] leads to [Entity1, head, Entity2] (RuleRAG, section 2), or one with a path.

    Args:
        head: Relation that follows.
        body: Relation it follows from; of a longer rule its path in words, the steps joined by ``" / "``.
        support: Number of body facts (temporal: body before head) for which the head holds too.
        body_support: Number of body facts counted.
        confidence: support / body_support, in [0, 1].
        repeat: True for an identity rule (head == body): the relation recurs on the same pair.
        inverse: True for [Entity2, body, Entity1] leads to [Entity1, head, Entity2]; the paper has no such rules.
        path: The steps of a longer rule in order, from Entity1: relations, with ``^`` before one that is followed from
            object to subject; () for a length-1 rule. The paper has no longer rules.
    """

    head: str
    body: str
    support: int = 0
    body_support: int = 0
    confidence: float = 0.0
    repeat: bool = False
    inverse: bool = False
    path: tuple[str, ...] = field(default=(), repr=False)  # hashes of corpora are of the repr, and the body has it too

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations of the body, in order."""
        return tuple(step.removeprefix(INVERSE_STEP) for step in self.path) or (self.body,)

    @property
    def text(self) -> str:
        """The rule in words, in the form the paper gives."""
        if self.path:
            body = " and ".join(_stated(number, step) for number, step in enumerate(self.path, start=1))
            return f"{body} lead to [Entity1, {self.head}, Entity{len(self.path) + 1}]"
        first, second = ("Entity2", "Entity1") if self.inverse else ("Entity1", "Entity2")
        return f"[{first}, {self.body}, {second}] leads to [Entity1, {self.head}, Entity2]"


def _stated(number: int, step: str) -> str:
    """The step of a path from entity ``number`` to the next, as a fact."""
    ends = [f"Entity{number}", f"Entity{number + 1}"]
    first, second = reversed(ends) if step.startswith(INVERSE_STEP) else ends
    return f"[{first}, {step.removeprefix(INVERSE_STEP)}, {second}]"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a method returns.

    Args:
        text: The answer; "" when there is none.
        passages: Every retrieved passage, merged and best first (scoring takes the first k as recall@k).
        rules: The rules that guided it, which may be none; None for a method that goes by none.
        abstained: True when the method declined to answer.
        notes: Every fallback that was taken, by name; one name for one kind, so that they can be counted.
        evidence: The sentences that support the answer, best first: (passage id, index of the sentence from 0). () if
            the method predicts that there are none, None if it does not predict evidence. If all answers of a run
            have None, evidence is not scored; if some have evidence, None counts as ().
        triples: The facts (subject, relation, object) that lead to the answer, as 2WikiMultihopQA asks for; () and None
            as for evidence.
        rationale: The reasoning that led to the answer, without the answer itself; None if the method writes none.
        likelihood: ln P of the reply that holds the answer, and its number of words; set by the run, not by a method.
        confidence: How sure the method is: any finite scale on which more is surer, for risk and coverage; None if the
            method does not say.
    """

    text: str
    passages: tuple[Passage, ...] = ()
    rules: tuple[Rule, ...] | None = None
    abstained: bool = False
    notes: tuple[str, ...] = ()
    evidence: tuple[tuple[str, int], ...] | None = None
    triples: tuple[tuple[str, str, str], ...] | None = None
    rationale: str | None = None
    likelihood: tuple[float, int] | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One served ask.

    Args:
        ask: Name of the ask's type, such as ``Retrieve``.
        request: What was asked, as text (for Generate the whole prompt as sent).
        reply: What came back, shortened to text.
        seconds: Time of the backend's batch divided by its size; the original time when the journal served it.
        prompt_tokens: Tokens read (0 when the backend does not say).
        completion_tokens: Tokens written.
        dropped_passages: Passages left out of the prompt for want of room.
        cut_passages: Passages longer than the room by themselves, of which at most the beginning was shown.
        k: Documents asked for (Retrieve, Rank).
        found: Documents that came back.
        journalled: True when the journal served it.
        finishes: How each sample of a generation ended: ``stop``, ``length`` (truncated), ``content_filter``, or "".
        thinking: What a reasoning model wrote before its answer; it is not scored.
        passages: Ids of the documents that came back (Retrieve).
        source: Who found them: ``run``, or the name of the fallback (Retrieve with ``retriever=run``); else "".
    """

    ask: str
    request: str
    reply: str
    seconds: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dropped_passages: int = 0
    cut_passages: int = 0
    k: int = 0
    found: int = 0
    journalled: bool = False
    finishes: tuple[str, ...] = ()
    thinking: str = ""
    passages: tuple[str, ...] = ()
    source: str = ""

    @property
    def calls(self) -> int:
        """The calls of a model, or of a system of one's own, behind it: a generation has one for each sample."""
        return max(1, len(self.finishes)) if self.ask in CALLS else 0


@dataclass(frozen=True, slots=True)
class Trace:
    """All steps of one query, in order, and why it failed if it did."""

    steps: tuple[Step, ...] = field(default_factory=tuple)
    failure: str | None = None

    def count(self, ask: str) -> int:
        """Number of served asks of one type."""
        return sum(step.ask == ask for step in self.steps)


# What a method is while it runs: it yields asks, is sent replies, and returns T.
Plan = Generator[Any, Any, T]
