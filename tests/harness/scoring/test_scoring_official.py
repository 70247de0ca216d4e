"""The official scores against their formulas, restated here from the benchmarks' own scripts, on random predictions."""

from __future__ import annotations

import random
import string
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lm_eval_rag.harness.core.record import record
from lm_eval_rag.harness.core.types import Answer, Trace
from lm_eval_rag.harness.scoring import METRICS, score
from lm_eval_rag.harness.scoring.fever import label_of

PREDICTIONS = 5000
WORDS = ["yes", "no", "noanswer", "the", "a", "Paris", "paris,", "U.S.", "US", "Rhône", "mining/energy", "New", "York"]
TITLES = ["Paris", "paris", "Ed Wood", "The Hague", "U.S."]
LABELS = ["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"]
Doc = dict[str, Any]
Rag = dict[str, Any] | None


def normal(text: str, articles: bool = False) -> str:
    """Lower case, no ASCII punctuation, no articles (unless ``articles`` keeps them), single spaces."""
    kept = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return " ".join(word for word in kept.split() if articles or word not in ("a", "an", "the"))


def bags(answer: str, gold: str, closed: bool) -> tuple[float, float, float]:
    """(precision, recall, F1) of the tokens; closed answers match as a whole."""
    mine, theirs = normal(answer), normal(gold)
    if closed and mine != theirs and (mine in ("yes", "no", "noanswer") or theirs in ("yes", "no", "noanswer")):
        return 0.0, 0.0, 0.0
    left, same = Counter(theirs.split()), 0
    for word in mine.split():
        if left[word] > 0:
            left[word] -= 1
            same += 1
    if same == 0:
        return 0.0, 0.0, 0.0
    precision, recall = same / len(mine.split()), same / len(theirs.split())
    return precision, recall, 2 * precision * recall / (precision + recall)


def rates(tp: int, fp: int, fn: int) -> tuple[float, float, float, float]:
    """(em, precision, recall, F1) from right, wrong and missed items."""
    precision, recall = tp / (tp + fp) if tp + fp else 0.0, tp / (tp + fn) if tp + fn else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
    return float(fp + fn == 0), precision, recall, f1


def facts_part(predicted: list[Any], gold: list[Any], lower: bool) -> tuple[float, float, float, float]:
    """``update_sp``: repeated facts go first; then titles may be put into lower case, and facts may be equal again."""
    both = []
    for facts in (predicted, gold):
        unlike: list[tuple[str, int]] = []
        for title, sentence in facts:
            if (title, sentence) not in unlike:
                unlike.append((title, sentence))
        both.append([(title.lower() if lower else title, sentence) for title, sentence in unlike])
    mine, theirs = both
    wrong, missed = [fact for fact in mine if fact not in theirs], [fact for fact in theirs if fact not in mine]
    return rates(len(mine) - len(wrong), len(wrong), len(missed))


def triples_part(predicted: list[Any], gold: list[Any]) -> tuple[float, float, float, float]:
    """``update_evi``: normalised predictions are a set; gold triples stay a list, with what is repeated in it."""
    mine, theirs = ([tuple(normal(part, articles=True) for part in one) for one in some] for some in (predicted, gold))
    matches = sum(one in theirs for one in dict.fromkeys(mine))
    return rates(matches, len(dict.fromkeys(mine)) - matches, len(theirs) - matches)


