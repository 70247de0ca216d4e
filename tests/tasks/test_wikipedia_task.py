"""The tasks over Wikipedia: YAML files, pinned sources, built questions and corpora, and a run of each kind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from lm_eval_rag.harness.backends.corpora import Corpora
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.types import Query
from lm_eval_rag.harness.data.corpus import open_corpus
from lm_eval_rag.harness.data.own_passages import OwnPassages
from lm_eval_rag.harness.data.sources import Source, UnavailableError, fetch
from lm_eval_rag.tasks.wikipedia import build as build_module
from lm_eval_rag.tasks.wikipedia import corpus_build, corpus_specs, hotpot, specs
from lm_eval_rag.tasks.wikipedia.about import about
from lm_eval_rag.tasks.wikipedia.build import build
from lm_eval_rag.tasks.wikipedia.card import questions_text
from lm_eval_rag.tasks.wikipedia.corpus_build import build_corpus, manifest
from lm_eval_rag.tasks.wikipedia.corpus_specs import CORPORA, Corpus
from lm_eval_rag.tasks.wikipedia.fever import INSTRUCTION
from lm_eval_rag.tasks.wikipedia.specs import TASKS, Choice, Task

FOLDER = Path(str(files("lm_eval_rag.tasks.wikipedia")))
GROUPS = {
    "multihop": ["hotpotqa", "2wikimultihopqa", "musique", "bamboogle"],
    "open_domain": ["rag_nq", "rag_triviaqa", "rag_webquestions"],
    "crp_table1": ["rag_nq", "rag_triviaqa", "rag_webquestions", "hotpotqa", "2wikimultihopqa", "fever"],
}
UNVERIFIED = {"hotpotqa/corpus-00000-of-00001.parquet", "fever/corpus-00000-of-00001.parquet"}
HERE = {"hotpotqa_200", "hotpotqa_train_100", "musique_train_100", "fever_345", "rag_nq_2655"}  # gold is known


@pytest.fixture(scope="module")
def manager() -> Any:
    from lm_eval.tasks import TaskManager

    return TaskManager(include_defaults=False, include_path=str(FOLDER))


def test_every_task_has_a_yaml_and_every_group_its_tasks(manager: Any) -> None:
    assert set(manager.all_tasks) == {*TASKS, *GROUPS} and set(manager.all_groups) == set(GROUPS)
    for group, names in GROUPS.items():
        assert yaml.safe_load((FOLDER / f"{group}.yaml").read_text())["task"] == names
    for name, task in TASKS.items():
        shared = "_fever" if task.scoring == "fever" else "_wikipedia"
        assert yaml.safe_load((FOLDER / f"{name}.yaml").read_text()) == {"include": shared, "task": name}


def test_every_file_is_pinned_and_used() -> None:
    used = {file for task in TASKS.values() for choice in task.choices.values() for file in choice.files}
    used |= {file for corpus in CORPORA.values() for file in corpus.files}
    assert used == set(manifest())
    for path, source in manifest().items():
        assert source.verified == (path not in UNVERIFIED)
        assert not source.verified or re.fullmatch("[0-9a-f]{64}", source.sha256)
        assert source.licence and source.terms
        if source.host == "github":
            assert re.fullmatch("[0-9a-f]{40}", source.commit) and source.bytes
    assert {choice.corpus for task in TASKS.values() for choice in task.choices.values()} == set(CORPORA)
    assert not set(TASKS) & set(CORPORA)  # both are names of folders


def available() -> list[tuple[str, str]]:
    """Every (task, choice) whose questions do not need a large download."""
    return [
        (name, key)
        for name, task in TASKS.items()
        for key, choice in task.choices.items()
        if all(manifest()[file].host == "github" or manifest()[file].host == "mirror" for file in choice.files)
    ]


@pytest.mark.parametrize(("name", "key"), available())
def test_questions_are_complete(name: str, key: str, mirror: Path | None) -> None:
    """The promised number, unique ids, and a gold answer each."""
    choice = TASKS[name].choices[key]
    questions = list(choice.read([_fetched(file) for file in choice.files]))
    assert len(questions) == len({question.id for question in questions}) == TASKS[name].questions
    assert all(question.answers and question.text == question.text.strip() for question in questions)


def test_musique_from_the_mirror_says_what_it_lacks(mirror: Path | None) -> None:
    choices = TASKS["musique"].choices
    assert {name for name, choice in choices.items() if choice.files == corpus_specs.MUSIQUE_DEV} == {
        "pooled", "own", "wiki18_100w",
    }  # fmt: skip
    assert {name: choice.lacks for name, choice in choices.items() if choice.lacks} == {
        "mirror": "the official ids, numbers of hops and aliases of answers"
    }
    named = list(choices["mirror"].read([_fetched(file) for file in choices["mirror"].files]))
    assert {len(question.answers) for question in named} == {1} and {question.type for question in named} == {None}
    assert "its questions lack the official ids" in about()["musique"].facts["corpora"]
    assert "its questions lack" not in about()["bamboogle"].facts["corpora"]
    meta = {"task": "musique", "choice": "mirror", "about": "MuSiQue", "corpus": "c", "version": 2, "counts": {}}
    text = questions_text({**meta, "lacks": choices["mirror"].lacks, "notes": {}, "leaks": {}, "sources": {}})
    assert "The questions lack the official ids, numbers of hops and aliases of answers." in text


def _fetched(file: str) -> Path:
    try:
        return fetch(manifest()[file])
    except UnavailableError as error:
        pytest.skip(f"needs {file}: {error}")


def test_full_hotpotqa_has_its_official_ids(mirror: Path | None) -> None:
    choice = TASKS["hotpotqa"].choices["mirror"]
    first = next(iter(choice.read([_fetched(file) for file in choice.files])))
    assert (first.id, first.answers) == ("5a8b57f25542995d1e6f1371", ("yes",))
    assert first.text == "Were Scott Derrickson and Ed Wood of the same nationality?"


@pytest.fixture(scope="module")
def built(mirror: Path | None, cache: Path, once: Callable[..., Any]) -> dict[str, Path]:
    """The folders of the small tasks."""
    try:
        return {name: cache / once(f"wikipedia-{name}", partial(build, name)) for name in sorted(HERE)}
    except UnavailableError as error:
        pytest.skip(f"needs files that only a mirror has: {error}")


@pytest.mark.parametrize("name", sorted(HERE))
def test_gold_evidence_is_in_the_corpus(name: str, built: dict[str, Path], cache: Path) -> None:
    meta = json.loads((built[name] / "meta.json").read_text())
    passages = pl.read_parquet(cache / meta["corpus"] / "corpus.parquet")
    sentences = dict(zip(passages["id"], passages["sentences"].to_list(), strict=True))
    rows = pl.read_parquet(built[name] / "queries.parquet").to_dicts()
    assert meta["counts"] == {"questions": len(rows), "with known gold passages": len(rows)}
    assert passages.height == CORPORA[TASKS[name].choices[meta["choice"]].corpus].size == len(sentences)
    for row in rows:
        assert set(row["gold"]) <= set(sentences)
        facts = [*(row["facts"] or []), *(fact for one in row["evidence_sets"] or [] for fact in one)]
        assert all(sentences[fact["passage"]][fact["sentence"]] for fact in facts)
        assert bool(facts) == (TASKS[name].scoring in ("hotpotqa", "fever"))
    leaks = meta["leaks"]
    assert leaks.pop("passages searched") == passages.height
    short = leaks.pop("questions of fewer than 5 words, not searched for")
    assert short == sum(len(re.findall(r"\w+", row["query"])) < 5 for row in rows) and sum(leaks.values()) <= 1
    card = (built[name] / "README.md").read_text()
    assert "questions of fewer than 5 words, and ids that are numbers alone" in card
    assert meta["corpus"] in card and all(file in card for file in meta["sources"])


def test_a_passage_is_title_and_sentences(built: dict[str, Path]) -> None:
    meta = json.loads((built["hotpotqa_200"] / "meta.json").read_text())
    passage = open_corpus(meta["corpus"]).passage(0)
    assert passage.id == "Ken Herock" and passage.text.startswith("Ken Herock\nKen Herock (born July 16, 1941, in")
    assert "  " not in passage.text


def test_own_passages(built: dict[str, Path], cache: Path) -> None:
    folder = cache / build("hotpotqa_200", corpus="own")
    rows = pl.read_parquet(folder / "queries.parquet").to_dicts()
    (source,) = TASKS["hotpotqa_200"].choices["own"].files
    questions = {question.id: question for question in hotpot.questions([fetch(manifest()[source])])}
    corpora = Corpora()
    for row in rows[:3]:
        query = Query(row["id"], row["query"], corpus=row["corpus"])
        corpus = corpora.corpus(query)
        ids = [corpus.passage(i).id for i in range(len(corpus))]
        assert ids == [page.title for page in questions[row["id"]].context] and set(row["gold"]) <= set(ids)
        found = corpora.retriever_of(corpus).search([row["query"]], 20)[0]
        assert len(found) == len(ids) and corpora.pages(query) == ()
    assert corpora.retriever_of(corpora.corpus(query)).fingerprint
    with pytest.raises(UserError, match="has no passages of a question 'nobody'"):
        OwnPassages(row["corpus"].partition("#")[0]).corpus("nobody")
    fingerprints = {corpora.corpus(Query("x", "x", corpus=row["corpus"])).fingerprint for row in rows[:20]}
    assert len(fingerprints) == 20


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("hotpotqa_200", {"facts"}),
        ("rag_nq_2655", set()),
        ("fever_345", {"evidence_sets", "system_instruction"}),
    ],
)
def test_documents(name: str, extra: set[str], built: dict[str, Path], manager: Any) -> None:
    task = manager.load([name])["tasks"][name]
    docs = list(task.test_docs())
    common = {"id", "query", "time", "answers", "type", "corpus", "scoring", "gold", "answer_form"}
    assert len(docs) == TASKS[name].questions and set(docs[0]) == common | extra
    assert len(json.dumps(docs[0])) < 2000  # every sample line holds the whole document
    prompt = task.doc_to_text(docs[0])
    assert docs[0]["query"] in prompt and (INSTRUCTION in prompt) == (name == "fever_345")
    assert task.doc_to_target(docs[0]) == docs[0]["answers"][0]


def test_another_corpus_by_metadata(built: dict[str, Path], cache: Path) -> None:
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_defaults=False, include_path=str(FOLDER), metadata={"corpus": "own"})
    task = manager.load(["hotpotqa_train_100"])["tasks"]["hotpotqa_train_100"]
    doc = task.test_docs()[0]
    assert doc["corpus"].endswith(f"#{doc['id']}") and task.config.metadata["corpus"] == "own"


def test_a_corpus_that_a_task_lacks_is_refused_with_its_choices() -> None:
    with pytest.raises(UserError, match=r"Unknown corpus of bamboogle 'poled'.*Allowed: mirror, wiki18_100w.*21015324"):
        build("bamboogle", corpus="poled")
    with pytest.raises(UserError, match=r"Unknown task 'hotpot'\. Did you mean 'hotpotqa'"):
        build("hotpot")
    with pytest.raises(UserError, match="Unknown corpus 'wiki18'"):
        build_corpus("wiki18")


def test_no_network_names_the_file_and_the_other_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LM_EVAL_RAG_MIRROR", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UserError, match=r"validation-00000.*c20b638ca8.*LM_EVAL_RAG_MIRROR.*\"corpus\": \"mirror\""):
        build("hotpotqa")


def test_a_run(built: dict[str, Path], manager: Any, undescribed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stock lm_eval, the embedded generator, and what the scores are of."""
    pytest.importorskip("torch")
    from lm_eval_rag.harness.generators import lm

    asked: list[tuple[str, str | None]] = []
    as_text = lm.as_text
    monkeypatch.setattr(lm, "as_text", lambda prompt, system: asked.append((prompt, system)) or as_text(prompt, system))
    import lm_eval

    import lm_eval_rag

    lm_eval_rag.register()
    results = lm_eval.simple_evaluate(
        "standard_rag", "journal=off", tasks=["hotpotqa_200", "fever_345"], limit=1, task_manager=manager
    )
    hotpotqa, claims = (results["results"][name] for name in ("hotpotqa_200", "fever_345"))
    assert {"hotpot_em,none", "hotpot_f1,none", "evidence_recall@5,none", "recall@5,none"} <= set(hotpotqa)
    assert {"fever_label,none", "evidence_all@10,none"} <= set(claims)
    assert not {"sp_f1,none", "fever_score,none", "recall@5,none"} & set(claims)
    instructions = {system for prompt, system in asked if "Telemundo is a English" in prompt}
    assert instructions == {INSTRUCTION} and None in {system for _, system in asked}


