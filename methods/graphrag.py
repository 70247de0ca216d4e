"""GraphRAG: answers from a graph of the corpus's entities and from reports on its communities (arXiv:2404.16130).

Preparation, once a corpus: passages are split into units of 1,200 tokens that overlap by 100. The model lists the
entities and relations of each unit, and is asked once more for what it missed (a gleaning). Records with equal names
are merged, and the model makes one description of several. Hierarchical Leiden finds communities; one of more than 10
entities is divided again. The model writes a report on each, the finest first: from the entities and relations within
it, those of the highest degrees first; where they exceed 8,000 tokens, reports on its parts take their place. The extra
``graphrag`` has the package.

Question: ``search=global`` is the paper's. The reports of a ``level`` are shuffled into batches of 8,000 tokens. Each
gives an answer with its helpfulness from 0 to 100; those above 0, the most helpful first, give the final answer.
``search=local`` (default, since it answers single questions with one call) is in the authors' code alone: the question
retrieves 10 entities by name and description; shown are the units that name them (half of 8,000 tokens), their
relations, and reports on their communities (a tenth).

Passages: a unit is a part of one passage and never of two, so short passages are units of their own. Local search
returns the passages of the units that were shown, by their own ids, with the units' texts; global search returns none,
so its retrieval is not scored.

``variant=official`` is the authors' code (github.com/microsoft/graphrag at 6dad6d2) where it departs from the paper: an
edge weighs the sum of the strengths that the model gives its relations; in the paper, how often it is stated. 12,000
tokens are shown, not 8,000. Local search retrieves 20 entities (its setting is 10, of which twice as many are taken),
and reports have 0.15 of the tokens. Not taken over: its code keeps the largest connected component alone by default;
its partial answers are lists of points with a score each; reports have ratings, by which local search orders those that
name equally many entities (here the finer is first); claims, which are off by default. Units of 1,200 tokens are its
code's, too; the paper's experiments have 600.

Departures: every unit gets its gleanings. The paper first asks the model yes or no whether something was missed, which
costs one more call a unit; the authors' code asks it after each gleaning but the last, so with one it is as ours. A
gleaning that fails leaves what was extracted (note of the product: ``gleaning failed``). A token is a word or a sign.
The wording of the prompts and the form of the records are ours, without examples. Records that cannot be read are
counted (notes of the product: ``malformed record``, ``unit without records``). Entities without relations are in no
community. Blank or failed descriptions are joined from what they should replace; blank or failed reports are left out.
Without any entity, local search abstains (note ``nothing retrieved``); so does global search without a helpful answer
(notes ``no reports``, ``no helpful report``, ``helpfulness unparsed``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from lm_eval_rag.harness.core.asks import generate, prepared, retrieve, together
from lm_eval_rag.harness.core.parameters import Depth, Natural, Positive
from lm_eval_rag.harness.core.preparing import prepared_by
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query
from lm_eval_rag.methods.graphrag_parts.global_search import batches, most_helpful, partial_of, reports_at
from lm_eval_rag.methods.graphrag_parts.indexing import TYPES, VERSION, Variant, build_graph, estimated_calls
from lm_eval_rag.methods.graphrag_parts.local_search import surroundings
from lm_eval_rag.methods.graphrag_parts.records import Index, index_of
from lm_eval_rag.methods.prompts.worded import Wording, wordings
from lm_eval_rag.methods.reasoning.rationales import answer_or_first_line
from lm_eval_rag.methods.reasoning.steps import STOP, abstention, final, limited

ENTITIES = {"paper": 10, "official": 20}  # that local search retrieves
CONTEXT = {"paper": 8000, "official": 12000}  # tokens
REPORTS = {"paper": 0.1, "official": 0.15}  # share of local search's tokens


@dataclass(frozen=True, slots=True)
class Asker:
    """How a question is asked; see the method's parameters of the same names.

    Args:
        reports: Share of the tokens that local search has for reports.
    """

    k: int
    level: int
    context_tokens: int
    reports: float
    answer_tokens: int
    map_tokens: int
    seed: int

    def answered(self, wording: Wording, passages: list[Passage], question: str, tokens: int) -> Plan[str]:
        """What the model writes."""
        prompt = wording.prompt(passages, question=question)
        return generate(prompt, temperature=0.0, max_tokens=tokens, stop=STOP)


@limited
@prepared_by(build_graph, version=VERSION, estimate=estimated_calls)
def graphrag(
    query: Query,
    *,
    k: Depth | None = None,
    search: Literal["local", "global"] = "local",
    level: Natural = 2,
    context_tokens: Positive | None = None,
    chunk_tokens: Positive = 1200,
    chunk_overlap: Natural = 100,
    gleanings: Natural = 1,
    entity_types: str = TYPES,
    community_size: Positive = 10,
    report_room: Positive = 8000,
    extraction_tokens: Positive = 2000,
    description_tokens: Positive = 500,
    report_tokens: Positive = 2000,
    seed: Natural = 0,
    variant: Variant = "paper",
    map_tokens: Positive = 1000,
    answer_tokens: Positive = 64,
    prompt_file: str | None = None,
    max_calls: Positive | None = None,
) -> Plan[Answer]:
    """Answer from what is around the question's entities, or from the reports on all communities.

    Args:
        k: Entities that local search retrieves; None is 10, and 20 for ``official``.
        search: ``local``, or ``global``.
        level: Level of the communities for global search; 0 is the coarsest. Communities above it that are divided no
            further are read, too.
        context_tokens: Tokens that are shown to answer from: the whole context of local search, each batch of global;
            None is 8,000, and 12,000 for ``official``.
        chunk_tokens: Tokens of a unit.
        chunk_overlap: Tokens of a unit that are those of the unit before.
        gleanings: How often the model is asked for what it has missed.
        entity_types: The types that it is told to look for.
        community_size: Entities of a community that is not divided further.
        report_room: Tokens that a report is written from.
        extraction_tokens: Limit of tokens of the records of a unit.
        description_tokens: Limit of tokens of a description that is made of several.
        report_tokens: Limit of tokens of a report.
        seed: Of the communities, and of the order of reports.
        variant: ``paper``, or what the authors' code does.
        map_tokens: Limit of tokens of an answer from one batch of reports.
        answer_tokens: Limit of tokens of the answer.
        prompt_file: A TOML file with other prompts; it may leave out what it does not change.
        max_calls: Calls of the model for a question, at most; beyond them it abstains. None is no limit: global search
            makes one for each batch of reports. Those of the preparation have ``prepare_max_calls``.
    """
    index = yield from prepared(index_of)
    context = context_tokens or CONTEXT[variant]
    asker = Asker(k or ENTITIES[variant], level, context, REPORTS[variant], answer_tokens, map_tokens, seed)
    return (yield from SEARCHES[search](query.text, index, wordings("graphrag", prompt_file), asker))


def _local(question: str, index: Index, wording: Mapping[str, Wording], asker: Asker) -> Plan[Answer]:
    found = yield from retrieve(question, asker.k, "entities")
    if not found:
        return abstention((), "nothing retrieved")
    chosen = [index.entities[entity.id] for entity in found]
    around = surroundings(index, chosen, asker.context_tokens, asker.reports)
    reply = yield from asker.answered(wording["local"], around.shown(), question, asker.answer_tokens)
    return final(answer_or_first_line(reply), around.passages())


def _global(question: str, index: Index, wording: Mapping[str, Wording], asker: Asker) -> Plan[Answer]:
    parts = batches(reports_at(index, asker.level), asker.context_tokens, asker.seed)
    if not parts:
        return abstention((), "no reports")
    texts = ([Passage(report.id, report.text) for report in part] for part in parts)
    replies = yield from together(asker.answered(wording["map"], part, question, asker.map_tokens) for part in texts)
    partials = [partial_of(reply) for reply in replies]
    notes = ["helpfulness unparsed"] if None in partials else []
    helpful = most_helpful((one for one in partials if one is not None), asker.context_tokens)
    if not helpful:
        return abstention((), *notes, "no helpful report")
    answers = [Passage(f"{place}", one.text) for place, one in enumerate(helpful)]
    reply = yield from asker.answered(wording["reduce"], answers, question, asker.answer_tokens)
    return final(answer_or_first_line(reply), (), notes)


SEARCHES: dict[str, Callable[[str, Index, Mapping[str, Wording], Asker], Plan[Answer]]] = {
    "local": _local,
    "global": _global,
}
