"""Running a method without lm_eval: on one's own questions, documents and rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from lm_eval_rag.harness.backends.corpora import Corpora
from lm_eval_rag.harness.backends.lookup import Graphs
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.contract import check_method, name_of
from lm_eval_rag.harness.core.driver import WINDOW, Driver, Method
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.parameters import bind, preset_of
from lm_eval_rag.harness.core.preparing import preparation_of
from lm_eval_rag.harness.core.progress import Bar
from lm_eval_rag.harness.core.types import Answer, Query, Trace
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.documents.intake import as_corpus
from lm_eval_rag.harness.documents.records import is_table
from lm_eval_rag.harness.documents.rule_files import MINE, read_rules
from lm_eval_rag.harness.generators.base import Decoding, Generator
from lm_eval_rag.harness.kg import KnowledgeGraph, open_graph
from lm_eval_rag.harness.plugin.preparation_jobs import Job, Work, ensure, work_of
from lm_eval_rag.harness.plugin.preparation_run import DECODING, OnStep, PreparationRun, without_system
from lm_eval_rag.harness.plugin.serving import Resources, backends


@dataclass(frozen=True, slots=True)
class Engine:
    """All that serves a run's asks.

    Args:
        corpora: Passages, rules and worked examples.
        generator: The language model; None when no method here needs one.
        journal: Where finished calls are kept.
        max_prompt_tokens: The most tokens of a prompt, beside the model's own context length.
        gold: Gold answers by (corpus, query id), for the oracle control of rules alone.
        kg: The knowledge graph of all queries whose corpus does not exclude one; None takes each corpus's own.
        window: The most questions in flight.
        prices: US dollars per million prompt tokens and per million completion tokens, to show the cost.
        prepare_max_calls: The most calls of the method's preparation, if it has one; None for the default.
        on_prepare_step: Told of every step of a preparation.
        prepared: Gets what the products of a preparation cost, by the preparation's name.
    """

    corpora: Corpora
    generator: Generator | None
    journal: Journal
    max_prompt_tokens: int | None = None
    gold: Mapping[tuple[str | None, str], Sequence[str]] = field(default_factory=dict)
    kg: KnowledgeGraph | None = None
    window: int = WINDOW
    prices: tuple[float, float] | None = None
    prepare_max_calls: int | None = None
    on_prepare_step: OnStep = lambda query, step: None
    prepared: dict[str, Any] = field(default_factory=dict)

    def run(
        self,
        method: Method,
        queries: Sequence[Query],
        *,
        decoding: Decoding | None = None,
        name: str = "questions",
        keep: Callable[[Query, Answer, Trace], Any] = lambda _, *result: result,
    ) -> list[Any]:
        """Answer every query; what ``keep`` makes of each, by default (answer, trace), in their order."""
        resources = Resources(
            self.corpora, Graphs(self.kg), self.journal, decoding or Decoding(), self.max_prompt_tokens, self.gold
        )
        served = backends(resources, self.generator)
        try:
            self._prepare(method, queries)
            with closing(self._bar(len(queries), name)) as bar:
                return Driver(method, served, bar, self.window).run(queries, keep)
        finally:
            self.corpora.reading.close()

    def _bar(self, total: int | None, name: str, unit: str = "questions") -> Bar:
        places = self.generator.batch if self.generator else None
        return Bar(total, name, unit=unit, places=places, prices=self.prices)

    def _prepare(self, method: Method, queries: Sequence[Query]) -> None:
        """Run the method's preparation over the corpora of the queries, unless their products are stored."""
        preparation = preparation_of(method)
        if preparation is None or not queries:
            return
        name, limit, most = name_of(method), self.max_prompt_tokens, self.prepare_max_calls
        with without_system(self.generator):
            work = work_of(name, method, preparation, self.corpora, self.generator, limit, most)
            self.prepared[preparation.name] = ensure(work, queries, partial(self._run_preparation, work))

    def _run_preparation(self, work: Work, jobs: Sequence[Job], journal: str, calls: int) -> None:
        path = self.journal.path.with_name(f"{journal}.sqlite") if self.journal.path else None
        run = PreparationRun(work, jobs, self.prices, self.on_prepare_step, path)
        with (
            closing(Journal(path, journal)) as kept,
            closing(self._bar(calls or None, f"preparation of {work.name}", "calls")) as bar,
        ):
            resources = Resources(self.corpora, Graphs(self.kg), kept, DECODING, self.max_prompt_tokens)
            run.run(backends(resources, self.generator), bar)