@pytest.fixture
def little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``little(rows)`` makes a task ``little`` of these rows in HotpotQA's format."""
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LM_EVAL_RAG_MIRROR", str(tmp_path))

    def make(*rows: Any) -> None:
        path = tmp_path / "little.jsonl"
        path.write_text("\n".join(json.dumps(row) for row in rows))
        source = Source("little.jsonl", "o/n", "c", "little", "UNVERIFIED", 0, "CC0", "none")
        for module in (corpus_build, build_module):
            monkeypatch.setattr(module, "manifest", {"little.jsonl": source}.copy)
        files = ("little.jsonl",)
        monkeypatch.setitem(corpus_specs.CORPORA, "pool", Corpus("a pool", 0, ((hotpot.questions, files),), own=True))
        choice = Choice("pool", hotpot.questions, files)
        monkeypatch.setitem(specs.TASKS, "little", Task("little", 2, "hotpotqa", {"pooled": choice}))

    return make


def item(id: str, context: Any, facts: Any, answer: str = "yes") -> dict[str, Any]:
    return {"_id": id, "question": f"Is {id}?", "answer": answer, "context": context, "supporting_facts": facts}


def test_bad_items_are_counted_and_kept(little: Callable[..., None], tmp_path: Path) -> None:
    huge = ["Huge", ["x" * 5_000_000 + " lighthouse", " y" * 2_500_000]]
    paris = ["Paris", ["One."]]
    little(
        item("a", [paris, ["Empty", [" "]]], [["Paris", 0]]),
        item("a", [["Paris", ["Another."]], huge], [["Paris", 7]]),
        item("b", [paris], [["Rome", 0]], answer=""),
    )
    meta = json.loads((tmp_path / "cache" / build("little") / "meta.json").read_text())
    assert meta["counts"] == {"questions": 3, "with known gold passages": 2}
    assert meta["notes"] == {
        "id of several questions": 1, "question without a gold answer": 1, "evidence names a missing sentence": 2,
    }  # fmt: skip
    about = json.loads((tmp_path / "cache" / meta["corpus"] / "meta.json").read_text())
    assert about["counts"] == {"passages": 3} and about["notes"] == {
        "empty passage": 1, "id of several passages": 1, "repeated passage": 1,
        "passage of more than a million characters": 1,
    }  # fmt: skip
    assert not about["sources"]["little.jsonl"]["verified"] and len(about["sources"]["little.jsonl"]["sha256"]) == 64
    assert "UNVERIFIED" in (tmp_path / "cache" / meta["corpus"] / "README.md").read_text()
    rows = pl.read_parquet(tmp_path / "cache" / build("little") / "queries.parquet").to_dicts()
    named = [[(fact["passage"], fact["sentence"]) for fact in row["facts"]] for row in rows]
    assert named == [[("Paris", 0)], [("Paris#2", 7)], [("Rome", 0)]]
    corpus = open_corpus(meta["corpus"])
    assert [corpus.passage(row).id for row in range(3)] == ["Paris", "Paris#2", "Huge"]
    found = Corpora().retriever_of(corpus).search(["lighthouse"], 1)[0]
    assert found[0][0] == 2 and len(corpus.passage(2).text) > 10_000_000
    own = OwnPassages(meta["corpus"])
    assert [len(own.corpus(id)) for id in ("a", "a-2", "b")] == [1, 2, 1]


def test_gold_in_passages_is_warned_of_once(little: Callable[..., None], caplog: pytest.LogCaptureFixture) -> None:
    asked = {**item("a", [["Quiz", ["Is this the right question? Yes."]]], [["Quiz", 0]])}
    little({**asked, "question": "Is this the right question?"}, item("b", [["Paris", ["One."]]], []))
    for _ in range(2):
        build("little")
    assert caplog.text.count("may leak gold") == 1
    assert "little over pooled may leak gold: passages with a whole question: 1, such as 'Quiz'" in caplog.text


def test_a_corpus_without_text_is_refused(little: Callable[..., None]) -> None:
    little(item("a", [["Empty", [" "]]], []))
    with pytest.raises(UserError, match=r"No passage with text was found in little\.jsonl"):
        build("little")
