"""Evidence: the sentences of the retrieved passages that support an answer, chosen without a model or named by one.

A sentence is named by its passage's id and its index there from 0, as the tasks' official scores want it. A passage
that is not split into sentences is one piece of evidence, with the index 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from lm_eval_rag.harness.core.types import Answer, Passage
from lm_eval_rag.harness.web.rank import bm25

Evidence = Literal["none", "retrieved", "similar", "cite"]
Name = tuple[str, int]  # id of the passage, index of the sentence
Choice = Callable[[str, Sequence[Passage], int], tuple[Name, ...] | None]

MISSING, UNREADABLE = "no evidence cited", "cited evidence unreadable"  # notes
OUTSIDE, CUT = "cited sentence out of range", "cited evidence cut"

CUE = re.compile(
    r"(?:^[^\w\n]*(?:supporting\s+)?(?:evidence|sentences?)|\bevidence)(?:\s+sentences?)?(?:\s+numbers?)?[*_ ]*[:：]",
    re.IGNORECASE | re.MULTILINE,
)
LABEL = re.compile(r"^[*_ ]*(?:final )?answer[*_ ]*:[*_ ]*", re.IGNORECASE)
BRACKETS = re.compile(r"\[\s*\d+(?:\s*[,;–-]\s*\d+)*\s*\]")
LISTED = re.compile(
    r"\W*\d[\d\W]*|[^\w\[]*(?:\d+[.)]\s*)?\[\s*\d.*"
)  # a line of numbers alone, or that begins with "[3]"
LIST = re.compile(r"(?:[\W_]|\d|\b(?:and|to|sentences?|numbers?|nos?)\b)*", re.IGNORECASE)
NOTHING = re.compile(r"\W*(?:none|no|nothing|nil|n/?a)\b[^\d]*", re.IGNORECASE)
NUMBER = re.compile(r"(\d+)(?:\s*[-–—]\s*(\d+))?")


def first_sentences(question: str, passages: Sequence[Passage], n: int) -> tuple[Name, ...]:
    """The first ``n`` sentences of the passages, in their order."""
    return tuple(_texts(passages))[:n]


def similar_sentences(question: str, passages: Sequence[Passage], n: int) -> tuple[Name, ...]:
    """The ``n`` sentences of the passages most like the question, by BM25 over these alone; ties by place.

    The title of its passage counts as a part of a sentence. Sentences that share no word with the question are left
    out.
    """
    texts = _texts(passages)
    names = tuple(texts)
    return tuple(names[place] for place, _ in bm25(question, list(texts.values()), n))


CHOICES: Mapping[str, Choice] = {
    "none": lambda *_: None,
    "retrieved": first_sentences,
    "similar": similar_sentences,
}  # what needs no model


def numbered(passages: Iterable[Passage]) -> tuple[tuple[Passage, ...], tuple[Name, ...]]:
    """(the passages with a number before each sentence, what the numbers name); from 1, through all passages."""
    shown, names = list[Passage](), list[Name]()
    for passage in passages:
        lines = [_title(passage)]
        for index, sentence in _sentences(passage):
            names.append((passage.id, index))
            lines.append(f"[{len(names)}] {sentence}")
        shown.append(replace(passage, text="\n".join(filter(None, lines))))
    return tuple(shown), tuple(names)


def cited(reply: str, names: Sequence[Name], n: int) -> Answer:
    """The answer in a reply and the sentences that it cites; whatever the reply is, it is read.

    The answer is the first line that is no evidence, without numbers in square brackets. Evidence is what follows
    "Evidence:"; without that word, numbers in square brackets, or lines of numbers alone below the answer. What is
    missing, cannot be read, is out of range or too much is in the notes; numbers that are read count nevertheless.

    Args:
        names: What the numbers from 1 on name; () for a prompt without documents, which asks for no evidence.
        n: Sentences, at most.
    """
    text, evidence = _divided(reply)
    if not names:
        return Answer(text, evidence=())
    chosen, notes = dict[Name, None](), dict[str, None]()
    parts = BRACKETS.findall(evidence) or LIST.findall(evidence)[:1]
    numbers = [match.groups() for part in parts for match in NUMBER.finditer(part)]
    if not numbers and not NOTHING.fullmatch(evidence):
        notes[UNREADABLE if evidence.strip() else MISSING] = None
    for low, high in numbers:
        first, last = (_number(one) for one in (low, high or low))
        if not 1 <= first <= last <= len(names):
            notes[OUTSIDE] = None
        chosen |= dict.fromkeys(names[max(first, 1) - 1 : last])
    if len(chosen) > n:
        notes[CUT] = None
    return Answer(text, evidence=tuple(chosen)[:n], notes=tuple(notes))


def _number(digits: str) -> int:
    """A number; one of many digits, which no prompt has, stays large."""
    return int(digits[:9])


def _divided(reply: str) -> tuple[str, str]:
    """The answer in a reply, and the text of its evidence on one line; "" for none."""
    cue = CUE.search(reply)
    if cue is None:
        answer, *below = _lines(reply) or [""]
        listed = [line for line in below if LISTED.fullmatch(line)]
        return _bare(answer), " ".join([*BRACKETS.findall(reply), *listed])
    head, *below = reply[cue.end() :].split("\n")
    evidence = [head]
    while below and (not below[0].strip() or LISTED.fullmatch(below[0])):
        evidence.append(below.pop(0))
    answers = _lines(reply[: cue.start()]) or _lines("\n".join(below)) or [""]
    return _bare(answers[0]), ", ".join(part.strip() for part in evidence if part.strip())


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def _bare(line: str) -> str:
    """An answer without the word "Answer:" and without numbers in square brackets, unless it is nothing else."""
    return BRACKETS.sub("", LABEL.sub("", line)).strip() or line


def _texts(passages: Iterable[Passage]) -> dict[Name, str]:
    """Title and sentence, by the sentence's name."""
    return {
        (passage.id, index): f"{_title(passage)} {sentence}".strip()
        for passage in passages
        for index, sentence in _sentences(passage)
    }


def _sentences(passage: Passage) -> list[tuple[int, str]]:
    """The sentences that are not blank, with their index; the whole text if it is not split."""
    return [(i, text.strip()) for i, text in enumerate(passage.sentences) if text.strip()] or [(0, passage.text)]


def _title(passage: Passage) -> str:
    """The line above the first sentence; "" if there is none."""
    title, line, body = passage.text.partition("\n")
    return title if line and any(passage.sentences) and body.startswith(_sentences(passage)[0][1]) else ""