def multihop(doc: Doc, answer: str, rag: Rag) -> dict[str, float]:
    """HotpotQA and 2WikiMultihopQA."""
    wiki2 = doc["scoring"] == "2wiki"
    rows = [bags(answer, gold, True) for gold in doc["answers"]]
    precision, recall, f1 = (max(row[i] for row in rows) for i in range(3))
    em = float(any(normal(answer) == normal(gold) for gold in doc["answers"]))
    found = {"hotpot_em": em, "hotpot_f1": f1}
    parts: list[tuple[float, float, float, float] | None] = [(em, precision, recall, f1), None]
    names = ["", "sp", "triples"]
    if rag and "evidence" in rag and doc["facts"] is not None:
        parts[1] = facts_part(rag["evidence"], doc["facts"], lower=wiki2)
    if wiki2:
        given = rag and "triples" in rag and doc["triples"] is not None
        parts.append(triples_part(rag["triples"], doc["triples"]) if rag and given else None)
    for name, part in zip(names, parts, strict=False):
        if name and part is not None:
            found |= zip([f"{name}_{what}" for what in ("em", "precision", "recall", "f1")], part, strict=True)
    if None not in parts:
        joint_em = joint_precision = joint_recall = 1.0
        for part in parts:
            assert part is not None
            joint_em, joint_precision, joint_recall = (
                joint_em * part[0], joint_precision * part[1], joint_recall * part[2],
            )  # fmt: skip
        both = joint_precision + joint_recall
        joint = (joint_em, joint_precision, joint_recall, 2 * joint_precision * joint_recall / both if both else 0.0)
        found |= zip(["joint_em", "joint_precision", "joint_recall", "joint_f1"], joint, strict=True)
    return found


def squad(doc: Doc, answer: str, rag: Rag) -> dict[str, float]:
    """The best over the aliases; MuSiQue's support."""
    f1s = [float(normal(answer) == normal(g)) if not normal(answer) or not normal(g) else bags(answer, g, False)[2]
           for g in doc["answers"]]  # fmt: skip
    found = {"squad_em": float(normal(answer) in [normal(gold) for gold in doc["answers"]]), "squad_f1": max(f1s)}
    if doc["scoring"] == "musique" and rag and "evidence" in rag and doc["gold"] is not None:
        mine, theirs = {name for name, _ in rag["evidence"]}, set(doc["gold"])
        tp, fp, fn = len(mine & theirs), len(mine - theirs), len(theirs - mine)
        found["support_f1"] = 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 1.0
    return found


def fever(doc: Doc, answer: str, rag: Rag) -> dict[str, float]:
    """The shared task's scorer; of a claim without gold evidence nothing but the label is scored."""
    gold, said = doc["answers"][0], answer.strip(". ").upper().replace("_", " ")
    right = said == gold or (said, gold) in (("SUPPORTED", "SUPPORTS"), ("REFUTED", "REFUTES"))
    found = {"fever_label": float(right)}
    if not rag or "evidence" not in rag:
        return found
    if gold == "NOT ENOUGH INFO":
        return found | {"fever_score": float(right)}
    groups = [[tuple(item) for item in group] for group in doc["evidence_sets"] or [] if group]
    if not groups:
        return found
    five = [tuple(item) for item in rag["evidence"]][:5]
    every = [item for group in groups for item in group]
    precision = sum(item in every for item in five) / len(five) if five else 1.0
    recall = float(any(all(item in five for item in group) for group in groups))
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return found | {
        "fever_precision": precision, "fever_recall": recall, "fever_f1": f1, "fever_score": float(right) * recall,
    }  # fmt: skip


def retrieved(doc: Doc, rag: Rag) -> dict[str, float]:
    """Shares of the gold passages among the first k."""
    if not rag or rag["passages"] is None or not doc.get("gold"):
        return {}
    ids, found = [passage["id"] for passage in rag["passages"]], {}
    for k in (2, 5, 10, 20):
        if k <= rag["k"]:
            hits = [gold in ids[:k] for gold in dict.fromkeys(doc["gold"])]
            found[f"evidence_recall@{k}"] = sum(hits) / len(hits)
            found[f"evidence_all@{k}"] = float(all(hits))
    return found


FAMILIES: dict[str, Callable[[Doc, str, Rag], dict[str, float]]] = {
    "hotpotqa": multihop, "2wiki": multihop, "musique": squad, "open_domain": squad, "fever": fever,
}  # fmt: skip
OFFICIAL = [name for name in METRICS if name.startswith(("hotpot_", "squad_", "sp_", "triples_", "joint_", "support_",
                                                         "fever_", "evidence_"))]  # fmt: skip


def facts(rng: random.Random, most: int) -> list[list[Any]]:
    return [[rng.choice(TITLES), rng.randrange(3)] for _ in range(rng.randrange(most + 1))]


