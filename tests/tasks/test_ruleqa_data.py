"""The ten sets on the real graphs: counts, records, checksums, names, slices, and that nothing leaks."""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.data.sources import fetch, read_manifest
from lm_eval_rag.harness.rules.mining import best_first, mine_static, mine_temporal
from lm_eval_rag.harness.scoring.normalise import normalise
from lm_eval_rag.tasks.ruleqa import graphs, wiki_names
from lm_eval_rag.tasks.ruleqa.build import build
from lm_eval_rag.tasks.ruleqa.slices import VALUES

TEMPORAL = ("ruleqa_i", "ruleqa_y", "ruleqa_w")
STATIC = ("ruleqa_f", "ruleqa_n")
TASKS = (*TEMPORAL, *STATIC)
ALL = (*TASKS, *(f"{task}_fresh" for task in TASKS))
TABLES = ("corpus", "rules", "queries", "retriever_train", "generator_train")
GOLDEN_FILE = Path(__file__).with_name("ruleqa_golden.json")
GOLDEN = json.loads(GOLDEN_FILE.read_text())

# Table 1 of arXiv:2410.22353, as printed, then ours: rules across relations, documents, (question, answer) pairs of
# F_R and of F_G, queries. Ours of version 3, where they differ, with the reason:
# I: 63685 documents, 6915 and 6908 pairs; a self-loop, and facts of questions, are no longer in them.
# Y: 9683 and 9840 pairs, W: 461732 documents, 27851 and 27989 pairs; the same, on graphs that repeat facts every year.
# F: 299728 documents, 3458 and 3463 pairs; self-loops, reversed facts and groups that share an entity pair are out.
# N: 127739 documents, 1645 and 1657 pairs; the same.
STATISTICS = {
    "ruleqa_i": ((557, 77508, 6594, 7440, 1559), (557, 63684, 6136, 6088, 1559)),
    "ruleqa_y": ((99, 243633, 28153, 22765, 1864), (3, 161540, 3406, 3385, 1864)),
    "ruleqa_w": ((78, 584364, 50996, 62375, 2065), (19, 461674, 18259, 18261, 2065)),
    "ruleqa_f": ((367, 49088, 8082, 9645, 1233), (367, 296278, 2323, 2732, 1233)),
    "ruleqa_n": ((234, 18177, 4351, 4764, 815), (234, 127449, 1225, 1440, 815)),
}
# rule_required questions: by any rule of the bank or an inverse rule, no longer by the first three rules alone.
HARD = {"ruleqa_i": 1799, "ruleqa_y": 12, "ruleqa_w": 12, "ruleqa_f": 1627, "ruleqa_n": 1027}
DENSE = 63  # of N


@dataclass(frozen=True)
class Set:
    """A built set, read back."""

    folder: Path
    meta: dict[str, object]
    corpus: pl.DataFrame
    rules: pl.DataFrame
    queries: pl.DataFrame
    retriever_train: pl.DataFrame
    generator_train: pl.DataFrame


@pytest.fixture(scope="module")
def load(mirror: Path | None, cache: Path, once):  # type: ignore[no-untyped-def]
    """Builds a set once and reads it."""
    made: dict[str, Set] = {}

    def one(task: str) -> Set:
        if task not in made:
            folder = cache / once(task, lambda: build(task))
            tables = {name: pl.read_parquet(folder / f"{name}.parquet") for name in TABLES}
            made[task] = Set(folder, json.loads((folder / "meta.json").read_text()), **tables)
        return made[task]

    return one


def triples(asked: pl.DataFrame, *columns: str) -> set[tuple[object, ...]]:
    """(subject, relation, object) and what other columns are named, of every gold object; aliases are not objects."""
    if "objects" in asked.columns:
        asked = asked.with_columns(answers=pl.col("objects").list.eval(pl.element().list.first()))
    return set(asked.explode("answers").select("subject", "relation", "answers", *columns).rows())


def stated(corpus: pl.DataFrame) -> set[tuple[object, ...]]:
    return set(corpus.select("subject", "relation", "object").rows())


