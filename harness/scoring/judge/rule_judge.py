"""The judge without a model: an ordered table of rules; the first rule with an opinion decides.

It is strict. It rejects a prediction that hedges ("A or B"), negates ("not A"), claims a second number or list item,
gives a bound for a number ("over 42"), only mentions the answer beside another candidate, or paraphrases the answer
freely. Of other names of a thing it knows short forms of given names, nationalities, and teams' names cut short ("the
Cavs"), no others. A refusal is missing (:mod:`.refusals`). ``lm-eval-rag judge-check`` measures its errors and its
bias. Each rule is a function of one gold answer and one prediction that returns True, False, or None for no opinion.
A prediction is correct if it is correct for one of the gold answers. Accents on Latin letters do not count.

From a gold answer that is a sentence, the rules extract the part that answers the question: the option that the
question offers, the number that "how many" asks for, the date that "when" asks for, or what the sentence says beyond
the question (:mod:`.gold_answers`). Of a prediction they compare what it claims: :mod:`.mentions` for names,
:mod:`.short_names`, :mod:`.given_names`, :mod:`.nationalities` and :mod:`.places` for other forms of names,
:mod:`.number_claims`, :mod:`.ratio_claims`, :mod:`.list_claims`, :mod:`.option_claims` for "A or B", and
:mod:`.yes_no`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from lm_eval_rag.harness.scoring.judge.date_claims import date_claimed
from lm_eval_rag.harness.scoring.judge.given_names import in_gold_form
from lm_eval_rag.harness.scoring.judge.gold_answers import reduced
from lm_eval_rag.harness.scoring.judge.list_claims import listed
from lm_eval_rag.harness.scoring.judge.mentions import candidates, only_mentioned
from lm_eval_rag.harness.scoring.judge.nationalities import asks_nationality, with_countries
from lm_eval_rag.harness.scoring.judge.number_rule import number_claimed
from lm_eval_rag.harness.scoring.judge.option_claims import option_claimed
from lm_eval_rag.harness.scoring.judge.places import in_another_region, place_and_regions
from lm_eval_rag.harness.scoring.judge.ratio_claims import ratio_claimed
from lm_eval_rag.harness.scoring.judge.reading import (
    DENIALS,
    STOP,
    Pair,
    content,
    denied_phrase,
    folded,
    items,
    without_opening,
)
from lm_eval_rag.harness.scoring.judge.refusals import refused, refused_after_context
from lm_eval_rag.harness.scoring.judge.short_names import short_name
from lm_eval_rag.harness.scoring.judge.values import quantities, same_quantity
from lm_eval_rag.harness.scoring.judge.yes_no import yes_or_no
from lm_eval_rag.harness.scoring.normalise import has_words
from lm_eval_rag.harness.scoring.verdict import REFUSAL

VERSION = "5"  # increase it when any verdict changes
NO_RULE = "no rule"
FINAL = frozenset({"yes or no", "option", "date", "number"})  # they read sentences, so nothing is looked for within
COVER = 0.9  # share of a long answer's words that a paraphrase must contain
SAME = 2 / 3  # share of a denial's words that another denial must contain
_NO = re.compile(rf"{DENIALS.pattern}|\bno\b")
_NO_DENIAL = re.compile(rf"{_NO.pattern}|\bor\b")  # questions that deny something themselves, or offer two options
COPULAS = frozenset({"is", "was", "are", "were", "be", "being", "named", "called"})
VERBS = COPULAS | {"has", "have", "had", "won", "did", "does", "became", "directed", "wrote", "played", "with", "who"}


def judge(question: str, answers: Sequence[str], prediction: str) -> tuple[float, str]:
    """(1 or 0, name of the rule that decided): the best over the gold answers and the answers within them."""
    question, prediction = folded(question), without_opening(folded(prediction))
    golds = [folded(gold) for gold in answers]
    if asks_nationality(question):
        golds, prediction = list(map(with_countries, golds)), with_countries(prediction)
    verdicts = [_whole(Pair(question, gold, in_gold_form(gold, prediction))) for gold in golds]
    within = [reduced(gold, question) for gold, (_, rule) in zip(golds, verdicts, strict=True) if rule not in FINAL]
    verdicts += [_decide(Pair(question, part, in_gold_form(part, prediction))) for part in within if part]
    return max(verdicts, key=lambda verdict: verdict[0], default=(0.0, "no answers"))


def _whole(pair: Pair) -> tuple[float, str]:
    """The verdict on a gold answer as it is. If it is a sentence with a list in it, only equal words are correct."""
    if len(items(reduced(pair.gold, pair.question))) < 2:
        return _decide(pair)
    return (1.0, "equal") if _equal(pair) else (0.0, NO_RULE if _refusal(pair) is None else REFUSAL)


def _decide(pair: Pair) -> tuple[float, str]:
    for name, rule in RULES.items():
        opinion = rule(pair)
        if opinion is not None:
            return float(opinion), name
    return 0.0, NO_RULE


def _equal(pair: Pair) -> bool | None:
    """The same words."""
    return True if pair.prediction_words == pair.gold_words else None


def _refusal(pair: Pair) -> bool | None:
    """The prediction refuses to answer, and the answer is no such text itself."""
    if refused(pair.gold):
        return None
    answers = bool(content(pair.gold)) and has_words(pair.prediction_words, pair.gold_words)
    return False if refused(pair.prediction) or (not answers and refused_after_context(pair.prediction)) else None


def _place(pair: Pair) -> bool | None:
    """The answer is a place in a region ("Houston, Texas"): the prediction claims the place, and in no other region."""
    place = place_and_regions(pair.gold, pair.lower_question)
    if place is None or has_words(pair.prediction_words, pair.gold_words):
        return None
    if has_words(pair.prediction_words, "or") or in_another_region(pair.prediction, *place):
        return False
    return _held(Pair(pair.question, place[0], pair.prediction)) or None


def _held(pair: Pair) -> bool | None:
    """The prediction contains the whole answer, does not negate it, and offers no alternative to it."""
    if not has_words(pair.prediction_words, pair.gold_words) or not set(pair.gold_words.split()) - STOP:
        return None
    before, _, after = f" {pair.prediction_words} ".partition(f" {pair.gold_words} ")
    beside = before.split()[-1:] + after.split()[:1]
    if candidates(pair.gold, pair.prediction, pair.question) or only_mentioned(
        pair.gold, pair.prediction, pair.question
    ):
        return False
    return not denied_phrase(pair.prediction_words, pair.gold_words) and "or" not in beside


def _named(pair: Pair) -> bool | None:
    """The prediction is the subject of the answer's sentence, or follows its copula."""
    prediction, gold = pair.prediction_words.split(), pair.gold_words.split()
    if not prediction or len(gold) <= len(prediction):
        return None
    if not content(pair.prediction) - content(pair.question):
        return None
    for start in range(len(gold) - len(prediction) + 1):
        if gold[start : start + len(prediction)] == prediction:
            before, after = gold[start - 1 : start], gold[start + len(prediction) : start + len(prediction) + 1]
            subject = not before and after[0] in VERBS
            said_of = (
                bool(before) and before[0] in COPULAS and (not after or after[0] in VERBS | {"and"} or _ends(pair))
            )
            if subject or (said_of and "and" not in after):
                return True
    return None


