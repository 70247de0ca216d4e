"""Methods as lm_eval models: its flags, the records in its samples, what stands in its results, what is refused."""

import copy
import dataclasses
import json
import logging
import pickle
from pathlib import Path

import pytest

from lm_eval_rag._register import METHODS, tasks_folder
from lm_eval_rag.harness import adapter
from lm_eval_rag.harness.adapter import RagLM, model_class
from lm_eval_rag.harness.asks import generate, retrieve
from lm_eval_rag.harness.errors import UserError
from lm_eval_rag.harness.prompts import Prompt, Template
from lm_eval_rag.harness.record import RagText
from lm_eval_rag.harness.task import RagTask
from lm_eval_rag.harness.types import Answer

TOWNS = ["Ulm", "Bonn", "Kiel", "Jena", "Trier", "Celle"]
DOCS = [
    {
        "id": f"q{i}",
        "query": f"what does Person{i} Alba visited ?",
        "time": None,
        "answers": [f"{town} Burg", f"City of {town}"],
        "corpus": None,
    }
    for i, town in enumerate(TOWNS)
]
LONG = {**DOCS[0], "id": "long", "query": "why " * 300}
CONFIG = {
    "task": "visits",
    "test_split": "test",
    "doc_to_text": "Question: {{query}}\nAnswer:",
    "doc_to_target": "{{answers[0]}}",
    "output_type": "generate_until",
    "generation_kwargs": {"until": ["\n"], "max_gen_toks": 8, "do_sample": False},
}


@pytest.fixture(scope="module", autouse=True)
def scripted_lm():
    """An lm_eval model that answers with the last two words of the first document, and keeps its requests."""
    import lm_eval.models  # noqa: F401 - first lm_eval's own, which it registers only while there is none
    from lm_eval.api.model import LM
    from lm_eval.api.registry import register_model

    requests_seen = []

    @register_model("scripted-lm")
    class ScriptedLM(LM):
        seen = requests_seen

        def __init__(self, flavour="plain", batch_size=1, device=None, max_batch_size=None):
            super().__init__()
            self.flavour = flavour

        def tok_encode(self, text):
            return text.split()

        def apply_chat_template(self, history, add_generation_prompt=True):
            return f"<{history[0]['role']}> {history[0]['content']} <assistant>"

        def generate_until(self, requests, disable_tqdm=False):
            self.seen.extend(request.args for request in requests)
            return [answer_of(request.args[0]) for request in requests]

        def loglikelihood(self, requests):
            raise NotImplementedError

        loglikelihood_rolling = loglikelihood

    return ScriptedLM


def answer_of(prompt):
    _, found, after = prompt.rpartition("Documents:\n")
    return " ".join(after.split("\n")[0].rstrip(".").split()[-2:]) if found else "I don't know"