def run(
    method: Callable[..., Any],
    questions: Iterable[str | Query],
    *,
    corpus: Any = None,
    rules: Any = (),
    examples: Iterable[tuple[Query, str]] = (),
    generator: Generator | str | None = None,
    retriever: str | None = None,
    kg: KnowledgeGraph | str | Path | None = None,
    journal: str | Path | None = None,
    decoding: Decoding | None = None,
    prepare_max_calls: int | None = None,
    **parameters: Any,
) -> list[tuple[Answer, Trace]]:
    """Run a method on one's own questions.

    Args:
        method: A method's generator function.
        questions: Texts or queries.
        corpus: Documents: a corpus, passages, texts, dictionaries, frames, a folder, a file or ``hub:ORG/NAME``, as
            :func:`lm_eval_rag.harness.documents.intake.read_documents` reads them.
        rules: The rule bank, for methods that follow rules: rules, ``mine``, or a table of rules or facts, as
            :func:`lm_eval_rag.harness.documents.rule_files.read_rules` reads it; any other text is the method's
            parameter of that name.
        examples: (query, answer) pairs for ``shots=``.
        generator: A generator, or the name of one; None for the method's own (``rulerag_ft``), if it has one.
        retriever: Name of the retriever; None for the method's own, else ``bm25``.
        kg: A knowledge graph: a folder of CRAG's files, the address of a server, or an object that serves calls.
        journal: A SQLite file in which finished calls are kept; None keeps none.
        decoding: How continuations are drawn where the method leaves it open.
        prepare_max_calls: The most calls of the method's preparation, if it has one; None is 10,000.
        parameters: The method's own parameters, and the retriever's, written ``retriever_NAME``.

    Returns:
        (answer, trace) in the order of the questions.

    Raises:
        UserError: A method that breaks its contract, bad parameters, or an ask that nothing serves.
    """
    check_method(method)
    if isinstance(rules, str) and rules != MINE and not is_table(rules):
        parameters["rules"], rules = rules, ()
    options = {name: parameters.pop(name) for name in list(parameters) if name.startswith("retriever_")}
    named = {"retriever": retriever, "generator": generator}
    preset = preset_of(method, {name: value for name, value in named.items() if value is not None})
    options = {name: value for name, value in preset.items() if name.startswith("retriever_")} | options
    bound = bind(method, parameters)
    queries = [q if isinstance(q, Query) else Query(f"q{i}", q) for i, q in enumerate(questions)]
    engine = Engine(
        corpora=Corpora(
            retriever or preset.get("retriever", "bm25"),
            {name.removeprefix("retriever_"): value for name, value in options.items()},
            _corpus(corpus, rules, examples),
        ),
        generator=as_generator(preset.get("generator") if generator is None else generator),
        journal=Journal(Path(journal) if journal is not None else None, "run"),
        kg=open_graph(kg) if isinstance(kg, str | Path) else kg,
        prepare_max_calls=prepare_max_calls,
    )
    try:
        return engine.run(bound, queries, decoding=decoding)
    finally:
        engine.journal.close()


def _corpus(documents: Any, rules: Any, examples: Iterable[tuple[Query, str]]) -> Corpus | None:
    """Documents with the rule bank that the user wants; None without documents."""
    corpus = as_corpus(documents, examples=examples)
    if corpus is None:
        return None
    mine = isinstance(rules, str) and rules == MINE
    passages = corpus.passages([(row, 0.0) for row in range(len(corpus))]) if mine else ()
    return as_corpus(corpus, read_rules(rules, passages))


def as_generator(given: Generator | str | None) -> Generator | None:
    """A generator from its name, or as it is."""
    if isinstance(given, str):
        from lm_eval_rag.harness.generators.lm import LMGenerator
        from lm_eval_rag.harness.generators.spec import ModelSpec

        return LMGenerator(ModelSpec(given))
    if given is not None and not hasattr(given, "generate"):
        raise UserError(f"generator={given!r} is not allowed: give a name or an object with generate().")
    return given
