"""Rule vote: the symbolic baseline, with neither generator nor training.

Every retrieved fact about the question's subject whose relation is the body of a selected rule votes for its object; of
an inverse rule, every fact whose object is the question's subject votes for its subject. A longer rule is followed step
by step over retrieved facts, and every fact of its last step votes for where it leads. Rules may say that a relation
repeats itself, so that on temporal graphs what happened before counts too. The paper on RuleRAG has no such row; no
table of rule-guided methods is complete without it.

A vote weighs ``(1 - recency) * confidence + recency * exp(-decay * age)``, as TLogic weighs the groundings of a rule
(arXiv:2112.08025); the second part does not depend on the rule. Where the question or the fact has no time, the age
counts as 0: on undated facts every vote weighs ``recency`` more than its rule's part, so that with ``recency=0.5`` a
rule of confidence 0.1 votes with 0.55, one of 0.9 with 0.95. ``recency=0`` votes with the confidences alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from functools import lru_cache

from lm_eval_rag.harness.core.asks import RuleControl, RuleOrder, match_rules, recognise, together
from lm_eval_rag.harness.core.parameters import Depth, Natural, NonNegative, Share
from lm_eval_rag.harness.core.types import Answer, Passage, Plan, Query, Rule
from lm_eval_rag.harness.rules.guided import NO_SUBJECT, Join, facts_about, follow, rule_guided

NO_FACTS = "no retrieved document states a fact (subject, relation, object), so that nothing votes"


def rule_vote(
    query: Query,
    *,
    k: Depth = 10,
    n_rules: Natural = 5,
    rules: RuleControl = "selected",
    rule_order: RuleOrder = "confidence_support",
    join: Join = "replace",
    repeat: bool = True,
    decay: NonNegative = 0.1,
    recency: Share = 0.5,
    seed: Natural = 0,
) -> Plan[Answer]:
    """Answer with the object that the rules' evidence favours; abstain when there is none.

    The confidence of an answer is its share of the votes' weight.

    Args:
        k: Documents retrieved for each rule.
        n_rules: Rules for the question, at most.
        rules: Which rules: the selected ones, or a control.
        rule_order: What makes a rule better.
        join: How question and rule become one text.
        repeat: Whether a rule may say that the relation repeats itself.
        decay: How fast a fact ages, 0 or more, per unit of time (days, or years where only years are given).
        recency: Share of a vote's weight that is for the fact's age and not for the rule, in [0, 1]; whole if undated.
        seed: Of random rules.
    """
    chosen = yield from match_rules(query.text, n_rules, order=rule_order, control=rules, repeat=repeat, seed=seed)
    short, longer = ([rule for rule in chosen if bool(rule.path) == many] for many in (False, True))
    found = yield from rule_guided(query.text, short, k, join)
    ballots: list[tuple[str, str | None, float]] = []  # entity, time and confidence of each vote
    about = []  # the facts about the subject
    for inverse in sorted({rule.inverse for rule in short}):
        confidence = {rule.body: rule.confidence for rule in short if rule.inverse == inverse}
        facts = facts_about(query.text, found, inverse=inverse)
        about += facts
        ballots += ((answer, time, confidence[relation]) for relation, answer, time in facts if relation in confidence)
    if longer:
        more, passages = yield from _followed(query, longer, k)
        ballots, found = ballots + more, tuple({passage.id: passage for passage in (*found, *passages)}.values())
    votes: dict[str, float] = defaultdict(float)
    for answer, time, weight in ballots:
        age = _age(query.time, time)
        fresh = recency * math.exp(-decay * age) if age is not None else recency
        votes[answer] += weight * (1 - recency) + fresh
    best = max(sorted(votes), key=lambda name: votes[name], default="")
    stated = any(passage.fact for passage in found)
    notes = (NO_FACTS,) if found and not stated else (NO_SUBJECT,) if stated and short and not (about or votes) else ()
    total = sum(votes.values())  # 0 if the rules, a user's own, have no confidence and nothing is recent
    share = votes[best] / total if total else None
    return Answer(best, found, chosen if n_rules else None, abstained=not best, notes=notes, confidence=share)


def _followed(
    query: Query, rules: Sequence[Rule], k: int
) -> Plan[tuple[list[tuple[str, str | None, float]], list[Passage]]]:
    """The votes of longer rules, and the passages that were retrieved for them."""
    subject, _ = yield from recognise(query.text)
    walks = () if subject is None else (yield from together(follow(subject, rule.path, k) for rule in rules))
    votes = [(*end, rule.confidence) for rule, (ends, _) in zip(rules, walks, strict=False) for end in ends]
    return votes, [passage for _, passages in walks for passage in passages]


def _age(now: str | None, then: str | None) -> float | None:
    """Days between two ISO dates, years between two years; None when either is not given."""
    if not now or not then:
        return None
    if len(now) == len(then) == 10:
        return float(abs(_day(now) - _day(then)))
    return float(abs(int(now[:4]) - int(then[:4])))


@lru_cache(maxsize=1 << 12)
def _day(iso: str) -> int:
    """The number of an ISO date's day."""
    return date.fromisoformat(iso).toordinal()
