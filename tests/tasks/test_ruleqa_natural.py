"""Questions in English: every relation has one, no two can be confused, and each can be read back."""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.data.corpus import open_corpus
from lm_eval_rag.harness.data.question_forms import FormReader
from lm_eval_rag.harness.data.sources import fetch, read_manifest
from lm_eval_rag.harness.rules.bank import RuleBank
from lm_eval_rag.tasks.ruleqa import graphs, names, source_files
from lm_eval_rag.tasks.ruleqa.build import build
from lm_eval_rag.tasks.ruleqa.natural import NATURAL_TASKS, build_natural, english, question, spoken
from lm_eval_rag.tasks.ruleqa.specs import SPECS

GRAPHS = {spec.graph: spec.temporal for spec in SPECS.values()}
SIZES = {"icews14": 230, "yago": 10, "wiki": 24, "fb15k237": 237, "nell995": 198}
NAMES = ["Citizen (India)", "Sean O'Brien?", "the best of 1999", "whom did X consult on 1 May 2014", "a"]


def test_the_number_of_relations() -> None:
    assert {graph: len(english(graph)) for graph in GRAPHS} == SIZES


@pytest.mark.parametrize("graph", GRAPHS)
def test_every_form_is_one_whole_question(graph: str) -> None:
    for relation, form in english(graph).items():
        assert form.count("{subject}") == 1 and form.count("{time}") == GRAPHS[graph], form
        assert form[0].isupper() and form.endswith("?") and form.count("?") == 1, form
        assert not any(wrong in form for wrong in ("  ", " ,", " ?", " .")) and form == form.strip(), form
        assert not set("{}") & set(question(graph, "X", relation, "2014-11-03" if GRAPHS[graph] else None)), form
        if graph == "icews14":
            assert form.startswith("On {time}, ") or form.endswith(" on {time}?"), form
        elif GRAPHS[graph]:
            assert form.endswith(" in {time}?"), form


@pytest.mark.parametrize("graph", GRAPHS)
def test_no_text_has_two_readings(graph: str) -> None:
    """Two forms could give one text only if their beginnings agree and their ends agree, as far as both go."""
    ends = [tuple(form.replace("{time}", "0").split("{subject}")) for form in english(graph).values()]
    for (start, end), (other_start, other_end) in combinations(ends, 2):
        starts = start.startswith(other_start) or other_start.startswith(start)
        assert not (starts and (end.endswith(other_end) or other_end.endswith(end))), (start, end)


@pytest.mark.parametrize("graph", GRAPHS)
def test_subject_and_relation_can_be_read_back(graph: str) -> None:
    reader = FormReader(english(graph))
    for relation in english(graph):
        for name in NAMES:
            time = "2014-11-03" if graph == "icews14" else "1830" if GRAPHS[graph] else None
            text = question(graph, name, relation, time)
            assert reader.read(text) == [(name, relation)]
            assert time is None or spoken(time) in text
    assert reader.read("what does X Consult ?") == []


@pytest.mark.parametrize(
    ("time", "words"), [("1830", "1830"), ("2014-11-03", "3 November 2014"), ("2014-02-28", "28 February 2014")]
)
def test_times(time: str, words: str) -> None:
    assert spoken(time) == words


def test_examples() -> None:
    assert question("icews14", "Iraq", "Consult", "2014-11-03") == "Whom did Iraq consult on 3 November 2014?"
    assert question("yago", "Ann", "plays for", "1987") == "For whom did Ann play in 1987?"
    asked = question("fb15k237", "Gettysburg College", "operating income currency", None)
    assert asked == "Which currency does Gettysburg College report its operating income in?"


def test_a_relation_without_a_question() -> None:
    with pytest.raises(UserError, match=r"relation 'eats' of yago has no question.*english/yago\.toml"):
        question("yago", "Ann", "eats", "1987")
    with pytest.raises(UserError, match="needs a time"):
        question("yago", "Ann", "plays for", None)


def test_the_tasks_in_english() -> None:
    assert [task.removesuffix("_natural") for task in NATURAL_TASKS] == list(SPECS)


# --- on the real graphs


RELATIONS: dict[str, Callable[[dict[int, str]], Iterable[str]]] = {  # raw names by id -> readable names
    "icews14": lambda raw: raw.values(),
    "yago": lambda raw: map(names.camel, raw.values()),
    "fb15k237": lambda raw: names.freebase_relations(raw).values(),
    "nell995": lambda raw: (names.segment(name.removeprefix("concept:")) for name in raw.values()),
}


