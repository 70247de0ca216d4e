"""Preparations: made once, stored, opened by later runs, resumed, limited, refused; what they cost."""

from __future__ import annotations

import json
import shutil
import threading

import pytest

from lm_eval_rag.harness.backends.corpora import Corpora
from lm_eval_rag.harness.common.errors import CallError, PermanentError, UserError
from lm_eval_rag.harness.common.locks import locked
from lm_eval_rag.harness.common.paths import cache_dir
from lm_eval_rag.harness.core.asks import embed, generate, prepared, retrieve
from lm_eval_rag.harness.core.journal import Journal
from lm_eval_rag.harness.core.parameters import variant
from lm_eval_rag.harness.core.preparing import Estimate, Product, estimated, for_each, preparation_of, prepared_by
from lm_eval_rag.harness.core.types import Answer, Passage, Query
from lm_eval_rag.harness.data.corpus import Corpus
from lm_eval_rag.harness.data.products import OpenProduct
from lm_eval_rag.harness.generators.base import Decoding
from lm_eval_rag.harness.plugin.engine import Engine, run
from lm_eval_rag.harness.plugin.model import model_class
from lm_eval_rag.harness.plugin.trace_file import read_trace
from lm_eval_rag.harness.retrieval import for_other_texts
from lm_eval_rag.harness.retrieval.encoding import encoder_fingerprint, encoder_of, vectors_of

PASSAGES = [Passage(f"p{i}", f"Ada{i} lives in Ulm{i}.") for i in range(12)]


def note_all(passages, *, mark: str = "*"):
    """One note of the model for each passage."""
    notes = yield from for_each(passages, lambda passage: generate(f"{mark} {passage.text}", max_tokens=9))
    rows = [
        {"id": f"n{i}", "text": note, "of": passage.id, "links": [f"n{i - 1}"] if i else [], "none": None}
        for i, (passage, note) in enumerate(zip(passages, notes, strict=True))
        if not isinstance(note, CallError)
    ]
    return Product({"notes": rows, "empty": []}, {"failed": len(passages) - len(rows)})


def one_each(passages, **options):
    return Estimate(len(passages), len(passages))


def by_id(tables):
    return {row["id"]: row for row in tables["notes"]}


@prepared_by(note_all, version="1", estimate=one_each)
def noted(query: Query, *, k: int = 2, mark: str = "*"):
    """Answers with the notes."""
    notes = yield from prepared(by_id)
    found = yield from retrieve(query.text, k, "notes")
    return Answer(" / ".join(note.text for note in found), tuple(Passage(notes[n.id]["of"], n.text) for n in found))


