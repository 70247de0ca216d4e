"""Classes of wrong answers, on constructed samples whose class is known."""

from __future__ import annotations

from typing import Any

import pytest

from lm_eval_rag.harness.core.types import Passage
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.report.mistakes import ATTRIBUTION, RETRIEVAL, RULE, Corpora, Mistake, count, mistake, reaches

FACTS = [("Ada", "was born in", "Vale"), ("Ada", "lives in", "Moor"), ("Bo", "was born in", "Hill (town)")]


@pytest.fixture
def corpora() -> Corpora:
    passages = [Passage(f"d{i}", f"{s} {r} {o}.", fact=(s, r, o)) for i, (s, r, o) in enumerate(FACTS)]
    return Corpora({"c": Corpus.of(passages, id="c")})


def sample(
    em: float | None = 0.0,
    bodies: tuple[str, ...] | None = ("was born in",),
    objects: tuple[str, ...] | None = ("Moor", "Vale"),
    **doc: Any,
) -> dict[str, Any]:
    passages = None if objects is None else [{"text": f"x {o}", "object": o} for o in objects]
    record = {
        "passages": passages,
        "k": 10,
        "rules": None if bodies is None else [{"head": "is citizen of", "body": body} for body in bodies],
        "calls": {"Retrieve": 1, "MatchRules": 1},
    }
    made = {"doc": {"subject": "Ada", "answers": ["Vale"], "corpus": "c", "_rag": record, **doc}}
    return made if em is None else {**made, "em": em}


CASES = [
    ("no rule leads to the answer", sample(bodies=("lives in",)), Mistake(RULE, True)),
    ("nor is it retrieved", sample(bodies=("lives in",), objects=("Moor",)), Mistake(RULE, False)),
    ("no rule at all", sample(bodies=()), Mistake(RULE, True)),
    ("a rule leads there about another subject", sample(subject="Bo"), Mistake(RULE, True)),
    ("one of several rules leads there", sample(bodies=("lives in", "was born in")), Mistake(ATTRIBUTION, True)),
    ("a rule leads there, the answer is not retrieved", sample(objects=("Moor",)), Mistake(RETRIEVAL, False)),
    ("nothing is retrieved", sample(objects=()), Mistake(RETRIEVAL, False)),
    ("it is retrieved in the eleventh place", sample(objects=("Moor",) * 10 + ("Vale",)), Mistake(RETRIEVAL, False)),
    ("it is retrieved in the tenth place", sample(objects=("Moor",) * 9 + ("Vale",)), Mistake(ATTRIBUTION, True)),
    ("a method that goes by no rules: not retrieved", sample(bodies=None, objects=()), Mistake(RETRIEVAL, False)),
    ("a method that goes by no rules: retrieved", sample(bodies=None), Mistake(ATTRIBUTION, True)),
    ("a right answer", sample(em=1.0), None),
    ("no score", sample(em=None), None),
    ("no retrieval", sample(objects=None), None),
    ("spelt otherwise", sample(subject="Bo", answers=["hill town"], objects=()), Mistake(RETRIEVAL, False)),
]


@pytest.mark.parametrize(
    ("path", "answer", "expected"),
    [
        (["was born in", "^was born in"], "Ada", Mistake(ATTRIBUTION, True)),
        (["lives in", "^was born in"], "Ada", Mistake(RULE, True)),
        (["^was born in", "lives in"], "Moor", Mistake(RULE, True)),
    ],
)
def test_a_rule_with_a_path_leads_where_facts_lead(
    path: list[str], answer: str, expected: Mistake, corpora: Corpora
) -> None:
    line = sample(answers=[answer], objects=(answer,))
    line["doc"]["_rag"]["rules"] = [{"head": "h", "body": " / ".join(path), "path": path}]
    assert mistake(line, corpora) == expected


@pytest.mark.parametrize(("told", "line", "expected"), CASES, ids=[told for told, *_ in CASES])
def test_classes(told: str, line: dict[str, Any], expected: Mistake | None, corpora: Corpora) -> None:
    assert mistake(line, corpora) == expected


def test_counts_add_up() -> None:
    made = count([Mistake(RULE, True), Mistake(RULE, False), Mistake(RETRIEVAL, False), Mistake(ATTRIBUTION, True)])
    assert made.wrong == 4 and dict(made.of) == {RULE: 2, RETRIEVAL: 1, ATTRIBUTION: 1} and made.retrieved == 1
    assert sum(made.of.values()) == made.wrong


def test_a_rule_leads_where_a_document_says_so(corpora: Corpora) -> None:
    """Restated over all documents, for every subject, relation and object of them."""
    corpus = corpora["c"]
    for subject in ("Ada", "Bo", "Cy"):
        for relation in ("was born in", "lives in", "is citizen of"):
            for object in ("Vale", "Moor", "Hill (town)"):
                expected = (subject, relation, object) in FACTS
                assert reaches(corpus, subject, [relation], [object]) == expected
