"""The invented world of several hops: true chains, evidence that states them, and no way around them."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.data.corpus import open_corpus
from lm_eval_rag.harness.retrieval import make_retriever
from lm_eval_rag.harness.scoring import score
from lm_eval_rag.tasks.reasoning_demo.build import build, questions_of
from lm_eval_rag.tasks.reasoning_demo.world import make_parts

# the sentences, restated: relation -> pattern of subject and object
STATED = {
    "author": r"The author of (.+) is (.+)\.",
    "setting": r"(.+) is set in (.+)\.",
    "publication": r"(.+) was published in (.+)\.",
    "birthplace": r"(.+) was born in (.+)\.",
    "teacher": r"The teacher of (.+) was (.+)\.",
    "patron": r"The patron of (.+) was (.+)\.",
    "mayor": r"The mayor of (.+) is (.+)\.",
    "river": r"(.+) lies on the river (.+)\.",
    "province": r"(.+) belongs to the province of (.+)\.",
    "seat": r"(.+) has its seat in (.+)\.",
    "founder": r"The founder of (.+) was (.+)\.",
    "foundation": r"(.+) was founded in (.+)\.",
    "source": r"(.+) has its source in (.+)\.",
    "guardian": r"The guardian of (.+) is (.+)\.",
    "capital": r"The capital of (.+) is (.+)\.",
    "governor": r"The governor of (.+) is (.+)\.",
    "donor": r"The donor of (.+) was (.+)\.",
    "winners": r"The winners of (.+) are (.+)\.",
}
Facts = dict[tuple[str, str], str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LM_EVAL_RAG_CACHE", str(cache))
        yield cache / build()


@pytest.fixture(scope="module")
def corpus(folder: Path) -> dict[str, list[str]]:
    """Title -> sentences."""
    table = pl.read_parquet(folder / "corpus.parquet")
    return {row["title"]: row["sentences"] for row in table.iter_rows(named=True)}


@pytest.fixture(scope="module")
def facts(corpus: dict[str, list[str]]) -> Facts:
    """(subject, relation) -> object, read from the sentences."""
    found: Facts = {}
    for title, sentences in corpus.items():
        for sentence in sentences:
            relation, match = next((r, m) for r, p in STATED.items() if (m := re.fullmatch(p, sentence)))
            assert match[1] == title and (title, relation) not in found
            found[title, relation] = match[2]
    return found


@pytest.fixture(scope="module")
def test_rows(folder: Path) -> list[dict[str, Any]]:
    return pl.read_parquet(folder / "queries.parquet").to_dicts()


def followed(facts: Facts, path: str) -> str | None:
    """What "the A of the B of X" is; None where no passage says it."""
    *nouns, topic = re.sub(r"^[Tt]he ", "", path).split(" of the " if " of the " in path else " of ")
    if " of " in topic:
        last, topic = topic.split(" of ")
        nouns.append(last)
    at: str | None = topic
    for noun in reversed(nouns):
        at = facts.get((at, noun)) if at is not None else None
    return at


def answer_of(facts: Facts, text: str) -> str:
    """The answer, by following the links that the text names."""
    if match := re.fullmatch(r"(?:Who|What) is (the .+)\?", text):
        return str(followed(facts, match[1]))
    if match := re.fullmatch(r"Do (the .+) and (the .+) have the same (\w+)\?", text):
        ends = [facts.get((str(followed(facts, part)), match[3]), part) for part in (match[1], match[2])]
        return "yes" if ends[0] == ends[1] else "no"
    if match := re.fullmatch(r"Which was (published|founded) first, (.+) or (.+)\?", text):
        noun = {"published": "publication", "founded": "foundation"}[match[1]]
        return min((match[2], match[3]), key=lambda name: int(facts[name, noun]))
    if match := re.fullmatch(r"Who is among the winners of both (.+) and (.+)\?", text):
        (both,) = set.intersection(*(set(re.split(", | and ", facts[one, "winners"])) for one in match.groups()))
        return both
    match = re.fullmatch(r"Claim: (The .+) is (.+)\. SUPPORTS, REFUTES or NOT ENOUGH INFO\?", text)
    assert match, text
    end = followed(facts, match[1])
    return "NOT ENOUGH INFO" if end is None else "SUPPORTS" if end == match[2] else "REFUTES"


def test_counts(test_rows: list[dict[str, Any]], folder: Path) -> None:
    types = Counter(row["type"] for row in test_rows)
    assert types == {"bridge_2": 90, "claim": 90, "bridge_3": 60, "comparison_same": 50, "bridge_4": 40,
                     "comparison_which": 40, "intersection": 30}  # fmt: skip
    assert len({row["id"] for row in test_rows}) == len({row["query"] for row in test_rows}) == 400
    assert Counter(row["answers"][0] for row in test_rows if row["type"] == "claim") == {
        "SUPPORTS": 30, "REFUTES": 30, "NOT ENOUGH INFO": 30}  # fmt: skip
    assert Counter(row["answers"][0] for row in test_rows if row["type"] == "comparison_same") == {"yes": 25, "no": 25}
    assert len({row["type"] for row in test_rows[:20]}) >= 5  # --limit 20 takes a mixture
    assert "400 (" in (folder / "README.md").read_text("utf-8")


def test_the_same_for_the_same_seed(test_rows: list[dict[str, Any]]) -> None:
    assert [question.text for question in questions_of(0)["test"]] == [row["query"] for row in test_rows]
    assert make_parts(1)[0].facts == make_parts(1)[0].facts != make_parts(2)[0].facts
    with pytest.raises(UserError, match="seed"):
        build(-1)


def test_answers_follow_from_the_corpus(facts: Facts, test_rows: list[dict[str, Any]], folder: Path) -> None:
    rows = test_rows + pl.read_parquet(folder / "train.parquet").to_dicts()
    assert len(rows) > 590
    for row in rows:
        assert row["answers"] == [answer_of(facts, row["query"])], row


def test_evidence_states_the_chain(facts: Facts, corpus: dict[str, list[str]], test_rows: list[dict[str, Any]]) -> None:
    for row in test_rows:
        if row["type"] != "claim":
            assert len(row["facts"]) == len(row["triples"])
            for fact, (subject, relation, object_) in zip(row["facts"], row["triples"], strict=True):
                sentence = corpus[fact["passage"]][fact["sentence"]]
                assert re.fullmatch(STATED[relation], sentence).groups() == (subject, object_)  # type: ignore[union-attr]
            assert row["gold"] == list(dict.fromkeys(fact["passage"] for fact in row["facts"]))
        elif row["answers"] == ["NOT ENOUGH INFO"]:
            assert row["evidence_sets"] is None and row["gold"] is None
        else:
            ((one, two),) = row["evidence_sets"]
            first, second = (corpus[fact["passage"]][fact["sentence"]] for fact in (one, two))
            assert one["passage"] in row["query"] and two["passage"] in first and two["passage"] in second


def test_hops_are_as_many_as_the_type_says(test_rows: list[dict[str, Any]]) -> None:
    for row in test_rows:
        if row["type"].startswith("bridge"):
            assert len(row["triples"]) == len(row["gold"]) == int(row["type"][-1])
            for (_, _, object_), (subject, _, _) in zip(row["triples"], row["triples"][1:], strict=False):
                assert object_ == subject


def test_no_passage_answers_alone(corpus: dict[str, list[str]], test_rows: list[dict[str, Any]]) -> None:
    """No passage names an entity of the question beside the answer, or beside the other entity that is compared."""
    texts = [f"{title} {' '.join(sentences)}" for title, sentences in corpus.items()]

    @cache
    def naming(name: str) -> frozenset[int]:
        return frozenset(i for i, text in enumerate(texts) if name in text and re.search(rf"\b{name}\b", text))

    def together(*names: str) -> bool:
        return bool(frozenset.intersection(*map(naming, names)))

    for row in test_rows:
        topics = [name for name in corpus if name in row["query"]]
        if row["type"].startswith("bridge"):
            assert not together(topics[0], row["answers"][0]), row
        else:
            assert len(topics) == 2 and not together(*topics), row


def test_one_retrieval_finds_the_first_hop_and_not_the_last(folder: Path, test_rows: list[dict[str, Any]]) -> None:
    opened = open_corpus(f"{folder.parent.name}/{folder.name}")
    rows = [row for row in test_rows if row["type"].startswith("bridge")]
    ranked = make_retriever("bm25", opened).search([row["query"] for row in rows], 5)
    ids = [[passage.id for passage in opened.passages(ranking)] for ranking in ranked]
    first = sum(row["gold"][0] in found for row, found in zip(rows, ids, strict=True)) / len(rows)
    last = sum(row["gold"][-1] in found for row, found in zip(rows, ids, strict=True)) / len(rows)
    assert first > 0.97 and last < 0.2


def test_names_are_alike(corpus: dict[str, list[str]], test_rows: list[dict[str, Any]]) -> None:
    """Nearly every entity that a question names shares a word with another one."""
    words = Counter(word for title in corpus for word in title.split())
    first = [next(name for name in corpus if name in row["query"]) for row in test_rows]
    assert sum(any(words[word] > 1 for word in name.split()) for name in first) > 0.85 * len(first)


def test_training_questions_share_no_entity(folder: Path) -> None:
    test, train = make_parts(0)
    assert not set(test.kinds) & set(train.kinds)
    assert not set(test.naming) & set(train.naming) - set(map(str, range(1801, 2000)))
    named = {name for row in pl.read_parquet(folder / "train.parquet").to_dicts() for name in row["gold"] or ()}
    assert named and named <= set(train.kinds)


def test_official_scores(test_rows: list[dict[str, Any]]) -> None:
    """The gold answer with the gold evidence gets all points; without one sentence it does not."""
    question = next(row for row in test_rows if row["type"] == "bridge_3")
    claim = next(row for row in test_rows if row["answers"] == ["REFUTES"])
    evidence = [[fact["passage"], fact["sentence"]] for fact in question["facts"]]
    passages = [{"id": name, "text": name} for name in question["gold"]]
    record = {"evidence": evidence, "triples": question["triples"], "passages": passages, "k": 5}
    scores = score(question, question["answers"][0], record)
    assert scores["sp_em"] == scores["joint_em"] == scores["triples_em"] == scores["hotpot_em"] == 1
    assert scores["evidence_all@5"] == 1 and "fever_label" not in scores
    fewer = score(question, question["answers"][0], {**record, "evidence": evidence[:2]})
    assert fewer["sp_em"] == fewer["joint_em"] == 0 and fewer["sp_precision"] == 1
    evidence = [[fact["passage"], fact["sentence"]] for fact in claim["evidence_sets"][0]]
    assert score(claim, "REFUTES", {"evidence": evidence})["fever_score"] == 1
    assert score(claim, "REFUTES", {"evidence": evidence[:1]})["fever_score"] == 0
    assert score(claim, "SUPPORTS", {"evidence": evidence})["fever_label"] == 0