@pytest.fixture(autouse=True)
def clean(scripted_lm):
    scripted_lm.seen.clear()
    adapter.unscored.clear()
    yield
    adapter.unscored.clear()


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    path = tmp_path_factory.mktemp("documents") / "visits.jsonl"
    facts = [(f"Person{i} Alba", "visited", f"{town} Burg") for i, town in enumerate(TOWNS)]
    rows = [{"id": f"d{i}", "text": f"{' '.join(fact)}.", "fact": fact} for i, fact in enumerate(facts)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def task(docs=DOCS, **config):
    from datasets import Dataset, DatasetDict

    class Visits(RagTask):
        def download(self, *arguments, **options):
            self.dataset = DatasetDict({"test": Dataset.from_list(docs)})

    return Visits(config={**CONFIG, **config})


@pytest.fixture
def evaluate(documents):
    """``evaluate(method, arguments, ...)``: the task above with a method over the documents above."""
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    def evaluate(method="standard_rag", arguments=(), *, tasks=None, **options):
        base = {"generator": "scripted-lm", "corpus": documents, "journal": "off"}
        given = {key: value for key, value in {**base, **dict(arguments)}.items() if value is not None}
        manager = TaskManager(include_defaults=False, include_path=str(tasks_folder()))
        return simple_evaluate(model=method, model_args=given, tasks=tasks or [task()], task_manager=manager, **options)

    return evaluate


def ids(results, name="visits"):
    return [sample["doc"]["id"] for sample in results["samples"][name]]


# --- lm_eval's flags


def test_a_method_is_scored_as_a_model(evaluate):
    results = evaluate()
    scores = results["results"]["visits"]
    assert scores["em,none"] == scores["recall@1,none"] == scores["mrr,none"] == scores["attributed,none"] == 1.0
    assert scores["crag_score,none"] == 1.0 and scores["em_stderr,none"] == 0.0
    assert ids(results) == [doc["id"] for doc in DOCS]


def test_limit_and_samples_choose_the_questions(evaluate, scripted_lm):
    assert ids(evaluate(limit=2)) == ["q0", "q1"] and len(scripted_lm.seen) == 2
    assert ids(evaluate(samples={"visits": [1, 4]})) == ["q1", "q4"]


def test_log_samples_off_leaves_scores_alone(evaluate):
    results = evaluate(log_samples=False)
    assert "samples" not in results and results["results"]["visits"]["em,none"] == 1.0


@pytest.mark.parametrize("predict_only", [False, True])
def test_the_record_stands_in_the_samples(evaluate, predict_only):
    results = evaluate(arguments={"k": 3}, predict_only=predict_only, log_samples=True)
    for doc, sample in zip(DOCS, results["samples"]["visits"], strict=True):
        record = sample["doc"]["_rag"]
        assert record["answer"] == sample["filtered_resps"][0] == doc["answers"][0]
        assert record["passages"][0]["object"] == doc["answers"][0] and len(record["passages"]) == 3
        assert record["prompt"].rstrip().endswith("Answer:") and doc["query"] in record["prompt"]
        assert record["calls"] == {"Generate": 1, "Retrieve": 1} and record["failure"] is None
        assert record["prompt_tokens"] == len(record["prompt"].split()) and record["completion_tokens"] == 2
        assert record["seconds"] > 0 and (record["journalled"], record["dropped_passages"]) == (0, 0)
        json.dumps(record)
    assert ("em,none" in results["results"]["visits"]) is not predict_only


def test_records_do_not_leak_into_the_next_run(evaluate):
    shared = task()
    evaluate(tasks=[shared])
    assert all("_rag" not in doc for doc in shared.dataset["test"])


@pytest.mark.parametrize(("arguments", "questions"), [({}, 3), ({"shots": 1}, 2), ({"shots": 0}, 1)])
def test_num_fewshot_is_shots_unless_shots_is_given(evaluate, scripted_lm, arguments, questions):
    results = evaluate(
        "standard_prompting", {"corpus": None, **arguments}, tasks=["ruleqa_demo"], num_fewshot=2, limit=3
    )
    assert [prompt.count("Question:") for prompt, _ in scripted_lm.seen] == [questions] * 3
    assert "recall@1,none" not in results["results"]["ruleqa_demo"]  # nothing retrieved: unscored, not 0


def test_a_method_without_examples_says_that_num_fewshot_is_not_used(evaluate, caplog):
    with caplog.at_level(logging.WARNING, logger="lm_eval_rag"):
        evaluate("rule_vote", {"corpus": None, "generator": None}, tasks=["ruleqa_demo"], num_fewshot=2, limit=2)
    assert "rule_vote takes no worked examples; --num_fewshot 2 is not used" in caplog.text


@pytest.mark.parametrize("chat", [False, True])
def test_apply_chat_template_reaches_the_generator(evaluate, scripted_lm, chat):
    results = evaluate(apply_chat_template=chat)
    assert [prompt.startswith("<user>") for prompt, _ in scripted_lm.seen] == [chat] * 6
    assert all(not sample["doc"]["_rag"]["prompt"].startswith("<") for sample in results["samples"]["visits"])


def test_the_chat_template_changes_the_fingerprint(evaluate):
    plain, chat = (evaluate(apply_chat_template=given)["config"]["rag"] for given in (False, True))
    assert plain["fingerprint"] != chat["fingerprint"]


def test_gen_kwargs_reach_the_generator(evaluate, scripted_lm, caplog):
    evaluate(limit=1)
    assert scripted_lm.seen[-1][1] == {"until": ["\n"], "max_gen_toks": 8}
    with caplog.at_level(logging.WARNING, logger="lm_eval_rag"):
        evaluate(limit=1, gen_kwargs="max_gen_toks=5,temperature=0.7,do_sample=True,top_p=0.9")
    assert scripted_lm.seen[-1][1] == {"until": ["\n"], "max_gen_toks": 5, "do_sample": True, "temperature": 0.7}
    assert "do not use: top_p" in caplog.text
    evaluate(limit=1, gen_kwargs={"temperature": 0.7, "do_sample": False})
    assert "temperature" not in scripted_lm.seen[-1][1]


def test_use_cache_is_refused_and_the_journal_named(evaluate, tmp_path):
    with pytest.raises(UserError, match=r"--use_cache is refused.*journal=PATH"):
        evaluate(use_cache=str(tmp_path / "cache"))


def test_a_journal_serves_the_second_run(evaluate, scripted_lm, tmp_path):
    journal = {"journal": str(tmp_path / "deep" / "j.sqlite")}
    first = evaluate(arguments=journal)
    made = len(scripted_lm.seen)
    second = evaluate(arguments=journal)
    assert made == len(scripted_lm.seen) == 6
    assert second["config"]["rag"]["counts"]["journalled"] == second["config"]["rag"]["counts"]["calls"] == 12
    assert first["results"] == second["results"]
    with pytest.raises(UserError, match="belongs to another run"):
        evaluate(arguments={**journal, "k": 3})


# --- arguments


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"kk": 3}, r"Unknown argument 'kk'. Did you mean 'k'"),
        ({"retreiver": "bm25"}, r"Unknown argument 'retreiver'. Did you mean 'retriever'"),
        ({"retriever": "bm52"}, r"Unknown retriever 'bm52'. Did you mean 'bm25'"),
        ({"retriever_size": 3}, r"size"),
        ({"generator": "hff"}, r"Unknown generator 'hff'. Did you mean 'hf'"),
        ({"k": 0}, r"k=0 is not allowed"),
        ({"k": "many"}, r"k='many' is not allowed"),
        ({"max_prompt_tokens": 0}, r"max_prompt_tokens=0 is not allowed"),
        ({"seed": -1}, r"seed=-1 is not allowed"),
        ({"document_order": "worst"}, r"best_first"),
        ({"corpus": "nowhere.jsonl"}, r"nowhere.jsonl"),
        ({"prompt_file": "nowhere.toml"}, r"nowhere.toml"),
        ({"gen_flavor": "sweet"}, r"generator=scripted-lm with .*flavor.* cannot be built.*gen_NAME=VALUE"),
        ({"gen_api_key": "sk-1"}, r"gen_api_key is refused"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_bad_arguments_say_what_is_allowed(evaluate, arguments, said):
    with pytest.raises(UserError, match=said) as raised:
        evaluate(arguments=arguments)
    assert "\n" not in str(raised.value)


def test_arguments_may_come_as_a_text(documents):
    made = model_of("standard_rag").create_from_arg_string(
        f"k=3,generator=scripted-lm,gen_flavour=sweet,corpus={documents},journal=off", {"batch_size": 4, "device": None}
    )
    assert made.setup.parameters == {"k": 3} and made.generator.lm.flavour == "sweet"
    assert made.generator.spec.batch_size == 4


def model_of(name):
    from lm_eval.api.registry import get_model

    return get_model(name)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_is_a_model(name):
    assert issubclass(model_of(name), RagLM) and model_of(name).name == name


def test_two_adapters_get_two_results_folders(documents):
    paths = set()
    for given in ({"k": 1}, {"k": 2}, {"k": 1, "gen_flavour": "sweet"}, {"k": 1, "corpus": documents}):
        arguments = {"generator": "scripted-lm", **given}
        model_of("standard_rag").create_from_arg_obj(arguments, {"batch_size": 1})
        paths.add(arguments["path"])
        assert arguments["path"].startswith("standard_rag-")
    model_of("rulerag_icl").create_from_arg_obj(arguments := {"generator": "scripted-lm", "k": 1})
    assert len({*paths, arguments["path"]}) == 5
    model_of("standard_rag").create_from_arg_obj(arguments := {"path": "mine"})
    assert arguments["path"] == "mine"


# --- what stands in the results


def test_results_tell_what_produced_them(evaluate, documents):
    rag = evaluate(arguments={"k": 3, "gen_flavour": "sweet"})["config"]["rag"]
    assert rag["method"] == "standard_rag" and rag["parameters"]["k"] == 3 and rag["parameters"]["documents"] == 10
    assert rag["generator"][:2] == ["scripted-lm", {"flavour": "sweet"}] and rag["journal"] is None
    assert rag["retriever"][0] == "bm25" and rag["indexes"] and rag["corpus"]
    assert set(rag["versions"]) >= {"lm-eval-rag", "lm_eval"}
    assert rag["counts"] == {
        "questions": 6, "unscored": 0, "calls": 12, "journalled": 0, "Retrieve": 6, "Generate": 6,
    }  # fmt: skip
    json.dumps(rag)


def test_the_fingerprint_changes_with_what_changes_answers_alone(evaluate, documents, tmp_path):
    def fingerprint(**arguments):
        return evaluate(arguments=arguments, limit=1)["config"]["rag"]["fingerprint"]

    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({"id": "d", "text": "Person0 Alba visited Rome Burg."}))
    moved = tmp_path / "moved.jsonl"
    moved.write_bytes(Path(documents).read_bytes())
    base = fingerprint()
    assert base == fingerprint(journal=str(tmp_path / "j.sqlite")) == fingerprint(corpus=str(moved))
    changed = [{"k": 3}, {"gen_flavour": "sweet"}, {"corpus": str(other)}, {"max_prompt_tokens": 99}, {"seed": 1}]
    assert len({base, *(fingerprint(**given) for given in changed)}) == 6