def _ends(pair: Pair) -> bool:
    """Whether the prediction is followed by punctuation in the answer."""
    return bool(re.search(re.escape(pair.prediction.lower().strip(" .")) + r"\s*[,.;(]", pair.gold.lower()))


def _covered(pair: Pair) -> bool | None:
    """The prediction has most words of the answer that are not in the question, and all its numbers."""
    added = content(pair.gold) - content(pair.question)
    if len(added) < 2 or len(pair.gold_words.split()) < 3:  # two words of a name may stand in two names
        return None
    covered = len(added & content(pair.prediction)) / len(added) >= COVER
    numbers = quantities(pair.prediction)
    same_numbers = all(any(same_quantity(have, want) for have in numbers) for want in quantities(pair.gold))
    agree = bool(DENIALS.search(pair.prediction.lower())) == bool(DENIALS.search(pair.gold.lower()))
    return covered and same_numbers and agree and "or" not in pair.prediction_words.split()


def _denial(pair: Pair) -> bool | None:
    """The answer denies what the question assumes: the prediction denies it in most of the same words."""
    asked = content(_NO.sub(" ", pair.gold.lower()))
    if (
        len(asked) < 2
        or _NO.search(pair.lower_question)
        or not all(_NO.search(text.lower()) for text in (pair.gold, pair.prediction))
    ):
        return None
    return True if len(asked & content(pair.prediction)) >= SAME * len(asked) else None


RULES: dict[str, Callable[[Pair], bool | None]] = {
    "equal": _equal,
    REFUSAL: _refusal,
    "yes or no": yes_or_no,
    "option": option_claimed,
    "date": date_claimed,
    "ratio": ratio_claimed,
    "short name": short_name,
    "list": listed,
    "place": _place,
    "number": number_claimed,
    "held": _held,
    "named": _named,
    "denial": _denial,
    "covered": _covered,
}
