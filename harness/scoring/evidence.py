"""Official scores of HotpotQA, 2WikiMultihopQA and MuSiQue: answer, supporting facts, triples, and all jointly.

HotpotQA: arXiv:1809.09600, section 5.1, and ``hotpot_evaluate_v1.py``. 2WikiMultihopQA: arXiv:2011.01060, section 4.3,
and ``2wikimultihop_evaluate_v1.1.py``, without its file of aliases, which belongs to Wikidata ids that most copies of
the data lack. MuSiQue: arXiv:2108.00573, section 6.1: support F1 over paragraphs. With several gold answers each score
is the best over them, as the scripts have it.

Supporting facts and triples are scored only in a run that predicts them. If one of its answers has them, the records of
the others have empty lists (:func:`lm_eval_rag.harness.core.record.share_predicted`) and count, as in the scripts:
they add nothing for a question without evidence and divide by all questions. A joint score is the product of the
precisions and recalls of its parts, and it is unscored if one of its parts is.
"""

from __future__ import annotations

from collections.abc import Callable

from lm_eval_rag.harness.scoring.case import Case
from lm_eval_rag.harness.scoring.official import Official
from lm_eval_rag.harness.scoring.squad import Overlap, from_counts, harmonic, hotpot_overlap, overlap, plain_form
from lm_eval_rag.harness.scoring.squad import squad_form as form

HOTPOT = ("hotpotqa", "2wiki")
SQUAD = ("musique", "open_domain")
PRECISION, RECALL, F1 = range(3)
CUTOFFS = (2, 5, 10, 20)

Part = tuple[float, Overlap]  # exact match; precision, recall, F1


def hotpot_em(case: Case) -> float | None:
    """1 if the answer equals a gold answer in SQuAD's normal form, else 0 (HotpotQA, arXiv:1809.09600)."""
    return _exact(case, HOTPOT)


def squad_em(case: Case) -> float | None:
    """1 if the answer equals a gold answer or an alias in SQuAD's normal form, else 0 (arXiv:1606.05250)."""
    return _exact(case, SQUAD)


def hotpot_f1(case: Case) -> float | None:
    """Token F1 by HotpotQA's rule: "yes", "no" and "noanswer" match as a whole or not at all (arXiv:1809.09600)."""
    part = _answer(case, HOTPOT)
    return None if part is None else part[1][F1]


def squad_f1(case: Case) -> float | None:
    """Token F1, the best over answer and aliases; 1 if both texts are empty in normal form (arXiv:1606.05250)."""
    official = _of(case, SQUAD)
    if official is None:
        return None
    answer = form(case.answer)
    scores = [overlap(answer, form(gold))[F1] if answer or form(gold) else 1.0 for gold in official.answers]
    return max(scores)


def sp_part(case: Case) -> Part | None:
    """Exact match and overlap of the supporting facts, each once.

    2WikiMultihopQA ignores the case of titles when it compares facts, but not when it removes repeated ones.
    """
    official = _of(case, HOTPOT)
    if official is None or official.facts is None or official.predicted is None:
        return None
    same = str.lower if official.family == "2wiki" else str
    predicted, gold = (
        [(same(title), sentence) for title, sentence in set(facts)] for facts in (official.predicted, official.facts)
    )
    hits, missed = sum(fact in gold for fact in predicted), sum(fact not in predicted for fact in gold)
    return _part(hits, len(predicted), hits + missed)


def triples_part(case: Case) -> Part | None:
    """Exact match and overlap of the triples of 2WikiMultihopQA, in lower case without punctuation.

    A repeated prediction counts once. A repeated gold triple counts each time, so not all of them can be found.
    """
    official = _of(case, ("2wiki",))
    if official is None or official.triples is None or official.predicted_triples is None:
        return None
    predicted, gold = (
        [tuple(plain_form(part) for part in triple) for triple in triples]
        for triples in (official.predicted_triples, official.triples)
    )
    distinct = set(predicted)
    return _part(len(distinct.intersection(gold)), len(distinct), len(gold))


def joint_part(case: Case) -> Part | None:
    """Answer, supporting facts and, on 2WikiMultihopQA, triples: products of their parts."""
    parts = [_answer(case, HOTPOT), sp_part(case)]
    if case.official is not None and case.official.family == "2wiki":
        parts.append(triples_part(case))
    em = precision = recall = 1.0
    for part in parts:
        if part is None:
            return None
        em, precision, recall = em * part[0], precision * part[1][PRECISION], recall * part[1][RECALL]
    return em, (precision, recall, harmonic(precision, recall))


def part_em(case: Case, part: Callable[[Case], Part | None]) -> float | None:
    """The exact match of a part."""
    scores = part(case)
    return None if scores is None else scores[0]


def part_score(case: Case, part: Callable[[Case], Part | None], which: int) -> float | None:
    """Precision (0), recall (1) or F1 (2) of a part."""
    scores = part(case)
    return None if scores is None else scores[1][which]


def support_f1(case: Case) -> float | None:
    """F1 of the passages that the predicted evidence names; unscored without gold passages (arXiv:2108.00573)."""
    official = _of(case, ("musique",))
    if official is None or official.gold is None or official.predicted is None:
        return None
    predicted, gold = {passage for passage, _ in official.predicted}, set(official.gold)
    return 1.0 if not predicted | gold else from_counts(len(predicted & gold), len(predicted), len(gold))[F1]


def evidence_recall(case: Case, k: int) -> float | None:
    """The share of the gold passages among the first ``k`` retrieved; unscored if k is above the run's depth.

    Our own score: the tasks' official scripts do not score retrieval.
    """
    official = case.official
    if official is None or not official.gold or official.retrieved is None or k > case.depth:
        return None
    return len(set(official.gold) & set(official.retrieved[:k])) / len(official.gold)


def evidence_all(case: Case, k: int) -> float | None:
    """1 if all gold passages are among the first ``k`` retrieved, else 0; unscored as :func:`evidence_recall`.

    Our own score.
    """
    share = evidence_recall(case, k)
    return None if share is None else float(share == 1.0)


def _of(case: Case, families: tuple[str, ...]) -> Official | None:
    """The official part, if the family is one of these and there is a gold answer."""
    official = case.official
    return official if official is not None and official.family in families and official.answers else None


def _exact(case: Case, families: tuple[str, ...]) -> float | None:
    official = _of(case, families)
    return None if official is None else float(form(case.answer) in map(form, official.answers))


def _answer(case: Case, families: tuple[str, ...]) -> Part | None:
    """Exact match and overlap of the answer, each the best over the gold answers."""
    official = _of(case, families)
    if official is None:
        return None
    scores = [hotpot_overlap(form(case.answer), form(gold)) for gold in official.answers]
    precision, recall, f1 = (max(values) for values in zip(*scores, strict=True))
    return float(form(case.answer) in map(form, official.answers)), (precision, recall, f1)


def _part(hits: int, predicted: int, gold: int) -> Part:
    """Exact match and overlap from the number of predicted items that are right, of all predicted, and of gold ones."""
    return float(hits == predicted == gold), from_counts(hits, predicted, gold)