def test_a_local_folder_generates(evaluate, little_llama):
    arguments = {"generator": "hf", "gen_pretrained": str(little_llama), "gen_dtype": "float32"}
    results = evaluate(arguments=arguments, limit=3, device="cpu", batch_size=2)
    records = [sample["doc"]["_rag"] for sample in results["samples"]["visits"]]
    assert len(records) == 3 and all(record["answer"] and record["failure"] is None for record in records)
    assert all(record["completion_tokens"] > 0 for record in records)
    name, given, (files,) = results["config"]["rag"]["generator"]
    assert (name, given["pretrained"]) == ("hf", str(little_llama))
    assert "model.safetensors" in {file for file, _ in files}


# --- failures


def test_a_failed_question_is_unscored_and_named(evaluate, caplog):
    docs = [*DOCS[:2], LONG, *DOCS[2:4]]
    with caplog.at_level(logging.WARNING, logger="lm_eval_rag"):
        results = evaluate(arguments={"max_prompt_tokens": 80}, tasks=[task(docs)])
    samples = {sample["doc"]["id"]: sample for sample in results["samples"]["visits"]}
    assert adapter.unscored == ["long"] and "Question long stays unscored: the prompt does not fit" in caplog.text
    assert samples["long"]["metrics"] == [] and "does not fit" in samples["long"]["doc"]["_rag"]["failure"]
    assert [sample["em"] for name, sample in samples.items() if name != "long"] == [1.0] * 4
    assert results["results"]["visits"]["em,none"] == 1.0  # of four questions, not 0.8 of five
    assert results["config"]["rag"]["counts"]["unscored"] == 1


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


