"""Verdicts on all answers of a run: by the specification if it decides, else the mean of the judges."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from lm_eval_rag.harness.common.errors import CallError
from lm_eval_rag.harness.scoring.crag import open_answers, settle
from lm_eval_rag.harness.scoring.judge import Item, Judge, Opinion, rule_judge
from lm_eval_rag.harness.scoring.truncate import LIMIT, WHOLE, Cut, words_cut
from lm_eval_rag.harness.scoring.verdict import REFUSAL, RULES, Verdict, read_verdict

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Response:
    """One answer to judge: question, gold answers (at least one), response, and whether the method abstained."""

    question: str
    answers: tuple[str, ...]
    text: str
    abstained: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """Judges and the rules of a benchmark.

    Args:
        judges: At least one; the verdict is the mean of their opinions.
        cut: How predictions are truncated.
        crag: Whether CRAG's rule about "invalid" is applied.
    """

    judges: tuple[Judge, ...]
    cut: Cut = WHOLE
    crag: bool = True

    def verdicts(self, responses: Sequence[Response]) -> dict[Response, Verdict]:
        """The verdict on each response. Equal responses are judged once, and each judge gets all items in one call."""
        verdicts: dict[Response, Verdict] = {}
        items: dict[Response, Item] = {}
        for response in dict.fromkeys(responses):
            text = self.cut(response.text)
            was_cut = len(text) < len(response.text)
            settled = settle(
                response.answers,
                text,
                abstained=response.abstained,
                was_cut=was_cut,
                crag=self.crag,
                refusals=by_rules_alone(judge.name for judge in self.judges),
            )
            if settled is not None:
                verdicts[response] = self._signed(settled, text)
            else:
                items[response] = Item(response.question, open_answers(response.answers, crag=self.crag), text)
        by_judge = [judge.opinions(list(items.values())) for judge in self.judges] if items else []
        for (response, item), opinions in zip(items.items(), zip(*by_judge, strict=True), strict=True):
            verdicts[response] = self._signed(_verdict(opinions), item.prediction)
        self._warn(verdicts.values())
        return verdicts

    def _signed(self, verdict: Verdict, text: str) -> Verdict:
        names = tuple(judge.name for judge in self.judges)
        return replace(verdict, kept=len(text), cut=self.cut.name, crag=self.crag, judges=names)

    def _warn(self, verdicts: Iterable[Verdict]) -> None:
        failed = [verdict.why for verdict in verdicts if verdict.correct is None]
        if failed:
            log.warning("%d answers are unscored because a judge failed on them: %s", len(failed), failed[0])


def by_rules_alone(judges: Iterable[str]) -> bool:
    """Whether a refusal of an answer to an invalid question is looked for: with a model as judge it is wrong."""
    return tuple(judges) == (RULES,)


def _verdict(opinions: Sequence[Opinion | CallError]) -> Verdict:
    """The mean of the judges' opinions; unscored if any judge failed, so that every verdict is by the same judges.

    The answer is missing if all judges call it a refusal.
    """
    errors = [opinion for opinion in opinions if isinstance(opinion, CallError)]
    if errors:
        return Verdict("judge", None, why="; ".join(map(str, errors)))
    valid = [opinion for opinion in opinions if isinstance(opinion, Opinion)]
    if valid and all(opinion.missing for opinion in valid):
        return Verdict(REFUSAL, 0.0, why="; ".join(opinion.why for opinion in valid))
    votes = tuple(opinion.correct for opinion in valid)
    return Verdict("judge", fmean(votes), said=votes, why="; ".join(opinion.why for opinion in valid))


def verdict_faults(doc: Mapping[str, Any], answer: str, abstained: bool = False) -> list[str]:
    """Errors in a recorded verdict: whatever does not follow from question, answers and prediction.

    Everything is recomputed except the opinions of models and truncation by a tokenizer other than words.
    """
    verdict = read_verdict(doc)
    if verdict is None:
        return []
    faults = []
    if verdict.cut == f"words {LIMIT}" and verdict.kept != words_cut().kept(answer):
        faults.append(f"the verdict is on {verdict.kept} characters, not {words_cut().kept(answer)}")
    text = answer[: verdict.kept]
    was_cut = len(text) < len(answer)
    refusals = by_rules_alone(verdict.judges)
    settled = settle(doc["answers"], text, abstained=abstained, was_cut=was_cut, crag=verdict.crag, refusals=refusals)
    ours, why = rule_judge.judge(doc["query"], open_answers(doc["answers"], crag=verdict.crag), text)
    refusal = refusals and why == REFUSAL
    expected = settled.rule if settled is not None else REFUSAL if refusal else "judge"
    if verdict.rule != expected:
        return [*faults, f"the verdict is by rule {verdict.rule!r}, the specification says {expected!r}"]
    if refusal and settled is None:
        return faults if verdict.correct == 0 else [*faults, f"{REFUSAL} is scored as {verdict.correct!r}"]
    if settled is not None:
        if verdict.correct == settled.correct:
            return faults
        return [*faults, f"{expected} is scored as {verdict.correct!r}"]
    if verdict.correct is not None and (
        len(verdict.said) != len(verdict.judges) or verdict.correct != fmean(verdict.said or [-1])
    ):
        faults.append(f"the verdict {verdict.correct!r} is not the mean of {len(verdict.judges)} judges' opinions")
    by_judge = dict(zip(verdict.judges, verdict.said, strict=False))
    if RULES in by_judge and by_judge[RULES] != ours:
        faults.append(f"the recorded opinion of the rules is {by_judge[RULES]!r}, recomputed it is {ours!r}")
    return faults