class Notes:
    """Repeats the prompt; keeps what it was asked; may fail or be killed at one call."""

    batch = 1

    def __init__(self, name="notes", killed_at=None, fails=(), error=CallError):
        self.fingerprint, self.killed_at, self.fails, self.prompts = name, killed_at, fails, []
        self.error = error
        self.decodings = []

    def generate(self, prompts, decoding, samples):
        if self.killed_at is not None and len(self.prompts) == self.killed_at:
            raise RuntimeError("killed")
        self.prompts += prompts
        self.decodings.append(decoding)
        return [self.error("filtered") if any(f in p for f in self.fails) else f"note: {p}" for p in prompts]

    def count_tokens(self, text):
        return len(text.split())

    def room(self, max_tokens):
        return None


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Each test begins with nothing prepared."""
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))


def asked(generator, questions=("Where does Ada3 live?",), corpus=PASSAGES, method=noted, **options):
    return run(method, list(questions), corpus=list(corpus), generator=generator, **options)


def products():
    return sorted(path for path in (cache_dir() / "prepared").glob("*") if path.is_dir())


def test_a_question_finds_what_was_prepared():
    ((answer, trace),) = asked(Notes())
    assert answer.text.startswith("note: * Ada3 lives in Ulm3.") and answer.passages[0].id == "p3"
    assert [step.ask for step in trace.steps] == ["Prepared", "Retrieve"]  # the calls are the preparation's
    assert trace.steps[0].reply == "notes: 12 rows, empty: 0 rows" and trace.steps[1].passages[0] == "n3"


def test_it_is_prepared_once():
    first, second, other = Notes(), Notes(), Notes("another model")
    answers = [asked(generator)[0][0] for generator in (first, second, other)]
    assert answers[0] == answers[1] == answers[2]
    assert (len(first.prompts), second.prompts, len(other.prompts)) == (12, [], 12) and len(products()) == 2
    assert asked(Notes(), k=3) and asked(Notes(), decoding=Decoding(5)) and len(products()) == 2
    asked(marked := Notes(), mark="!")
    asked(less := Notes(), corpus=PASSAGES[:5])
    assert (len(marked.prompts), len(less.prompts)) == (12, 5) and len(products()) == 4
    assert set(first.decodings) == {Decoding(9, (), 0.0)}  # whatever the task says


def test_a_killed_preparation_goes_on_without_paying_twice(tmp_path):
    journal = tmp_path / "run.sqlite"
    with pytest.raises(RuntimeError, match="killed"):
        asked(killed := Notes(killed_at=7), journal=journal)
    assert len(killed.prompts) == 7 and not products()
    asked(again := Notes(), journal=tmp_path / "other.sqlite", k=3)  # whichever run with this preparation comes next
    assert sorted(killed.prompts + again.prompts) == sorted(f"* {p.text}" for p in PASSAGES)
    account = OpenProduct(f"prepared/{products()[0].name}").meta["account"]
    assert (account["calls"], account["journalled"], account["passages"]) == (12, 7, 12)
    assert 0 < account["elapsed"] < 60 and account["seconds"] > 0
    assert account["prompt_tokens"] == 12 * 5 and account["completion_tokens"] == 12 * 6


def test_what_it_noted_is_said_in_every_run(caplog):
    many = [Passage(f"p{i}", f"Ada{i} lives in Ulm{i}.") for i in range(120)]
    for generator in (Notes(fails=["Ada77 "]), Notes()):  # the second opens the product
        asked(generator, corpus=many)
        assert "What the preparation of noted noted: failed (1)." in caplog.text
        caplog.clear()
    asked(Notes())
    assert "noted:" not in caplog.text  # none failed


def test_more_calls_than_allowed_are_refused_before_any():
    generator = Notes()
    with pytest.raises(
        UserError, match=r"12 passages \(12 chunks\) and needs about 12 calls of the model; allowed are 5"
    ):
        asked(generator, prepare_max_calls=5)
    assert generator.prompts == [] and not products()
    assert asked(generator, prepare_max_calls=12)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "12 calls of the model (at most 50). Its"),
        (5.0, "(at most 50) and about 1 min of one CPU core beside them. Its"),
        (7200.0, "about 2 hours of one CPU core"),
    ],
)
def test_its_own_computing_is_said_before(caplog, seconds, text):
    def method(query: Query, *, mark: str = "*"):
        return (yield from noted(query, mark=mark))

    slow = prepared_by(note_all, version="1", estimate=lambda passages, **_: Estimate(12, 12, seconds))(method)
    asked(Notes(), method=slow, prepare_max_calls=50)
    assert text in caplog.text


def test_a_wrong_estimate_does_not_lift_the_limit(tmp_path):
    def method(query: Query, *, mark: str = "*"):
        return (yield from noted(query, mark=mark))

    hopeful = prepared_by(note_all, version="1", estimate=lambda passages, **_: Estimate(1, 1))(method)
    generator = Notes()
    with pytest.raises(UserError, match=r"needs more than the 7 calls .* kept in .*prepare-\w+\.sqlite"):
        asked(generator, method=hopeful, prepare_max_calls=7, journal=tmp_path / "j.sqlite")
    assert len(generator.prompts) <= 7 and not products()


def test_a_failed_preparation_stores_nothing_and_goes_on(tmp_path):
    journal = tmp_path / "run.sqlite"
    with pytest.raises(
        UserError, match=r"failed for 1 of 1 corpora: filtered\. Finished calls are kept in .* Run again"
    ):
        asked(Notes(fails=("Ada3 ",)), journal=journal)
    assert not products()
    asked(again := Notes(), journal=journal)
    assert again.prompts == ["* Ada3 lives in Ulm3."] and len(products()) == 1


def test_one_call_that_fails_for_good_is_counted_not_fatal():
    asked(Notes(fails=("Ada3 ",), error=PermanentError), prepare_max_calls=12)
    meta = OpenProduct(f"prepared/{products()[0].name}").meta
    assert meta["notes"] == {"failed": 1} and meta["tables"]["notes"] == 11
    with pytest.raises(UserError, match="filtered"):
        asked(Notes("other", fails=("Ada3 ", "Ada4 "), error=PermanentError))


def test_one_failure_in_a_hundred_is_counted_not_fatal():
    many = [Passage(f"p{i}", f"Ada{i} lives here.") for i in range(200)]
    ((answer, _),) = asked(Notes(fails=("Ada7 ", "Ada8 ")), corpus=many)
    meta = OpenProduct(f"prepared/{products()[0].name}").meta
    assert meta["notes"] == {"failed": 2} and meta["tables"]["notes"] == 198 and answer.text
    with pytest.raises(UserError, match="filtered"):
        asked(Notes("other", fails=("Ada7 ", "Ada8 ", "Ada9 ")), corpus=many)


def test_calls_are_paid_once_for_all_corpora_and_parameters(tmp_path):
    journal = tmp_path / "run.sqlite"
    asked(Notes(), journal=journal)
    asked(more := Notes(), journal=journal, corpus=[*PASSAGES, Passage("new", "Bo lives in Ulm.")])
    asked(marked := Notes(), journal=journal, mark="!")
    asked(again := Notes(), journal=journal, corpus=PASSAGES[:5], mark="!")
    assert more.prompts == ["* Bo lives in Ulm."] and (len(marked.prompts), again.prompts) == (12, [])
    assert len(products()) == 4 and len(list(tmp_path.glob("prepare-*.sqlite"))) == 1


def test_a_saved_run_alone_is_refused_before_calls_are_paid(tmp_path):
    with pytest.raises(UserError, match="retriever_fallback="):
        asked(generator := Notes(), retriever="run", retriever_path=str(tmp_path / "none.parquet"))
    assert generator.prompts == []


def test_a_text_that_names_a_file_is_no_file(tmp_path, monkeypatch):
    asked(Notes(), mark="x" * 5_000)  # longer than a file's name may be
    monkeypatch.chdir(tmp_path)
    asked(first := Notes(), mark="!")
    (tmp_path / "!").write_text("a file")
    asked(second := Notes(), mark="!")
    assert (len(first.prompts), second.prompts) == (12, [])


def test_a_product_prepared_again_is_searched_again(tmp_path):
    """Its inputs are the same, but the model's replies are not: the run's journal must not serve the old rows."""
    journal = tmp_path / "run.sqlite"

    class Other(Notes):
        def generate(self, prompts, decoding, samples):
            replies = super().generate(prompts, decoding, samples)
            return ["nothing" if "Ada3 " in reply else reply for reply in replies]

    questions = ["Ada3 or Ada4?"]
    ((before, _),) = asked(Notes(), questions, journal=journal)
    for path in (*tmp_path.glob("prepare-*"), *products()):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    ((after, _),) = asked(Other(), questions, journal=journal)
    assert "Ada3" in before.text and "Ada4" in after.text and "nothing" not in after.text


def test_tables_are_stored_as_they_were():
    asked(Notes())
    folder = products()[0]
    tables = OpenProduct(f"prepared/{folder.name}").tables
    assert tables["notes"][1] == {
        "id": "n1", "text": "note: * Ada1 lives in Ulm1.", "of": "p1", "links": ["n0"], "none": None,
    }  # fmt: skip
    assert tables["notes"][0]["links"] == [] and tables["empty"] == []
    assert {path.name for path in folder.iterdir()} >= {"notes.parquet", "empty.parquet", "meta.json", "notes"}
    (folder / "notes.parquet").write_bytes(b"")
    with pytest.raises(UserError, match="damaged"):
        asked(Notes())


@pytest.mark.parametrize(
    ("product", "message"),
    [
        (None, "returns a NoneType"),
        (Product({"a b": []}), "names a table 'a b'"),
        (Product({"t": [{"id": "1"}, {"id": "2", "x": 1}]}), "differ in their columns"),
        (Product({"t": [{"id": 1, "text": ""}]}), "whose id is no text"),
        (Product({"t": [{"id": "1"}, {"id": "1"}]}), "share an id"),
    ],
)
def test_what_cannot_be_stored_is_refused(product, message):
    def wrong(passages):
        yield from ()
        return product

    def method(query: Query):
        yield from prepared(by_id)

    with pytest.raises(UserError, match=message):
        asked(Notes(), method=prepared_by(wrong, version="1", estimate=one_each)(method))
    assert not products()


def test_half_a_surrogate_pair_is_stored_as_a_question_mark():
    class Odd(Notes):
        def generate(self, prompts, decoding, samples):
            return ["Ada \ud83d lives" for _ in prompts]

    ((answer, _),) = asked(Odd(), corpus=PASSAGES[:1], questions=["Ada"])
    assert answer.text == "Ada ? lives"


def test_asking_for_what_was_not_prepared():
    def without(query: Query):
        yield from prepared(by_id)

    def wrong_table(query: Query, *, mark: str = "*"):
        yield from retrieve(query.text, 1, "nodes")

    with pytest.raises(UserError, match="Give the method a preparation by @prepared_by"):
        asked(Notes(), method=without)
    with pytest.raises(UserError, match=r"Unknown prepared table 'nodes'.*Allowed: empty, notes"):
        asked(Notes(), method=prepared_by(note_all, version="1", estimate=one_each)(wrong_table))


def test_a_parameter_that_the_method_lacks():
    def method(query: Query):
        yield from ()

    with pytest.raises(UserError, match="has the parameters mark, which its method lacks"):
        asked(Notes(), method=prepared_by(note_all, version="1", estimate=one_each)(method))


def test_a_variant_has_the_preparation_with_its_own_defaults():
    other = variant(noted, "other", mark="!")
    assert preparation_of(other) is preparation_of(noted)
    ((answer, _),) = asked(Notes(), method=other)
    assert answer.text.startswith("note: ! Ada3")


def test_an_empty_table_finds_nothing():
    def method(query: Query, *, mark: str = "*"):
        found = yield from retrieve(query.text, 3, "empty")
        return Answer(str(len(found)))

    method = prepared_by(note_all, version="1", estimate=one_each)(method)
    assert asked(Notes(), method=method)[0][0].text == "0"


def test_questions_with_passages_of_their_own_have_a_product_each():
    corpora = {id: Corpus.of(PASSAGES[2 * i : 2 * i + 2], id=id) for i, id in enumerate(("t/h#a", "t/h#b"))}
    engine = Engine(Corpora(_corpora=dict(corpora)), generator := Notes(), Journal(None))
    queries = [Query(id, "lives", corpus=f"t/h#{id[0]}") for id in ("a", "b", "b2")]
    results = engine.run(noted, queries)
    assert [sorted(p.id for p in answer.passages) for answer, _ in results] == [
        ["p0", "p1"],
        ["p2", "p3"],
        ["p2", "p3"],
    ]
    assert len(generator.prompts) == 4 and len(products()) == 2
    assert not any((folder / "notes").exists() for folder in products())  # no index on disk for each question
    account = engine.prepared["note_all"]
    assert (account["corpora"], account["prepared_now"], account["calls"]) == (2, 2, 4)
    assert "elapsed" not in account  # they were prepared at the same time


def test_many_plans_are_under_way_but_not_all_at_once(monkeypatch):
    monkeypatch.setattr("lm_eval_rag.harness.core.preparing.SLICE", 5)
    plan = for_each(range(12), lambda i: generate(str(i)))
    sizes, ask = [], next(plan)
    with pytest.raises(StopIteration) as ended:
        while True:
            sizes.append(len(ask.plans))
            ask = plan.send(tuple(f"{len(sizes)}" for _ in ask.plans))
    assert sizes == [5, 5, 2] and ended.value.value == ["1"] * 5 + ["2"] * 5 + ["3"] * 2


def test_an_estimate_is_made_from_a_part():
    seen = []

    def estimate(passages, **options):
        seen.extend(passage.id for passage in passages)
        return Estimate(2 * len(passages), len(passages), 0.5 * len(passages))

    preparation = preparation_of(prepared_by(note_all, version="1", estimate=estimate)(lambda query: None))
    assert estimated(preparation, PASSAGES, {}, 4) == Estimate(24, 12, 6.0) and seen == ["p0", "p3", "p6", "p9"]
    assert estimated(preparation, [], {}, 4) == Estimate(0, 0, 0.0)


def test_one_process_at_a_time(tmp_path):
    order, release = [], threading.Event()

    def second():
        with locked(tmp_path / "lock", lambda: (order.append("waits"), release.set())):
            order.append("second")

    with locked(tmp_path / "lock", lambda: order.append("never")):
        thread = threading.Thread(target=second)
        thread.start()
        assert release.wait(10)
        order.append("first ends")
    thread.join(10)
    assert order == ["waits", "first ends", "second"]


# --- vectors


@pytest.mark.parametrize(
    ("retriever", "options", "encoder"),
    [
        ("bm25", {"k1": 1.2}, ("static", {"adapter": "base"})),
        ("static", {"adapter": "ssft", "rerank": "m", "rerank_depth": 3}, ("static", {"adapter": "ssft"})),
        ("dense", {"model": "e5"}, ("dense", {"model": "e5"})),
        ("hybrid", {}, ("static", {})),
        ("dense", {"model": "e5", "index": "vectors.npy", "index_ids": "rows"}, ("dense", {"model": "e5"})),
        ("dense", {"index": "hnsw"}, ("dense", {"index": "hnsw"})),
        ("run", {"path": "run.parquet"}, ("static", {"adapter": "base"})),
        ("run", {"path": "r", "fallback": "dense", "fallback_model": "e5"}, ("dense", {"model": "e5"})),
        ("hybrid", {"second": "dense", "second_model": "e5"}, ("dense", {"model": "e5"})),
        ("hybrid", {"second": "lucene"}, ("static", {"adapter": "base"})),
    ],
)
def test_which_encoder_serves(retriever, options, encoder):
    assert encoder_of(retriever, options) == encoder


@pytest.mark.parametrize(
    ("retriever", "options", "other"),
    [
        ("bm25", {"k1": 1.2}, ("bm25", {"k1": 1.2})),
        ("lucene", {"index": "wikipedia-dpr-100w", "k1": 1.2}, ("lucene", {"k1": 1.2})),
        ("run", {"path": "r", "fallback": "lucene", "fallback_index": "i"}, ("lucene", {})),
        (
            "hybrid",
            {"second": "dense", "second_index": "v.npy", "depth": 9},
            ("hybrid", {"first": "bm25", "second": "dense", "depth": 9}),
        ),
    ],
)
def test_prebuilt_indexes_belong_to_the_corpus_alone(retriever, options, other):
    assert for_other_texts(retriever, options) == other


def test_a_saved_run_knows_no_prepared_texts(tmp_path):
    with pytest.raises(UserError, match=r"Give retriever_fallback= a retriever"):
        for_other_texts("run", {"path": "r"})


def test_vectors_and_their_encoder():
    texts = ["Ada lives in Ulm.", "Bo lives in Bonn.", "Ada lives in Ulm."]
    vectors = vectors_of(texts, "bm25", {})
    assert vectors.shape[0] == 3 and vectors.dtype == "float32" and (vectors[0] == vectors[2]).all()
    assert float(vectors[0] @ vectors[0]) == pytest.approx(1, abs=1e-3) and float(vectors[0] @ vectors[1]) < 0.9
    assert vectors_of([], "bm25", {}).shape[0] == 0
    assert encoder_fingerprint("bm25", {}) == encoder_fingerprint("static", {"adapter": "base"})
    assert encoder_fingerprint("bm25", {}) != encoder_fingerprint("static", {})


def embedded(passages, *, mark: str = "*"):
    vectors = yield from embed([passage.text for passage in passages])
    return Product({"notes": [{"id": "v", "text": str(vectors.shape[0]), "of": "p0"}]})


def test_the_encoder_is_in_the_key_where_vectors_are_asked_for():
    def method(query: Query, *, mark: str = "*"):
        return Answer((yield from prepared(by_id))["v"]["text"])

    for embeds, new in ((False, 1), (True, 2)):
        version = f"embeds {embeds}"
        given = prepared_by(embedded, version=version, estimate=one_each, embeds=embeds)(method)
        before = len(products())
        for retriever in ("bm25", "static"):
            assert asked(Notes(), method=given, retriever=retriever)[0][0].text == "12"
        assert len(products()) - before == new


# --- in lm_eval


def test_results_and_trace_have_it_apart_from_the_questions(evaluate, documents, scripted_lm, tmp_path):
    trace = tmp_path / "trace.jsonl.gz"

    def ran(**options):
        model = model_class("noted", noted)(generator="scripted-lm", corpus=documents, journal="off", **options)
        results = evaluate(model, system_instruction="Be brief.")
        return results["config"]["rag"], [sample["doc"]["_rag"] for sample in results["samples"]["visits"]]

    rag, records = ran(trace=str(trace))
    account = rag["preparations"]["note_all"]
    assert (account["calls"], account["prepared_now"], account["corpora"]) == (6, 1, 1) and account["prompt_tokens"] > 0
    assert rag["counts"]["Retrieve"] == 6 and "Generate" not in rag["counts"]  # the questions' own
    assert all(record["prompt_tokens"] == 0 for record in records)
    lines = read_trace(trace)
    assert [line["steps"][0]["ask"] for line in lines if line["task"] == "preparation"] == ["Generate"] * 6
    assert len(lines) == 12
    assert len(scripted_lm.seen) == 6 and not any("Be brief" in text for text, _ in scripted_lm.seen)
    rag, _ = ran()
    again = rag["preparations"]["note_all"]
    assert (again["calls"], again["prepared_now"], len(scripted_lm.seen)) == (6, 0, 6)
    json.dumps(rag)


def test_the_limit_is_a_model_argument(documents):
    with pytest.raises(UserError, match="prepare_max_calls='5' is not allowed"):
        model_class("noted", noted)(generator="scripted-lm", corpus=documents, prepare_max_calls="5")
    setups = [model_class("noted", noted)(corpus=documents, prepare_max_calls=most).setup for most in (5, 50)]
    assert setups[0].fingerprint == setups[1].fingerprint  # or a raised limit would begin another journal
