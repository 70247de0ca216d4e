"""Every metric against its formula, restated here; a metric without one fails ``test_every_metric_has_a_formula``."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from lm_eval_rag.harness.scoring import METRICS, PLAIN, score
from lm_eval_rag.harness.scoring.case import Case

Rag = dict[str, Any] | None
Formula = Callable[[list[str], str, Rag], float | None]


def plain(text: str) -> str:
    """The normal form, for the simple texts of this file: words without articles."""
    return " ".join(word for word in re.findall(r"[a-z0-9]+", text.replace("'", "").lower()) if word != "the")


def hits(golds: list[str], rag: Rag, anywhere: bool) -> list[bool] | None:
    """Per document, whether it holds a gold answer."""
    if rag is None or rag["passages"] is None or not golds:
        return None
    found = []
    for passage in rag["passages"]:
        text, stated = plain(passage["text"]), passage.get("object")
        if anywhere:
            found.append(any(plain(gold) in text for gold in golds))
        elif stated is not None:
            found.append(plain(stated) in [plain(gold) for gold in golds])
        else:
            found.append(any(re.search(rf"\b{plain(gold)}\b", text) is not None for gold in golds))
    return found


def recall_at(k: int, anywhere: bool) -> Formula:
    def formula(golds: list[str], answer: str, rag: Rag) -> float | None:
        found = hits(golds, rag, anywhere)
        return None if found is None or k > rag["k"] else float(sum(found[:k]) > 0)  # type: ignore[index]

    return formula


def is_missing(answer: str, rag: Rag) -> bool:
    return not answer.strip() or "i don't know" in answer.lower() or bool(rag and rag["abstained"])


def exact(golds: list[str], answer: str, rag: Rag) -> float | None:
    return None if not golds else 1.0 if plain(answer) in [plain(gold) for gold in golds] else 0.0


def contains(golds: list[str], answer: str, rag: Rag) -> float | None:
    words = plain(answer).split()
    wanted = [plain(gold).split() for gold in golds]
    spans = [words[i : i + len(gold)] == gold for gold in wanted for i in range(len(words) - len(gold) + 1)]
    return float(any(spans)) if golds else None


def best_f1(golds: list[str], answer: str, rag: Rag) -> float | None:
    """SQuAD's: the harmonic mean of token precision and recall, the best over the gold answers."""
    values = []
    for gold in golds:
        left, want = plain(gold).split(), plain(answer).split()
        common = 0
        for word in want:
            if word in left:
                left.remove(word)
                common += 1
        precision = common / len(want) if want else 0.0
        recalled = common / len(plain(gold).split())
        values.append(0.0 if common == 0 else 2 * precision * recalled / (precision + recalled))
    return max(values) if values else None


def correct(golds: list[str], answer: str, rag: Rag) -> float | None:
    return None if not golds else 0.0 if is_missing(answer, rag) else exact(golds, answer, rag)


def missing(golds: list[str], answer: str, rag: Rag) -> float | None:
    return None if not golds else float(is_missing(answer, rag))


def hallucination(golds: list[str], answer: str, rag: Rag) -> float | None:
    return None if not golds else 1 - correct(golds, answer, rag) - missing(golds, answer, rag)  # type: ignore[operator]


def crag(golds: list[str], answer: str, rag: Rag) -> float | None:
    return None if not golds else correct(golds, answer, rag) - hallucination(golds, answer, rag)  # type: ignore[operator]


def pooled(golds: list[str], answer: str, rag: Rag) -> float | None:
    found = hits(golds, rag, anywhere=True)
    return None if found is None else float(any(found))


def documents(golds: list[str], answer: str, rag: Rag) -> float | None:
    return None if rag is None or rag["passages"] is None else float(len(rag["passages"]))


def reciprocal_rank(golds: list[str], answer: str, rag: Rag) -> float | None:
    found = hits(golds, rag, anywhere=False)
    return None if found is None else max([1 / rank for rank, hit in enumerate(found, 1) if hit], default=0.0)