def test_a_task_that_is_not_ours_is_answered_over_a_corpus_file(evaluate, tmp_path, scripted_lm):
    data = tmp_path / "plain.json"
    data.write_text("".join(json.dumps({"q": doc["query"], "a": doc["answers"][0]}) + "\n" for doc in DOCS))
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
    assert DOCS[0]["query"] in scripted_lm.seen[0][0] and scripted_lm.seen[0][1]["max_gen_toks"] == 256
    with pytest.raises(UserError, match=r"'plain/0' comes without a corpus.*corpus=FILE.jsonl"):
        evaluate(arguments={"corpus": None}, tasks=[config])


# --- what a method can see


def test_gold_answers_are_unreachable(documents):
    """All that a method is given, and all that it leaves, is searched for the gold answers."""
    docs = [{**doc, "answers": [f"gold{i}"]} for i, doc in enumerate(DOCS)]
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
def test_only_the_oracle_control_is_lent_gold_answers_and_only_its_backend(rules, held, documents):
    model = model_of("rulerag_icl")(generator="scripted-lm", rules=rules, corpus=documents, journal="off")
    requests = [fake_request(doc) for doc in DOCS]
    gold = model._gold(requests, adapter._queries(requests))
    assert gold == ({(None, doc["id"]): doc["answers"] for doc in DOCS} if held else {})


# --- the carrier of the record


@pytest.mark.parametrize("through", [copy.copy, copy.deepcopy, lambda text: pickle.loads(pickle.dumps(text))])
def test_the_record_survives_copies_and_processes(through):
    text = through(RagText("Ulm", {"answer": "Ulm", "passages": [{"id": "d1"}]}))
    assert text == "Ulm" and type(text) is RagText and text.aux["passages"] == [{"id": "d1"}]
    assert json.dumps(text) == '"Ulm"'


def test_the_record_survives_filters_that_choose(evaluate):
    chosen = [{"name": "first", "filter": [{"function": "take_first"}]}]
    results = evaluate(tasks=[task(filter_list=chosen)])
    assert all(sample["doc"]["_rag"]["passages"] for sample in results["samples"]["visits"])
    assert results["results"]["visits"]["em,first"] == 1.0


def test_prompts_that_no_model_can_take_do_not_stop_the_others(documents):
    template = Template("1", "Read.", "Read.", "Read.", "D:\n{documents}", "R:\n{rules}", "Q: {query}", "A:")

    def careful(query, *, k: int = 2):
        long = "word " * 500 if query.id == "q1" else "word"
        return Answer((yield from generate(Prompt(template, long))))

    from lm_eval.api.instance import Instance

    model = model_class("careful", careful)(generator="scripted-lm", journal="off", max_prompt_tokens=50)
    requests = [Instance("generate_until", doc, (doc["query"], {"until": ["\n"]}), 0) for doc in DOCS]
    answers = model.generate_until(requests)
    assert [bool(answer.aux["failure"]) for answer in answers] == [doc["id"] == "q1" for doc in DOCS]
