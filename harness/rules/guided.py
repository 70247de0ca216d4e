"""Rule-guided retrieval (RuleRAG, equation 1), for use in any method."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from lm_eval_rag.harness.core.asks import match_rules, retrieve, together
from lm_eval_rag.harness.core.types import INVERSE_STEP, Passage, Plan, Rule
from lm_eval_rag.harness.retrieval.fusion import round_robin
from lm_eval_rag.harness.retrieval.tokens import tokenize
from lm_eval_rag.harness.rules.recognise import FORM
from lm_eval_rag.harness.scoring.normalise import has_words

Join = Literal["rule", "body", "replace"]
WIDTH = 5  # entities from which each step of a path goes on
NO_SUBJECT = "no retrieved fact is about an entity that the question names"
BRACKETS = re.compile(r"\(([^()]*)\)")


def _replace(text: str, rule: Rule) -> str:
    return text.replace(rule.head, rule.body) if rule.head in text else f"{text} {rule.body}"


# How a question and a rule become one text. "rule" repeats the head: if relations have long names (FB15k-237,
# NELL-995), BM25 then underweights the subject. The other two add or insert the body alone.
JOINS: dict[Join, Callable[[str, Rule], str]] = {
    "rule": lambda text, rule: f"{text} {rule.text}",  # the paper's concatenation
    "body": lambda text, rule: f"{text} {rule.body}",
    "replace": _replace,  # the paper's degenerated question (appendix A.1)
}


def rule_guided(text: str, rules: Sequence[Rule], k: int, join: Join = "rule") -> Plan[tuple[Passage, ...]]:
    """Retrieve ``k`` passages for the question with each rule, and merge them; without rules, for the question alone.

    Returns:
        The union, at most ``k * len(rules)`` passages: the best of each rule, then the second of each, and so on. Its
        first ``k`` are the result at a budget of ``k`` documents.
    """
    lists = []
    for guided in dict.fromkeys(JOINS[join](text, rule) for rule in rules) or [text]:
        lists.append((yield from retrieve(guided, k)))
    return round_robin(lists)


def question_asked(text: str, degenerated: bool) -> Plan[str]:
    """The question; if ``degenerated``, with the body of its best rule in place of the relation.

    Facts in the corpus answer such questions without a rule (RuleRAG, appendix A.1). A question without a rule is
    unchanged.
    """
    best = (yield from match_rules(text, 1)) if degenerated else ()
    return JOINS["replace"](text, best[0]) if best else text


def facts_about(text: str, passages: Sequence[Passage], *, inverse: bool = False) -> list[tuple[str, str, str | None]]:
    """(relation, object, time) of each passage's fact about the subject of a question.

    With ``inverse``, (relation, subject, time) of each fact whose object is the subject of the question.

    The subject is the longest name of a passage's subject that stands in the question: names lie inside other names. It
    stands there between blanks, as it is written. If none does, and the question is not in the benchmark's form, it may
    stand there as whole words, whatever their case: "Norn" in "What is norn's capital?".
    """
    rows = [(*passage.fact, passage.time) for passage in passages if passage.fact]
    facts = [(o, r, s, time) if inverse else (s, r, o, time) for s, r, o, time in rows]
    question, names = f" {text.removesuffix('?')} ", {subject for subject, *_ in facts}
    found = [name for name in names if f" {name} " in question] or ([] if FORM.match(text) else _mentioned(text, names))
    about = max(sorted(found), key=len, default=None)
    return [(relation, answer, time) for subject, relation, answer, time in facts if subject == about]


def _mentioned(text: str, names: Iterable[str]) -> list[str]:
    """The names whose words, as BM25 has them, stand in a text; none in brackets, as France in "Police (France)"."""
    whole, bracketed = (" ".join(tokenize(part)) for part in (text, " ".join(BRACKETS.findall(text))))
    words = {name: " ".join(tokenize(name)) for name in names}
    return [name for name, own in words.items() if has_words(whole, own) and not has_words(bracketed, own)]


def follow(subject: str, path: Sequence[str], k: int) -> Plan[tuple[list[tuple[str, str | None]], list[Passage]]]:
    """Walk along the path of a longer rule: ``k`` documents for each entity and relation, whose facts lead on.

    Dates do not decrease along a walk (TLogic, arXiv:2112.08025). Each step goes on from at most ``WIDTH`` entities, in
    the order in which they were retrieved.

    Returns:
        (entity, time) of each fact of the last step, and all passages.
    """
    reached: list[tuple[str, str | None]] = [(subject, None)]
    seen: list[Passage] = []
    for step in path:
        earliest: dict[str, str | None] = {}
        for entity, time in sorted(reached, key=lambda one: one[1] or ""):
            earliest.setdefault(entity, time)
        starts = list(dict.fromkeys(entity for entity, _ in reached))[:WIDTH]
        relation = step.removeprefix(INVERSE_STEP)
        lists = yield from together(retrieve(f"{entity} {relation}", k) for entity in starts)
        seen += (passage for passages in lists for passage in passages)
        facts = ((start, passage) for start, passages in zip(starts, lists, strict=True) for passage in passages)
        ends = ((start, _end(passage, start, step), passage.time) for start, passage in facts)
        reached = [
            (end, time) for start, end, time in ends if end is not None and (time or "") >= (earliest[start] or "")
        ]
    return list(dict.fromkeys(reached)), seen


def _end(passage: Passage, entity: str, step: str) -> str | None:
    """Where the fact of a passage leads from an entity by a step; None if it does not fit."""
    if passage.fact is None:
        return None
    subject, relation, object = passage.fact
    if step.startswith(INVERSE_STEP):
        return subject if (object, relation) == (entity, step.removeprefix(INVERSE_STEP)) else None
    return object if (subject, relation) == (entity, step) else None
