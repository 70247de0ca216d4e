"""Methods as lm_eval models: lm_eval's own flags, and the records in the samples."""

import json
import logging

import pytest

from lm_eval_rag.harness.common.errors import UserError


def ids(results, name="visits"):
    return [sample["doc"]["id"] for sample in results["samples"][name]]


def test_a_method_is_scored_as_a_model(evaluate, docs):
    results = evaluate()
    scores = results["results"]["visits"]
    assert scores["em,none"] == scores["recall@1,none"] == scores["mrr,none"] == scores["attributed,none"] == 1.0
    assert scores["crag_score,none"] == 1.0 and scores["em_stderr,none"] == 0.0
    assert ids(results) == [doc["id"] for doc in docs]


def test_limit_and_samples_choose_the_questions(evaluate, scripted_lm):
    assert ids(evaluate(limit=2)) == ["q0", "q1"] and len(scripted_lm.seen) == 2
    assert ids(evaluate(samples={"visits": [1, 4]})) == ["q1", "q4"]


def test_log_samples_off_leaves_scores_alone(evaluate):
    results = evaluate(log_samples=False)
    assert "samples" not in results and results["results"]["visits"]["em,none"] == 1.0


@pytest.mark.parametrize("predict_only", [False, True])
def test_the_record_stands_in_the_samples(evaluate, predict_only, docs):
    results = evaluate(arguments={"k": 3}, predict_only=predict_only, log_samples=True)
    for doc, sample in zip(docs, results["samples"]["visits"], strict=True):
        record = sample["doc"]["_rag"]
        assert record["answer"] == sample["filtered_resps"][0] == doc["answers"][0]
        assert record["passages"][0]["object"] == doc["answers"][0] and len(record["passages"]) == 3
        assert record["prompt"].rstrip().endswith("Answer:") and doc["query"] in record["prompt"]
        assert record["calls"] == {"Generate": 1, "Retrieve": 1} and record["failure"] is None
        assert record["prompt_tokens"] == len(record["prompt"].split()) and record["completion_tokens"] == 2
        assert record["seconds"] > 0 and (record["journalled"], record["dropped_passages"]) == (0, 0)
        json.dumps(record)
    assert ("em,none" in results["results"]["visits"]) is not predict_only


def test_records_do_not_leak_into_the_next_run(evaluate, task):
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


def test_the_record_says_how_prompts_are_sent(evaluate, caplog):
    def said(**options):
        return evaluate(**options)["config"]["rag"]["prompt_form"]

    assert said() == "raw text: the tokenizer has no chat template"
    assert said(apply_chat_template=True) == said(arguments={"chat": True}) == "chat: asked for"
    assert said(arguments={"chat": False}) == "raw text: chat=False"
    with pytest.raises(UserError, match="chat=False and --apply_chat_template contradict each other"):
        evaluate(arguments={"chat": False}, apply_chat_template=True)


def test_an_instruct_model_gets_its_chat_template_by_default(evaluate, little_llama):
    given = {"generator": "hf", "gen_pretrained": str(little_llama), "gen_dtype": "float32"}
    runs = [evaluate(arguments={**given, **more}, limit=2)["config"]["rag"] for more in ({}, {"chat": False})]
    assert runs[0]["prompt_form"] == "chat: the tokenizer has a chat template (chat=False turns it off)"
    assert runs[1]["prompt_form"] == "raw text: chat=False" and runs[0]["fingerprint"] != runs[1]["fingerprint"]


def test_the_style_of_answers_is_part_of_the_identity(evaluate):
    runs = [evaluate(arguments=given, limit=1)["config"]["rag"] for given in ({}, {"answer_style": "short"})]
    assert [run["parameters"]["answer_style"] for run in runs] == ["free", "short"]
    assert runs[0]["fingerprint"] != runs[1]["fingerprint"]
    with pytest.raises(UserError, match=r"Unknown value of answer_style 'brief'.*Allowed: cot, free, short"):
        evaluate(arguments={"answer_style": "brief"}, limit=1)


