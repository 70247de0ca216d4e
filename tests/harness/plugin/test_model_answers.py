"""Questions that fail, tasks that are not ours, what a method can see, and the record that its answer carries."""

import copy
import dataclasses
import json
import logging
import pickle

import pytest

from lm_eval_rag._register import tasks_folder
from lm_eval_rag.harness.common.errors import UserError
from lm_eval_rag.harness.core.asks import generate, retrieve
from lm_eval_rag.harness.core.prompts import Prompt, Template
from lm_eval_rag.harness.core.record import RagText
from lm_eval_rag.harness.core.types import Answer
from lm_eval_rag.harness.plugin.model import model_class
from lm_eval_rag.harness.plugin.requests import queries_of
from lm_eval_rag.harness.plugin.unscored import listening
from lm_eval_rag.harness.retrieval.fusion import round_robin


def model_of(name):
    from lm_eval.api.registry import get_model

    return get_model(name)


def test_a_failed_question_is_unscored_and_named(evaluate, caplog, docs, task):
    docs = [*docs[:2], {**docs[0], "id": "long", "query": "why " * 300}, *docs[2:4]]
    with caplog.at_level(logging.WARNING, logger="lm_eval_rag"):
        results = evaluate(arguments={"max_prompt_tokens": 80}, tasks=[task(docs)])
    samples = {sample["doc"]["id"]: sample for sample in results["samples"]["visits"]}
    assert (
        results["config"]["rag"]["unscored"] == ["long"]
        and "Question long stays unscored: the prompt does not fit" in caplog.text
    )
    assert samples["long"]["metrics"] == [] and "does not fit" in samples["long"]["doc"]["_rag"]["failure"]
    assert [sample["em"] for name, sample in samples.items() if name != "long"] == [1.0] * 4
    assert results["results"]["visits"]["em,none"] == 1.0  # of four questions, not 0.8 of five
    assert results["config"]["rag"]["counts"]["unscored"] == 1


def test_two_runs_of_one_model_do_not_mix(documents, docs, task, monkeypatch):
    """Each has its own record, also where a program evaluates one model twice."""
    monkeypatch.setattr("lm_eval.evaluator.add_env_info", lambda results: None)  # seconds a run, of no interest here
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    model = model_of("standard_rag")(generator="scripted-lm", corpus=documents, journal="off", max_prompt_tokens=80)
    manager = TaskManager(include_defaults=False, include_path=str(tasks_folder()))
    long = [{**docs[0], "id": "long", "query": "why " * 300}]

    def rag(given):
        with listening() as unscored:
            results = simple_evaluate(model=model, tasks=[task(given)], task_manager=manager)
        assert unscored == results["config"]["rag"]["unscored"]
        return results["config"]["rag"]

    first, second, third = rag([*docs[:2], *long]), rag(docs[2:]), rag(long)
    assert [run["unscored"] for run in (first, second, third)] == [["long"], [], ["long"]]
    assert [run["counts"]["questions"] for run in (first, second, third)] == [3, 4, 1]
    assert [run["counts"]["unscored"] for run in (first, second, third)] == [1, 0, 1]


def two_hops(query, *, k: int = 3):
    """Two retrievals of k, the second for one question in two alone; the list is that of both."""
    first = yield from retrieve(query.text, k)
    odd = int(query.id[1:]) % 2
    second = (yield from retrieve("Alba visited Kiel Burg", k)) if odd else ()
    return Answer("x", round_robin([first, second]))


def test_recall_is_over_the_merged_list_and_over_all_questions(documents, docs, task):
    """recall@5 of two hops of three documents each, also for the questions that needed one."""
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_defaults=False, include_path=str(tasks_folder()))
    model = model_class("two_hops", two_hops)(corpus=documents, journal="off")
    results = simple_evaluate(model=model, tasks=[task()], task_manager=manager)
    samples = results["samples"]["visits"]
    records = [sample["doc"]["_rag"] for sample in samples]
    assert {len(record["passages"]) for record in records} >= {3} and {record["k"] for record in records} == {6}
    assert all({"recall@1", "recall@2", "recall@5"} <= set(sample) for sample in samples)
    assert not any("recall@10" in sample for sample in samples)
    hits = [any(p["object"] in doc["answers"] for p in r["passages"][:5]) for doc, r in zip(docs, records, strict=True)]
    assert results["results"]["visits"]["recall@5,none"] == pytest.approx(sum(hits) / len(docs))


def test_log_likelihoods_are_refused(evaluate, tmp_path):
    data = tmp_path / "choices.json"
    data.write_text(json.dumps({"question": "who?", "choices": ["a", "b"], "gold": 0}))
    config = {
        "task": "choices",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "{{question}}",
        "doc_to_choice": "{{choices}}",
        "doc_to_target": "{{gold}}",
    }
    with pytest.raises(UserError, match=r"standard_rag answers questions; this task asks for log-likelihoods"):
        evaluate(tasks=[config])


