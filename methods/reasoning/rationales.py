"""Reading what a model reasoned: its sentences, the answer it states, what several samples agree on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lm_eval_rag.harness.scoring.normalise import normalise
from lm_eval_rag.harness.web.sentences import plain_sentences

ANSWER = re.compile(
    r"\b(?:so\s+)?(?:the\s+)?(?:final\s+)?answer(?:\s+to\s+\w+\s+question)?\s*(?:is\b|:)[\s:*\"]*", re.IGNORECASE
)
EXPLAINS = re.compile(  # a sentence after an answer on its line that says more about it
    r"[.!?]\s+(?=(?:It|This|That|The|He|She|They|These|There|In|As|According|Based|Note|However|Document|Explanation)\b)"
)
BULLET = re.compile(r"^(?:[-*•]+|\(?\d{1,2}[.):])(?=\s|$)")


def states_answer(text: str) -> bool:
    """Whether a text says "the answer is ..." (or "answer: ...")."""
    return answer_in(text) is not None


def answer_in(text: str) -> str | None:
    """What stands after the last "answer is", on its line, without what explains it; None where nothing does."""
    parts = ANSWER.split(text)
    lines = parts[-1].strip().splitlines() if len(parts) > 1 else []
    return (EXPLAINS.split(lines[0], maxsplit=1)[0].strip().rstrip('."*').strip() or None) if lines else None


def before_answer(text: str) -> str:
    """What stands before the first "answer is"; the whole text without one."""
    return ANSWER.split(text, maxsplit=1)[0].strip(" ,;:-\n")


def answer_or_line(text: str) -> str:
    """The stated answer; else the last line that is not blank: of a reply that reasons before it answers.

    "" where there is none, or "the answer is" alone.
    """
    return answer_in(text) or next((line for line in reversed(lines(text)) if ANSWER.sub("", line).strip(". ")), "")


def answer_or_first_line(text: str) -> str:
    """The stated answer; else the first line that is not blank: of a reply that should be the bare answer."""
    return answer_in(text) or next((line for line in lines(text) if ANSWER.sub("", line).strip(". ")), "")


def lines(text: str) -> list[str]:
    """The lines of a list that a model wrote, without bullets, numbers and blank lines."""
    bare = (BULLET.sub("", line.strip()).strip() for line in text.splitlines())
    return [line for line in bare if line]


def sentences(text: str) -> list[str]:
    """The sentences of what a model wrote, without bullets and numbers before them."""
    bare = (BULLET.sub("", line.strip()).strip() for line in text.splitlines())
    return [sentence for line in bare for sentence in plain_sentences(line)]


def first_sentence(text: str) -> str:
    """The first sentence; "" for a blank text."""
    return next(iter(sentences(text)), "")


def overlap(a: str, b: str) -> float:
    """Share of words that two texts have in common (Dice coefficient of their bags of words), in [0, 1]."""
    bags = [Counter(normalise(text).split()) for text in (a, b)]
    total = sum(bags[0].values()) + sum(bags[1].values())
    return 2 * sum((bags[0] & bags[1]).values()) / total if total else 1.0


def most_frequent(answers: Sequence[str]) -> str:
    """The answer that most of at least one give in normal form, as the first of them writes it; ties by place."""
    normal = [normalise(answer) for answer in answers]
    return answers[normal.index(Counter(normal).most_common(1)[0][0])]


@dataclass(frozen=True, slots=True)
class Consistency:
    """What several sampled rationales agree on (self-consistency, arXiv:2203.11171).

    Args:
        answer: The most frequent answer; of equally frequent ones the first; "" where no sample states one.
        rationale: The first sample that states it, without its answer; the first sample where none does.
        votes: How many samples state it.
        replies: These samples, whole.
    """

    answer: str
    rationale: str
    votes: int
    replies: tuple[str, ...] = ()


def consistency(replies: Sequence[str]) -> Consistency:
    """The agreement of some samples; answers are compared in normal form."""
    answers = [answer_in(reply) for reply in replies]
    votes = Counter(normalise(answer) for answer in answers if answer)
    if not votes:
        return Consistency("", replies[0].strip() if replies else "", 0)
    best, count = votes.most_common(1)[0]
    agreeing = [i for i, answer in enumerate(answers) if answer and normalise(answer) == best]
    first = agreeing[0]
    chosen = tuple(replies[i] for i in agreeing)
    return Consistency(str(answers[first]), rationale_of(replies[first]), count, chosen)


def rationale_of(reply: str) -> str:
    """The sentences of a reply before the one that states the answer."""
    before: list[str] = []
    for sentence in sentences(reply):
        if states_answer(sentence):
            break
        before.append(sentence)
    return " ".join(before)
