"""A run's judges over all its answers: the specification first, the judges on what it leaves open, their mean."""

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
from lm_eval_rag.harness.scoring.verdict import RULES, Verdict, read_verdict

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Response:
    """One answer to be judged: the question, its answers (at least one), what was said, whether it was declined."""

    question: str
    answers: tuple[str, ...]
    text: str
    abstained: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """Judges and the rules of a benchmark.

    Args:
        judges: At least one; the verdict is the mean of theirs.
        cut: How much of a prediction is looked at.
        crag: Whether CRAG's rule about "invalid" is in force.
    """

    judges: tuple[Judge, ...]
    cut: Cut = WHOLE
    crag: bool = True

    def verdicts(self, responses: Sequence[Response]) -> dict[Response, Verdict]:
        """The verdict on each response; equal ones are judged once, and all that is open goes to a judge at once."""
        found: dict[Response, Verdict] = {}
        items: dict[Response, Item] = {}
        for response in dict.fromkeys(responses):
            text = self.cut(response.text)
            was_cut = len(text) < len(response.text)
            settled = settle(response.answers, text, abstained=response.abstained, was_cut=was_cut, crag=self.crag)
            if settled is not None:
                found[response] = self._signed(settled, text)
            else:
                items[response] = Item(response.question, open_answers(response.answers, crag=self.crag), text)
        heard = [judge.opinions(list(items.values())) for judge in self.judges] if items else []
        for (response, item), opinions in zip(items.items(), zip(*heard, strict=True), strict=True):
            found[response] = self._signed(_verdict(opinions), item.prediction)
        self._warn(found.values())
        return found

    def _signed(self, verdict: Verdict, text: str) -> Verdict:
        names = tuple(judge.name for judge in self.judges)
        return replace(verdict, kept=len(text), cut=self.cut.name, crag=self.crag, judges=names)

    def _warn(self, verdicts: Iterable[Verdict]) -> None:
        failed = [verdict.why for verdict in verdicts if verdict.correct is None]
        if failed:
            log.warning("%d answers stay unscored, as a judge failed on them: %s", len(failed), failed[0])


def _verdict(opinions: Sequence[Opinion | CallError]) -> Verdict:
    """The mean of the judges' opinions; unscored if one of them has none, so that no judge counts alone in silence."""
    said = [opinion for opinion in opinions if isinstance(opinion, Opinion)]
    if len(said) < len(opinions):
        return Verdict("judge", None, why="; ".join(str(one) for one in opinions if isinstance(one, CallError)))
    marks = tuple(one.correct for one in said)
    return Verdict("judge", fmean(marks), said=marks, why="; ".join(one.why for one in said))


def verdict_faults(doc: Mapping[str, Any], answer: str, abstained: bool = False) -> list[str]:
    """What in a recorded verdict does not follow from question, answers and prediction.

    All is computed again but for the opinions of models and the place of a cut by another tokenizer than words.
    """
    verdict = read_verdict(doc)
    if verdict is None:
        return []
    faults = []
    if verdict.cut == f"words {LIMIT}" and verdict.kept != words_cut().kept(answer):
        faults.append(f"the verdict looks at {verdict.kept} characters, not {words_cut().kept(answer)}")
    text = answer[: verdict.kept]
    was_cut = len(text) < len(answer)
    settled = settle(doc["answers"], text, abstained=abstained, was_cut=was_cut, crag=verdict.crag)
    wanted = "judge" if settled is None else settled.rule
    if verdict.rule != wanted:
        return [*faults, f"the verdict is by rule {verdict.rule!r}, the specification says {wanted!r}"]
    if settled is not None:
        return faults if verdict.correct == settled.correct else [*faults, f"{wanted} is given as {verdict.correct!r}"]
    if verdict.correct is not None and (
        len(verdict.said) != len(verdict.judges) or verdict.correct != fmean(verdict.said or [-1])
    ):
        faults.append(f"the verdict {verdict.correct!r} is not the mean of what {len(verdict.judges)} judges said")
    ours = rule_judge.judge(doc["query"], open_answers(doc["answers"], crag=verdict.crag), text)[0]
    said = dict(zip(verdict.judges, verdict.said, strict=False))
    if RULES in said and said[RULES] != ours:
        faults.append(f"the rules are said to give {said[RULES]!r}, they give {ours!r}")
    return faults
