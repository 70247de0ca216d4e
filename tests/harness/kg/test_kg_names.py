"""Search by name beside the server's formulas, written out here: its two scorers and its order among equal scores."""

from __future__ import annotations

import csv
import math
import random
import re
from collections import Counter
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from lm_eval_rag.harness.kg.names import SERVER, SMOOTH, NameIndex, normal

FILLING = ["the", "of", "a", "in", "love", "my"]


def weights(documents: list[list[str]]) -> dict[str, float]:
    """ln((N - n + 0.5) / (n + 0.5)) of each word, in the order in which the words come."""
    count = Counter(word for document in documents for word in dict.fromkeys(document))
    size = len(documents)
    return {word: math.log(size - n + 0.5) - math.log(n + 0.5) for word, n in count.items()}


def scored(query: str, documents: list[list[str]], idf: dict[str, float]) -> list[float]:
    """Okapi BM25 with k1 = 1.5 and b = 0.75."""
    mean = sum(map(len, documents)) / len(documents)
    total = [0.0] * len(documents)
    for word in query.split():
        for place, document in enumerate(documents):
            if n := document.count(word):
                norm = 1.5 * (1 - 0.75 + 0.75 * len(document) / mean)
                total[place] += idf.get(word, 0.0) * (n * 2.5 / (n + norm))
    return total


def test_companies_come_in_the_order_of_a_reversed_argsort(mirror: Path | None) -> None:
    """On the real file: every name is a document; a name found twice is there twice; the sort is numpy's own."""
    if mirror is None:
        pytest.skip("needs the real company file, which is in the mirror alone")
    with (mirror / "crag" / "kg_finance_company_name.dict.csv").open(encoding="utf-8", newline="") as file:
        names = list(dict.fromkeys(row["Name"] for row in csv.DictReader(file)))
    pairs = sorted(((name, normal(name)) for name in names), key=lambda pair: pair[1])
    documents = [normal(name).split() for name in names]
    idf, rng = weights(documents), random.Random(0)
    mean = sum(idf.values()) / len(idf)
    idf = {word: value if value >= 0 else mean / 4 for word, value in idf.items()}
    index, smooth = NameIndex(names, SERVER["finance"]), NameIndex(names, SMOOTH)
    queries = ["apple", "inc common stock", "bank", "holdings corp", *(normal(rng.choice(names)) for _ in range(3))]
    by_form = {form: [name for name, _ in group] for form, group in groupby(pairs, key=lambda pair: pair[1])}
    others = 0
    for query in queries:
        scores = np.array(scored(query, documents, idf))
        best = [i for i in np.argsort(scores)[::-1][:10] if scores[i] != 0]
        expected = [name for i in best for name in by_form[" ".join(documents[i])]][:10]
        assert [names[row] for row in index.search(query)] == expected, query
        others += [names[row] for row in smooth.search(query)] != expected
    assert others >= 4  # the order that it had before


def test_songs_are_found_by_rare_words_alone_and_ties_are_alphabetical() -> None:
    rng = random.Random(0)
    rare = ["".join(rng.choices("bcdfghklm", k=3)) for _ in range(150)]
    titles = [" ".join(rng.choices(FILLING, k=2) + rng.choices(rare, k=rng.choice([1, 1, 2]))) for _ in range(600)]
    names = list(dict.fromkeys(title.upper() if rng.random() < 0.2 else title for title in titles))
    forms = sorted({normal(name) for name in names})
    documents = [form.split() for form in forms]
    idf = {word: value for word, value in weights(documents).items() if value > 4}
    assert idf and not set(FILLING) & set(idf)
    index, tied = NameIndex(names, SERVER["music"]), 0
    for title in rng.sample(names, 60):
        query = normal(title)
        scores = scored(query, documents, idf)
        words = [word for word in query.split() if word in idf]
        first = [min((words.index(word) for word in words if word in document), default=0) for document in documents]
        places = sorted((i for i, score in enumerate(scores) if score), key=lambda i: (-scores[i], first[i], i))[:10]
        tied += len({scores[i] for i in places}) < len(places)
        expected = [name for i in places for name in names if normal(name) == forms[i]][:10]
        assert [names[row] for row in index.search(title)] == expected, title
    assert tied > 10


@pytest.mark.parametrize("ranking", [SMOOTH, *SERVER.values()])
def test_nothing_to_find(ranking: object) -> None:
    for names in ([], ["", "?!"], ["one"]):
        assert NameIndex(names, ranking).search("two, three") == NameIndex(names, ranking).search("") == []  # type: ignore[arg-type]


def test_the_smooth_search_finds_names_that_share_every_word() -> None:
    names = ["Kerosene Sunday", "Kerosene Monday", "kerosene monday"]
    assert [names[row] for row in NameIndex(names).search("kerosene")] == [names[1], names[2], names[0]]
    assert NameIndex(names, SERVER["music"]).search("kerosene") == []
    assert re.fullmatch("[a-z ]+", normal(names[0]))
