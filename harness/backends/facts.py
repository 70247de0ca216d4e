"""Facts of a query's whole corpus, and what a question is about. Look-ups in memory, so the journal is not asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

from lm_eval_rag.harness.backends.corpora import Corpora
from lm_eval_rag.harness.common.errors import CallError, UserError
from lm_eval_rag.harness.core.asks import Facts, Recognise, Stated
from lm_eval_rag.harness.core.backend import Served
from lm_eval_rag.harness.core.types import Query, Step
from lm_eval_rag.harness.data.stated_facts import StatedFacts

SHOWN = 10  # entities that the trace keeps


@dataclass(frozen=True, slots=True)
class RecogniseBackend:
    """Serves Recognise."""

    corpora: Corpora
    batch: int = 4096

    def serve(self, asked: Sequence[tuple[Query, Recognise]]) -> list[Served | CallError]:
        """The subject and the relation of each text.

        Raises:
            UserError: A corpus has neither facts nor rules, and so no relation.
        """
        return [self._recognise(query, ask) for query, ask in asked]

    def _recognise(self, query: Query, ask: Recognise) -> Served:
        began = perf_counter()
        corpus = self.corpora.corpus(query)
        if not corpus.relations:
            raise _without_facts(corpus.id)
        about = self.corpora.bank_of(corpus).recognise(ask.text)
        subject, relation = about.subject, about.relation
        step = Step("Recognise", ask.text, f"{subject}; {relation}", seconds=perf_counter() - began)
        return Served((subject, relation), step)


@dataclass(frozen=True, slots=True)
class FactsBackend:
    """Serves Facts; the facts of a corpus are counted when first asked for."""

    corpora: Corpora
    batch: int = 4096
    _counted: dict[str, StatedFacts] = field(default_factory=dict)

    def serve(self, asked: Sequence[tuple[Query, Facts]]) -> list[Served | CallError]:
        """The entities of each ask.

        Raises:
            UserError: No document of a corpus states a fact.
        """
        return [self._count(query, ask) for query, ask in asked]

    def _count(self, query: Query, ask: Facts) -> Served:
        began = perf_counter()
        stated = self._of(query).stated(ask.subject, ask.relation, ask.inverse)
        asked = (f"subject={ask.subject!r}", f"relation={ask.relation!r}", "inverse" if ask.inverse else "")
        step = Step("Facts", ", ".join(filter(None, asked)), _shown(stated), seconds=perf_counter() - began)
        return Served(stated, step)

    def _of(self, query: Query) -> StatedFacts:
        corpus = self.corpora.corpus(query)
        if corpus.id not in self._counted:
            self._counted.clear()  # one task ends while the next one begins
            self._counted[corpus.id] = StatedFacts(corpus.fact_table())
        counted = self._counted[corpus.id]
        if not counted.known:
            raise _without_facts(corpus.id)
        return counted


def _without_facts(corpus: str) -> UserError:
    return UserError(
        f"No document of the corpus {corpus!r} states a fact (subject, relation, object), and the method looks facts "
        "up. Take a task with facts, such as ruleqa_i, or documents with these three fields."
    )


def _shown(stated: Sequence[Stated]) -> str:
    names = "; ".join(f"{one.entity} ({one.documents})" for one in stated[:SHOWN])
    return names + (f"; {len(stated) - SHOWN} more" if len(stated) > SHOWN else "")