def readable(golds: list[str], answer: str, rag: Rag) -> float | None:
    if rag is None or rag["passages"] is None or is_missing(answer, rag):
        return None
    return float(any(re.search(rf"\b{plain(answer)}\b", plain(passage["text"])) for passage in rag["passages"]))


FORMULAS: dict[str, Formula] = {
    "em": exact,
    "em_contains": contains,
    "token_f1": best_f1,
    "crag_correct": correct,
    "crag_missing": missing,
    "crag_hallucination": hallucination,
    "crag_score": crag,
    **{f"recall@{k}": recall_at(k, anywhere=False) for k in (1, 2, 5, 10, 50)},
    **{f"recall@{k}_contains": recall_at(k, anywhere=True) for k in (1, 2, 5, 10, 50)},
    "pooled_recall_contains": pooled,
    "pooled_documents": documents,
    "mrr": reciprocal_rank,
    "attributed": readable,
}

NAMES = ["Niger", "Nigeria", "Citizen (Nigeria)", "the Hague", "South Korea", "Korea", "Party of the South"]
NAMES += ["Baden-Baden", "Korea Korea South"]  # a word twice: token F1 counts bags, not sets


def random_case(rng: random.Random) -> tuple[list[str], str, Rag]:
    golds = rng.sample(NAMES, rng.choice([0, 1, 1, 2, 3]))
    answer = rng.choice([*NAMES, *NAMES, "", " \n", "I don't know", "Well, I DON'T know: Niger", "korea south", "xyz"])
    answer = rng.choice([answer, answer, f"They went to {answer}, not to Niger-Korea."])
    if rng.random() < 0.15:
        return golds, answer, None
    passages = None
    if rng.random() < 0.9:
        passages = []
        for _ in range(rng.choice([0, 1, 3, 10, 12, 60])):
            subject, stated = rng.choice(NAMES), rng.choice(NAMES)
            keep = rng.random() < 0.6
            text = f"Time 2014-01-02 {subject} makes a visit to {stated}." if rng.random() < 0.4 else "Nothing here."
            passages.append({"id": "d", "text": text, "score": 0.0, "object": stated if keep else None})
    return golds, answer, {"passages": passages, "k": rng.choice([1, 5, 10, 50]), "abstained": rng.random() < 0.1}


JUDGED = {"acc_lm", "crag_human", "within_30s"}  # need a verdict or a label: restated in test_crag_scoring.py
RATIONALE = {"perplexity", "factual_consistency", "consistency_overlap"}  # restated in test_scoring_rationale.py
OFFICIAL = ("hotpot_", "squad_", "sp_", "triples_", "joint_", "support_", "fever_", "evidence_")


def test_every_metric_has_a_formula() -> None:
    elsewhere = {name for name in METRICS if name.startswith(OFFICIAL)}  # restated in test_scoring_official.py
    assert set(FORMULAS) | JUDGED | RATIONALE | elsewhere == set(METRICS)


def test_every_metric_is_its_formula() -> None:
    rng = random.Random(0)
    seen: dict[str, set[float | None]] = {name: set() for name in FORMULAS}
    for _ in range(1500):
        golds, answer, rag = random_case(rng)
        scores = score({"answers": golds}, answer, rag)
        for name, formula in FORMULAS.items():
            wanted = formula(golds, answer, rag)
            assert scores.get(name) == pytest.approx(wanted), (name, golds, answer, rag)
            seen[name].add(wanted)
    for name, values in seen.items():  # both scored and unscored cases, and more than one value, were met
        assert None in values and len(values) > 2, name


def test_what_is_not_computed_without_official_scores_could_not_be_scored() -> None:
    case = Case(
        "Vale", ("vale",), (("Ada was born in Vale.", None),), depth=50, rationale="She was.", likelihood=(-1, 2)
    )
    assert case.official is None and all(metric.of(case) is None for metric in {*METRICS.values()} - {*PLAIN})
    assert any(metric.of(case) is not None for metric in PLAIN)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_metric_card(metric: Any) -> None:
    assert metric.unit in {"share", "documents", "perplexity"}
    assert "," not in metric.name  # lm_eval joins metric and filter names with a comma
    lower = {"crag_missing", "crag_hallucination", "pooled_documents", "perplexity"}
    assert metric.higher_is_better == (metric.name not in lower)


