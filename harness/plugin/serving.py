"""What serves a run's asks: :data:`BACKENDS` is the table of them, one line an ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lm_eval_rag.harness.backends.calculation import CalculateBackend
from lm_eval_rag.harness.backends.classification import ClassifyBackend
from lm_eval_rag.harness.backends.corpora import Corpora, ExamplesBackend, RetrieveBackend, RulesBackend
from lm_eval_rag.harness.backends.facts import FactsBackend, RecogniseBackend
from lm_eval_rag.harness.backends.generation import (
    GenerateBackend,
    HasLoglikelihoodBackend,
    LoglikelihoodBackend,
    OpenStream,
)
from lm_eval_rag.harness.backends.lookup import Graphs, HasGraphBackend, LookupBackend
from lm_eval_rag.harness.backends.own_pages import PagesBackend, RankBackend
from lm_eval_rag.harness.backends.preparation import EmbedBackend, PreparedBackend
from lm_eval_rag.harness.backends.systems import SystemBackend
from lm_eval_rag.harness.core import asks
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.generators.base import Decoding, Generator


@dataclass(frozen=True, slots=True)
class Resources:
    """What backends are made of.

    Args:
        corpora: Passages, pages, rules and worked examples.
        graphs: Knowledge graphs.
        journal: Where finished calls are kept.
        decoding: How continuations are drawn where the method leaves it open.
        limit: The most tokens of a prompt, beside the model's own context length.
        gold: Gold answers by (corpus, query id), for the oracle control of rules alone.
    """

    corpora: Corpora
    graphs: Graphs
    journal: Journal
    decoding: Decoding = field(default_factory=Decoding)
    limit: int | None = None
    gold: Mapping[tuple[str | None, str], Sequence[str]] = field(default_factory=dict)


# ask -> its backend
BACKENDS: dict[type, Callable[[Resources], Any]] = {
    asks.Retrieve: lambda of: RetrieveBackend(of.corpora, of.journal),
    asks.Prepared: lambda of: PreparedBackend(of.corpora),
    asks.Embed: lambda of: EmbedBackend(of.corpora),
    asks.MatchRules: lambda of: RulesBackend(of.corpora, of.gold),
    asks.Recognise: lambda of: RecogniseBackend(of.corpora),
    asks.Facts: lambda of: FactsBackend(of.corpora),
    asks.Examples: lambda of: ExamplesBackend(of.corpora),
    asks.Pages: lambda of: PagesBackend(of.corpora),
    asks.Rank: lambda of: RankBackend(of.corpora, of.journal),
    asks.Lookup: lambda of: LookupBackend(of.graphs, of.journal),
    asks.HasGraph: lambda of: HasGraphBackend(of.graphs),
    asks.Calculate: lambda of: CalculateBackend(),
    asks.Classify: lambda of: ClassifyBackend(of.journal),
    asks.AskSystem: lambda of: SystemBackend(of.corpora, of.journal),
}

# ask -> its backend, in runs with a generator
OF_GENERATOR: dict[type, Callable[[Resources, OpenStream], Any]] = {
    asks.Generate: lambda of, stream: GenerateBackend(stream, journal=of.journal, decoding=of.decoding, limit=of.limit),
    asks.Loglikelihood: lambda of, stream: LoglikelihoodBackend(stream, journal=of.journal, limit=of.limit),
    asks.HasLoglikelihood: lambda of, stream: HasLoglikelihoodBackend(stream.generator),
}


def backends(resources: Resources, generator: Generator | None) -> dict[type, Any]:
    """The backend of each ask that this run can serve."""
    served = {ask: make(resources) for ask, make in BACKENDS.items()}
    if generator is not None:
        stream = OpenStream(generator)
        served |= {ask: make(resources, stream) for ask, make in OF_GENERATOR.items()}
    return served