def random_case(rng: random.Random) -> tuple[Doc, str, Rag]:
    family = rng.choice([*FAMILIES])

    def phrase() -> str:
        return rng.choice(["", " "]) + " ".join(rng.choices(WORDS, k=rng.choice([0, 1, 1, 2, 3, 5])))

    def triple() -> list[str]:
        return [rng.choice(["Ed Wood", "the U.S.", "us"]), rng.choice(["director", "Spouse"]), "x"]

    doc: Doc = {"scoring": family, "answers": [phrase() or "Paris" for _ in range(rng.choice([1, 1, 3]))]}
    doc["facts"] = rng.choice([None, facts(rng, 3), facts(rng, 3)])
    doc["gold"] = rng.choice([None, [], rng.sample(TITLES, 2), rng.sample(TITLES, 3)])
    doc["triples"] = rng.choice([None, [triple() for _ in range(2)]])
    doc["evidence_sets"] = rng.choice([None, [facts(rng, 2) for _ in range(3)], [facts(rng, 2) for _ in range(2)]])
    answer = rng.choice([phrase(), rng.choice(doc["answers"]), rng.choice(doc["answers"]).upper() + "!"])
    if family == "fever":
        doc["answers"] = [rng.choice(LABELS)]
        answer = rng.choice([*LABELS, "supports.", "Refuted", "NOT_ENOUGH_INFO", "maybe", ""])
    if rng.random() < 0.1:
        return doc, answer, None
    rag: dict[str, Any] = {
        "passages": rng.choice(
            [None, [{"id": title, "text": "t"} for title in rng.sample([*TITLES, "x", "y", "z"], 5)]]
        )
    }
    rag["k"] = rng.choice([1, 2, 5, 10, 20])
    if rng.random() < 0.8:
        rag["evidence"] = rng.choice([doc["facts"] or [], [f for one in doc["evidence_sets"] or [] for f in one],
                                      facts(rng, 8), []])  # fmt: skip
    if rng.random() < 0.7:
        rag["triples"] = rng.choice([doc["triples"] or [], [triple() for _ in range(rng.randrange(4))]])
    return doc, answer, rag


def test_every_official_score_is_its_formula() -> None:
    rng = random.Random(0)
    seen: dict[str, set[float | None]] = {name: set() for name in OFFICIAL}
    for _ in range(PREDICTIONS):
        doc, answer, rag = random_case(rng)
        wanted = FAMILIES[doc["scoring"]](doc, answer, rag) | retrieved(doc, rag)
        scores = score(doc, answer, rag)
        for name in OFFICIAL:
            assert scores.get(name) == pytest.approx(wanted.get(name)), (name, doc, answer, rag)
            seen[name].add(wanted.get(name))
    for name, values in seen.items():
        assert {None, 0.0, 1.0} <= values, name


def test_other_tasks_have_no_official_score() -> None:
    doc = {"answers": ["Paris"], "gold": ["Paris"], "facts": [["Paris", 0]]}
    rag = {"passages": [{"id": "Paris", "text": "Paris"}], "k": 5, "evidence": [["Paris", 0]]}
    assert not set(OFFICIAL) & set(score(doc, "Paris", rag))


def test_no_document_states_a_label_or_yes() -> None:
    rag = {"passages": [{"id": "a", "text": "yes, it supports that"}], "k": 5}
    for doc in ({"scoring": "fever", "answers": ["SUPPORTS"]}, {"scoring": "hotpotqa", "answers": ["yes"]}):
        assert not {"recall@1", "recall@5_contains", "mrr", "attributed"} & set(score(doc, doc["answers"][0], rag))
    assert {"recall@1", "mrr", "attributed"} <= set(score({"answers": ["yes"]}, "yes", rag))
    assert {"recall@1", "mrr"} <= set(score({"scoring": "hotpotqa", "answers": ["Paris"]}, "yes", rag))


