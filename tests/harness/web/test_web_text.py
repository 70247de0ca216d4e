"""Decoding, sentences, chunks and ranking."""

from __future__ import annotations

import builtins
import random
from typing import Any

import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.web.chunking import chunks, is_question
from lm_eval_rag.harness.web.clean import clean, decode, squeeze
from lm_eval_rag.harness.web.rank import bm25
from lm_eval_rag.harness.web.sentences import sentences

TEXT = "Überfahrt nach Sünd – 4 €"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_undeclared_encodings(encoding: str) -> None:
    assert decode(TEXT.encode(encoding)) == (TEXT, ())


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "iso-8859-15", "mac-roman", "utf-7"])
def test_declared_encodings(encoding: str) -> None:
    text = TEXT.replace("–", "-")
    declared = encoding if encoding != "utf-7" else "utf-8"  # as in browsers, utf-7 is none
    page = f"<meta charset='{declared}'>{text}"
    assert decode(page.encode(declared)) == (page, ())


@pytest.mark.parametrize("name", ["no-such", "rot13", "zip", "idna", "utf-16", "undefined", "unicode_escape", "xé"])
def test_a_false_declaration_is_overruled(name: str) -> None:
    page = f"<meta charset={name}>{TEXT}"
    assert decode(page.encode()) == (page, ())


def test_latin_1_is_windows_1252() -> None:
    page = "<meta charset=iso-8859-1>– 4 €"
    assert decode(page.encode("cp1252")) == (page, ())


def test_a_few_bad_bytes_are_replaced_and_noted() -> None:
    data = TEXT.encode() * 100
    text, notes = decode(data + b"\xff")
    assert text == TEXT * 100 + "\ufffd" and notes == ("bytes replaced",)


def test_clean() -> None:
    assert clean("a\x00b\x07c\u200bd\ufeff\n\te") == "abcd\n\te"
    assert clean("\ud83d\udea2 \ud83d x") == "\U0001f6a2 \ufffd x"
    assert squeeze("  a \xa0 b \n\n \t\n c\rd ") == "a b\nc d"


def test_sentences() -> None:
    pytest.importorskip("blingfire")
    assert sentences("The ferry leaves at nine. Does it stop?\nYes.") == [
        "The ferry leaves at nine.",
        "Does it stop?",
        "Yes.",
    ]
    assert sentences("") == sentences(" \n ") == []


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name == "blingfire":
            raise ImportError("No module named 'blingfire'")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(UserError, match=r"lm-eval-rag\[web\]"):
        sentences("x")


@pytest.mark.parametrize(
    "text", ["Who sails?", "is it open", "WHERE to go", "It is?", "Fares？", "When he came, it left."]
)
def test_questions(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize("text", ["Island life.", "Whoever sails.", "It is.", "", "Area 5", "Hashed? No."])
def test_no_questions(text: str) -> None:
    assert not is_question(text)


def test_the_rest_goes_in_threes() -> None:
    assert chunks(["A.", "B.", "C.", "D.", "E."]) == ["A. B. C.", "D. E."]
    assert chunks([]) == []


def test_a_question_takes_what_follows_up_to_the_threshold() -> None:
    answer = "It leaves at nine from the pier, and at noon from the town, if the sea is calm and the captain is well."
    found = chunks(["A.", "Who sails?", *[answer] * 7, "B.", "C."])
    fit = (600 - len("Who sails?")) // len(answer)
    assert found[:2] == ["A.", " ".join(["Who sails?", *[answer] * fit])]
    assert found[2] == " ".join([answer] * (7 - fit) + ["B.", "C."][: 3 - (7 - fit)])


def test_long_sentences_are_cut() -> None:
    assert chunks(["x" * 500, "y"]) == [f"{'x' * 200} y"]
    assert chunks(["ab cd"], max_sentence=3) == ["ab"]


def test_every_sentence_is_in_one_chunk_within_the_threshold() -> None:
    rng = random.Random(0)
    for _ in range(300):
        longest, group = rng.randint(1, 30), rng.randint(1, 5)
        given = [rng.choice(["Who ", "", ""]) + "w" * rng.randint(1, 40) + rng.choice([".", "?"]) for _ in range(20)]
        found = chunks(given, max_sentence=longest, group=group)
        cut = [sentence[:longest].rstrip() for sentence in given]
        assert " ".join(found) == " ".join(cut)
        start = 0
        for chunk in found:
            size = next(n for n in range(1, 21) if " ".join(cut[start : start + n]) == chunk)
            members = cut[start : start + size]
            assert sum(map(len, members)) <= longest * group
            if not is_question(members[0]):
                assert size <= group and not any(map(is_question, members))
            start += size


@pytest.mark.parametrize("bad", [{"max_sentence": 0}, {"group": 0}])
def test_thresholds_are_checked(bad: dict[str, int]) -> None:
    with pytest.raises(UserError):
        chunks(["a"], **bad)


def test_bm25_ranks() -> None:
    texts = ["a ferry", "the pier", "a ferry to the island", "the pier"]
    assert [place for place, _ in bm25("ferry island", texts, 5)] == [2, 0]
    assert [place for place, _ in bm25("pier", texts, 1)] == [1]
    assert bm25("x", [], 5) == []
    with pytest.raises(UserError, match="k="):
        bm25("pier", texts, 0)
