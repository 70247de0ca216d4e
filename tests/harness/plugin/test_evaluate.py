"""``lm_eval_rag.evaluate`` and ``lm-eval-rag evaluate``: own documents, questions and rules through lm_eval."""

import json
from pathlib import Path
from typing import Any

import pytest

import lm_eval_rag
from lm_eval_rag import Answer, Corpus, Passage, Plan, Query, UserError, cli, retrieve
from lm_eval_rag.harness.plugin.evaluate_cli import evaluate_main
from lm_eval_rag.harness.plugin.evaluation import Evaluation
from lm_eval_rag.harness.report.run_files import read_runs
from lm_eval_rag.harness.view.view_traces import read_steps

FACTS = [
    {"id": f"f{i}", "subject": f"Person {i}", "relation": relation, "object": f"Town {i}"}
    for i in range(8)
    for relation in ("was born in", "is a citizen of")[: 2 if i < 6 else 1]
]
FACTS = [{**fact, "id": f"{fact['id']}-{n}"} for n, fact in enumerate(FACTS)]
SYSTEM = """
calls = []
def answer(question):
    calls.append(question)
    return {"answer": "Town 6", "passages": [{"id": "f6-12"}]}
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undescribed: None) -> Path:
    """A working folder with a cache of its own, facts, questions and a system."""
    monkeypatch.setenv("LM_EVAL_RAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    rows = ["id,question,answer,gold_passages,kind"]
    rows += [f"p{i},what does Person {i} is a citizen of ?,Town {i},f{i}-{i + 6},new" for i in (6, 7)]
    rows += ["p0,what does Person 0 was born in ?,Town 0,,old"]
    (tmp_path / "asked.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "facts.jsonl").write_text("\n".join(map(json.dumps, FACTS)))
    (tmp_path / "my.py").write_text(SYSTEM)
    return tmp_path


def first_object(query: Query, *, k: int = 5) -> Plan[Answer]:
    """The object of the best passage."""
    passages = yield from retrieve(query.text, k)
    return Answer(passages[0].fact[2] if passages and passages[0].fact else "", passages)


def test_the_command(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["evaluate", "--documents", "facts.jsonl", "--questions", "asked.csv", "--rules", "mine"]
    argv += ["--methods", "rule_vote,external=my.py:answer", "--model_args", "n_rules=3", "--out", "out"]
    assert cli.main(argv) == 0
    said, shown = capsys.readouterr()
    assert "Run 2 of 2: external-my.py-answer" in shown and "it/s" not in shown
    assert "it/s" in (place / "out" / "log.txt").read_text()
    assert {line.split("  ")[0] for line in said.splitlines()} >= {"rule_vote", "external function=my.py:answer"}
    assert "lm-eval-rag report out" in said and "100.0" in said
    runs = read_runs([place / "out"])
    assert {run.label: run.scores["em"] for run in runs} == {
        "rule_vote": {"p6": 1.0, "p7": 1.0, "p0": 1.0},
        "external function=my.py:answer": {"p6": 1.0, "p7": 0.0, "p0": 0.0},
    }
    assert runs[0].task == "asked" and {run.path.parents[1].name for run in runs} == {
        "rule_vote", "external-my.py-answer"
    }  # fmt: skip
    assert cli.main(["report", "out/rule_vote", "out/external-my.py-answer", "--metrics", "em"]) == 0
    everything = sorted(map(str, (place / "out").glob("*")))
    assert len(everything) == 3 and cli.main(["report", *everything, "--metrics", "em"]) == 0, "log.txt is left out"
    assert cli.main(["report", str(place / "out" / "log.txt")]) == 2
    assert "log.txt is not JSON" in capsys.readouterr().err
    assert cli.main(["report", "out", "--metrics", "em", "--by", "kind"]) == 0
    assert "by kind" in capsys.readouterr().out
    assert cli.main(["rescore", "out"]) == 0
    assert {run.label: set(read_steps(run)) for run in runs} == {run.label: {"p6", "p7", "p0"} for run in runs}


def test_the_embedded_generator_is_named_as_a_toy(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["evaluate", "--documents", "facts.jsonl", "--questions", "asked.csv", "--limit", "1", "--out", "out"]
    assert cli.main([*argv, "--methods", "standard_rag,external=my.py:answer"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "embedded generator" in line]
    assert line.startswith("standard_rag answered with") and "--generator takes any model" in line


def test_unscored_questions_are_named_and_give_status_3(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "my.py").write_text("def answer(question):\n    return {'Person 6': 'x'}[question[10:18]]\n")
    argv = ["evaluate", "--documents", "facts.jsonl", "--questions", "asked.csv", "--methods", "external=my.py:answer"]
    assert cli.main([*argv, "--out", "out"]) == 3
    out, err = capsys.readouterr()
    assert "2 questions stay unscored: p7, p0." in err
    assert len([line for line in out.splitlines() if line.startswith("external")]) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (["--methods", "standard_rga"], "Unknown method 'standard_rga'. Did you mean 'standard_rag'"),
        (["--methods", "external"], "The method 'external' is not allowed"),
        (["--methods", "mine="], "The method 'mine=' is not allowed"),
        (["--methods", "mine=standard_rga"], "Unknown method 'standard_rga'"),
        (["--methods", "externl=my.py:answer"], "write external=FILE.py:NAME"),
        (["--methods", "a=standard_rag,a=standard_prompting"], "Two runs are a"),
        (["--methods", "external=no.py:answer"], "there is no file no.py"),
        (["--methods", "my.py:answer"], "write external=FILE.py:NAME"),
        (["--methods", "standard_rag,external=my.py:anwser"], "Did you mean 'answer'"),
        (["--methods", "rule_vote"], "rule_vote cannot answer over these documents: it votes by facts"),
        (["--methods", "link_vote"], "link_vote cannot answer over these documents: it copies from facts"),
        (["--methods", "standard_rag,standard_rag"], "Two runs are standard_rag"),
        (["--methods", ","], "There are no methods"),
        (["--retrievers", "bm52"], "Unknown retriever 'bm52'. Did you mean 'bm25'"),
        (["--model_args", "kk=5"], "Unknown argument 'kk'. Did you mean 'k'"),
        (["--model_args", "k=many"], "k='many' is not allowed"),
        (["--generator", "tinny"], "tinny"),
        (["--metadata", "{"], "is not JSON"),
        (["--metadata", "[]"], "is no object"),
        (["--metadata", '{"judge": "rulse"}'], "judge=rulse"),
        (["--limit", "0"], "limit=0"),
        (["--overlap", "200"], "overlap=200 is not allowed"),
        (["--documents", "nowhere"], "'nowhere' does not exist"),
        (["--questions", "nowhere.csv"], "nowhere.csv cannot be read: it does not exist"),
        (["--rules", "nowhere.csv"], "nowhere.csv cannot be read"),
        (["--out", "my.py"], "--out my.py is a file. Give a folder"),
    ],
)
def test_mistakes_on_the_command_line(
    place: Path, capsys: pytest.CaptureFixture[str], change: list[str], said: str
) -> None:
    (place / "texts.csv").write_text("text\nPerson 6 was born in Town 6.\n")
    argv = ["evaluate", "--documents", "texts.csv", "--questions", "asked.csv", "--out", "out"]
    (place / "asked.csv").write_text("question,answer\nwho?,me\n")
    assert cli.main([*argv, *change]) == 2
    out, err = capsys.readouterr()
    (line,) = [line for line in err.splitlines() if line.startswith("lm-eval-rag: ")]
    assert said in line and out == "" and not list(place.rglob("results_*"))


def test_in_python_with_tables_and_a_second_call_from_the_journal(place: Path) -> None:
    import polars as pl

    def run() -> Evaluation:
        return lm_eval_rag.evaluate(
            pl.DataFrame(FACTS),
            pl.read_csv("asked.csv"),
            rules=[{"head": "is a citizen of", "body": "was born in", "confidence": 0.9}],
            methods=["rule_vote", first_object, "external=my.py:answer"],
            retrievers="bm25,static",
            out="out",
            name="mine",
        )

    first = run()
    scores = {row["run"]: row for row in first.scores.to_dicts()}
    assert list(scores) == [
        "rule_vote retriever=bm25", "rule_vote retriever=static", "first_object retriever=bm25",
        "first_object retriever=static", "external function=my.py:answer",
    ]  # fmt: skip
    vote, external = scores["rule_vote retriever=bm25"], scores["external function=my.py:answer"]
    assert (vote["method"], vote["retriever"], vote["questions"], vote["unscored"]) == ("rule_vote", "bm25", 3, 0)
    assert vote["em"] == pytest.approx(2 / 3)  # one rule, and no rule that a relation repeats itself
    assert 0 == vote["em_low"] <= vote["em"] <= vote["em_high"] == 1
    assert external["em"] == pytest.approx(1 / 3) and external["retriever"] is None
    answers = first.answers.filter(pl.col("run") == "external function=my.py:answer")
    assert answers["id"].to_list() == ["p6", "p7", "p0"] and answers["answer"].to_list() == ["Town 6"] * 3
    assert answers["passages"].to_list() == [["f6-12"]] * 3 and answers["em"].to_list() == [1, 0, 0]
    assert len(first.answers.to_pandas()) == 15
    assert "rule_vote retriever=bm25" in first.report() and "by kind" in first.report()
    table = first._repr_html_()
    assert table.count("<tr>") == 6 and "external function=my.py:answer" in table
    assert not first.unscored and repr(first).count("\n") == 7 and repr(first).endswith("out")

    second = run()
    assert second.scores.drop("seconds_p50").equals(first.scores.drop("seconds_p50"))
    for result in second.runs:
        records = [sample["doc"]["_rag"] for sample in result.samples]
        asked = sum(r["calls"].get("Retrieve", 0) + r["calls"].get("AskSystem", 0) for r in records)
        assert sum(record["journalled"] for record in records) == asked > 0


def answering(question: str) -> dict[str, Any]:
    """A system at the top of a file."""
    return {"answer": "Town 6", "passages": [{"id": "f6-12"}]}


class Bot:
    """A system with a state."""

    def __init__(self, town: str) -> None:
        self.town = town

    async def __call__(self, query: Query) -> str:
        return self.town if query.id != "p7" else "Town 7"


def test_functions_of_python_are_systems_and_runs_have_names(place: Path) -> None:
    def run() -> Evaluation:
        methods = {
            "Ours, now": answering,
            "Bot": Bot("Town 6"),
            "lambda": lambda question: question,
            "Vote": "rule_vote",
            "by file": "external=my.py:answer",
        }
        return lm_eval_rag.evaluate(FACTS, "asked.csv", rules="mine", methods=methods, out="out")

    first = run()
    labels = ["Ours, now", "Bot", "lambda", "Vote", "by file"]
    assert first.scores["run"].to_list() == labels and repr(first).splitlines()[2].startswith("Ours, now ")
    assert {path.parents[1].name for path in first.files} == {"Ours-now", "Bot", "lambda", "Vote", "by-file"}
    scores = {run.label: run.scores["em"] for run in first.runs}
    assert scores["Ours, now"] == scores["by file"] == {"p6": 1.0, "p7": 0.0, "p0": 0.0}
    assert scores["Bot"] == {"p6": 1.0, "p7": 1.0, "p0": 0.0} and sum(scores["lambda"].values()) == 0
    passages = {run.label: run.samples[0]["doc"]["_rag"]["passages"] for run in first.runs}
    assert passages["Ours, now"][0]["id"] == "f6-12" and passages["Bot"] is None
    journalled = {
        result.label: sum(sample["doc"]["_rag"]["journalled"] for sample in result.samples) for result in run().runs
    }
    assert journalled["Ours, now"] == 3 and journalled["Bot"] == journalled["lambda"] == 0, "only a file tells changes"
    names = lm_eval_rag.evaluate(
        FACTS, "asked.csv", methods=[first_object, "top=external=my.py:answer"], out="one", limit=1
    )
    assert names.scores["run"].to_list() == ["first_object", "top"]


@pytest.mark.parametrize(
    ("methods", "said"),
    [
        ([3], "The method 3 is not allowed"),
        ([Bot], "is not allowed: give a name, a generator function"),
        ([lambda: "x"], "takes no argument. Write it as `def"),
        ([answering, answering], "Two runs are answering"),
        ({}, "There are no methods"),
        ({"a/b": answering, "a b": answering}, "Two runs are a-b"),
    ],
)
def test_mistakes_in_python(place: Path, methods: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        lm_eval_rag.evaluate(FACTS, "asked.csv", methods=methods, out="out")


def test_an_answer_to_a_question_without_gold_is_no_failure(place: Path) -> None:
    """It has no score, and running again would not give it one."""

    def town(question: str) -> str:
        if "fails" in question:
            raise ValueError("no")
        return "Town 0"

    questions = [
        {"id": "gold", "question": "where was Person 0 born?", "answer": "Town 0"},
        {"id": "none", "question": "where was Cy born?", "answer": ""},
        {"id": "failed", "question": "what fails?", "answer": ""},
    ]
    evaluation = lm_eval_rag.evaluate(FACTS, questions, methods={"Mine": town}, out="out")
    assert evaluation.unscored == ("failed",)


def test_html_in_names_stays_text(place: Path) -> None:
    evaluation = lm_eval_rag.evaluate(FACTS, "asked.csv", methods=[first_object], model_args={"k": 1}, out="out")
    (run,) = evaluation.runs
    object.__setattr__(run, "label", "<b>x</b>")
    assert "<b>" not in evaluation._repr_html_()


def test_gold_passages_of_documents_that_were_cut(place: Path) -> None:
    documents = [{"id": "long", "text": "Vale is old. " * 40 + "Ada was born in Vale."}, {"id": "other", "text": "No."}]
    questions = [
        {"question": "where was Ada born?", "gold_passages": ["long"]},
        {"question": "what is new?", "gold_passages": ["other"]},
        {"question": "who is it?", "gold_passages": ["nobody", "long"]},
    ]
    evaluation = lm_eval_rag.evaluate(documents, questions, methods=[first_object], passage_tokens=40, out="out")
    ids = evaluation.data.corpus.ids.to_pylist()
    assert ids[0] == "long#0" and ids[-1] == "other" and "long" not in ids
    assert evaluation.runs[0].scores["evidence_recall@5"] == {"q0": 1.0, "q1": 0.0}  # of the third one is missing
    assert "em" not in evaluation.scores.columns  # no question has answers
    odd = " ".join(evaluation.data.odd)
    assert "No question has answers" in odd and "1 of 3 questions (q2)" in odd


def test_a_misspelt_column_is_named(place: Path) -> None:
    evaluation = lm_eval_rag.evaluate(["A b."], [{"question": "a?", "anwser": "b"}], methods=[first_object], out="out")
    assert any("The column 'anwser' is read as a slice. Did you mean 'answer'?" in one for one in evaluation.data.odd)
    assert any("in a column 'answer' or 'answers'; read as slices were anwser." in one for one in evaluation.data.odd)


def test_what_is_odd_is_said_before_the_first_call(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    (place / "docs").mkdir()
    (place / "docs" / "a.md").write_text("Person 6 was born in Town 6.")
    for number in range(22):
        (place / "docs" / f"b{number:02}.png").write_bytes(b"x")
    with caplog.at_level("INFO"):
        questions = [{"question": "who?", "answer": "Nobody"}]
        lm_eval_rag.evaluate(place / "docs", questions, methods=[first_object], out="out")
    lines = [record.getMessage() for record in caplog.records]
    begin = lines.index("Run 1 of 1: first_object")
    before = "\n".join(lines[:begin])
    assert "1 documents, 1 passages, 0 of them facts; 0 rules." in before
    assert before.count("Not read: ") == 21 and "b19.png (unknown ending)" in before and "Not read: 2 more." in before
    assert "Answers that no document holds: 1 of 1 questions (q0)." in before
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert sum("Not read" in line or "Answers that" in line for line in warned) == 22


def test_a_judge_reads_answers_against_gold_passages(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are no answers to compare with; a question that has answers is judged as always."""
    from lm_eval_rag.harness.scoring.judge import Opinion
    from lm_eval_rag.harness.scoring.judge.llm import ModelJudge

    seen: list[tuple[str, Any]] = []

    def opinions(self: ModelJudge, items: Any) -> list[Opinion]:
        seen.extend((self.subject, item) for item in items)
        return [Opinion(float("Town 6" in " ".join(item.answers)), "why") for item in items]

    monkeypatch.setattr(ModelJudge, "opinions", opinions)
    questions = [
        {"question": "what does Person 6 was born in ?", "gold_passages": "f6-12"},
        {"question": "what does Person 7 was born in ?", "gold_passages": "f7-13"},
        {"question": "what does Person 1 was born in ?", "answer": "Rome"},
    ]
    evaluation = lm_eval_rag.evaluate(
        FACTS, questions, methods=[first_object], out="out", metadata={"judge": "tiny", "judge_batch_size": 1}
    )
    assert evaluation.runs[0].scores["factual_consistency"] == {"q0": 1.0, "q1": 0.0}
    assert evaluation.runs[0].scores["acc_lm"] == {"q2": 0.0}
    grounded = {item.question: item.answers for subject, item in seen if subject == "rationale"}
    assert grounded == {
        questions[0]["question"]: ("Person 6 was born in Town 6.",),
        questions[1]["question"]: ("Person 7 was born in Town 7.",),
    }