def test_an_alias_that_is_yes_or_no_is_not_looked_for() -> None:
    """MuSiQue's answer "Norway" has the aliases NO and no."""
    doc = {"scoring": "musique", "answers": ["Norway", "NO", "no"], "query": "Where?"}
    texts = ["there is no answer here", "noanswer", "Oslo lies in Norway"]
    rag = {"passages": [{"id": text, "text": text} for text in texts], "k": 5}
    scores = score(doc, "Norway", rag)
    found = {
        name: scores[name] for name in ("recall@1", "recall@1_contains", "recall@5", "pooled_recall_contains", "mrr")
    }
    assert found == {
        "recall@1": 0, "recall@1_contains": 0, "recall@5": 1, "pooled_recall_contains": 1, "mrr": 1 / 3,
    }  # fmt: skip
    assert scores["attributed"] == 1 and score(doc, "no", rag)["squad_em"] == 1
    assert not {"recall@1", "mrr", "attributed"} & set(score({**doc, "answers": ["NO", "no"]}, "no", rag))
    plain = {**doc, "scoring": None}  # without official scores every gold answer is looked for
    assert score(plain, "Norway", rag)["recall@1"] == 1


def mirror_items() -> Iterator[Doc]:
    """The items of the mirror's files, as documents."""
    from lm_eval_rag.harness.data.sources import fetch
    from lm_eval_rag.tasks.wikipedia.corpus_build import manifest
    from lm_eval_rag.tasks.wikipedia.specs import TASKS

    for task, choice in (("hotpotqa_200", "pooled"), ("hotpotqa_train_100", "pooled"), ("musique_train_100", "pooled"),
                         ("fever", "pages"), ("rag_nq", "mirror"), ("bamboogle", "mirror")):  # fmt: skip
        one = TASKS[task].choices[choice]
        for question in one.read([fetch(manifest()[file]) for file in one.files]):
            fields = (question.facts, question.gold, question.evidence_sets)
            facts, gold, sets = (None if field is None else [*map(_listed, field)] for field in fields)
            yield {"scoring": TASKS[task].scoring, "answers": list(question.answers), "facts": facts, "gold": gold,
                   "evidence_sets": sets, "triples": None}  # fmt: skip


def _listed(value: Any) -> Any:
    return [_listed(one) for one in value] if isinstance(value, tuple) else value


def test_the_mirrors_items_score_as_their_formulas(mirror: Path | None) -> None:
    """Gold predictions, half of them, and those of another item."""
    from lm_eval_rag.harness.data.sources import UnavailableError

    try:
        rng, docs = random.Random(1), list(mirror_items())
    except UnavailableError as error:
        pytest.skip(f"needs files that only a mirror has: {error}")
    assert Counter(doc["scoring"] for doc in docs) == {
        "fever": 9999, "open_domain": 3735, "hotpotqa": 300, "musique": 100,
    }  # fmt: skip
    docs = rng.sample(docs, 4000)
    long = sum(min(map(len, doc["evidence_sets"] or [[]])) > 5 for doc in docs)
    best: Counter[str] = Counter()
    for doc, other in zip(docs, rng.sample(docs, len(docs)), strict=True):
        smallest = min(doc["evidence_sets"] or [[]], key=len)
        gold = doc["facts"] or smallest or [[id, 0] for id in doc["gold"] or []]
        evidence = rng.choice([gold, gold[:1], [*gold, ["elsewhere", 0]], (other["facts"] or [])[:2]])
        answer = rng.choice([doc["answers"][0], other["answers"][0], f"{doc['answers'][-1]} indeed"])
        rag = {"passages": None, "k": 0, "evidence": evidence}
        wanted, scores = FAMILIES[doc["scoring"]](doc, answer, rag), score(doc, answer, rag)
        assert {name: scores[name] for name in OFFICIAL if name in scores} == pytest.approx(wanted), (doc, answer)
        perfect = score(doc, doc["answers"][0], {**rag, "evidence": gold})
        best.update({f"{name}!": value == 1.0 for name, value in perfect.items() if name in OFFICIAL})
        best.update(name for name in perfect if name in OFFICIAL)
    beyond = {"fever_score", "fever_recall", "fever_f1"}  # a claim may need more than five sentences
    for name in (name for name in OFFICIAL if best[name]):
        assert best[name] - best[f"{name}!"] == (long if name in beyond else 0), name


@pytest.mark.parametrize("family", FAMILIES)
def test_without_gold_answers_no_answer_is_scored(family: str) -> None:
    scores = score({"answers": [], "scoring": family}, "Paris", {"passages": None, "evidence": []})
    assert not set(OFFICIAL) & set(scores)