def test_a_task_that_is_not_ours_is_answered_over_a_corpus_file(evaluate, tmp_path, scripted_lm, docs):
    data = tmp_path / "plain.json"
    data.write_text("".join(json.dumps({"q": doc["query"], "a": doc["answers"][0]}) + "\n" for doc in docs))
    config = {
        "task": "plain",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "{{q}}",
        "doc_to_target": "{{a}}",
        "generation_kwargs": {"until": ["\n"]},
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }
    results = evaluate(tasks=[config])
    assert results["results"]["plain"]["exact_match,none"] == 1.0
    assert docs[0]["query"] in scripted_lm.seen[0][0] and scripted_lm.seen[0][1]["max_gen_toks"] == 256
    with pytest.raises(UserError, match=r"'plain/0' comes without a corpus.*corpus=FILE.jsonl"):
        evaluate(arguments={"corpus": None}, tasks=[config])


def test_gold_answers_are_unreachable(documents, docs):
    """All that a method is given, and all that it leaves, is searched for the gold answers."""
    docs = [{**doc, "answers": [f"gold{i}"]} for i, doc in enumerate(docs)]
    seen = []

    def spy(query, *, k: int = 2):
        found = yield from retrieve(query.text, k)
        text = yield from generate("?")
        seen.append(pickle.dumps([dataclasses.asdict(query), found, text]))
        return Answer(text, found)

    model = model_class("spy", spy)(generator="scripted-lm", corpus=documents, journal="off")
    answers = model.generate_until([fake_request(doc) for doc in docs])
    assert len(seen) == 6 and not [data for data in seen if b"gold" in data]
    assert len(answers) == 6 and not [answer for answer in answers if "gold" in json.dumps(answer.aux)]


def fake_request(doc):
    from lm_eval.api.instance import Instance

    return Instance("generate_until", doc, (doc["query"], {}), 0)


@pytest.mark.parametrize(("rules", "held"), [("selected", False), ("oracle", True)])
def test_only_the_oracle_control_is_lent_gold_answers_and_only_its_backend(rules, held, documents, docs):
    model = model_of("rulerag_icl")(generator="scripted-lm", rules=rules, corpus=documents, journal="off")
    requests = [fake_request(doc) for doc in docs]
    gold = model._gold(requests, queries_of(requests))
    assert gold == ({(None, doc["id"]): doc["answers"] for doc in docs} if held else {})


@pytest.mark.parametrize("through", [copy.copy, copy.deepcopy, lambda text: pickle.loads(pickle.dumps(text))])
def test_the_record_survives_copies_and_processes(through):
    text = through(RagText("Ulm", {"answer": "Ulm", "passages": [{"id": "d1"}]}))
    assert text == "Ulm" and type(text) is RagText and text.aux["passages"] == [{"id": "d1"}]
    assert json.dumps(text) == '"Ulm"'


def test_the_record_survives_filters_that_choose(evaluate, task):
    chosen = [{"name": "first", "filter": [{"function": "take_first"}]}]
    results = evaluate(tasks=[task(filter_list=chosen)])
    assert all(sample["doc"]["_rag"]["passages"] for sample in results["samples"]["visits"])
    assert results["results"]["visits"]["em,first"] == 1.0


def test_prompts_that_no_model_can_take_do_not_stop_the_others(documents, docs):
    template = Template("1", "Read.", "Read.", "Read.", "D:\n{documents}", "R:\n{rules}", "Q: {query}", "A:")

    def careful(query, *, k: int = 2):
        long = "word " * 500 if query.id == "q1" else "word"
        return Answer((yield from generate(Prompt(template, long))))

    from lm_eval.api.instance import Instance

    model = model_class("careful", careful)(generator="scripted-lm", journal="off", max_prompt_tokens=50)
    requests = [Instance("generate_until", doc, (doc["query"], {"until": ["\n"]}), 0) for doc in docs]
    answers = model.generate_until(requests)
    assert [bool(answer.aux["failure"]) for answer in answers] == [doc["id"] == "q1" for doc in docs]


def test_what_fills_up_a_ranks_share_is_neither_asked_nor_counted_again(documents, docs, scripted_lm):
    """lm_eval appends the last request, all its repeats, until every rank has equally many."""
    from lm_eval.api.instance import Instance

    own = [
        Instance("generate_until", doc, (doc["query"], {"temperature": 0.5}), 0, ("visits", i, 2))
        for i, doc in enumerate(docs)
    ]
    repeated = [request for request in own for _ in range(2)]
    model = model_of("standard_rag")(generator="scripted-lm", corpus=documents, journal="off")
    answers = model.generate_until([*repeated, *repeated[-2:], *repeated[-2:]])
    assert len(answers) == 16 and answers[-4:] == [*answers[10:12], *answers[10:12]]
    assert len(scripted_lm.seen) == 12 and model.counts["questions"] == 12 and model.counts["Generate"] == 12
    assert [query.repeat for query in queries_of(repeated)] == [0, 1] * 6