# --- a task as a YAML

YAML = """
task: my_facts
class: !function lm_eval_rag.OwnTask
dataset_path: ../asked.csv
corpus: ../facts.jsonl
rules: mine
metadata: {version: 1}
"""


def test_a_yaml_of_six_lines_and_one_that_includes_it(place: Path) -> None:
    """By lm_eval's own command, in this process."""
    from lm_eval._cli.harness import HarnessCLI

    lm_eval_rag.register()
    (place / "tasks").mkdir()
    (place / "tasks" / "my_facts.yaml").write_text(YAML)
    (place / "tasks" / "saved.yaml").write_text(
        "include: my_facts.yaml\ntask: my_saved\ncorpus: ../saved\nrules: null\n"
    )
    fact = ("Person 6", "is a citizen of", "Town 6")
    Corpus.of([Passage("f6-12", "Person 6 is a citizen of Town 6.", fact=fact)]).save(place / "saved")
    harness = HarnessCLI()
    words = ["run", "--include_path", "tasks", "--tasks", "my_facts,my_saved", "--model", "rule_vote"]
    arguments = harness._parser.parse_args([*words, "--output_path", "out", "--log_samples"])
    harness.execute(arguments)
    runs = {run.task: run for run in read_runs([place / "out"])}
    assert runs["my_facts"].scores["em"] == {"p6": 1.0, "p7": 1.0, "p0": 1.0}
    docs = [sample["doc"] for sample in runs["my_saved"].samples]
    assert docs[0]["kind"] == "new" and docs[0]["corpus"].startswith("documents/")
    assert [doc["gold"] for doc in docs] == [["f6-12"], None, None]  # the saved corpus has no other passage


def test_a_yaml_that_lacks_its_corpus(place: Path) -> None:
    from lm_eval_rag import OwnTask

    with pytest.raises(UserError, match="'mine' lacks corpus"):
        OwnTask({"task": "mine", "dataset_path": "asked.csv"})


def test_the_space_at_the_end_of_an_argument_stays() -> None:
    given: dict[str, Any] = {}

    def evaluate(**arguments: Any) -> Evaluation:
        given.update(arguments)
        raise UserError("read")

    argv = ["--documents", "d", "--questions", "q", "--model_args", "k=3,retriever_query_prefix=query: "]
    with pytest.raises(UserError, match="read"):
        evaluate_main(argv, evaluate)
    assert given["model_args"] == {"k": 3, "retriever_query_prefix": "query: "}