def test_failed_question_is_unscored() -> None:
    rag = {"failure": "HTTP 500", "passages": [{"text": "Paris", "object": "Paris"}]}
    assert score({"answers": ["Paris"]}, "Paris", rag) == {}


def test_stock_model_has_no_retrieval_scores() -> None:
    scores = score({"answers": ["Paris", "Paris, France"]}, " paris.\n", None)
    assert scores["em"] == scores["token_f1"] == 1.0
    crag = {"crag_correct", "crag_missing", "crag_hallucination", "crag_score"}
    assert set(scores) == {"em", "em_contains", "token_f1", *crag}


def test_a_sentence_contains_its_answer_and_does_not_match_it() -> None:
    """Whole words alone: "Niger" does not stand in "Nigeria"; em and em_contains are two scores."""
    doc = {"answers": ["South Korea", "Niger"]}
    sentence = score(doc, "The answer is: South-Korea.", None)
    assert (sentence["em"], sentence["em_contains"]) == (0.0, 1.0)
    assert score(doc, "It visited Nigeria, then the south of Korea.", None)["em_contains"] == 0.0
    assert score(doc, "niger", None)["em"] == score(doc, "niger", None)["em_contains"] == 1.0
    assert score(doc, "", None)["em_contains"] == 0.0 and "em_contains" not in score({"answers": []}, "Niger", None)


def test_nothing_found_is_a_miss_and_short_lists_count() -> None:
    doc = {"answers": ["Paris"]}
    empty = score(doc, "Paris", {"passages": [], "k": 10})
    assert empty["recall@10"] == empty["pooled_recall_contains"] == empty["mrr"] == empty["attributed"] == 0.0
    assert "recall@50" not in empty
    short = score(doc, "Paris", {"passages": [{"text": "Paris", "object": "Paris"}], "k": 10})
    assert short["recall@10"] == 1.0


def test_without_k_the_list_itself_is_the_depth() -> None:
    five = [{"text": "Lyon", "object": "Lyon"}] * 5
    scores = score({"answers": ["Paris"]}, "Paris", {"passages": five})
    assert scores["recall@5"] == 0.0
    assert "recall@10" not in scores


def test_object_is_not_any_mention() -> None:
    """The subject of a fact is no answer, nor is a name inside another name."""
    doc = {"answers": ["Niger"]}
    rag = {
        "passages": [
            {"text": "Niger visits Chad.", "object": "Chad"},
            {"text": "Chad visits Nigeria.", "object": "Nigeria"},
            {"text": "Chad visits Niger.", "object": "Niger"},
        ],
        "k": 5,
    }
    scores = score(doc, "Niger", rag)
    assert (scores["recall@2"], scores["recall@5"], scores["recall@1_contains"]) == (0.0, 1.0, 1.0)
    assert scores["mrr"] == pytest.approx(1 / 3)
    free = {"passages": [{"text": "Chad visits Nigeria."}, {"text": "Chad visits Niger."}], "k": 5}
    assert (score(doc, "x", free)["recall@1"], score(doc, "x", free)["recall@2"]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("gold", "answer", "wanted"),
    [
        ("New York New York", "New York New York", 1.0),
        ("New York New York", "New York", 2 * 1.0 * 0.5 / 1.5),
        ("New York", "New York New York", 2 * 0.5 * 1.0 / 1.5),
        ("Baden Baden", "Baden Powell", 2 * 0.5 * 0.5 / 1.0),
        ("one two three", "three two one", 1.0),
    ],
)
def test_token_f1_counts_a_repeated_word_as_often_as_it_stands(gold: str, answer: str, wanted: float) -> None:
    """The harmonic mean of precision and recall, by hand."""
    assert score({"answers": [gold]}, answer, None)["token_f1"] == pytest.approx(wanted)


def test_typographic_apostrophe_is_missing_too() -> None:
    assert score({"answers": ["Paris"]}, "I don’t know", None)["crag_missing"] == 1.0
