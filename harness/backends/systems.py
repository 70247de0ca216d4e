"""Asking a system of the user's: its replies are kept by the journal, its passages matched with the task's corpus."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import count, takewhile
from typing import Any

from lm_eval_rag.harness.backends.corpora import Corpora
from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.core.asks import AskSystem, System
from lm_eval_rag.harness.core.backend import Served
from lm_eval_rag.harness.core.journal import Call, Journal
from lm_eval_rag.harness.core.types import Answer, Passage, Query, Step
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.systems.exchange import Question, Reply, Retrieved, read_reply, unread_keys
from lm_eval_rag.harness.systems.opening import OpenSystem, open_system

log = logging.getLogger(__name__)
UNKNOWN = "passage not in the corpus"  # note: neither its id nor its text is


@dataclass(slots=True)
class SystemBackend:
    """Serves AskSystem.

    Args:
        corpora: The tasks' corpora, in which passages are looked up.
        journal: Keeps every reply as it arrives.
    """

    corpora: Corpora
    journal: Journal
    gather: int = 0
    _systems: dict[System, OpenSystem] = field(default_factory=dict)
    _rows: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)  # (corpus, column) -> value -> row
    _warned: bool = False
    _unread: bool = False

    async def answer(self, query: Query, ask: AskSystem) -> Served | CallError:
        """The system's answer, with passages of the task's corpus where it names any."""
        if ask.system not in self._systems:
            self._systems[ask.system] = open_system(ask.system)
        system = self._systems[ask.system]
        call = Call(system.fingerprint, ["ask", *asdict(Question.of(query)).values()], query.repeat)

        async def compute() -> tuple[object, float] | CallError:
            reply = await system.ask(query)
            if isinstance(reply, CallError):
                return reply
            self._say_unread(reply[0])
            try:
                return asdict(read_reply(reply[0])), reply[1]
            except CallError as error:
                return error

        outcome = await self.journal.call(call, compute)
        if isinstance(outcome, CallError):
            return outcome
        reply = read_reply(outcome.value)
        return Served(*self._answer(query, reply, outcome.seconds, outcome.journalled))

    def _answer(self, query: Query, reply: Reply, seconds: float, journalled: bool) -> tuple[Answer, Step]:
        passages, notes = self._passages(query, reply.passages or [])
        step = Step(
            "AskSystem",
            query.text,
            reply.answer,
            seconds,
            prompt_tokens=reply.usage.prompt_tokens,
            completion_tokens=reply.usage.completion_tokens,
            k=0 if reply.passages is None else max(1, len(passages)),
            found=len(passages),
            journalled=journalled,
            passages=tuple(passage.id for passage in passages),
        )
        answer = Answer(reply.answer, passages, abstained=reply.abstained, notes=notes, confidence=reply.confidence)
        return answer, step

    def _passages(self, query: Query, retrieved: Sequence[Retrieved]) -> tuple[tuple[Passage, ...], tuple[str, ...]]:
        """The passages, each as the corpus has it where it is there; each once, in order."""
        if not retrieved:  # a corpus of web pages is read only where it is needed
            return (), ()
        corpus = None if self.corpora.key(query) is None and self.corpora.given is None else self.corpora.corpus(query)
        passages: dict[str, Passage] = {}
        unknown = False
        for place, one in enumerate(retrieved):
            rows = [] if corpus is None else self._rows_of(corpus, one)
            if rows and corpus is not None:
                found = [corpus.passage(row, one.score) for row in rows]
            else:
                unknown = unknown or corpus is not None
                found = [Passage(one.id or f"passage {place + 1}", one.text or "", one.score)]
            for passage in found:
                passages.setdefault(passage.id, passage)
        if unknown and corpus is not None:
            self._warn(corpus, retrieved)
        return tuple(passages.values()), (UNKNOWN,) if unknown else ()

    def _rows_of(self, corpus: Corpus, one: Retrieved) -> list[int]:
        """Where a passage stands: by its id, else by its text; a document that was cut stands for its passages."""
        ids = self._places(corpus, "id")
        if one.id is not None and one.id in ids:
            return [ids[one.id]]
        if one.text is not None and one.text in self._places(corpus, "text"):
            return [self._places(corpus, "text")[one.text]]
        parts = (ids.get(f"{one.id}#{i}") for i in count())
        return list(takewhile(lambda row: row is not None, parts)) if one.id is not None else []  # type: ignore[arg-type]

    def _warn(self, corpus: Corpus, retrieved: Sequence[Retrieved]) -> None:
        """Say once that the system names passages of its own, which no score by ids can know."""
        if not self._warned:
            self._warned = True
            own = next((one.id for one in retrieved if one.id is not None and not self._rows_of(corpus, one)), None)
            log.warning(
                "The system returned passages that are not in the corpus%s. Ids of the corpus look like %r; the exact "
                "text of a passage will do too. Others count for recall by their texts, and for no score by ids.",
                "" if own is None else f", such as {own!r}", corpus.passage(0).id,
            )  # fmt: skip

    def _say_unread(self, reply: Any) -> None:
        """Say once that a reply has keys of no meaning: passages under another name are not scored."""
        unread = [] if self._unread else unread_keys(reply)
        if unread:
            self._unread = True
            log.warning(
                "The system's reply has %s, which is not read. docs/your_system.md has the keys that are.",
                ", ".join(map(repr, unread)),
            )

    def _places(self, corpus: Corpus, column: str) -> dict[str, int]:
        """Value -> row, of ids or texts; made once, when it is first needed."""
        if (corpus.id, column) not in self._rows:
            values = corpus.ids.to_pylist() if column == "id" else corpus.texts
            self._rows[corpus.id, column] = {value: row for row, value in reversed(list(enumerate(values)))}
        return self._rows[corpus.id, column]

    async def close(self) -> None:
        """Close every system."""
        for system in self._systems.values():
            await system.close()
        self._systems.clear()
