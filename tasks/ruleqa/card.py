"""The dataset card of a built set: numbers compared with the paper's, slices, overlap, noise, departures, terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lm_eval_rag.harness.common.card_table import card_table
from lm_eval_rag.harness.data.sources import Source
from lm_eval_rag.tasks.ruleqa.partners import MIN_SHARE, MIN_TRIPLES
from lm_eval_rag.tasks.ruleqa.queries import POPULARITY
from lm_eval_rag.tasks.ruleqa.specs import FRESH, Spec

ALL = (
    "Rules have length 1 and are mined exactly, from D only. The paper's rule bank is different.",
    "The gold answers of a question are all objects of the held-out facts with its subject, relation and time.",
    "Entities whose names scoring cannot distinguish get a note or a number in parentheses.",
    "Aliases are right answers too: names from the sources' label files, and names without such a note. An alias that "
    "is another entity's name is not. F_R and F_G have the names alone.",
    "Facts whose subject is their object are left out.",
    "rule_required questions are at least a third of Q, also where fewer of the held-out questions are. Compare means "
    "of Q with this in mind, or read them by slice.",
)
TEMPORAL = (
    "D contains the training facts. The published size of RuleQA-I's D equals training plus validation facts; "
    "`corpus=train_valid` builds this D, which then states the answers of F_R and F_G.",
    "F_R and F_G are two halves of the validation questions; Q is sampled from the test facts. F_R and F_G have no "
    "fact (subject, relation, object) that a question has, nor its reverse under a symmetric or inverse relation.",
)
YEARLY = (
    "One fact per year: a fact that holds for n years is n documents. A fact whose end is unknown goes on to the last "
    "year, in D and in the test part, so that most answers are what held before: read the slice `changed`.",
    "Q has at most one question of each subject and relation, drawn at random. More would be near-copies.",
)
STATIC = (
    "No entity pair of FB15k-237's official test set occurs in its training set, in either direction, so no document "
    "could support a test question. Therefore all splits are pooled. A (subject, relation) group is eligible if it has "
    "at most 5 objects and one of its entity pairs has another relation too. 30 % of the eligible groups are held out, "
    "a third each for Q, F_R and F_G. D is the rest; no document has a held-out subject and relation.",
    "D has 6 to 7 times the published number of documents. The published D of FB15k-237 has about as many documents as "
    "its training set has facts on entity pairs with two relations or more; the paper does not say how it was chosen. "
    "Here D has all facts, so that retrieval has to find those that matter.",
    "Q, F_R and F_G share no entity pair, in either direction: groups of F_R and F_G that shared one were dropped. D "
    "has no fact that states a held-out fact reversed under a symmetric or inverse relation.",
)
FEW = (
    "The bank contains every rule with a support of at least 2, including identity rules. Rules of length 1 are fewer "
    "than the published number. There are too few rule_required questions for a claim about rules.",
    "Q has few relations, and one of them has nearly half of the questions. So intervals and tests are clustered by "
    "subject alone, not by relation as on the other sets, and say nothing of other relations.",
)
BY_GRAPH: Mapping[str, tuple[str, ...]] = {
    "icews14": (*TEMPORAL, "Identity rules come after the bank's 557 rules and are marked `repeat`."),
    "yago": (
        *TEMPORAL,
        *YEARLY,
        *FEW,
        "Cross-relation rules have too few questions for Q, so questions with identity rules are used too.",
    ),
    "wiki": (
        *TEMPORAL,
        *YEARLY,
        *FEW,
        "The names of Q-ids are from three public files, in this order: LiterallyWikidata, FB15k-237's "
        "entity2wikidata, ECOLA. ECOLA's names are noisy lower-case aliases. Facts of an entity without a name are "
        "left out, and so are questions of which a gold answer has no name.",
    ),
    "fb15k237": (
        *STATIC,
        "A relation's name is the last part of its Freebase path, with type and domain if two names would be equal.",
    ),
    "nell995": (
        *STATIC,
        "Left out: latitudelongitude (coordinates) and atdate (dates of anything, mostly meaningless). Their entity "
        "pairs have no other relation. proxyfor and mutualproxyfor are noisy too, but they are kept, because a quarter "
        "of proxyfor's pairs have another relation.",
        "Categories are removed from entity names, and added in parentheses if two names would be equal.",
    ),
}
RENAMED = (
    "Every entity is renamed: each word in entity names is replaced by an invented word, the same one everywhere. "
    "Relations, times, slices and the order of all rows are the same as in {}."
)
SLICES = (
    "A question is in the first slice that applies. `direct`: a document states the subject, the relation and a gold "
    "answer. `reverse`: a document states the fact reversed, under the same or the inverse relation. `rule_required`: "
    "a document links them by the body of a rule of the bank, or reversed by the body of an inverse rule. "
    "`other_link`: a document links subject and gold answer by any relation. `nowhere`: none does.\n\n"
    "`rule_confidence`: the best rule that leads to a gold answer, of rule_required questions. `subject_documents`: "
    "documents with the question's subject. `change`: `stable` if the last object of (subject, relation) in D is a "
    "gold answer, so that a look-up wins; else `changed`. `seen`: F_R or F_G has a gold fact (temporal sets) or its "
    "entity pair (static sets)."
)
AUDIT = "the table of audits in the project's RESULTS.md, made by `scripts/audit_ruleqa.py`"
Meta = Mapping[str, Any]


def text(spec: Spec, meta: Meta, sources: Mapping[str, Source]) -> str:
    """The dataset card in Markdown."""
    return "\n\n".join([*_head(spec, meta), *_questions(meta), *_overlap(meta), *_rest(spec, meta, sources)]) + "\n"


def _head(spec: Spec, meta: Meta) -> list[str]:
    statistics = [(name, row["ours"], row["published"]) for name, row in meta["statistics"].items()]
    return [
        f"# {meta['task']}: questions over {spec.title}, with rules",
        f"RuleQA (arXiv:2410.22353, table 1), rebuilt from public files. Folder `{meta['task']}/{meta['hash']}`, code "
        f"version {meta['version']}, parameters {meta['parameters']}.",
        "## Numbers\n\nFor training sets, the number of (question, gold answer) pairs. For rules, the number of "
        f"cross-relation rules; there are also {meta['repeat_rules']} identity rules.",
        card_table(("", "here", "published"), statistics),
    ]


def _questions(meta: Meta) -> list[str]:
    pool, size = meta["pool"], sum(meta["pool"].values())
    main = meta["statistics"]["queries"]["ours"]
    rows = [
        (part, f"{100 * pool[part] / size:.1f}", f"{100 * sum(row.values()) / main:.1f}", *row.values())
        for part, row in meta["main_queries"].items()
    ]
    others = [
        (name, value, n, f"{100 * n / main:.1f}") for name, row in meta["slices"].items() for value, n in row.items()
    ]
    return [
        f"## Slices\n\nThe test part has {size} questions, of which Q is drawn. Shares of the slices in percent, and "
        f"questions of Q by popularity of the answer. {meta['hard_queries']} questions of the test part are "
        "rule_required, in Q or not (`_hard`).",
        card_table(("slice", "test part", "Q", *POPULARITY), rows),
        SLICES,
        card_table(("column", "value", "questions of Q", "percent"), others),
        f"What look-ups score on Q without rules or a model, and further measurements, is in {AUDIT}.",
    ]


def _overlap(meta: Meta) -> list[str]:
    main = meta["statistics"]["queries"]["ours"]
    shared = [(name, n, f"{100 * n / main:.1f}") for name, n in meta["overlap"].items()]
    pairs = [(row["relation"], row["partner"], row["triples"], f"{row['share']:.2f}") for row in meta["partners"]]
    repeats = meta["documents_per_fact"]
    last = f" {100 * repeats['last']:.1f} % of these facts hold at the last time of D." if "last" in repeats else ""
    return [
        "## Overlap\n\nQuestions of Q that share something with F_R or F_G:",
        card_table(("shared", "questions of Q", "percent"), shared),
        "\n".join(f"- {n} {reason}." for reason, n in meta["moved"].items()),
        f"D has {repeats['mean']} documents per fact if times are ignored." + last,
        f"Symmetric relations and inverse pairs, by counting: at least {MIN_TRIPLES} triples, and a share of at least "
        f"{MIN_SHARE} of either relation, stand reversed under the other.",
        card_table(("relation", "reversed under", "triples", "share"), pairs) if pairs else "There are none.",
        "Noise that remains in the gold answers. Of the questions of Q,",
        "\n".join(f"- {n} {reason}." for reason, n in meta["noise"].items()),
    ]


def _rest(spec: Spec, meta: Meta, sources: Mapping[str, Source]) -> list[str]:
    fresh = (RENAMED.format(spec.task),) if meta["task"].endswith(FRESH) else ()
    files = [
        (f"[{source.path}]({source.url})", source.licence, source.terms, source.sha256) for source in sources.values()
    ]
    return [
        "## Departures from the paper\n\n" + "\n".join(f"- {line}" for line in (*ALL, *BY_GRAPH[spec.graph], *fresh)),
        "Left out while reading: " + "; ".join(f"{n} {reason}" for reason, n in meta["dropped"].items()) + ".",
        "## Sources, licences and terms\n\nThe data are subject to the terms of their sources.",
        card_table(("file", "licence", "terms", "sha256"), files),
    ]