@pytest.mark.parametrize(
    ("answer", "gold", "f1"),
    [
        ("yes", "yes", 1.0),
        ("yes it is", "yes", 0.0),  # HotpotQA: closed answers have no partial overlap
        ("noanswer", "no", 0.0),
        ("The U.S.", "us", 1.0),
        ("Barack Obama", "President Barack Obama", 0.8),
        ("the", "Paris", 0.0),
    ],
)
def test_hotpot_f1_by_hand(answer: str, gold: str, f1: float) -> None:
    assert score({"scoring": "hotpotqa", "answers": [gold]}, answer, None)["hotpot_f1"] == pytest.approx(f1)


def test_joint_by_hand() -> None:
    """Answer F1 parts 1/2 and 1, facts 1/3 and 1/2: joint precision 1/6, recall 1/2."""
    doc = {"scoring": "hotpotqa", "answers": ["Paris"], "facts": [["A", 0], ["B", 1]]}
    rag = {"passages": None, "evidence": [["A", 0], ["A", 1], ["C", 0]]}
    scores = score(doc, "Paris France", rag)
    assert [scores["sp_precision"], scores["sp_recall"], scores["sp_em"]] == pytest.approx([1 / 3, 0.5, 0.0])
    assert scores["joint_f1"] == pytest.approx(2 * (1 / 6) * (1 / 2) / (1 / 6 + 1 / 2))


def test_repetitions_of_2wikimultihopqa_by_hand() -> None:
    """As ``2wikimultihop_evaluate_v1.1.py`` (Alab-NII/2wikimultihop, commit 209e761) counts them."""
    triple = ["Ed Wood", "director", "Tim Burton"]
    doc = {"scoring": "2wiki", "answers": ["Paris"], "facts": [["Paris", 0]], "triples": [triple, triple]}
    rag = {"passages": None, "evidence": [["Paris", 0], ["paris", 0], ["Lyon", 0]], "triples": [triple, triple]}
    scores = score(doc, "Paris", rag)
    assert [scores["triples_precision"], scores["triples_recall"], scores["triples_em"]] == [1.0, 0.5, 0.0]
    assert [scores["sp_precision"], scores["sp_recall"]] == pytest.approx([2 / 3, 1.0])


def test_a_sixth_sentence_does_not_count() -> None:
    doc = {"scoring": "fever", "answers": ["SUPPORTS"], "evidence_sets": [[["A", 0]], [["B", 0], ["B", 1]]]}
    wrong = [["X", i] for i in range(4)]
    whole = score(doc, "SUPPORTS", {"passages": None, "evidence": [*wrong, ["A", 0]]})
    late = score(doc, "SUPPORTS", {"passages": None, "evidence": [*wrong, ["X", 9], ["A", 0]]})
    half = score(doc, "SUPPORTS", {"passages": None, "evidence": [["B", 0]]})
    assert (whole["fever_score"], whole["fever_precision"]) == (1.0, 0.2)
    assert late["fever_score"] == late["fever_precision"] == 0.0
    assert (half["fever_recall"], half["fever_precision"], half["fever_f1"]) == (0.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("answer", "label"),
    [("Supported.", "SUPPORTS"), ("REFUTES", "REFUTES"), ("not_enough_info", "NOT ENOUGH INFO"),
     ("Not Enough Information", "NOT ENOUGH INFO"), ("I think SUPPORTS", None), ("", None), ("unsupported", None)],
)  # fmt: skip
def test_labels_and_their_spellings(answer: str, label: str | None) -> None:
    assert label_of(answer) == label


def test_evidence_comes_from_the_answer() -> None:
    with_evidence = record(Answer("Paris", evidence=(("Paris", 0),), triples=(("a", "b", "c"),)), Trace())
    assert (with_evidence["evidence"], with_evidence["triples"]) == ([["Paris", 0]], [["a", "b", "c"]])
    assert not {"evidence", "triples"} & set(record(Answer("Paris"), Trace()))
    assert record(Answer("Paris", evidence=()), Trace())["evidence"] == []
