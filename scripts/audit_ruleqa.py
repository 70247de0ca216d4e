"""Measures what built RuleQA sets measure: look-ups without rules, echoes, slices, near-copies, names, rules.

    python scripts/audit_ruleqa.py OLD/ruleqa_i/HASH NEW/ruleqa_i/HASH ... [--copy]

Prints one Markdown table with a column for each folder. Folders may be of any version of the data: what a version does
not store is computed from its documents and questions, or shown as ``-``. All percents are of Q, unless a row says
otherwise. The look-ups are written here anew, on tables, so that they also check the methods of the same names.
``--copy`` adds the look-up within the first ten documents of BM25; it builds or opens the index of every folder.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from ruleqa_lookups import LOOKUPS, TRIPLE, Audited, K, copy_subject, copy_vote, turned

from lm_eval_rag.harness.scoring.normalise import normalise


def exact(one: Audited, predictions: pl.Series) -> list[float]:
    """EM of every question of Q, 0 or 1; a null scores 0."""
    golds = one.questions["answers"].to_list()
    return [
        float(guess is not None and normalise(guess) in set(map(normalise, answers)))
        for guess, answers in zip(predictions, golds, strict=True)
    ]


def width(scores: list[float], groups: pl.Series, samples: int = 1000) -> float:
    """Width of the 95 % bootstrap interval of a mean, in points, when whole groups are drawn."""
    table = (
        pl.DataFrame({"group": groups, "score": scores})
        .group_by("group", maintain_order=True)
        .agg(pl.col("score").sum(), pl.len())
    )
    sums, sizes = table["score"].to_numpy(), table["len"].to_numpy()
    drawn = np.random.default_rng(0).multinomial(table.height, np.full(table.height, 1 / table.height), size=samples)
    low, high = np.quantile((drawn @ sums) / (drawn @ sizes), [0.025, 0.975])
    return float(100 * (high - low))


def rows(one: Audited, copy: bool) -> Iterator[tuple[str, str]]:
    """Name and value of every measurement."""
    yield from _sizes(one)
    yield from _lookups(one, copy)
    yield from _echoes(one)
    yield from _names(one)
    yield from _rules(one)


def _sizes(one: Audited) -> Iterator[tuple[str, str]]:
    questions = one.questions
    pairs = questions.select("subject", "relation").n_unique()
    yield (
        "questions of Q; (subject, relation) pairs; subjects",
        f"{questions.height}; {pairs}; {_n(questions, 'subject')}",
    )
    yield "hard questions", str(one.hard.height)
    facts = one.facts.height
    yield "documents; per fact without time", f"{one.corpus.height}; {one.corpus.height / facts:.1f}"
    if one.temporal:
        last = one.corpus.filter(pl.col("time") == pl.col("time").max()).select(TRIPLE).n_unique()
        yield "facts that hold at the end of D, % of facts", _share(last, facts)
    sizes = one.corpus["subject"].value_counts()
    small = questions.join(sizes.filter(pl.col("count") > K), on="subject", how="anti").height
    yield f"subject has at most {K} documents", _share(small, questions.height)
    for name, n in questions["slice"].value_counts(sort=True).iter_rows():
        yield f"slice {name}", _share(n, questions.height)


def _lookups(one: Audited, copy: bool) -> Iterator[tuple[str, str]]:
    scores = {
        name: exact(one, lookup(one)) for name, lookup in LOOKUPS.items() if one.temporal or name != "last_object"
    }
    best = max(scores, key=lambda name: sum(scores[name]))
    for name in LOOKUPS:
        yield f"EM {name}", _mean(scores[name]) if name in scores else "-"
    yield "best look-up", f"{best} {_mean(scores[best])}"
    if one.temporal:
        direct = [
            score for score, name in zip(scores["last_object"], one.questions["slice"], strict=True) if name == "direct"
        ]
        yield "EM last_object on direct", _mean(direct)
    yield "EM copy_subject", _mean(exact(one, copy_subject(one)))
    if copy:
        yield "EM copy_vote (BM25 top 10)", _mean(exact(one, copy_vote(one)))
    keys = {"question": one.questions["id"], "subject": one.questions["subject"], "relation": one.questions["relation"]}
    keys["(subject, relation)"] = one.questions.select(pl.format("{}|{}", "subject", "relation")).to_series()
    widths = (f"{name} {width(scores[best], groups):.1f}" for name, groups in keys.items())
    yield "width of the 95 % interval of its EM, in points, by", ", ".join(widths)


def _echoes(one: Audited) -> Iterator[tuple[str, str]]:
    questions, pair = one.questions, ["subject", "object"]
    gold, hard = one.gold(questions), one.gold(one.hard)
    yield "self-loops, questions", str(_n(gold.filter(pl.col("subject") == pl.col("object"))))
    back = turned(one.facts).select(TRIPLE)
    echoed = pl.concat([hard.join(back, on=TRIPLE, how="semi"), hard.filter(pl.col("subject") == pl.col("object"))])
    yield "hard questions reversed in D, same relation, or self-loops", _of(_n(echoed), one.hard.height)
    both = pl.concat([one.facts.select(pair), back.select(pair)]).unique()
    lost = gold.join(questions.filter(pl.col("slice").is_in(["unreachable", "nowhere"])), on="id", how="semi")
    yield "questions called unreachable or nowhere", str(_n(lost))
    yield "of them, a document links subject and gold", str(_n(lost.join(both, on=pair, how="semi")))
    training = one.training
    yield "gold fact is in F_R or F_G", _share(_n(gold.join(training, on=TRIPLE, how="semi")), questions.height)
    known = pl.concat([training.select(pair), turned(training).select(pair)]).unique()
    yield "gold pair is in F_R or F_G", _share(_n(gold.join(known, on=pair, how="semi")), questions.height)
    reverse = turned(training).select(TRIPLE)
    yield "gold fact reversed is in F_R or F_G, questions", str(_n(gold.join(reverse, on=TRIPLE, how="semi")))


def _names(one: Audited) -> Iterator[tuple[str, str]]:
    names = pl.concat([one.corpus["subject"], one.corpus["object"]]).unique().to_list()
    groups = Counter(map(normalise, names))
    yield "groups of entities that EM cannot distinguish", str(sum(n > 1 for n in groups.values()))
    golds = one.questions["golds"].to_list()
    noted = sum(any(name.endswith(")") for name in row) for row in golds)
    yield "a gold name ends with a note in parentheses", _share(noted, len(golds))
    lower = sum(all(name == name.lower() for name in row) for row in golds)
    yield "all gold names are in lower case", _share(lower, len(golds))
    more = sum(len(a) > len(g) for a, g in zip(one.questions["answers"].to_list(), golds, strict=True))
    yield "has aliases", _share(more, len(golds))
    unnamed = [n for reason, n in one.meta.get("moved", {}).items() if "no name" in reason]
    yield "test questions left out for a gold without a name", str(unnamed[0]) if unnamed else "-"


def _rules(one: Audited) -> Iterator[tuple[str, str]]:
    rules = pl.read_parquet(one.folder / "rules.parquet").filter(pl.col("head") != pl.col("body"))
    median, highest = np.median(rules["confidence"].to_numpy()), np.max(rules["confidence"].to_numpy())
    yield "rules; median and highest confidence", f"{rules.height}; {median:.3f}; {highest:.3f}"
    links = one.gold(one.hard).join(one.facts.rename({"relation": "body"}), on=["subject", "object"])
    ways = rules.select("body", "confidence", relation="head")
    best = links.join(ways, on=["relation", "body"]).group_by("id").agg(pl.col("confidence").max())
    weak = best.filter(pl.col("confidence") < 0.1).height
    yield "hard questions that a rule of the bank reaches, % of hard", _share(best.height, one.hard.height)
    yield "of them, only rules below 0.1 do, %", _share(weak, best.height)


def _n(table: pl.DataFrame, column: str = "id") -> int:
    return table[column].n_unique()


def _share(n: int, size: int) -> str:
    return f"{100 * n / size:.1f}" if size else "-"


def _of(n: int, size: int) -> str:
    return f"{n} ({_share(n, size)} %)"


def _mean(scores: list[float]) -> str:
    return f"{100 * sum(scores) / len(scores):.1f}" if scores else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, help="built sets")
    parser.add_argument("--copy", action="store_true", help="also copy from BM25's documents")
    options = parser.parse_args()
    sets = [Audited(folder) for folder in options.folders]
    columns = [dict(rows(one, options.copy)) for one in sets]
    names = list(dict.fromkeys(name for column in columns for name in column))
    print("| | " + " | ".join(f"{one.meta['task']}, version {one.meta['version']}" for one in sets) + " |")
    print("|---" * (len(sets) + 1) + "|")
    for name in names:
        print(f"| {name} | " + " | ".join(column.get(name, "-") for column in columns) + " |")


if __name__ == "__main__":
    main()