@pytest.mark.parametrize("graph", RELATIONS)
def test_every_relation_of_a_graph_has_a_question(graph: str, mirror: Path | None) -> None:
    manifest = read_manifest(files("lm_eval_rag.tasks.ruleqa") / "sources.toml")
    (path,) = (path for path in source_files.FILES[graph] if Path(path).name.startswith("relation2id"))
    rows = [line.split("\t") for line in fetch(manifest[path]).read_text(encoding="utf-8").splitlines() if line]
    raw = {int(row[1]): row[0].strip() for row in rows if len(row) > 1}
    dropped = {names.segment(name) for name in graphs.NELL_DROPPED}
    assert set(RELATIONS[graph](raw)) - dropped == set(english(graph))


@pytest.fixture(scope="module", params=("ruleqa_i", "ruleqa_n"))
def built(request: Any, mirror: Path | None, cache: Path, once: Callable[..., Any]) -> tuple[str, str, str]:
    """The graph, and the corpus ids of a set and of the same set in English."""
    plain = once(request.param, partial(build, request.param))
    natural = once(f"{request.param}_natural", partial(build_natural, f"{request.param}_natural"))
    return SPECS[request.param].graph, plain, natural


@pytest.mark.parametrize("task", SPECS)
def test_real_questions_can_be_read_back(task: str, mirror: Path | None, cache: Path, once: Callable[..., Any]) -> None:
    """Every subject and relation of Q, F_R and F_G, and every relation of D and of the rules."""
    folder = once(task, partial(build, task))
    reader, graph = FormReader(english(SPECS[task].graph)), SPECS[task].graph
    rows = pl.concat([table.select("subject", "relation", "time") for table in tables(cache, folder).values()])
    for subject, relation, time in rows.unique(("subject", "relation")).iter_rows():
        assert reader.read(question(graph, subject, relation, time)) == [(subject, relation)]
    for time in rows["time"].unique().drop_nulls():
        assert reader.read(question(graph, "X", relation, time)) == [("X", relation)]
    corpus = open_corpus(folder)
    assert set(corpus.relations) <= set(english(graph))


def tables(cache: Path, corpus: str) -> dict[str, pl.DataFrame]:
    names = ("queries", "retriever_train", "generator_train")
    return {name: pl.read_parquet(cache / corpus / f"{name}.parquet") for name in names}


def test_only_the_text_changes(built: tuple[str, str, str], cache: Path) -> None:
    _, plain, natural = built
    before, after = tables(cache, plain), tables(cache, natural)
    for name, table in before.items():
        assert after[name].drop("text").equals(table.drop("text"))
        assert after[name].columns == table.columns
        assert not set(after[name]["text"]) & set(table["text"])
    assert "nothing else" in (cache / natural / "README.md").read_text(encoding="utf-8")


def test_the_written_questions_are_worded(built: tuple[str, str, str], cache: Path) -> None:
    graph, _, natural = built
    rows = pl.concat([table.select("text", "subject", "relation", "time") for table in tables(cache, natural).values()])
    for text, *fact in rows.iter_rows():
        assert text == question(graph, *fact)


def test_the_same_rules_are_selected(built: tuple[str, str, str], cache: Path) -> None:
    _, plain, natural = built
    banks = [RuleBank(open_corpus(corpus)) for corpus in (plain, natural)]
    rows = zip(
        *(tables(cache, corpus)["queries"][:400].iter_rows(named=True) for corpus in (plain, natural)), strict=True
    )
    for row, reworded in rows:
        asked = (row["subject"], row["relation"])
        assert banks[1].recognise(reworded["text"]) == banks[0].recognise(row["text"]) == asked
        assert banks[1].match(reworded["text"], 5) == banks[0].match(row["text"], 5)


def test_documents_and_examples(built: tuple[str, str, str], cache: Path) -> None:
    graph, plain, natural = built
    first, second = open_corpus(plain), open_corpus(natural)
    assert (second.id, second.fingerprint, second.folder) == (natural, first.fingerprint, first.folder)  # one index
    assert second.texts == first.texts and second.rules() == first.rules()
    assert [query.id for query, _ in second.examples()] == [query.id for query, _ in first.examples()]
    text = pl.read_parquet(cache / natural / "generator_train.parquet")["text"].to_list()
    assert [query.text for query, _ in second.examples()] == text
    assert not first.forms and dict(second.forms) == english(graph)


def test_another_wording_is_another_folder(
    built: tuple[str, str, str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, plain, natural = built
    changed: Mapping[str, str] = {**english(graph), "unused": "Which {subject} is unused?"}
    monkeypatch.setattr("lm_eval_rag.tasks.ruleqa.natural.english", lambda _: changed)
    from lm_eval_rag.tasks.ruleqa.natural import worded

    other = worded(natural.split("/")[0], graph, plain)
    assert other != natural
    assert json.loads((cache / other / "meta.json").read_text())["documents"] == plain