def summary(table: pl.DataFrame) -> dict[str, object]:
    """Number of rows, digests of the first, middle and last record, and of the whole as JSON lines."""
    picked = [table.row(i, named=True) for i in (0, table.height // 2, table.height - 1)]
    lines = [json.dumps(row, ensure_ascii=False).encode() for row in picked]
    return {
        "rows": table.height,
        "records": [hashlib.sha256(line).hexdigest()[:16] for line in lines],
        "sha256": hashlib.sha256(table.write_ndjson().encode()).hexdigest(),
    }


@pytest.mark.parametrize("task", ALL)
def test_counts_records_and_checksums(task: str, load) -> None:  # type: ignore[no-untyped-def]
    """Every table is as it was when the golden file was written (by running this file; digests, since no data of
    others is kept in the project)."""
    made = load(task)
    for name in TABLES:
        found = summary(getattr(made, name))
        assert found == GOLDEN[task][name], name
        assert (found["rows"], found["sha256"]) == (made.meta["counts"][name], made.meta["checksums"][name])


@pytest.mark.parametrize("task", TASKS)
def test_statistics_beside_the_published_ones(task: str, load) -> None:  # type: ignore[no-untyped-def]
    made = load(task)
    published, ours = STATISTICS[task]
    names = list(made.meta["statistics"])
    assert names == ["rules", "documents", "retriever_train", "generator_train", "queries"]
    assert made.meta["statistics"] == {
        name: {"ours": here, "published": there} for name, here, there in zip(names, ours, published, strict=True)
    }
    crossing = made.rules.filter(pl.col("head") != pl.col("body")).height
    pairs = [len(triples(table, "time")) for table in (made.retriever_train, made.generator_train)]
    assert (crossing, made.corpus.height, *pairs, made.queries["in_main"].sum()) == ours
    assert made.queries["in_hard"].sum() == HARD[task]
    assert ("in_dense" in made.queries.columns) == (task == "ruleqa_n")
    card = (made.folder / "README.md").read_text()
    assert all(
        f"| {name} | {here} | {there} |" in card for name, here, there in zip(names, ours, published, strict=True)
    )


@pytest.mark.parametrize("task", TASKS)
def test_documents_queries_and_ids_have_their_form(task: str, load) -> None:  # type: ignore[no-untyped-def]
    made = load(task)
    dated = task in TEMPORAL
    for row in made.corpus.sample(500, seed=0).iter_rows(named=True):
        fact = f"{row['subject']} {row['relation']} {row['object']}."
        assert row["text"] == (f"Time {row['time']} {fact}" if dated else fact)
    for row in made.queries.sample(300, seed=0).iter_rows(named=True):
        asked = f"what does {row['subject']} {row['relation']} ?"
        assert row["text"] == (f"Time {row['time']} {asked}" if dated else asked)
        assert row["answers"] and len(set(row["answers"])) == len(row["answers"])
    assert made.corpus["time"].is_null().any() != dated
    for table in (made.corpus, made.queries, made.retriever_train, made.generator_train):
        assert table["id"].is_sorted() and table["id"].is_unique().all()
    assert made.corpus["text"].is_unique().all()
    ids = pl.concat([made.queries["id"], made.retriever_train["id"], made.generator_train["id"]])
    assert ids.is_unique().all()


@pytest.mark.parametrize("task", TASKS)
def test_names_are_readable_and_distinct(task: str, load) -> None:  # type: ignore[no-untyped-def]
    corpus = load(task).corpus
    entities = pl.concat([corpus["subject"], corpus["object"]]).unique()
    relations = corpus["relation"].unique()
    for names in (entities, relations):
        assert names.map_elements(normalise, return_dtype=pl.String).n_unique() == names.len()
        raw = names.filter(names.str.contains(r"_|<|>|^/m/|concept:|\\u[0-9a-f]{4}|\s\s|^\s|\s$|^$"))
        assert raw.to_list() == []
    assert max(len(word) for name in relations for word in re.split(r"[ /,-]", name)) <= 18
    assert not any(re.search("[a-z][A-Z]", name) for name in relations)


def reversed_of(made: Set, facts: set[tuple[object, ...]]) -> set[tuple[object, ...]]:
    """What the facts say reversed, under the partners that the set's meta.json lists."""
    partners: dict[object, list[object]] = {}
    for row in made.meta["partners"]:  # type: ignore[attr-defined]
        partners.setdefault(row["relation"], []).append(row["partner"])
    return {(o, partner, s) for s, r, o in facts for partner in partners.get(r, ())}


@pytest.mark.parametrize("task", TEMPORAL)
def test_temporal_sets_do_not_leak(task: str, load) -> None:  # type: ignore[no-untyped-def]
    made = load(task)
    held = [triples(table, "time") for table in (made.queries, made.retriever_train, made.generator_train)]
    documents = set(made.corpus.select("subject", "relation", "object", "time").rows())
    assert sum(map(len, held)) + len(documents) == len(documents.union(*held))
    training = pl.concat([made.retriever_train["time"], made.generator_train["time"]])
    assert made.corpus["time"].max() < training.min() <= training.max() < made.queries["time"].min()
    known = triples(made.retriever_train) | triples(made.generator_train)
    asked = triples(made.queries)
    assert not known & (asked | reversed_of(made, asked))
    if task != "ruleqa_i":
        assert made.queries.select("subject", "relation").is_unique().all()


@pytest.mark.parametrize("task", STATIC)
def test_static_sets_do_not_leak(task: str, load) -> None:  # type: ignore[no-untyped-def]
    made = load(task)
    parts = (made.corpus, made.queries, made.retriever_train, made.generator_train)
    groups = [set(part.select("subject", "relation").rows()) for part in parts]
    assert sum(map(len, groups)) == len(set().union(*groups))
    held = [triples(part) for part in parts[1:]]
    pairs = [{frozenset((s, o)) for s, _, o in part} for part in held]
    assert sum(map(len, pairs)) == len(set().union(*pairs))
    known = stated(made.corpus)
    assert made.meta["partners"] and not any(reversed_of(made, part) & known for part in held)


@pytest.mark.parametrize("task", TASKS)
def test_no_self_loops_and_nothing_seen(task: str, load) -> None:  # type: ignore[no-untyped-def]
    made = load(task)
    parts = (made.queries, made.retriever_train, made.generator_train)
    assert all(s != o for part in (stated(made.corpus), *map(triples, parts)) for s, _, o in part)
    assert set(made.queries["seen"]) == {"unseen"}
    assert made.meta["slices"]["seen"] == {"unseen": made.queries["in_main"].sum(), "seen": 0}


@pytest.mark.parametrize("task", TASKS)
def test_aliases(task: str, load) -> None:  # type: ignore[no-untyped-def]
    """Answers are the objects' names, then their aliases, and no alias is the name of another entity."""
    made = load(task)
    entities = {normalise(name) for column in ("subject", "object") for name in made.corpus[column].unique()}
    for row in made.queries.iter_rows(named=True):
        names = [object[0] for object in row["objects"]]
        others = [alias for object in row["objects"] for alias in object[1:]]
        assert row["answers"] == list(dict.fromkeys([*names, *others]))
        assert not {normalise(alias) for alias in others} & (entities | set(map(normalise, names)))
    golds = made.queries.filter("in_main")["objects"].to_list()
    assert made.meta["noise"]["have a gold answer with aliases"] == sum(
        any(len(object) > 1 for object in objects) for objects in golds
    )


@pytest.mark.parametrize("task", TASKS)
def test_rules_follow_from_the_documents_alone(task: str, load) -> None:  # type: ignore[no-untyped-def]
    """Mining the written documents again gives every rule with its numbers, and no better rule was left out."""
    made = load(task)
    mined = (mine_temporal if task in TEMPORAL else mine_static)(made.corpus)
    key = ["head", "body"]
    found = made.rules.drop("repeat").join(mined, on=mined.columns, how="semi", nulls_equal=True)
    assert found.height == made.rules.height
    assert (made.rules["repeat"] == (made.rules["head"] == made.rules["body"])).all()
    crossing = made.rules.filter(~pl.col("repeat"))
    worth = (crossing["confidence"] * crossing["support"].sqrt()).to_list()
    assert worth == sorted(worth, reverse=True)
    least = 3 if task == "ruleqa_i" else 2
    left = mined.filter((pl.col("head") != pl.col("body")) & (pl.col("support") >= least)).join(
        crossing, on=key, how="anti"
    )
    assert made.rules["support"].min() >= least
    assert left.height == 0 or (left["confidence"] * left["support"].sqrt()).max() <= worth[-1]


@pytest.mark.parametrize("task", TASKS)
def test_slices_by_definition(task: str, load) -> None:  # type: ignore[no-untyped-def]
    made = load(task)
    facts = stated(made.corpus)
    links: dict[tuple[object, object], set[object]] = {}
    for s, r, o in facts:
        links.setdefault((s, o), set()).add(r)
    bodies = _bodies(made.rules)
    turned = _bodies(_inverse_rules(task, made.corpus))
    partners: dict[str, set[str]] = {}
    for row in made.meta["partners"]:
        partners.setdefault(row["relation"], set()).add(row["partner"])
    sizes = dict(made.corpus["subject"].value_counts().iter_rows())
    for row in made.queries.iter_rows(named=True):
        subject, relation = row["subject"], row["relation"]
        there, back = set[object](), set[object]()
        for gold, *_ in row["objects"]:
            there |= links.get((subject, gold), set())
            back |= links.get((gold, subject), set())
        ruled = bodies.get(relation, {}).keys() & there | turned.get(relation, {}).keys() & back
        tests = {
            "direct": relation in there,
            "reverse": back & {relation, *partners.get(relation, ())},
            "rule_required": ruled,
            "other_link": there | back,
        }
        assert row["slice"] == next((name for name, holds in tests.items() if holds), "nowhere")
        assert row["in_hard"] == (row["slice"] == "rule_required")
        assert row["subject_documents"] == ("more than 10" if sizes.get(subject, 0) > 10 else "at most 10")
        if row["slice"] == "rule_required":
            best = max(
                *(bodies.get(relation, {}).get(body, 0) for body in there),
                *(turned.get(relation, {}).get(body, 0) for body in back),
                0,
            )
            assert row["rule_confidence"] == (
                "below 0.1" if best < 0.1 else "0.1 to 0.5" if best <= 0.5 else "above 0.5"
            )
        else:
            assert row["rule_confidence"] is None
        assert row["in_main"] or row["in_hard"] or (task == "ruleqa_n" and row["in_dense"])
        assert task == "ruleqa_y" or relation in bodies
    main = made.queries.filter("in_main")
    required = main.filter(pl.col("slice") == "rule_required").height
    assert required == HARD[task] or 3 * required >= main.height
    if task == "ruleqa_n":
        assert made.queries["in_dense"].sum() == DENSE


def _bodies(rules: pl.DataFrame) -> dict[str, dict[object, float]]:
    """Head -> body -> confidence, without identity rules."""
    found: dict[str, dict[object, float]] = {}
    for head, body, confidence, repeat in rules.select("head", "body", "confidence", "repeat").iter_rows():
        if not repeat:
            found.setdefault(head, {})[body] = confidence
    return found


def _inverse_rules(task: str, corpus: pl.DataFrame) -> pl.DataFrame:
    """As many inverse rules as the bank has cross-relation rules, by confidence x sqrt(support)."""
    mined = (mine_temporal if task in TEMPORAL else mine_static)(corpus, inverse=True)
    mined = mined.filter(pl.col("support") >= (3 if task == "ruleqa_i" else 2))
    most = STATISTICS[task][1][0] if task in ("ruleqa_i", *STATIC) else mined.height
    return best_first(mined).head(most).with_columns(repeat=pl.lit(False))


@pytest.mark.parametrize("task", TEMPORAL)
def test_stable_questions_are_those_that_the_last_object_answers(task: str, load) -> None:  # type: ignore[no-untyped-def]
    made = load(task)
    last: dict[tuple[str, str], set[str]] = {}
    latest: dict[tuple[str, str], str] = {}
    for s, r, o, time in made.corpus.select("subject", "relation", "object", "time").iter_rows():
        if time > latest.get((s, r), ""):
            latest[s, r], last[s, r] = time, set()
        if time == latest[s, r]:
            last[s, r].add(o)
    for row in made.queries.iter_rows(named=True):
        objects = {object[0] for object in row["objects"]}
        stable = objects & last.get((row["subject"], row["relation"]), set())
        assert row["change"] == ("stable" if stable else "changed")


def test_icews14_documents_are_the_lines_of_its_training_file(load) -> None:  # type: ignore[no-untyped-def]
    """Read again by other code: date = 2014-01-01 + hours / 24; a line a document, in the file's order.

    Self-loops are left out. A number distinguishes names that scoring takes for the same, such as A.K. Singh.
    """
    import datetime

    manifest = read_manifest(Path(graphs.__file__).with_name("sources.toml"))

    def rows(name: str) -> list[list[str]]:
        path = fetch(manifest[f"icews14/{name}.txt"])
        return [line.split("\t") for line in path.read_text().splitlines() if line.strip()]

    entity = {id: name for name, id in rows("entity2id")}
    relation = {id: name for name, id in rows("relation2id")}
    entity = {id: " ".join(name.split()) for id, name in entity.items()}
    made = load("ruleqa_i")
    start = datetime.date(2014, 1, 1)
    texts = [
        f"Time {start + datetime.timedelta(hours=int(t))} {entity[s]} {relation[r]} {entity[o]}."
        for s, r, o, t, _ in rows("train")
        if s != o
    ]
    assert [re.sub(r" \(\d\)", "", text) for text in made.corpus["text"]] == texts
    assert 0 < made.corpus["text"].str.contains(r" \(\d\)").sum() < 10


def test_wiki_labels_equal_the_reference(mirror: Path | None) -> None:
    """The three label files, joined, give the mirror's wiki/entity_labels.tsv, which was made independently."""
    if mirror is None or not (mirror / "wiki/entity_labels.tsv").is_file():
        pytest.skip("the mirror has no wiki/entity_labels.tsv")
    lines = (mirror / "wiki/entity_labels.tsv").read_text(encoding="utf-8").split("\n")[1:]
    rows = [line.split("\t") for line in lines if line]
    qids = {int(row[0]): row[1] for row in rows}
    expected = {int(row[0]): " ".join(row[2].split()) for row in rows if row[2]}
    aliases = {int(row[0]): row[4] for row in rows if row[4]}
    assert wiki_names.labels(lambda path: mirror / path, qids) == expected
    assert wiki_names.aligned(lambda path: mirror / path) == aliases
    assert (len(qids), len(expected), len(aliases)) == (12554, 10820, 10777)


@pytest.mark.parametrize("task", ["ruleqa_i", "ruleqa_n"])
def test_fresh_sets_are_the_same_under_new_names(task: str, load) -> None:  # type: ignore[no-untyped-def]
    old, new = load(task), load(f"{task}_fresh")
    assert new.rules.equals(old.rules)
    same = ["id", "relation", "time", *(name for name in old.queries.columns if name in VALUES), "popularity"]
    same += [name for name in old.queries.columns if name.startswith("in_")]
    assert new.queries.select(same).equals(old.queries.select(same))
    assert new.corpus.select("id", "relation", "time").equals(old.corpus.select("id", "relation", "time"))
    names = {
        pair
        for before, after in ((old.corpus, new.corpus), (old.queries, new.queries))
        for pair in zip(before["subject"], after["subject"], strict=True)
    }
    names |= set(zip(old.corpus["object"], new.corpus["object"], strict=True))
    golds = [
        table.select(pl.col("objects").list.eval(pl.element().list.first())).explode("objects")["objects"]
        for table in (old.queries, new.queries)
    ]
    names |= set(zip(*golds, strict=True))
    assert len(names) == len({before for before, _ in names}) == len({after.casefold() for _, after in names})
    words = {word for before, _ in names for word in re.findall(r"[^\W_]+", before.casefold())}
    assert not words & {word for _, after in names for word in re.findall(r"[^\W_]+", after.casefold())}


if __name__ == "__main__":
    built = {task: cache_dir() / build(task) for task in ALL}
    golden = {
        task: {name: summary(pl.read_parquet(built[task] / f"{name}.parquet")) for name in TABLES} for task in ALL
    }
    GOLDEN_FILE.write_text(json.dumps(golden, indent=1) + "\n")
