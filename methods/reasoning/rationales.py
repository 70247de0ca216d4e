"""Reading what a model reasoned: its sentences, the answer it states, what several samples agree on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lm_eval_rag.harness.scoring.case import is_missing
from lm_eval_rag.harness.scoring.normalise import normalise
from lm_eval_rag.harness.web.sentences import plain_sentences

REMARK = (  # what follows "the answer is" where this is a remark on the answer
    r"\s+(?:(?:not\s+)?(?:\w+ly\s+)?(?:based\s+on|inferred|derived|implied"
    r"|(?:(?:clear|evident|found|given|mentioned|provided|stated|supported|taken)\s+)?(?:by|from|in)\s+(?:\w+\s+){0,2}"
    r"(?:document|passage|context|source|text)s?)|not\s+(?:\w+ly\s+)?(?:available|clear|found|given|mentioned|provided|stated))\b"
)
ANSWER = re.compile(
    r"(?<!\bthis )(?<!\bno )(?<!\bany )\b(?:(?:so|thus|hence|therefore),?\s+)?(?:the\s+)?"
    rf"(?:(?:final|correct|short)\s+)?answer(?:\s+to\s+\w+\s+question)?\s*(?:is\b(?!{REMARK})|[:：])[\s:*\"]*",
    re.IGNORECASE,
)
LINE_ANSWER = re.compile(  # at the beginning of a line, or after "Based on document 2,"
    rf"^[^\w\n]*(?:\d{{1,2}}[.):][ \t]+)?(?:(?:according|based|from|given|in)\b[^\n.,]*,[ \t]+)?{ANSWER.pattern}",
    re.IGNORECASE | re.MULTILINE,
)
EXPLAINS = re.compile(  # a sentence after an answer on its line that says more about it
    r"(?<!\bMr)(?<!\bMs)(?<!\bDr)(?<!\bSt)(?<!\bMrs)(?<!\bProf)(?<!\bvs)(?<!\bInc)(?<!\.[A-Z])[.!?]\"?\s+"
    r"(?=(?:It|This|That|The|He|She|They|These|There|In|As|According|Based|Note|However|Document|Explanation"
    r"|Both|Neither|Each|Therefore|Thus|Hence|So|Since|Because|Although"
    r"|While|Also|His|Her|Its|Their)\b)|(?:(?<=^[Yy]es)|(?<=^[Nn]o))\.\s+(?=[A-Z])"
)
BULLET = re.compile(r"^(?:[-*•]+|\(?\d{1,2}[.):])(?=\s|$)")
MARKS = re.compile(r"(?<!\w)(?:\*{2,3}|__)|(?:\*{2,3}|__)(?!\w)|`+|^[ \t]*#{1,6}[ \t]+", re.MULTILINE)
HEADING = re.compile(r"^([ \t]*(?:the[ \t]+)?(?:final[ \t]+)?answer)[ \t]*(?=\n\s*\S)", re.IGNORECASE | re.MULTILINE)
CUE = (  # the last words of a prompt, which a model may repeat
    r"(?:the\s+)?(?:(?:next|one|corrected|complete|precise)\s+)?(?:reasoning|thought|sentence|step|(?:sub-?)?question"
    r"|(?:search\s+)?query)s?(?:\s+\d+|\s+to\s+look\s+up)?(?:\s+is)?[ \t]*[:：\n]"
)
PREAMBLE = re.compile(
    rf"\A(?:(?:{CUE}|(?:(?:sure|certainly|absolutely|of course|okay|alright)[.!]|let['’]s think[^.:\n]*[.:])(?=\s+\S)"
    rf"|(?![^\n]*(?:\bfinal\b|{ANSWER.pattern}))[^\n]*:[ \t]*\n(?=\s*\S))\s*)*+",
    re.IGNORECASE,
)


def plain(text: str) -> str:
    """The text without Markdown for bold, code and headings; a heading "Answer" gets a colon."""
    return HEADING.sub(r"\1:", MARKS.sub("", text))


def without_preamble(text: str) -> str:
    """A reply in plain text, without what chat models write before what they are asked for.

    That is the last words of the prompt ("Reasoning:"), "Sure!", "Let's think step by step.", and lines that end in a
    colon. The last two kinds stay where nothing follows, lines with "final" or "answer:" always.
    """
    return PREAMBLE.sub("", plain(text).strip())


def states_answer(text: str) -> bool:
    """Whether a text says "the answer is ..." (or "answer: ...")."""
    return answer_in(text) is not None


def answer_in(text: str) -> str | None:
    """What stands after the last "answer is", on its line, without what explains it; None where nothing does.

    A remark such as "the answer is based on document 2" states none.
    """
    return _after_last(ANSWER, plain(text))


def answer_at_line(text: str) -> str | None:
    """What the last line that begins with "Answer:" or "the answer is" states; None without one, or if it abstains."""
    return None if is_missing(text) else _after_last(LINE_ANSWER, plain(text))


def _after_last(words: re.Pattern[str], text: str) -> str | None:
    parts = words.split(text)
    found = parts[-1].strip().splitlines() if len(parts) > 1 else []
    if not found:
        return None
    listed = any(BULLET.match(line.strip()) for line in found[1:])  # else a number is part of it, as in "1. FC Köln"
    return _unexplained(_bare(found[0]) if listed else found[0]).rstrip('."*').strip() or None


def _unexplained(line: str) -> str:
    return EXPLAINS.split(line, maxsplit=1)[0].strip()


def before_answer(text: str) -> str:
    """What stands before the first "answer is"; the whole text without one."""
    return ANSWER.split(plain(text), maxsplit=1)[0].strip(" ,;:-\n")


def answer_or_line(text: str) -> str:
    """The stated answer; else the last line that is not blank: of a reply that reasons before it answers.

    "" where there is none, or "the answer is" alone.
    """
    return answer_in(text) or next(reversed(_answer_lines(plain(text))), "")


def answer_or_first_line(text: str) -> str:
    """The answer of a reply that should be the bare answer, without what explains it.

    That is what the first line states ("the answer is ..."), else a later line that begins so, else the first line that
    does not end in a colon. Remarks on the answer further down do not count.
    """
    text = without_preamble(text)
    found = _answer_lines(text)
    first = next((line for line in found if not line.endswith(":")), next(iter(found), ""))
    if first and is_missing(first):
        return first
    return answer_in(text.partition("\n")[0]) or _after_last(LINE_ANSWER, text) or _unexplained(first)


def _answer_lines(text: str) -> list[str]:
    """The lines that may be an answer, without bullets; a line "7." is one, "the answer is" alone is none."""
    bare = map(_bare, text.splitlines())
    return [line for line in bare if ANSWER.sub("", line).strip(".-*• ")]


def _bare(line: str) -> str:
    """The line without a bullet or number before it."""
    return BULLET.sub("", line.strip()).strip() or line.strip()


def lines(text: str) -> list[str]:
    """The lines of a list that a model wrote, without bullets, numbers and blank lines."""
    bare = (BULLET.sub("", line.strip()).strip() for line in text.splitlines())
    return [line for line in bare if line]


def sentences(text: str) -> list[str]:
    """The sentences of what a model wrote, without bullets and numbers before them."""
    bare = (BULLET.sub("", line.strip()).strip() for line in text.splitlines())
    return [sentence for line in bare for sentence in plain_sentences(line)]


def first_sentence(text: str) -> str:
    """The first sentence of a reply after its preamble; "" without one. "The answer is:" alone has the next with it."""
    found = sentences(without_preamble(text))
    alone = bool(found and ANSWER.search(found[0])) and not states_answer(found[0])
    return " ".join(found[: 1 + alone])


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
    for sentence in sentences(without_preamble(reply)):
        if ANSWER.search(sentence):
            break
        before.append(sentence)
    return " ".join(before)