def test_the_chat_template_changes_the_fingerprint(evaluate):
    plain, chat = (evaluate(apply_chat_template=given)["config"]["rag"] for given in (False, True))
    assert plain["fingerprint"] != chat["fingerprint"]


def test_gen_kwargs_reach_the_generator(evaluate, scripted_lm, caplog):
    evaluate(limit=1)
    assert scripted_lm.seen[-1][1] == {"until": ["\n"], "max_gen_toks": 8, "do_sample": False}
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
    counts = second["config"]["rag"]["counts"]
    assert (counts["journalled"], counts["calls"], counts["Retrieve"], counts["Generate"]) == (12, 6, 6, 6)
    assert first["results"] == second["results"]
    with pytest.raises(UserError, match="belongs to another run"):
        evaluate(arguments={**journal, "k": 3})


# --- --system_instruction


@pytest.mark.parametrize(
    ("chat", "given", "sent"),
    [
        (False, "Be short.", "Be short.\n\n{}"),
        (False, "Be short.\n", "Be short.\n{}"),  # white space of its own: nothing is put between
        (True, "Be short.", "<system> Be short. <user> {} <assistant>"),
        (True, None, "<user> {} <assistant>"),
        (False, "", "{}"),
    ],
)
def test_the_system_instruction_stands_before_the_methods_prompt(evaluate, scripted_lm, chat, given, sent):
    results = evaluate(apply_chat_template=chat, system_instruction=given)
    records = [sample["doc"]["_rag"] for sample in results["samples"]["visits"]]
    assert [prompt for prompt, _ in scripted_lm.seen] == [sent.format(record["prompt"]) for record in records]
    assert results["config"]["rag"]["system_instruction"] == (given or None)
    assert results["results"]["visits"]["em,none"] == 1.0


def test_the_system_instruction_changes_the_fingerprint_and_the_calls(evaluate, scripted_lm, tmp_path):
    runs = [evaluate(system_instruction=given)["config"]["rag"] for given in (None, "Be short.", "Be long.")]
    assert len({run["fingerprint"] for run in runs}) == 3
    journal = {"journal": str(tmp_path / "j.sqlite")}
    evaluate(arguments=journal, system_instruction="Be short.")
    with pytest.raises(UserError, match="belongs to another run"):
        evaluate(arguments=journal, system_instruction="Be long.")


def test_the_system_instruction_takes_room(evaluate, documents, docs):
    """The documents that are dropped make up for its words; the scripted model counts words."""
    from lm_eval_rag.harness.generators.fit import fit
    from lm_eval_rag.harness.generators.lm import LMGenerator
    from lm_eval_rag.harness.generators.spec import ModelSpec

    plain = LMGenerator(ModelSpec("scripted-lm"))
    plain.lm.max_length = 100
    assert plain.room(10) == 90
    plain.system = "Be as short as you can."
    assert plain.room(10) == 84
    plain.chat = True
    assert plain.room(10) == 81  # <system>, <user>, <assistant>
    assert fit("word " * 81, plain, 10).tokens == 81 and "does not fit" in str(fit("word " * 82, plain, 10))


def test_on_a_foreign_task_the_instruction_is_in_the_question_already(evaluate, scripted_lm, tmp_path, docs, task):
    data = tmp_path / "plain.json"
    data.write_text("".join(json.dumps({"q": doc["query"], "a": doc["answers"][0]}) + "\n" for doc in docs))
    foreign = {
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
    rag = evaluate(tasks=[foreign, task()], system_instruction="Be short.")["config"]["rag"]
    assert len(scripted_lm.seen) == 12 and all(prompt.count("Be short.") == 1 for prompt, _ in scripted_lm.seen)
    assert rag["system_instruction"] == "Be short."


def test_a_method_without_generator_says_that_the_instruction_is_not_used(evaluate, caplog):
    with caplog.at_level(logging.WARNING, logger="lm_eval_rag"):
        evaluate(
            "rule_vote",
            {"corpus": None, "generator": None},
            tasks=["ruleqa_demo"],
            limit=2,
            system_instruction="Be short.",
        )
    assert "rule_vote asked no generator; --system_instruction is not used" in caplog.text
