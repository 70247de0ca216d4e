"""Fresh names are new, word-like, distinct, and share words exactly where the old ones do."""

import re
from itertools import islice

from lm_eval_rag.harness.data.fresh_names import made_up, renamed

NAMES = {
    1: "Citizen (Thailand)",
    2: "Citizen (India)",
    3: "Barack Obama",
    4: "F.C. Porto 1893",
    5: "citizen kane",
    6: "!!!",
    7: "İstanbul",
    8: "O'Neil",
}


def words(name: str) -> list[str]:
    return re.findall(r"[^\W_]+", name.casefold())


def test_every_word_is_new() -> None:
    old = {word for name in NAMES.values() for word in words(name)}
    new = {word for name in renamed(NAMES, avoid=["Host a visit"]).values() for word in words(name)}
    assert not new & (old | {"host", "a", "visit"})
    assert all(re.fullmatch("[a-z]{4,}", word) for word in new)


def test_names_stay_distinct_and_keep_their_form() -> None:
    new = renamed(NAMES)
    assert list(new) == list(NAMES)
    assert len({name.casefold() for name in new.values()}) == len(NAMES)
    assert re.fullmatch(r"[A-Z][a-z]+ \([A-Z][a-z]+\)", new[1])
    assert re.fullmatch(r"[A-Z][a-z]+\.[A-Z][a-z]+\. [A-Z][a-z]+ [A-Z][a-z]+", new[4])
    assert re.fullmatch(r"[a-z]+ [a-z]+", new[5])
    assert re.fullmatch(r"[A-Z][a-z]+", new[6])


def test_shared_words_stay_shared() -> None:
    new = renamed(NAMES)
    assert words(new[1])[0] == words(new[2])[0] == words(new[5])[0]
    assert words(new[1])[1] != words(new[2])[1]


def test_seeds() -> None:
    assert renamed(NAMES, seed=0) == renamed(NAMES, seed=0) == renamed(NAMES)
    assert renamed(NAMES, seed=1) != renamed(NAMES)


def test_made_up_words_never_come_twice() -> None:
    first = list(islice(made_up(0, taken=set()), 3000))
    assert len(set(first)) == 3000
    assert not set(first[:5]) & set(islice(made_up(0, taken=set(first[:5])), 3000))
